"""Certified bounds of ``K(theta) = ln E_P[e^{theta L}; L finite]`` for any pair and for compositions.

How each kind of pair is bounded: the Gaussian and the Laplace pair by their closed forms, Gaussian mixtures
(subsampled, reversed) by a trapezoidal rule with its strip bound, discrete pairs by their finite sums, anything else
by its cells. Where nothing is known the upper bound is infinite.

Guarantee: every bracket contains the value for the stated pairs, rounding included. Derivations:
`docs/derivations/moments.md`. Cost: about a millisecond for a pair and tilt, whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import final

import numpy as np

from hockeystick.engines.moments.moment_atoms import atom_table
from hockeystick.engines.moments.moment_cells import LossCells
from hockeystick.engines.moments.moment_mixture import GaussianMixture, mixture_log_moments
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.laplace import LaplacePair
from hockeystick.laws.mixture import GaussianMixturePair
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["ComposedMoments", "MomentBracket", "log_moment_bounds"]

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
def _mixture(pair: Pair) -> GaussianMixture | None:  # noqa: ARG001 - the dispatch looks at it
    """The pair as two mixtures of Gaussians of one width; None where it is no such pair."""
    return None


@_mixture.register
def _(pair: GaussianPair) -> GaussianMixture:
    shift = Fraction(pair.sensitivity) / Fraction(pair.sigma)
    return GaussianMixture(((shift, Fraction(1)),), ((Fraction(0), Fraction(1)),))


@_mixture.register
def _(pair: SubsampledPair) -> GaussianMixture | None:
    base = _mixture(pair.base)
    return None if base is None else base.subsampled(Fraction(pair.rate))


@_mixture.register
def _(pair: ReversedPair) -> GaussianMixture | None:
    base = _mixture(pair.base)
    return None if base is None else base.reversed()


@_mixture.register
def _(pair: GaussianMixturePair) -> GaussianMixture:
    width = Fraction(pair.sigma)
    p, q = (
        tuple(sorted((Fraction(c) / width, Fraction(w)) for c, w in zip(centres, weights, strict=True) if w > 0))
        for centres, weights in ((pair.p_centres, pair.p_weights), (pair.q_centres, pair.q_weights))
    )
    return GaussianMixture(p, q)


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
    >>> from hockeystick.laws import GaussianPair
    >>> bracket = log_moment_bounds(GaussianPair(1.0).subsampled(0.01), np.array([1.0]))
    >>> exact = math.log1p(1e-4 * math.expm1(1.0))
    >>> bool(bracket.lower[0] <= exact <= bracket.upper[0]), bool(bracket.upper[0] < exact * (1.0 + 1e-11))
    (True, True)
    """
    mixture = _mixture(pair)
    if mixture is not None:
        shift = mixture.single_shift
        lower, upper = mixture_log_moments(mixture, tilts) if shift is None else _gaussian(shift, tilts)
        return MomentBracket(lower, upper)
    atoms = atom_table(pair)
    if atoms is not None:
        return MomentBracket(*atoms.log_moments(tilts))
    plain = pair.base if isinstance(pair, ReversedPair) else pair
    if isinstance(plain, LaplacePair):  # its own reverse: mirror the line
        return MomentBracket(*_outward(*_laplace(plain.shift, tilts)))
    if isinstance(plain, DiscreteGaussianPair):
        return MomentBracket(
            *_discrete_gaussian(Fraction(plain.sensitivity) / Fraction(plain.sigma), plain.sigma, tilts)
        )
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


def _discrete_gaussian(shift: Fraction, sigma: float, tilts: Array) -> tuple[Array, Array]:
    """``M = e^{theta a m^2 / 2} Z(a D) / Z(0)``, ``Z(c) = sum_x e^{-(x - c)^2 / 2 s^2}`` between Z(1/2) and Z(0).

    By Poisson summation ``Z(1/2) / Z(0) >= (1 - 2 w) / (1 + 2 w)`` with ``w = r / (1 - r)``, ``r = e^{-2 pi^2 s^2}``;
    directly ``Z(1/2) / Z(0) >= 2 e^{-1/8s^2} / (1 + 2 e^{-1/2s^2} / (1 - e^{-1/2s^2}))``.
    """
    low, high = _gaussian(shift, tilts)
    r, q = math.exp(-2.0 * (math.pi * sigma) ** 2), math.exp(-0.5 / (sigma * sigma))
    wide = (1.0 - 2.0 * r / (1.0 - r)) / (1.0 + 2.0 * r / (1.0 - r)) if r < 0.3 else 0.0
    narrow = 2.0 * q**0.25 / (1.0 + 2.0 * q / (1.0 - q)) if q < 1.0 else 0.0
    ratio = max(wide, narrow) * (1.0 - 1e-12)
    return low + (math.log(ratio) if ratio > 0.0 else -math.inf), high


@lru_cache(maxsize=16)
def _cells_of(pair: Pair) -> LossCells:
    return LossCells.of(pair)


# ------------------------------------------------------------------------------------------------------- compositions


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
