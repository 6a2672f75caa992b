"""Random allocation: the record takes part in one of t steps, uniformly at random; one round of it as one pair.

With (P, Q) the pair of one step and W = dP/dQ under Q, the round is the pair of ``(1/t) sum_i Q x .. x P x .. x Q``
against ``Q x .. x Q``, whose likelihood ratio is S / t, S the sum of t independent W:

    h(a) = E (S - t a)+ / t + P(L = inf),        a h(1/a) + 1 - a = (a / t) E (t / a - S)+,

the second for the reverse. Both are stop-loss transforms of one sum of positive numbers (`numerics/stop_loss.py`).

Source: Feldman and Shenfeld (arXiv:2502.08202). Proof: docs/derivations/random-allocation.md.

Guarantee: both sides are certified. Cost: a coarse and a fine lattice about each of the points asked for; answers near
one another share theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError, check_count, set_fields
from hockeystick.laws.allocated_line import StopLossLine
from hockeystick.laws.allocated_line_plan import plan_line
from hockeystick.laws.allocated_plan import plan_sum
from hockeystick.laws.base import Array, CertifiedCurve, Extreme, InfiniteMass, Pair, least_infinite
from hockeystick.laws.extent import LEAST_DELTA
from hockeystick.numerics.lattice_sum import SumWindow
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U, dyadic_below, exp_down, exp_up
from hockeystick.numerics.stop_loss import (
    NOISE_LOST,
    TENTS,
    LinearCells,
    StopLoss,
    lognormal_square,
    noise_deviation,
    surely_beyond,
)

_RATIO = 2.0**0.125  # of the epsilons of neighbouring stations
_EVEN, _STEP = 1.0, 0.1  # beyond the first (nats) they stand the second apart
_NEAREST = 0.05  # the least of them, in standard deviations of the round's likelihood ratio
_EPSILON_WIDTH = 7e-7  # nats asked of one round
_RELATIVE_WIDTH = 2e-4  # of delta, asked for as well
_OF_CHORDS = 1e-6  # the same where chords are drawn through its answers
_ROUGH = 2048  # cells that a plan is made by
_LARGEST_LOSS = 350.0  # nats: the square of e to this power stays finite, and what that is multiplied by
_MOST_POINTS = 1 << 21  # of one lattice
_LOG_RARE = (-40.0, -80.0, -160.0, -320.0, -640.0)  # ln of the P-mass of losses too rare to matter, tried in turn
_FARTHEST = 600.0  # nats up to which the curve is looked at: likelihood ratios of all steps have floats there
_NEGLIGIBLE = 1e-8  # of the answer, that they may add
_SURELY = 3.0  # nats, by which a guide of the answer may be too small
_GUESSES = 16  # rough lattices for it
_ABREAST = 8.0  # nats, of delta or of a lattice's errors, to either side of where it is made
_SEEN = 20.0  # nats, of the errors, that a station is asked for at once
_CHORDS = 1e-5  # relative width that is narrow beside what chords cost, about delta of 1; they cost more further out
_FAR = 25.0  # nats of delta from where on less accuracy will do
_WORSE = 3.0  # times the relative width in its middle, that an answer of a lattice may have


@final
@dataclass(frozen=True)
class AllocatedCurve(CertifiedCurve):
    """The certified curve of one round: for every epsilon, bounds on delta.

    Parameters
    ----------
    base : Pair
        (P, Q) of one step.
    steps : int
        t, at least 2.
    mirrored : bool
        Whether the reverse is meant.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> lower, upper = AllocatedCurve(GaussianPair(1.0), 100).delta(0.5)
    >>> 0.0 < lower < upper < 1.001 * lower
    True
    """

    base: Pair
    steps: int
    mirrored: bool = False

    def __post_init__(self) -> None:
        set_fields(self, steps=check_count("steps", self.steps, minimum=2))

    def reversed(self) -> AllocatedCurve:
        return AllocatedCurve(self.base, self.steps, not self.mirrored)

    @property
    def supremum(self) -> Extreme:
        """All W may be the largest at once; of the reverse, the least, or one of them the least and the others 0."""
        if not self.mirrored:
            return self.base.supremum
        most, alone = -self.base.infimum, math.log(self.steps)
        if self.base.reverse_mass_at_infinity == 0.0:
            return most
        loss = most.value + alone
        return Extreme(loss, most.error + ELEMENTARY * alone + U * abs(loss))

    @property
    def infinite_mass(self) -> InfiniteMass:
        """That of one step; of the reverse: all steps show that the record takes no part."""
        if not self.mirrored:
            return self.base.infinite_mass
        mass = self.base.reverse_mass_at_infinity
        if mass == 0.0:
            return InfiniteMass(0.0, 0.0, 0.0, 0.0)
        log_high, log_low = (self.steps * math.log(each) for each in (mass, least_infinite(mass) or TINY))
        low, high = exp_down(log_low * (1.0 + 8.0 * ELEMENTARY)), exp_up(log_high * (1.0 - 8.0 * ELEMENTARY))
        return InfiniteMass.between(low, min(high, 1.0))

    @lru_cache(maxsize=64)  # noqa: B019 - frozen and hashable; both sides of a bracket start from it
    def guess(self, delta: float) -> float:
        """About the epsilon at this delta, by a few rough answers."""
        low, high = 0.0, self.supremum.value  # beyond it nothing of the curve is left
        epsilon = min(2.0 * self._nearest / _NEAREST, 0.5 * high)
        for _ in range(_GUESSES):
            at = np.array([epsilon, epsilon * (1.0 + 1e-3)])
            station = _kept(self, *self._place(epsilon), self._nearest)
            value, beside = (float(x) for x in self._read(station, at)[1])
            low, high = (epsilon, high) if value > delta else (low, epsilon)
            slope = max(math.log(value / beside) / (1e-3 * epsilon), 1e-3) if value > beside > 0.0 else math.inf
            step = math.log(value / delta) / slope if value > 0.0 and math.isfinite(slope) else -0.5 * (epsilon - low)
            if abs(step) <= 1e-2 * epsilon:
                return max(epsilon + step, low)
            ahead = min(max(epsilon + step, 0.1 * epsilon), 4.0 * epsilon)
            epsilon = ahead if low < ahead < high else 0.5 * (low + min(high, 2.0 * epsilon))
        return epsilon

    def at(self, epsilon: float) -> tuple[float, float]:
        try:
            asked = min(epsilon, _FARTHEST)
            low, high = self._read(_kept(self, *self._place(asked), None), np.array([asked]))
        except PrecisionError:
            if epsilon <= 1.0:
                raise
            return self.infinite_mass.low, self.at(0.5 * asked)[1]  # delta falls
        return float(low[0]) if asked == epsilon else self.infinite_mass.low, float(high[0])

    def _place(self, epsilon: float) -> tuple[float, tuple[float, float]]:
        """The station that answers: its middle and its ends. Their places do not depend on what was asked before."""
        if epsilon <= 0.9 * self._nearest:
            return 0.0, (0.0, self._nearest)
        if epsilon > _EVEN:
            number = math.floor(epsilon / _STEP)
            return (number + 0.5) * _STEP, (number * _STEP, (number + 1.0) * _STEP)
        number = math.floor(math.log(epsilon / self._nearest) / math.log(_RATIO) + 0.5)
        centre, half = self._nearest * _RATIO**number, math.sqrt(_RATIO) * (1.0 + 1e-9)
        return centre, (centre / half, centre * half)

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """Certified bounds at increasing epsilons of at least 0, as accurate as chords ``spacing`` wide are (nats)."""
        end, mass = self.supremum, self.infinite_mass
        inside, beyond = np.split(epsilons, [int(np.searchsorted(epsilons, end.value + end.error, side="right"))])
        low, high = self._inside(inside, spacing) if inside.size else (inside, inside)
        return np.append(low, np.full(beyond.size, mass.low)), np.append(high, np.full(beyond.size, mass.high))

    def _inside(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same up to the largest loss."""
        low, high = np.zeros(epsilons.size), np.ones(epsilons.size)
        at, reach, coarser = 0, self._nearest, 1.0
        while at < epsilons.size:
            start = float(epsilons[at])
            centre = start + min(reach, start)
            station = self.station(centre, (start, centre + reach), noise=0.6 * spacing * coarser)
            near = epsilons[at : max(int(np.searchsorted(epsilons, centre + _SEEN / station.steepness)), at + 2)]
            own_low, own_high = self._read(station, np.append(centre, near))
            widths = 1.0 - own_low / own_high
            nats = 1.0 - np.log(own_high)
            allowed = np.maximum(_WORSE * widths[0], _CHORDS * nats * np.maximum(nats / _FAR, 1.0) ** 4)
            good = int(np.append(widths[1:] > allowed[1:], True).argmax())
            if good == 0 and centre > start:
                reach *= 0.25 if reach > spacing else 0.0
                continue
            end = at + max(good, 1)
            low[at:end], high[at:end] = own_low[1 : end - at + 1], own_high[1 : end - at + 1]
            if end == epsilons.size or high[end - 1] < LEAST_DELTA:
                low[end:], high[end:] = 0.0, high[end - 1]
                break
            before = max(end - 9, 0)
            slope = math.log(high[before] / high[end - 1]) / float(epsilons[end - 1] - epsilons[before] or 1.0)
            steepest = max(slope, station.steepness, float(nats[good]))
            coarser = max(float(nats[good]) / _FAR, 1.0) ** 2
            at, reach = end, min(_ABREAST / steepest, 4.0 * max(reach, self._nearest))
        return low, high

    @cached_property
    def _nearest(self) -> float:
        """The epsilon of the first station beside 0."""
        if self.base.loss_range(-40.0, -40.0)[1] > _LARGEST_LOSS:
            raise PrecisionError(
                f"a round of {self.base} has likelihood ratios beyond float64: it hides next to nothing"
            )
        nodes = self.base.nodes(-40.0)
        with np.errstate(over="ignore", invalid="ignore"):  # 0 times infinity, where others are infinite
            second = float(np.nansum(np.exp(nodes.log_q) * np.expm1(nodes.loss) ** 2))
        second += self.base.reverse_mass_at_infinity  # where W is 0
        return _NEAREST * min(max(math.sqrt(second / self.steps), U), 1.0)  # nearer, k is the same number

    def _point(self, epsilon: float) -> float:
        """k, to within 6 u of itself."""
        return self.steps * math.exp(-epsilon if self.mirrored else epsilon)

    def station(self, centre: float, ends: tuple[float, float], noise: float | None = None) -> StopLossLine | StopLoss:
        """What answers about one epsilon and serves a range of them: a line, or a lattice where none is as narrow.

        ``noise``: the standard deviation of a lattice's noise, over k, where more accuracy is of no use.
        """
        k = self._point(centre)
        points = [self._point(end) for end in (*ends, centre)]
        line = _kept_line(self, k, max(points))
        width = 1.0 if line is None else _width(line, k)
        if line is not None and width <= (
            _OF_CHORDS if noise else min(_EPSILON_WIDTH * line.steepness, _RELATIVE_WIDTH)
        ):
            return line
        lattice = self._lattice(k, points, noise)
        return line if line is not None and width <= _width(lattice, k) else lattice

    def line(self, k: float, largest: float) -> StopLossLine | None:
        """The contour, where W is lognormal and a line is short enough."""
        if self.base.gaussian_mu is None:
            return None
        shift = float(self.base.gaussian_mu)
        try:
            plan = plan_line(shift, self.steps, k, largest, below=self.mirrored)
            return StopLossLine(plan, shift, self.steps, reference=k, below=self.mirrored)
        except PrecisionError:
            return None  # a lattice may serve

    def _lattice(self, k: float, points: list[float], noise: float | None) -> StopLoss:
        """A lattice, whatever the likelihood ratio."""
        needed = (
            max(points) if self.mirrored else min(max(points), surely_beyond(max(points), self.steps, self._square))
        )
        for level in _LOG_RARE:
            _, top = self.base.loss_range(level, level)
            largest = 1.01 * min(needed, math.exp(min(top, 700.0)))
            rough = self._cells(dyadic_below(largest / _ROUGH), largest)
            masses = rough.spread()
            window, coarse, log_most = plan_sum(
                masses.mirrored() if self.mirrored else masses, self.steps, -k if self.mirrored else k
            )
            spacing = dyadic_below(max(coarse, (window.high - window.low) / _MOST_POINTS))
            if largest > needed:
                break
            rare = float(rough.rare_terms(self.steps, below=self.mirrored).bounds(np.array([k]))[1][0])
            if rare > _NEGLIGIBLE * exp_up(log_most + _SURELY):
                continue  # no lattice needs to tell
            station = StopLoss(self._cells(spacing, largest), self.steps, window, reference=k, below=self.mirrored)
            if rare <= _NEGLIGIBLE * float(station.bounds(np.array([k]))[1][0]) < math.inf:
                break
        if noise is None:
            spacing = self._fitted(largest, window, k, spacing)
        else:
            spacing = dyadic_below(min(spacing, noise * k / noise_deviation(1.0, self.steps)))
        reach = TENTS[-1] * noise_deviation(spacing, self.steps)
        sign = -1.0 if self.mirrored else 1.0
        signed = [sign * point for point in points]
        window = replace(
            window, low=min(window.low, min(signed) - 1.1 * reach), high=max(window.high, max(signed) + 1.1 * reach)
        )
        spacing = dyadic_below(max(spacing, (window.high - window.low) / _MOST_POINTS))
        return StopLoss(self._cells(spacing, largest), self.steps, window, reference=k, below=self.mirrored)

    def _fitted(self, largest: float, window: SumWindow, k: float, coarse: float) -> float:
        """The spacing that makes the bracket at k as narrow as asked for, by the curvature seen on a coarse lattice."""
        station = StopLoss(self._cells(coarse, largest), self.steps, window, reference=k, below=self.mirrored)
        arm = max(min(0.3 / window.theta, 0.1 * k), 2.0 * coarse)  # between two points upper sides are straight lines
        before, at, after = (float(x) for x in station.bounds(np.array([k - arm, k, k + arm]))[1])
        scale = arm * arm * at
        if not 0.0 < abs(before - after) < math.inf or scale == 0.0:
            return coarse  # nothing is known of the curve so far out
        curvature = max(before + after - 2.0 * at, 1e-9 * at) / scale
        slope = abs(before - after) / (2.0 * arm * at)
        width = min(_EPSILON_WIDTH * slope * k, _RELATIVE_WIDTH)
        deviation = math.sqrt(width / (NOISE_LOST * curvature))
        return min(dyadic_below(deviation / noise_deviation(1.0, self.steps)), coarse)

    def _cells(self, spacing: float, largest: float) -> LinearCells:
        """The masses of W between multiples of a spacing, up to the largest that is not rare."""
        index = np.arange(1, max(math.ceil(largest / spacing), 2) + 1)
        losses = np.log(index * spacing)
        cells = self.base.cells(losses)
        slack = float(cells.slack.max()) + ELEMENTARY * float(np.abs(losses).max())
        return LinearCells(
            spacing,
            index,
            cells.log_q,
            cells.log_p,
            cells.error_q,
            cells.error_p,
            slack,
            zero_mass=self.base.reverse_mass_at_infinity,
            mean=1.0 - self.base.mass_at_infinity,
            square=self._square,
        )

    @property
    def _square(self) -> float:
        """E W^2, where it is known."""
        return math.inf if self.base.gaussian_mu is None else lognormal_square(float(self.base.gaussian_mu))

    def _read(self, station: StopLossLine | StopLoss, epsilons: Array) -> tuple[Array, Array]:
        """Bounds on delta from those on the stop-loss transform."""
        grow = np.exp(epsilons)
        low, high = station.bounds(self.steps / grow if self.mirrored else self.steps * grow)
        scale = grow / self.steps if self.mirrored else 1.0 / self.steps
        low, high = low * scale * (1.0 - 16.0 * U), high * scale * (1.0 + 16.0 * U)
        if not self.mirrored:
            mass = self.base.mass_at_infinity
            low, high = (low + least_infinite(mass)) * (1.0 - 2.0 * U), (high + mass) * (1.0 + 2.0 * U)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)


@lru_cache(maxsize=8)
def _kept(
    curve: AllocatedCurve, centre: float, ends: tuple[float, float], noise: float | None
) -> StopLossLine | StopLoss:
    """A station, kept for the next question."""
    return curve.station(centre, ends, noise)


@lru_cache(maxsize=32)
def _kept_line(curve: AllocatedCurve, k: float, largest: float) -> StopLossLine | None:
    """A line, kept: where one is narrow enough, rough answers and accurate ones are read off the same."""
    return curve.line(k, largest)


def _width(station: StopLossLine | StopLoss, k: float) -> float:
    """The relative width of the bracket at k."""
    low, high = (float(side[0]) for side in station.bounds(np.array([k])))
    return 1.0 - low / high if 0.0 < high < math.inf else 1.0
