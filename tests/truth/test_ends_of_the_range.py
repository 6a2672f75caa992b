"""Questions at the ends: next to the mass at infinity or to the probability of ever being drawn, and nothing hidden."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, log1p, mp, mpf

import hockeystick as hs
from hockeystick.accountants import Certified, Contour, Fourier, GaussianLimit, Lattice, Moments, SaddlePoint
from hockeystick.accountants.base import Accountant
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import least_infinite


def _ever_drawn(rates: list[float]) -> mpf:
    """``1 - prod (1 - rate)`` to 60 digits."""
    with mp.workdps(80):
        return 1 - exp(mp.fsum(log1p(-mpf(rate)) for rate in rates))


def _sequence(rates: list[float], noise: float) -> hs.Composition:
    return hs.compose([(hs.Gaussian(noise).poisson(rate), 1) for rate in rates])


def _adversarial(steps: int, near: float, rng: np.random.Generator) -> list[float]:
    """Distinct rates whose ``log1p(-rate)``, added one by one, lose all they can towards zero."""
    rates: list[float] = []
    total = 0.0
    for _ in range(steps):
        tried = near * (1.0 + 1e-3 * rng.random(32))
        terms = np.array([math.log1p(-rate) for rate in tried.tolist()])
        best = int(np.argmax(((total + terms) - total) - terms))
        rates.append(float(tried[best]))
        total += float(terms[best])
    return rates


def _most(run: hs.Composition) -> float:
    """The bound on the probability of ever being drawn: from there on epsilon is certified to be 0."""
    return float(hs.account(run, "remove").directed["remove"].engine._ever)  # type: ignore[attr-defined]


@pytest.mark.parametrize("near", [1e-4, 1e-6, 0.003])
def test_the_probability_of_ever_being_drawn_is_rounded_up_over_many_steps(near: float) -> None:
    rates = _adversarial(2000, near, np.random.default_rng(5))
    assert len(set(rates)) == 2000
    truth = _ever_drawn(rates)
    run = _sequence(rates, 0.02)
    assert truth <= mpf(_most(run)) <= truth * (1 + mpf(10) ** -14)
    assert hs.account(run, "remove").epsilon(float(truth) * (1.0 + 1e-14)).upper == 0.0


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(200))
def test_rates_of_any_size_and_number(seed: int) -> None:
    rng = np.random.default_rng([31, seed])
    near = float(10.0 ** rng.uniform(-299.0 if seed % 4 == 0 else -12.0, -0.05))
    rates = (near * (1.0 + 1e-3 * rng.random(int(10.0 ** rng.uniform(0.0, 3.5))))).clip(0.0, 0.999).tolist()
    truth = _ever_drawn(rates)
    assert truth <= mpf(_most(_sequence(rates, 0.02))) <= truth * (1 + mpf(10) ** -14) + mpf(10) ** -290


def test_the_least_rate_is_answered_and_smaller_ones_are_refused() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(1e-300), "remove")
    assert mpf("0.38e-300") <= mpf(float(curve.delta(0.0).upper)) <= mpf("1.01e-300")
    for rate in (5e-324, 9e-301):
        with pytest.raises(ValueError, match="at least 1e-300"):
            hs.Gaussian(1.0).poisson(rate)


ALL_INFINITE = hs.RandomizedResponse(1.0) * 2  # nothing to transform
LEAKS = [
    hs.ApproximateDP(0.5, 1e-6) * 10,
    hs.ApproximateDP(1.0, 1e-320) * 4,
    hs.Binomial(10) * 3,
    ALL_INFINITE,
]


@pytest.mark.parametrize("run", LEAKS, ids=str)
@pytest.mark.parametrize("accountant", [Certified(), Contour(), Lattice(1e-2), Moments(), SaddlePoint("clt")], ids=str)
def test_deltas_next_to_the_mass_at_infinity(run: hs.Composition, accountant: Accountant) -> None:
    if run is ALL_INFINITE and isinstance(accountant, Contour | Moments | SaddlePoint):
        with pytest.raises((hs.UnknownPairError, PrecisionError), match=r"no finite loss|no loss is finite"):
            hs.account(run, "remove", accountant=accountant)
        return
    curve = hs.account(run, "remove", accountant=accountant)
    mass = hs.account(run, "remove").delta(math.inf)
    assert isinstance(mass, hs.Bound)
    ends = [float(end) for end in (mass.lower, mass.upper)]
    for delta in [5e-324, 1e-310, *ends, *(math.nextafter(end, way) for end in ends for way in (0.0, 1.0))]:
        try:
            bound = curve.epsilon(delta)
        except PrecisionError:
            continue
        assert isinstance(bound, hs.Bound)
        if delta < mass.lower:
            assert bound.upper == math.inf


@pytest.mark.parametrize("accountant", [Certified(), Contour(), Lattice(1e-2)], ids=str)
def test_the_mass_at_infinity_of_both_directions_is_the_larger_one(accountant: Accountant) -> None:
    run = hs.Binomial(9, 0.25) * 4 + hs.Gaussian(2.0) * 3
    masses = [1 - (1 - Fraction(p) ** 9) ** 4 for p in (0.25, 0.75)]
    bound = hs.account(run, accountant=accountant).delta(math.inf)
    assert isinstance(bound, hs.Bound)
    assert bound.lower <= max(masses) <= bound.upper


STEEP = hs.DiscretePair(
    (0.0004223664690589495, 0.9995776335309411, 1.2554829746261632e-232, 5.91536205245241e-54),
    (1.6130867903080928e-185, 0.005864822708264709, 4.456953787254669e-44, 0.9941351772917353),
)


@pytest.mark.parametrize(
    ("run", "quantity", "value"),
    [
        (STEEP * 3 + hs.Staircase(3.688783471304015e-08, 0.5), "epsilon", 0.9999997982727054),
        (hs.ExponentialMechanism(0.1) * 20, "delta", 1.0),
    ],
)
def test_a_note_states_the_width_of_the_answer(run: hs.Composition, quantity: str, value: float) -> None:
    """Which may be cut at the largest loss."""
    bound = getattr(hs.account(run, "add"), quantity)(value)
    width = bound.width if quantity == "epsilon" else bound.width / bound.lower
    assert any(f"was asked for and {width:.3g} reached" in note for note in bound.notes), bound


@pytest.mark.parametrize("step", [hs.Gaussian(1.0), hs.Gaussian(1.0).poisson(0.01) * 200], ids=str)
def test_the_least_delta_of_float64_is_answered(step: hs.Step | hs.Composition) -> None:
    for delta in (5e-324, 1e-323, 1e-310):
        bound = hs.account(step, "remove").epsilon(delta)
        assert 0.0 < bound.lower <= bound.upper < math.inf


@pytest.mark.parametrize(
    "accountant",
    [
        Lattice(1e-2),
        Lattice(1e-2, rounding="tangents"),
        Lattice(1e-2, rounding="buckets-up"),
        Moments(),
        Moments("quadratic"),
        SaddlePoint(),
        SaddlePoint("clt"),
        GaussianLimit(),
        Fourier(1e-2, 20.0),
        Certified(engine="lattice"),
        Certified(engine="contour"),
        Certified(),
    ],
    ids=str,
)
def test_steps_that_hide_nothing_are_refused_or_said_to(accountant: Accountant) -> None:
    for run in (hs.Binomial(1, sensitivity=2), hs.DiscretePair((1.0, 0.0), (0.0, 1.0)) * 3):
        with suppress(PrecisionError):
            curve = hs.account(run, "remove", accountant=accountant)
            delta = curve.delta(0.1)
            assert isinstance(delta, hs.Bound)
            assert delta.upper == 1.0
            assert curve.epsilon(0.5).upper == math.inf


@pytest.mark.parametrize("epsilon", [1e10, 1e300])
def test_enormous_epsilons_are_answered(epsilon: float) -> None:
    for run in (
        hs.Gaussian(1.0) * 3,
        hs.Gaussian(1.0).poisson(0.01) * 60,
        hs.DiscreteGaussian(1.0) * 5,
        hs.compose([(hs.Gaussian(1.0).poisson(0.01), 30), (hs.ApproximateDP(0.1, 1e-7), 3), (hs.Laplace(2.0), 1)]),
    ):
        bound = hs.account(run, "remove", accountant=Certified(points=1 << 18)).delta(epsilon)
        assert 0.0 <= bound.lower <= bound.upper <= 1e-6
        assert bound.upper > 0.0  # the losses of all these have no largest


@pytest.mark.parametrize("true", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 10**12 + 1), Fraction(1, 10**310)])
def test_a_mass_at_infinity_that_was_rounded_up_is_rounded_down(true: Fraction) -> None:
    pair = hs.DiscretePair((true, 1 - true), (Fraction(0), Fraction(1))).pair("remove")
    mass = pair.mass_at_infinity
    assert Fraction(least_infinite(mass)) < true <= Fraction(mass)
    found = pair.infinite_mass
    assert Fraction(found.low) <= true <= Fraction(found.high)


@pytest.mark.parametrize(
    "accountant", [Certified(5e-324, points=1 << 12), Certified(1e-310, points=1 << 12), Contour(5e-324)], ids=str
)
@pytest.mark.parametrize(
    "run",
    [hs.Gaussian(0.5).poisson(1e-5) * 3, hs.Laplace(1.0).poisson(0.1) * 50, hs.Gaussian(1.0).poisson(0.01) * 2000],
    ids=str,
)
def test_widths_below_rounding_are_answered_or_refused_in_words(accountant: Accountant, run: hs.Composition) -> None:
    curve, usual = hs.account(run, "remove", accountant=accountant), hs.account(run, "remove")
    for ask in ("delta", "epsilon"):
        with suppress(PrecisionError):
            found, other = getattr(curve, ask)(1e-3), getattr(usual, ask)(1e-3)
            assert float(found.lower) <= float(other.upper)
            assert float(other.lower) <= float(found.upper)


def test_gaussian_steps_beyond_float64_are_refused_in_a_sweep_as_rows() -> None:
    found = hs.sweep(lambda noise: hs.Gaussian(noise) * 2**40, noise=[1.0, 1e-139], epsilon=1.0)
    assert not found.refused[0]
    assert "these steps are one with a sensitivity over noise of 1.05e+145" in found.refused[1]
