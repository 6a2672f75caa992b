"""A sweep on a Dask cluster of two workers gives what one process gives."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import hockeystick as hs


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as connected:
        yield connected


def test_two_workers_answer_as_one_process_does(client: Any) -> None:
    def plan(noise: float, steps: int) -> Any:
        return hs.Gaussian(noise).poisson(0.01) * steps

    grid: dict[str, Any] = {"noise": [0.8, 1.0, 1.5], "steps": [500, 1000], "delta": [1e-9, 1e-5]}
    assert hs.sweep(plan, **grid, workers=client).rows == hs.sweep(plan, **grid).rows


def test_a_family_defined_anywhere_is_calibrated_there(client: Any) -> None:
    rate = 0.02

    def plan(noise: float, steps: int) -> Any:
        return hs.Gaussian(noise).poisson(rate) * steps

    asked: dict[str, Any] = {"find": "noise", "steps": [500, 1000], "epsilon": [1.0, 2.0], "delta": 1e-5}
    assert hs.sweep(plan, **asked, workers=client).rows == hs.sweep(plan, **asked).rows


def test_the_package_can_be_named_in_what_is_sent() -> None:
    assert pickle.loads(pickle.dumps(hs)) is hs  # noqa: S301 - our own bytes
