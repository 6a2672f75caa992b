"""What is tracked goes through torch.save, beside a model's weights."""

from __future__ import annotations

import io
from typing import Any

import pytest

import hockeystick as hs

torch = pytest.importorskip("torch")

STEP = hs.Gaussian(1.0).poisson(rate=0.01)


def saved(value: Any, *, weights_only: bool) -> Any:
    """What comes back."""
    file = io.BytesIO()
    torch.save({"weights": torch.zeros(2), "privacy": value}, file)
    file.seek(0)
    return torch.load(file, weights_only=weights_only)["privacy"]


def test_a_state_is_plain_enough_for_the_default_of_torch_load() -> None:
    odometer, restored = hs.Odometer(delta=1e-5), hs.Odometer(delta=1e-5)
    odometer.step(STEP)
    restored.load_state_dict(saved(odometer.state_dict(), weights_only=True))
    assert restored.epsilon().sides == odometer.epsilon().sides


def test_answers_and_curves_come_back_as_they_were() -> None:
    curve = hs.account(STEP * 200)
    bound = curve.epsilon(delta=1e-5)
    found = saved({"curve": curve, "bound": bound}, weights_only=False)
    assert found["bound"].sides == bound.sides
    assert found["curve"].epsilon(delta=1e-5).sides == bound.sides
