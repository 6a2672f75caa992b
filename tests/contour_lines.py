"""Lines of the contour made to order, and compositions whose curves are known term by term.

For tests that drive the contour outside its own plans.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hockeystick.engines.contour.aliasing import chernoff
from hockeystick.engines.contour.lattice_line import LatticeLine, prepare_lattice_line
from hockeystick.engines.contour.line import ContourLine, summed_line
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.laws import DiscretePair, Pair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import Window
from tests.closed_forms import gaussian_delta, mp, mpf

Parts = list[tuple[Pair, int]]
Delta = Callable[[float], mpf]


def response(p: Fraction) -> DiscretePair:
    return DiscretePair((p, 1 - p), (1 - p, p))


def sampled(p: Fraction, rate: Fraction) -> Fraction:
    return (1 - rate) * (1 - p) + rate * p


TWO_THIRDS, NINTHS = Fraction(67, 100), Fraction(8, 9)
RARELY, HALF = Fraction(0.01), Fraction(1, 2)  # the rate is a float
RESPONSE, RARE, COMMON = response(TWO_THIRDS), response(NINTHS).subsampled(0.01), response(NINTHS).subsampled(0.5)


# ------------------------------------------------------------------------------------------------------------- truths


def ball(value: Fraction) -> mpf:
    return mpf(value.numerator) / value.denominator


class TwoLosses:
    """The composition of a pair with two outcomes, every number of either outcome on its own."""

    def __init__(self, p: Fraction, q: Fraction, steps: int) -> None:
        self._first, self._steps = (p, 1 - p), steps
        self._loss = [
            mp.log(mpf(a.numerator * b.denominator) / (a.denominator * b.numerator))
            for a, b in ((p, q), (1 - p, 1 - q))
        ]
        atoms = sorted(
            (
                k * self._loss[0] + (steps - k) * self._loss[1],
                math.comb(steps, k) * p**k * (1 - p) ** (steps - k),
                math.comb(steps, k) * q**k * (1 - q) ** (steps - k),
            )
            for k in range(steps + 1)
        )
        self.losses = [loss for loss, _, _ in atoms]
        self._above = [
            [
                mpf(mass.numerator) / mass.denominator
                for mass in itertools.accumulate(reversed(masses), initial=Fraction(0))
            ]
            for masses in ([a for _, a, _ in atoms], [b for _, _, b in atoms])
        ]

    def delta(self, epsilon: float | mpf) -> mpf:
        """``P(L > eps) - e^eps Q(L > eps)``."""
        above = len(self.losses) - bisect.bisect_right(self.losses, mpf(epsilon))
        return self._above[0][above] - mp.exp(mpf(epsilon)) * self._above[1][above]

    def log_moment(self, t: float) -> mpf:
        """``K(t)``."""
        terms = (
            mpf(a.numerator) / a.denominator * mp.exp(t * loss) for a, loss in zip(self._first, self._loss, strict=True)
        )
        return self._steps * mp.log(sum(terms))


class Normal:
    """A Gaussian pair."""

    def __init__(self, mu: float) -> None:
        self._mu = mu

    def delta(self, epsilon: float | mpf) -> mpf:
        return gaussian_delta(mpf(self._mu), epsilon)

    def log_moment(self, t: float) -> mpf:
        return mpf(self._mu) ** 2 / 2 * t * (1 + t)


PAIRS: dict[str, tuple[Pair, int]] = {
    "response": (RESPONSE, 12),
    "rare": (RARE, 60),
    "rare, reversed": (RARE.reversed(), 60),
    "common": (COMMON, 9),
    "common, reversed": (COMMON.reversed(), 20),
}
LAWS = {
    "response": TwoLosses(TWO_THIRDS, 1 - TWO_THIRDS, 12),
    "rare": TwoLosses(sampled(NINTHS, RARELY), 1 - NINTHS, 60),
    "rare, reversed": TwoLosses(1 - NINTHS, sampled(NINTHS, RARELY), 60),
    "common": TwoLosses(sampled(NINTHS, HALF), 1 - NINTHS, 9),
    "common, reversed": TwoLosses(1 - NINTHS, sampled(NINTHS, HALF), 20),
    "normal": Normal(1.5),
}


def holds(curve: Curve, index: int, truth: mpf) -> bool:
    """Whether a bracket of delta contains the truth, with no slack."""
    below, above = float(curve.log_lower()[index]), float(curve.log_upper()[index])
    return bool((below == -math.inf or mp.exp(mpf(below)) <= truth) and truth <= mp.exp(mpf(above)))


# ------------------------------------------------------------------------------------------------------ made to order


def tilts_of(theta: float) -> tuple[float, ...]:
    """Tilts that bound the aliasing: sums with one are exact."""
    return tuple(sorted({-0.5, 0.0, *(round(256.0 * factor * theta) / 256.0 for factor in (0.25, 0.5, 1.5, 2.0, 4.0))}))


def lattice_line(
    pair: Pair, steps: int, theta: float, *, size: int, nodes: int | None = None, accuracy: float = -40.0
) -> LatticeLine:
    """A line with so many points in a period; where nodes are left out, with the best bound on what they would be."""
    losses = PairSum([(pair, steps)])
    exponents = (1.0 + theta, *(1.0 + t for t in tilts_of(theta)))
    rules = losses.rules(Window(exponents, 0.0, accuracy))
    assert rules is not None
    moments = [log_moments(rule, np.array(exponents)) for rule in rules]
    tilted = [tilt(rule, exponents[0], moment) for rule, moment in zip(rules, moments, strict=True)]
    lattice = losses.lattice(rules)
    assert lattice is not None
    known = chernoff([rule.counts for rule in rules], moments, 0.0, (theta, *tilts_of(theta)))
    whole = (size + 1) // 2

    def of(count: int, log_tail: float) -> LatticeLine:
        return prepare_lattice_line(rules, tilted, lattice, chernoff=known, size=size, nodes=count, log_tail=log_tail)

    full = of(whole, -math.inf)
    if nodes is None or nodes >= whole:
        return full
    return of(nodes, float(full.total.log_size[nodes:].max()) + 1e-9)


def relative_width(curve: Curve) -> np.ndarray:
    """``upper / lower - 1``; infinite where the lower bound is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(curve.lower > 0.0, (curve.upper - curve.lower) / np.maximum(curve.lower, 1e-300), np.inf)
    return ratio + 2.0 * curve.log_scale_error


EPSILONS = np.array([-1.0, 0.0, 0.37, 1.1, 2.6])


def gaussian_line(mu: float, theta: float, *, step: float, nodes: int) -> ContourLine:
    """A line for one Gaussian pair, cut off where we like, with what is known of its transform there."""
    known = chernoff([], [], mu * mu, (theta, *tilts_of(theta)))
    last = step * (nodes - 1)
    log_tail = -0.5 * mu * mu * last * last * (1.0 - 1e-9)
    return summed_line([], mu * mu, chernoff=known, step=step, nodes=nodes, log_tail=log_tail)
