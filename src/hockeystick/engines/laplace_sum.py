"""The curve of Laplace steps of one scale, alone or beside few discrete outcomes: a sum of B-splines.

Let e be the largest loss of a step, in nats, and N_R the cardinal B-spline of degree R - 1, the density of a sum of R
uniform numbers in [0, 1]. With ``z = k / 2 - eps / (2 e)``, k steps have

    delta(eps) = (2 / e) e^{-e z} 2^{-k} sum_R e^R sum_i C_R[i] N_R(z - i),        R = 2, 3, .., i = 0 .. floor(z)

where ``sum_R C_R(x) w^R = (1 + x + w)^k w^2 / ((1 - x)^2 - w^2)`` (docs/derivations/laplace-sums.md). The C_R[i] are
whole numbers, and N_R follows from N_{R-1} by products and sums of numbers that are not negative. So nothing cancels,
and the rounding is a bound relative to the sum. Discrete outcomes of loss l_i and mass p_i beside them shift epsilon:

    delta(eps) = P(L = inf) + sum_i p_i h(eps - l_i),      h the curve above.

delta grows with e and falls in epsilon: both sides are sums at numbers e and z rounded to that side.

Guarantee: lower and upper are certified, rounding included. Cost: for each R and outcome, ten operations on arrays of
length k / 2; R goes to k and some 20 to 200 more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.enumeration.outcomes import Outcomes, number_of_outcomes, outcomes_of_all
from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, U, down, downs, exps_down, exps_up, up, ups

Array = NDArray[np.float64]

_MOST_STEPS = 200
_SLOW = (80, 66.0)  # steps, or nats of all, from which on the contour answers: 5 ms an epsilon to 1e-11, here 10 to 50
_MOST_LOSS = (16.0, 200.0)  # of a Laplace step, and of all (nats): beyond, sums leave too little of float64's range
_LEAST_LOSS = 1e-100
_MOST_OUTCOMES = 1 << 10  # 1 to 30 ms an answer
_LEFT_OUT = -40.0  # ln of what levels that are left out are at most, relative to delta
_LEVELS = 16  # a multiple of these is taken, so that tables serve other noise, too
_CHUNK = 1 << 20  # numbers at once
_RANGE = 1000  # powers of 2 of float64 that sums may use


@final
class LaplaceSum:
    """Sides of the curve.

    Parameters
    ----------
    steps : int
        Laplace steps.
    loss : (float, float)
        Lower and upper bound on the largest loss of each of them (nats).
    outcomes : Outcomes
        Of the steps beside them; of none, loss 0.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    """

    method = "closed form of Laplace steps"
    step = 1e-12
    is_smooth = True
    is_dear = False
    is_joint = True

    def __init__(
        self, steps: int, loss: tuple[float, float], outcomes: Outcomes, at_infinity: tuple[float, float]
    ) -> None:
        self._largest, self._at_infinity = steps * loss[1], at_infinity
        self._noise = LaplaceDeltas(steps, loss[0], above=False), LaplaceDeltas(steps, loss[1], above=True)
        losses, off = outcomes.loss, outcomes.loss_error
        self._shifts = downs(losses - off), ups(losses + off)
        self._masses = exps_down(outcomes.log_p - outcomes.error), exps_up(outcomes.log_p + outcomes.error)

    @classmethod
    def of(cls, parts: Sequence[tuple[Pair, int]]) -> Self | None:
        """The sides of a composition; None where it is not of this kind."""
        own = [(pair.laplace_loss, count) for pair, count in parts]
        ends = {end for end, _ in own if end is not None}
        steps = sum(count for end, count in own if end is not None)
        if len(ends) != 1:
            return None
        (end,) = ends
        rest = tuple(part for part, (end, _) in zip(parts, own, strict=True) if end is None)
        if not _is_served(steps, end.value, beside=bool(rest)) or number_of_outcomes(rest, _MOST_OUTCOMES) is None:
            return None
        loss = down(end.value - end.error), up(end.value + end.error)
        return cls(steps, loss, outcomes_of_all(rest), composed_infinity(parts))

    def guess(self, delta: float) -> float:
        """The largest finite loss, or 0: from there on down epsilon is looked for."""
        return max(self._largest + float(self._shifts[1].max()), 0.0)

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        """Certified sides of delta."""
        return self._side(0, epsilons), self._side(1, epsilons)

    def side(self, side: int, epsilon: float) -> float:
        """The lower (0) or upper (1) side of delta at one epsilon."""
        return float(self._side(side, np.array([epsilon]))[0])

    def least(self, epsilons: Array) -> Array:
        """The lower sides."""
        return self._side(0, epsilons)

    def _side(self, side: int, epsilons: Array) -> Array:
        shifts, masses = self._shifts[side], self._masses[side]
        shifted = np.subtract.outer(epsilons, shifts).ravel()
        shifted = np.nextafter(shifted, -np.inf if side else np.inf)
        terms = self._noise[side](shifted).reshape(-1, masses.size) * masses
        total = terms.sum(axis=1)
        lost = np.where(total > 0.0, masses.size * SUBNORMAL, 0.0)
        total += self._at_infinity[side]
        if side:
            return np.minimum(ups(total + lost, (masses.size + 4) * U), 1.0)
        return np.maximum(downs(total - lost, (masses.size + 4) * U), 0.0)


def _is_served(steps: int, loss: float, *, beside: bool) -> bool:
    one, most = _MOST_LOSS
    in_range = _LEAST_LOSS < loss <= one and steps * loss * (2 if beside else 1) <= most
    return in_range and steps <= _MOST_STEPS and (steps <= _SLOW[0] or steps * loss <= _SLOW[1])


@final
class LaplaceDeltas:
    """Bounds on delta of Laplace steps alone, from one side: what is asked at once is answered as it is alone.

    Parameters
    ----------
    steps : int
        How many.
    loss : float
        The largest loss of each, e (nats).
    above : bool
        Whether the bounds are from above.
    """

    def __init__(self, steps: int, loss: float, *, above: bool) -> None:
        self._steps, self._loss, self._above = steps, loss, above

    def __call__(self, epsilons: Array) -> Array:
        """Of delta at epsilons of any sign, shape (n,)."""
        steps, loss = self._steps, self._loss
        z = (steps * loss - epsilons) / (2.0 * loss)
        z += U * (0.51 * steps + 4.0 * np.abs(z)) * (1.0 if self._above else -1.0)  # of the product, and of z itself
        certain = -np.expm1(np.minimum(epsilons, 0.0))  # below all losses
        certain = ups(certain, 2.0 * ELEMENTARY) if self._above else downs(certain, 2.0 * ELEMENTARY)
        found = np.where(z > 0.0, certain, 0.0)
        inside = (z > 0.0) & (epsilons > -steps * loss * (1.0 + 4.0 * U))
        is_near = z < steps // 2 + 1
        for rows, near in ((inside & is_near, True), (inside & ~is_near, False)):
            if rows.any():
                found[rows] = (self._near if near else self._far).bounds(z[rows], above=self._above)
        return found

    @cached_property
    def _near(self) -> _Splines:
        return _Splines(self._steps, self._loss, self._steps // 2 + 1)

    @cached_property
    def _far(self) -> _Splines:
        return _Splines(self._steps, self._loss, self._steps + 1)


@final
class _Splines:
    """The sum over R and i, for all z up to a whole number."""

    def __init__(self, steps: int, loss: float, length: int, *, more: int = 0) -> None:
        levels = _levels(steps, loss * length) + more
        self._steps, self._loss, self._levels = steps, loss, levels
        self._table = _table(steps, levels, length)
        self._scale, self._lost = self._scaled()
        self._error = 1.01 * U * (7 * levels + length + 16) + math.exp(_LEFT_OUT + 1.0)

    def _scaled(self) -> tuple[int, float]:
        """A power of 2 that keeps sums within float64, and what they lose below its range, in units of 2^-1074."""
        sizes = self._table.sum(axis=1)
        r = np.arange(sizes.size)
        largest = float((r * math.log2(self._loss) + np.log2(np.maximum(sizes, 1.0))).max())
        scale = _RANGE - math.ceil(max(largest, self._levels * math.log2(max(self._loss, 1.0)))) - 12
        lost, one = 0.0, 0.0
        for level in range(2, self._levels + 1):
            one = self._loss / (level - 1) * (level * one + 2.0) + 1.0
            lost += (one + 1.0) * float(sizes[level])
        return scale, 1.01 * lost

    def bounds(self, z: Array, *, above: bool) -> Array:
        """Bounds on delta at each z, from one side."""
        chunk = max(_CHUNK // self._table.size, 1)
        parts = [self._sums(z[at : at + chunk]) for at in range(0, z.size, chunk)]
        sums = np.concatenate(parts)
        decayed = self._loss * z
        factor = np.exp(-decayed) * (2.0 / self._loss)
        error = self._error + 2.0 * U * decayed + 2.0 * ELEMENTARY
        lost = np.ldexp(factor * self._lost, -self._steps - 1074 - self._scale) + SUBNORMAL
        value = np.ldexp(sums * factor, -self._steps - self._scale)
        if above:
            return np.minimum(value * (1.0 + error) + lost, 1.0) * (1.0 + 4.0 * U)
        return np.maximum(value * (1.0 - error) - lost, 0.0) * (1.0 - 4.0 * U)

    def _sums(self, z: Array) -> Array:
        """``2^scale sum_R e^R sum_i C_R[i] N_R(z - i)``."""
        whole = np.floor(z)
        t = (z - whole)[:, None]
        i = np.arange(self._table.shape[1])
        back = whole.astype(np.intp)[:, None] - i
        weights = np.where(back >= 0, self._table[:, np.maximum(back, 0)], 0.0)  # of N_R(t + i)
        splines = np.zeros((z.size, i.size))
        splines[:, 0] = math.ldexp(self._loss, self._scale)
        total = np.zeros(z.size)
        for level in range(2, self._levels + 1):
            rising = (t + i) * splines
            rising[:, 1:] += ((level - i[1:]) - t) * splines[:, :-1]
            splines = rising * (self._loss / (level - 1))
            total += (splines * weights[level]).sum(axis=1)
        return total


def _levels(steps: int, size: float) -> int:
    """How many levels leave out next to nothing of delta, where ``e z`` is at most ``size``."""
    rest = 2 * math.ceil(0.5 * size) + 2
    log_size, log_sinh = math.log(max(size, 1e-300)), size + math.log(max(-0.5 * math.expm1(-2.0 * size), 1e-300))
    while rest * log_size - log_sinh - math.lgamma(rest + 1) - math.log1p(-size / (rest + 1)) > _LEFT_OUT:
        rest += 2
    return -(-(steps + rest) // _LEVELS) * _LEVELS


@lru_cache(maxsize=32)
def _table(steps: int, levels: int, length: int) -> Array:
    """``C_R[i]``, rounded to the nearest float, shape (levels + 1, length)."""
    rows = [[0] * length, [0] * length]
    for level in range(2, levels + 1):
        row = rows[level - 2]
        if level - 2 <= steps:  # C_R (1 - x)^2 = C_{R-2} + binom(k, R - 2) (1 + x)^{k + 2 - R}
            own, free = math.comb(steps, level - 2), steps + 2 - level
            row = [size + own * math.comb(free, i) for i, size in enumerate(row)]
        for _ in range(2):
            row = list(accumulate(row))
        rows.append(row)
    return np.array(rows, dtype=np.float64)
