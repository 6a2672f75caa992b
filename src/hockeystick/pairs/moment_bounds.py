"""Certified bounds of ``K(theta) = ln E_P[e^{theta L}; L finite]`` for any pair, and of what tilting does to a composition.

How each kind of pair is bounded: the Gaussian and the Laplace pair by their closed forms, Gaussian mixtures (subsampled,
reversed) by a trapezoidal rule with its strip bound, discrete pairs by their finite sums, anything else by its cells. Where
nothing is known the upper bound is infinite.

Guarantee: every bracket contains the value for the stated pairs, rounding included. Derivations: `docs/derivations/moments.md`.
Cost: about a millisecond for a pair and tilt, whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import final

import numpy as np

from hockeystick.numerics.rounding import ELEMENTARY, U, down, up
from hockeystick.pairs.base import Array, Pair
from hockeystick.pairs.discrete import DiscretePair
from hockeystick.pairs.gaussian import GaussianPair
from hockeystick.pairs.laplace import LaplacePair
from hockeystick.pairs.moment_cells import LossCells
from hockeystick.pairs.moment_mixture import GaussianMixture, mixture_log_moments
from hockeystick.pairs.reversed import ReversedPair
from hockeystick.pairs.subsampled import SubsampledPair

__all__ = [
    "ComposedMoments",
    "MomentBracket",
    "atoms_of",
    "composed_infinity",
    "discrete_form",
    "log_moment_bounds",
    "mixture_form",
]

Parts = Sequence[tuple[Pair, int]]


@final
@dataclass(frozen=True)
class MomentBracket:
    """``lower <= K(theta) <= upper`` at each of k tilts (nats).

    Attributes
    ----------
    lower, upper : ndarray, shape (k,)
        Certified; ``-inf`` or ``inf`` where nothing is known.
    """

    lower: Array
    upper: Array


# ---------------------------------------------------------------------------------------------------- shapes of pairs


@singledispatch
def mixture_form(pair: Pair) -> GaussianMixture | None:  # noqa: ARG001 - the dispatch looks at it
    """The pair as two mixtures of Gaussians of one width; None where it is no such pair."""
    return None


@mixture_form.register
def _(pair: GaussianPair) -> GaussianMixture:
    shift = Fraction(pair.sensitivity) / Fraction(pair.sigma)
    return GaussianMixture(((shift, Fraction(1)),), ((Fraction(0), Fraction(1)),))


@mixture_form.register
def _(pair: SubsampledPair) -> GaussianMixture | None:
    base = mixture_form(pair.base)
    return None if base is None else base.subsampled(Fraction(pair.rate))


@mixture_form.register
def _(pair: ReversedPair) -> GaussianMixture | None:
    base = mixture_form(pair.base)
    return None if base is None else base.reversed()


@singledispatch
def discrete_form(pair: Pair) -> DiscretePair | None:  # noqa: ARG001 - the dispatch looks at it
    """The pair as two probability vectors; None where it is no such pair."""
    return None


@discrete_form.register
def _(pair: DiscretePair) -> DiscretePair:
    return pair


@discrete_form.register
def _(pair: SubsampledPair) -> DiscretePair | None:
    base = discrete_form(pair.base)
    if base is None:
        return None
    g = Fraction(pair.rate)
    return DiscretePair(
        tuple((1 - g) * Fraction(q) + g * Fraction(p) for p, q in zip(base.p, base.q, strict=True)), base.q
    )


@discrete_form.register
def _(pair: ReversedPair) -> DiscretePair | None:
    base = discrete_form(pair.base)
    return None if base is None else DiscretePair(base.q, base.p)


# ------------------------------------------------------------------------------------------------------- one pair's K


def log_moment_bounds(pair: Pair, tilts: Array) -> MomentBracket:
    """Certified bracket of ``K(theta) = ln E_P[e^{theta L}; L finite]``.

    Parameters
    ----------
    pair : Pair
        The pair.
    tilts : ndarray, shape (k,)
        At least 0, each an exact number.

    Examples
    --------
    >>> from hockeystick.pairs import GaussianPair
    >>> bracket = log_moment_bounds(GaussianPair(1.0).subsampled(0.01), np.array([1.0]))
    >>> exact = math.log1p(1e-4 * math.expm1(1.0))
    >>> bool(bracket.lower[0] <= exact <= bracket.upper[0]), bool(bracket.upper[0] < exact * (1.0 + 1e-11))
    (True, True)
    """
    mixture = mixture_form(pair)
    if mixture is not None:
        shift = mixture.single_shift
        lower, upper = mixture_log_moments(mixture, tilts) if shift is None else _gaussian(shift, tilts)
        return MomentBracket(lower, upper)
    discrete = discrete_form(pair)
    if discrete is not None:
        return MomentBracket(*_outward(*_discrete(discrete, tilts)))
    plain = pair.base if isinstance(pair, ReversedPair) else pair
    if isinstance(plain, LaplacePair):  # its own reverse: mirror the line
        return MomentBracket(*_outward(*_laplace(plain.shift, tilts)))
    return MomentBracket(*_cells_of(pair).log_moments(tilts))


def _outward(value: Array, error: Array) -> tuple[Array, Array]:
    return value - error, value + error


def _gaussian(shift: Fraction, tilts: Array) -> tuple[Array, Array]:
    value = 0.5 * float(shift * shift) * tilts * (1.0 + tilts)
    return _outward(value, 8.0 * U * value)


def _laplace(m: float, tilts: Array) -> tuple[Array, Array]:
    """``M = (a e^{theta m} + theta e^{-a m}) / (a + theta)``, a = 1 + theta; m is one rounding off."""
    a = 1.0 + tilts
    rising = a * np.expm1(np.minimum(tilts * m, 500.0)) / (a + tilts)
    falling = -tilts * np.expm1(-a * m) / (a + tilts)
    near = np.log1p(rising - falling)
    far = tilts * m + np.log((a + tilts * np.exp(-np.minimum((a + tilts) * m, 700.0))) / (a + tilts))
    value = np.where(tilts * m < 500.0, near, far)
    # the sum is at least 1; each part errs by some roundings and by those of its exponent
    grown = np.exp(np.minimum(tilts * m, 500.0))
    absolute = U * (16.0 * (rising + falling) + 4.0 * (tilts * m * grown + a * m * np.exp(-a * m)))
    near_error = absolute / (1.0 + rising - falling) * 1.01 + 2.0 * ELEMENTARY * np.abs(near)
    far_error = U * (8.0 * tilts * m + 40.0)
    return value, np.where(tilts * m < 500.0, near_error, far_error)


@lru_cache(maxsize=32)
def atoms_of(pair: DiscretePair) -> tuple[Array, Array, Array, Array, float]:
    """Losses, masses under P, bounds on the errors of both, and one minus the mass of P at finite losses."""
    both = [(Fraction(p), Fraction(q)) for p, q in zip(pair.p, pair.q, strict=True) if p > 0 and q > 0]
    loss = np.array([_log_ratio(p, q) for p, q in both])
    log_p = np.array([_log_ratio(p, Fraction(1)) for p, _ in both])
    missing = float(1 - sum((p for p, _ in both), Fraction(0)))
    return loss, log_p, 8.0 * U * np.abs(loss) + 1e-300, 8.0 * U * np.abs(log_p) + 1e-300, missing


def _log_ratio(p: Fraction, q: Fraction) -> float:
    """``ln(p / q)`` to a relative error of 8 u, also where the ratio is near one."""
    ratio = p / q
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    if Fraction(1, 2**1000) < ratio < 2**1000:
        return math.log(float(ratio))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _discrete(pair: DiscretePair, tilts: Array) -> tuple[Array, Array]:
    loss, log_p, loss_error, log_error, missing = atoms_of(pair)
    results = [_discrete_log_moment(loss, log_p, loss_error, log_error, missing, float(theta)) for theta in tilts]
    return np.array([value for value, _ in results]), np.array([error for _, error in results])


def _discrete_log_moment(
    loss: Array, log_p: Array, loss_error: Array, log_error: Array, missing: float, theta: float
) -> tuple[float, float]:
    if loss.size == 0:
        return -math.inf, 0.0
    x = theta * loss
    exponents = log_p + x
    peak = float(exponents.max())
    each = log_error + theta * loss_error + U * (2.0 * np.abs(x) + 2.0 * np.abs(log_p) + 4.0)
    if peak < 600.0 and float(x.max()) < 600.0:
        p, grown = np.exp(log_p), np.expm1(x)
        terms = p * grown
        total = math.fsum(terms) - missing
        error = float((p * (grown + 1.0)) @ (theta * loss_error + 2.0 * U * np.abs(x)))
        error += float(np.abs(terms) @ (log_error + (2.0 * np.abs(log_p) + 16.0) * U))
        error = 1.01 * error + 4.0 * U * (abs(total) + abs(missing)) + 1e-300
        if total - error > -0.5:
            value = math.log1p(total)
            return value, error / (1.0 + total - error) + 2.0 * ELEMENTARY * abs(value)
    terms = np.exp(exponents - peak)
    total = math.fsum(terms)
    value = peak + math.log(total)
    return value, 1.01 * float(terms @ each) / total + 4.0 * ELEMENTARY + 4.0 * U * (abs(peak) + abs(value))


@lru_cache(maxsize=16)
def _cells_of(pair: Pair) -> LossCells:
    return LossCells.of(pair)


# ------------------------------------------------------------------------------------------------------- compositions


def composed_infinity(parts: Parts) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition."""
    if not any(pair.mass_at_infinity for pair, _ in parts):
        return 0.0, 0.0
    log_total, log_finite = 0.0, 0.0
    for pair, count in parts:
        discrete = discrete_form(pair)
        if discrete is None:  # mass one by definition
            log_finite += count * math.log1p(-pair.mass_at_infinity) if pair.mass_at_infinity < 1.0 else -math.inf
        else:
            total = sum((Fraction(p) for p in discrete.p), Fraction(0))
            infinite = sum((Fraction(p) for p, q in zip(discrete.p, discrete.q, strict=True) if q == 0), Fraction(0))
            log_total += count * math.log1p(float(total - 1))
            log_finite += count * (math.log1p(-float(infinite / total)) if infinite < total else -math.inf)
    mass = -math.expm1(log_finite) * math.exp(log_total)
    relative = 1e-14 * (1.0 + abs(log_total)) + 1e-15 * len(parts)
    return (max(down(mass, relative), 0.0), min(up(mass, relative), 1.0)) if mass > 0.0 else (0.0, 0.0)


@final
class ComposedMoments:
    """Certified K of a composition: the sum of its pairs' brackets.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        The composition, one direction.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = tuple(parts)

    def log_moment(self, theta: float) -> tuple[float, float]:
        """Lower and upper bound of K(theta) (nats)."""
        lows: list[float] = []
        highs: list[float] = []
        for pair, count in self.parts:
            bracket = log_moment_bounds(pair, np.array([theta]))
            lows.append(count * float(bracket.lower[0]))
            highs.append(count * float(bracket.upper[0]))
        low, high = _sum(lows), _sum(highs)
        size = _sum([max(abs(a), abs(b)) for a, b in zip(lows, highs, strict=True)])
        return (low - 2.0 * U * size, high + 2.0 * U * size) if math.isfinite(size) else (low, high)


def _sum(values: list[float]) -> float:
    """The sum, which one infinite bound makes infinite."""
    infinite = next((value for value in values if math.isinf(value)), None)
    return math.fsum(values) if infinite is None else infinite
