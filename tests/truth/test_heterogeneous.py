"""Runs whose every step is another: the acceptance figures at scale, and the same answers by different ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

import hockeystick as hs
from hockeystick.accountants import Certified, Fourier
from hockeystick.bound import Bound
from reproduce.work import calls
from tests.closed_forms import gaussian_delta, gaussian_epsilon, mp, mpf


def ramp(steps: int) -> hs.Composition:
    return hs.compose_arrays(noise_multipliers=np.linspace(3.0, 1.0, steps), rates=0.01)


def epsilon(run: hs.Composition, accountant: hs.accountants.Accountant | None = None) -> Bound:
    bound = hs.account(run, accountant=accountant).epsilon(1e-5)
    assert isinstance(bound, Bound)
    return bound


def test_two_engines_and_the_fourier_accountant_agree() -> None:
    run = ramp(8)
    bounds = [epsilon(run), epsilon(run, Certified(1e-3, engine="lattice")), epsilon(run, Fourier(2e-5, 2.0))]
    for first in bounds:
        for second in bounds:
            assert first.lower <= second.upper
    assert bounds[0].width <= 1e-3
    assert bounds[1].width <= 1e-3


def test_the_work_of_distinct_steps_grows_no_faster_than_their_number() -> None:
    assert calls(lambda: epsilon(ramp(40))) <= 4.5 * calls(lambda: epsilon(ramp(10)))  # measured: 2.2 times


@pytest.mark.torture
def test_ten_thousand_distinct_steps() -> None:
    import resource

    bound = epsilon(ramp(10_000))
    assert bound.width <= 1e-3
    assert bound.contains(2.79046303735860)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20  # kilobytes: 1 GiB


def test_an_atom_on_the_highest_point_of_a_lattice_with_a_wide_one() -> None:
    """Two atoms a step beside much Gaussian noise: a sum of closed forms, over how often the upper one came up."""
    steps, scale, rate, mu = 100, 22.8624, 0.55591, 3.0
    run = hs.GaussianDP(mu) * 1 + hs.DiscreteLaplace(scale, sensitivity=1).poisson(rate) * steps
    p, q = 1 / (1 + mp.exp(-1 / mpf(scale))), 1 / (1 + mp.exp(1 / mpf(scale)))
    g = mpf(rate)
    upper, lower = g * p + (1 - g) * q, g * q + (1 - g) * p  # the mixture's masses
    high, low = mp.log(upper / q), mp.log(lower / p)

    def exact(epsilon: float) -> mpf:
        counts = range(steps + 1)
        masses = [math.comb(steps, k) * upper**k * lower ** (steps - k) for k in counts]
        curves = [gaussian_delta(mpf(mu), mpf(epsilon) - k * high - (steps - k) * low) for k in counts]
        return mp.fsum(mass * curve for mass, curve in zip(masses, curves, strict=True))

    for delta in (1e-3, 1e-19):
        bound = hs.account(run, "remove", accountant=Certified(engine="lattice")).epsilon(delta)
        assert isinstance(bound, Bound)
        assert exact(float(bound.lower)) >= delta >= exact(float(bound.upper))
        assert float(bound.width) <= 1e-3


def test_steps_far_smaller_than_the_spacing_cost_little() -> None:
    tiny = hs.ApproximateDP(0.00368224, 0.0).poisson(0.00033286)  # losses of 1.2e-6
    run = hs.GaussianDP(1.7299) * 1 + tiny * 5095
    bound = hs.account(run, "remove", accountant=Certified(engine="lattice")).epsilon(4e-4)
    alone = gaussian_epsilon(mpf(1.7299), 4e-4)
    assert isinstance(bound, Bound)
    assert alone <= bound.upper  # more steps are less private
    assert bound.lower <= alone + 5095 * 1.2281e-6
    assert float(bound.width) <= 1e-3


def test_lattices_of_masses_that_differ_by_hundreds_of_nats() -> None:
    run = hs.Binomial(1805).poisson(0.022416) * 1888
    wide, narrow = epsilon(run, Certified(1e-3)), epsilon(run, Certified(1e-4))
    assert max(wide.lower, narrow.lower) <= min(wide.upper, narrow.upper)
    assert float(wide.width) <= 1e-3
    assert float(narrow.width) <= 1e-4
    tiny = hs.account(run, "remove").epsilon(3e-17)
    assert float(np.asarray(tiny.upper)) - float(np.asarray(tiny.lower)) <= 1e-3


@pytest.mark.parametrize(
    ("first", "second", "delta"), [((0.6, 10_000), (0.57, 7_500), 1e-6), ((0.7, 300), (0.9, 200), 1e-30)]
)
def test_two_kinds_of_atoms_that_share_no_lattice(
    first: tuple[float, int], second: tuple[float, int], delta: float
) -> None:
    """Against the sum over both binomials, but for outcomes too rare to matter."""
    run = hs.RandomizedResponse(first[0]) * first[1] + hs.RandomizedResponse(second[0]) * second[1]
    bound = hs.account(run, "remove", accountant=Certified(engine="lattice")).epsilon(delta)
    assert isinstance(bound, Bound)
    assert float(bound.width) <= 1e-3

    def delta_at(epsilon: float) -> float:
        """By floats: good to about 1e-9 relative, which moves epsilon by far less than the bracket is wide."""
        losses, masses = [], []
        for p, count in (first, second):
            k = np.arange(count + 1.0)
            orders = gammaln(count + 1.0) - gammaln(k + 1.0) - gammaln(count - k + 1.0)
            losses.append((2.0 * k - count) * math.log(p / (1.0 - p)))
            masses.append(orders + k * math.log(p) + (count - k) * math.log1p(-p))
        total = 0.0
        for loss, log_mass in zip(losses[1], masses[1], strict=True):
            if log_mass > math.log(delta) - 60.0:
                gap = losses[0] + loss - epsilon
                total += float((np.exp(masses[0] + log_mass)[gap > 0.0] * -np.expm1(-gap[gap > 0.0])).sum())
        return total

    assert delta_at(float(bound.lower)) >= delta * (1.0 - 1e-8)
    assert delta_at(float(bound.upper)) <= delta * (1.0 + 1e-8)
