"""Certified tilted mean, variance and absolute third moment, from nothing but certified values of K and the tails.

Symbols: c a number near the tilted mean, ``G(s) = E~ e^{s (L - c)} = e^{K(theta + s) - K(theta) - s c}``, ``d = K' -
c``, ``V = E~ (L - c)^2``, ``D(h) = (G(h) + G(-h) - 2) / h^2``. Since G is convex and all its even derivatives are
positive,

    (1 - G(-h)) / h <= d <= (G(h) - 1) / h,
    (4 D(h) - D(2h)) / 3 <= V <= (64 D(h) - 20 D(2h) + D(4h)) / 45,

whatever h: by the Taylor series of D term by term, the terms beyond the first are then all of one sign. Hence ``K'' = V
- d^2``. The absolute third moment is bounded over cells (`hockeystick.engines.moments.moment_cells`), beyond the last
by Chernoff at a larger tilt, and about c instead of K' by Minkowski (`docs/derivations/saddle-point.md`).

Guarantee: every bracket is certified. Cost: K at nine tilts and the tails at a few thousand cuts for each pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.moments.cumulants import CumulantWindow, TiltedCumulants, covering_losses
from hockeystick.engines.moments.moment_atoms import AtomTable, atom_table
from hockeystick.engines.moments.moment_bounds import MomentBracket, log_moment_bounds
from hockeystick.engines.moments.moment_cells import absolute_third_upper
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import U

__all__ = ["Interval", "TiltedBounds", "round_tilt", "tilted_bounds"]

_MEAN_BITS = 30  # the mean's step is at least theta 2^-30: added to a tilt of 20 bits it is exact
_CELLS_A_NODE = 64


@final
@dataclass(frozen=True)
class Interval:
    """``lower <= value <= upper``."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """Half way."""
        return 0.5 * (self.lower + self.upper)

    @property
    def radius(self) -> float:
        """Half the width, rounded up."""
        return 0.5 * (self.upper - self.lower) * (1.0 + 4.0 * U) + 2.0 * U * max(abs(self.lower), abs(self.upper))


@final
@dataclass(frozen=True)
class TiltedBounds:
    """Certified bounds of a composition tilted by theta.

    Attributes
    ----------
    theta : float
        The tilt.
    log_moment, mean, variance : Interval
        K, K' and K'' (nats, nats, nats^2).
    absolute_third : float
        Upper bound of the sum over steps of ``E~|L - K'|^3`` (nats^3); infinite where nothing is known.
    """

    theta: float
    log_moment: Interval
    mean: Interval
    variance: Interval
    absolute_third: float

    @classmethod
    def of_estimates(cls, c: TiltedCumulants) -> TiltedBounds:
        """Estimates in the place of bounds: what is made of them is an estimate."""
        return cls(
            c.theta,
            Interval(c.log_moment, c.log_moment),
            Interval(c.mean, c.mean),
            Interval(c.variance, c.variance),
            c.absolute_third,
        )

    @property
    def is_known(self) -> bool:
        """Whether all bounds are finite and the variance is known to be above 0."""
        values = (
            self.log_moment.lower,
            self.log_moment.upper,
            self.mean.radius,
            self.variance.upper,
            self.absolute_third,
        )
        return all(math.isfinite(value) for value in values) and self.variance.lower > 0.0


def round_tilt(theta: float) -> float:
    """The tilt to 20 bits, so that sums with small powers of two are exact."""
    unit = 2.0 ** (math.floor(math.log2(theta)) - 19)
    return round(theta / unit) * unit


def tilted_bounds(parts: Sequence[tuple[Pair, int]], theta: float) -> TiltedBounds:
    """Certified bounds of a composition at a tilt above 0 that `round_tilt` leaves as it is."""
    steps = [(_step_bounds(pair, theta), count) for pair, count in parts]

    def total(lows: list[float], highs: list[float]) -> Interval:
        counts = [count for _, count in steps]
        low = [count * value for count, value in zip(counts, lows, strict=True)]
        high = [count * value for count, value in zip(counts, highs, strict=True)]
        if not all(math.isfinite(value) for value in (*low, *high)):
            return Interval(-math.inf, math.inf)
        size = math.fsum(max(abs(a), abs(b)) for a, b in zip(low, high, strict=True))
        return Interval(math.fsum(low) - 3.0 * U * size, math.fsum(high) + 3.0 * U * size)

    def gathered(field: str) -> Interval:
        intervals: list[Interval] = [getattr(step, field) for step, _ in steps]
        return total([interval.lower for interval in intervals], [interval.upper for interval in intervals])

    third = [step.absolute_third for step, _ in steps]
    return TiltedBounds(
        theta, gathered("log_moment"), gathered("mean"), gathered("variance"), total(third, third).upper
    )


def _power_of_two(value: float) -> float:
    return 2.0 ** math.floor(math.log2(value))


def _step_bounds(pair: Pair, theta: float) -> TiltedBounds:
    """Bounds of one step of one pair."""
    guess = CumulantWindow([(pair, 1)]).at(theta)
    first = log_moment_bounds(pair, np.array([theta]))
    doubt = float(first.upper[0] - first.lower[0])
    nothing = Interval(-math.inf, math.inf)
    if not (math.isfinite(doubt) and guess.variance > 0.0):
        return TiltedBounds(theta, nothing, nothing, nothing, math.inf)
    fourth = max(guess.fourth + 3.0 * guess.variance**2, guess.variance**2)
    reach = math.sqrt(fourth / guess.variance)  # where the fourth moment has its mass
    near = _power_of_two(min(max(math.sqrt(doubt / guess.variance), theta * 2.0**-_MEAN_BITS), theta / 4.0))
    wide = _power_of_two(min(0.12 / reach, theta / 8.0))
    shifts = np.array([-near, near, -wide, wide, -2.0 * wide, 2.0 * wide, -4.0 * wide, 4.0 * wide])
    bracket = log_moment_bounds(pair, theta + shifts)
    centre = guess.mean
    mean, variance = _mean_and_variance(bracket, first, shifts, centre)
    log_moment = Interval(float(first.lower[0]), float(first.upper[0]))
    if not math.isfinite(mean.radius):
        return TiltedBounds(theta, log_moment, mean, variance, math.inf)
    third = _absolute_third(pair, theta, centre, log_moment.lower)
    off = max(abs(mean.lower - centre), abs(mean.upper - centre)) * (1.0 + 4.0 * U)
    third = (third ** (1.0 / 3.0) * (1.0 + 1e-14) + off) ** 3 * (1.0 + 1e-14)
    return TiltedBounds(theta, log_moment, mean, variance, third)


def _mean_and_variance(
    bracket: MomentBracket, first: MomentBracket, shifts: Array, centre: float
) -> tuple[Interval, Interval]:
    drift = shifts * centre
    size = (
        np.abs(bracket.upper) + np.abs(bracket.lower) + np.abs(first.upper[0]) + np.abs(first.lower[0]) + np.abs(drift)
    )
    rounding = 4.0 * U * size
    with np.errstate(over="ignore", invalid="ignore"):
        high = np.expm1((bracket.upper - first.lower[0]) - drift + rounding)  # G - 1
        low = np.expm1((bracket.lower - first.upper[0]) - drift - rounding)
        high, low = high + 8.0 * U * np.abs(high), low - 8.0 * U * np.abs(low)
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        nothing = Interval(-math.inf, math.inf)
        return nothing, nothing
    near, wide = float(shifts[1]), float(shifts[3])
    d_low, d_high = -float(high[0]) / near, float(high[1]) / near
    mean_rounding = 4.0 * U * (abs(centre) + abs(d_low) + abs(d_high))
    mean = Interval(centre + d_low - mean_rounding, centre + d_high + mean_rounding)
    square = wide * wide
    (d1_low, d2_low, _), (d1_high, d2_high, d4_high) = (
        [float(g[2 * k] + g[2 * k + 1]) / (4.0 ** (k - 1) * square) for k in (1, 2, 3)] for g in (low, high)
    )
    lower = (4.0 * d1_low - d2_high) / 3.0
    upper = min((64.0 * d1_high - 20.0 * d2_low + d4_high) / 45.0, d1_high)
    square_low = 0.0 if d_low <= 0.0 <= d_high else min(d_low * d_low, d_high * d_high)
    square_high = max(d_low * d_low, d_high * d_high)
    size = float(np.abs(high[2:]).sum()) + float(np.abs(low[2:]).sum())
    slack = 16.0 * U * size / square + 8.0 * U * square_high
    return mean, Interval(lower - square_high - slack, upper - square_low + slack)


def _absolute_third(pair: Pair, theta: float, centre: float, log_moment: float) -> float:
    """Upper bound on ``E~|L - centre|^3``, from a lower bound of K."""
    atoms = atom_table(pair)
    if atoms is not None:
        return _of_atoms(atoms, theta, centre, log_moment)
    losses = covering_losses(pair, theta, refine=_CELLS_A_NODE)
    margin = 1e-13 * (1.0 + float(np.abs(losses).max()))
    largest = pair.loss_bounds[1]
    top = [losses[-1] + margin] + ([largest + margin] if math.isfinite(largest) else [])
    losses = np.unique(np.concatenate(([losses[0] - margin], losses, top)))
    inner = absolute_third_upper(pair, theta, centre, losses=losses, log_moment=log_moment)
    if math.isfinite(largest):
        return inner  # no loss lies beyond
    # beyond the last cut e^{theta L} (L - c)^3 is at most its largest ratio to e^{(theta + eta) L} there
    last = float(losses[-1])
    distance = max(last - centre, 0.0)
    # where the larger tilt has its mean at the last cut, Chernoff's bound is best
    at_last = CumulantWindow([(pair, 1)]).tilt_where(lambda c: c.mean - last)
    larger = max(at_last, theta + 1.0 / max(last - centre, 1e-300))
    eta = larger - theta
    peak = max(3.0 / eta, distance)
    log_larger = float(log_moment_bounds(pair, np.array([larger])).upper[0])
    exponent = log_larger - log_moment - eta * (last + peak - distance)
    rounding = 8.0 * U * (abs(log_larger) + abs(log_moment) + eta * (abs(last) + peak))
    rest = math.exp(min(exponent + rounding, 600.0)) * peak**3
    return inner + rest * (1.0 + 1e-12)


def _of_atoms(atoms: AtomTable, theta: float, centre: float, log_moment: float) -> float:
    exponent = atoms.log_p + theta * atoms.loss - log_moment
    size = np.abs(atoms.log_p) + theta * np.abs(atoms.loss) + abs(log_moment) + 1.0
    weight = np.exp(exponent + atoms.log_error + theta * atoms.loss_error + 8.0 * U * size)
    return float(weight @ (np.abs(atoms.loss - centre) + atoms.loss_error) ** 3) * (1.0 + 1e-12)
