"""The caller's numpy settings change no answer: underflow that raises outside does not inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import (
    Certified,
    Contour,
    Exact,
    Fourier,
    GaussianLimit,
    Lattice,
    Moments,
    MonteCarlo,
    SaddlePoint,
)
from hockeystick.filters import GaussianDPFilter, RenyiFilter

DPSGD = hs.Gaussian(1.0).poisson(0.01) * 300

RUNS: dict[str, tuple[hs.Step | hs.Composition, str]] = {
    "gaussian": (hs.Gaussian(1.0), "add-remove"),
    "gaussians": (hs.Gaussian(5.0) * 30, "add-remove"),
    "dpsgd": (DPSGD, "add-remove"),
    "fixed size": (hs.Gaussian(2.0).without_replacement(batch_size=3, population=100) * 200, "substitute"),
    "substitution": (hs.Gaussian(2.0).poisson(0.1) * 20, "substitute"),
    "laplace": (hs.Laplace(1.0) * 5, "add-remove"),
    "sampled laplace": (hs.Laplace(0.5).poisson(0.01) * 100, "add-remove"),
    "discrete gaussian": (hs.DiscreteGaussian(2.0) * 10, "add-remove"),
    "discrete laplace": (hs.DiscreteLaplace(0.01) * 10, "add-remove"),
    "binomial": (hs.Binomial(200, 0.01).poisson(0.1) * 2, "add-remove"),
    "response": (hs.RandomizedResponse(0.999999) * 60, "add-remove"),
    "leak": (hs.ApproximateDP(0.3, 1e-310) * 30, "add-remove"),
    "gaussian dp": (hs.GaussianDP(0.2) * 9, "add-remove"),
    "mixture": (hs.GaussianMixture.poisson_group(1.0, rate=0.01, size=2) * 2, "add-remove"),
    "vectors": (hs.DiscretePair((0.5, 0.5 - 1e-9, 1e-9), (0.25, 0.75, 0.0)) * 50, "add-remove"),
    "arrays": (hs.compose_arrays(noise_multipliers=np.linspace(1.0, 2.0, 5), rates=0.01), "add-remove"),
}


def _the_same(ask: Callable[[], Any]) -> None:
    """Asked twice from the start, in the caller's settings and in the strictest."""
    before = ask()
    with np.errstate(all="raise"):
        after = ask()
    assert repr(before) == repr(after)


@pytest.mark.parametrize("name", RUNS)
def test_every_mechanism_answers_where_underflow_raises(name: str) -> None:
    run, adjacency = RUNS[name]
    _the_same(lambda: hs.account(run, adjacency, tolerance=1e-2).epsilon(1e-200 if name != "arrays" else 1e-6))
    _the_same(lambda: hs.account(run, adjacency, tolerance=1e-2).delta(2.0))


@pytest.mark.parametrize(
    "accountant",
    [
        Certified(1e-2, engine="lattice"),
        Contour(),
        Exact(5),
        Fourier(1e-2, 20.0),
        GaussianLimit(),
        Lattice(1e-2),
        Lattice(1e-2, rounding="tangents"),
        Moments("quadratic"),
        MonteCarlo(samples=2000, seed=1),
        SaddlePoint("clt"),
    ],
    ids=lambda accountant: f"{accountant.name}",
)
def test_every_accountant_answers_where_underflow_raises(accountant: Any) -> None:
    _the_same(lambda: hs.account(DPSGD, "remove", accountant=accountant).epsilon(1e-5))
    _the_same(lambda: hs.account(DPSGD, "remove", accountant=accountant).delta(1.0))


def _odometer() -> Any:
    odometer = hs.Odometer(delta=1e-5)
    odometer.step(hs.Gaussian(1.0).poisson(0.01), 200)
    return odometer.epsilon(), odometer.audit(), hs.Odometer.from_json(odometer.to_json()).epsilon()


def _filters() -> Any:
    renyi, gaussian = RenyiFilter(2.0, 1e-30), GaussianDPFilter.for_budget(1.0, 1e-310)
    renyi.step(hs.Gaussian(100.0))
    gaussian.step(hs.Gaussian(500.0))
    planned = RenyiFilter.planned_for(hs.Gaussian(1.0).poisson(0.01), 2.0, 1e-5)
    return renyi.remaining, gaussian.remaining, planned.orders, renyi.allows(hs.Laplace(1.0))


DOORS: dict[str, Callable[[], Any]] = {
    "odometer": _odometer,
    "filters": _filters,
    "calibrate": lambda: hs.calibrate(lambda s: hs.Gaussian(s).poisson(0.01) * 100, epsilon=1.0, delta=1e-6).value,
    "dpsgd": lambda: hs.dpsgd.noise_multiplier_for(epsilon=2.0, delta=1e-6, rate=0.01, steps=100).value,
    "trade-off": lambda: hs.account(DPSGD, "remove").trade_off([1e-12, 0.1, 0.9]).false_negative_rate,
    "attack": lambda: hs.account(DPSGD, "remove").true_positive_rate(1e-12),
    "mu": lambda: hs.account(DPSGD).mu(floor=1e-8),
    "regret": lambda: hs.account(DPSGD).regret(0.5),
    "table": lambda: hs.account(DPSGD).to_table(epsilon=[0.5, 40.0]),
    "renyi": lambda: (hs.renyi(DPSGD, orders=[1.5, 64.0]) * 3).epsilon(1e-300),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_answers_where_underflow_raises(door: str) -> None:
    _the_same(DOORS[door])
