"""Data frames of pandas hold the numbers themselves."""

from __future__ import annotations

import pytest

import hockeystick as hs

pytest.importorskip("pandas")

RUN = hs.Gaussian(1.0).poisson(0.01) * 2000 + hs.Laplace(20.0)


def test_frames_hold_the_numbers_as_they_are() -> None:
    curve = hs.account(RUN)
    bound = curve.epsilon([1e-5, 1e-6])
    frame = bound.to_pandas()
    assert frame["lower"].tolist() == bound.lower.tolist()
    assert frame["upper"].tolist() == bound.upper.tolist()
    assert curve.epsilon(1e-5).to_pandas().shape == (1, 2)
    table = curve.to_pandas(delta=[1e-5, 1e-6])
    assert table["epsilon_upper"].tolist() == bound.upper.tolist()
    assert list(table.columns) == ["delta", "epsilon_lower", "epsilon_upper"]
    assert RUN.to_pandas()["count"].tolist() == [2000, 1]
    assert curve.trade_off([0.1, 0.2]).to_pandas().shape[0] == 2
    estimate = hs.account(RUN, accountant=hs.accountants.GaussianLimit()).epsilon([1e-5, 1e-6])
    assert estimate.to_pandas()["value"].tolist() == estimate.value.tolist()
