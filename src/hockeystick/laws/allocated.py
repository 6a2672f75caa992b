"""Random allocation: the record takes part in one of t steps, uniformly at random; one round of it as one pair.

With (P, Q) the pair of one step and W = dP/dQ under Q, the round is the pair of ``(1/t) sum_i Q x .. x P x .. x Q``
against ``Q x .. x Q``, whose likelihood ratio is S / t, S the sum of t independent W:

    h(a) = E (S - t a)+ / t + P(L = inf),        a h(1/a) + 1 - a = (a / t) E (t / a - S)+,

the second for the reverse. Both are stop-loss transforms of one sum of positive numbers (`numerics/stop_loss.py`).

Source: Feldman and Shenfeld (arXiv:2502.08202). Proof: docs/derivations/random-allocation.md.

Guarantee: both sides are certified. Cost: a contour, or a coarse and a fine lattice, about each of the points asked
for, which answers near one another share; far out a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError, check_count, set_fields
from hockeystick.laws.allocated_stations import AllocatedStations, kept_station
from hockeystick.laws.base import Array, CertifiedCurve, Extreme, InfiniteMass, least_infinite
from hockeystick.laws.extent import LEAST_DELTA
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U, exp_down, exp_up

_RATIO = 2.0**0.125  # of the epsilons of neighbouring stations
_EVEN, _STEP = 1.0, 0.1  # beyond the first (nats) they stand the second apart
_NEAREST = 0.05  # the least of them, in standard deviations of the round's likelihood ratio
_LARGEST_LOSS = 350.0  # nats: the square of e to this power stays finite, and what that is multiplied by
_FARTHEST = 600.0  # nats up to which the curve is looked at: likelihood ratios of all steps have floats there
_GUESSES = 16  # rough lattices for it
_REACH = 8.0  # nats, of delta or of a lattice's errors, to either side of where it is made
_SEEN = 20.0  # nats, of the errors, that a station is asked for at once
_CHORDS = 1e-5  # relative width that is narrow beside what chords cost, about delta of 1; they cost more further out
_WIDE = 1e-3  # relative width of what a station tells, from where on a single jump is asked besides
_BY_JUMP, _AT_ONCE = 1e-8, 1e-6  # relative widths wanted of a single jump, and at which nothing else is asked
_PART = 0.05  # of what chords cost: how wide it may be
_ABREAST = 256  # of its answers
_LEAST = 1e-280  # of delta over e^epsilon, where tables end whose points cost next to nothing
_NOTHING = 1e-300  # a delta of one step up to which nothing else is asked
_LOG_LEAST = -700.0  # ln of the least delta looked for
_FAR_CELLS, _FAR_POINTS = 512, 128  # of W, and epsilons, of bounds far out
_FAR_TILTS = 2.0 ** np.arange(12.0)  # theirs, over k
_FAR = 25.0  # nats of delta from where on lattices may be coarser
_WORSE = 3.0  # times the relative width in its middle, that an answer of a lattice may have


@final
@dataclass(frozen=True)
class AllocatedCurve(AllocatedStations, CertifiedCurve):
    """The certified curve of one round: for every epsilon, bounds on delta.

    Parameters
    ----------
    base : Pair
        (P, Q) of one step.
    steps : int
        t, at least 2.
    mirrored : bool
        Whether the reverse is meant.
    least : float
        The delta down to which tables go.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> lower, upper = AllocatedCurve(GaussianPair(1.0), 100).delta(0.5)
    >>> 0.0 < lower < upper < 1.001 * lower
    True
    """

    def __post_init__(self) -> None:
        set_fields(self, steps=check_count("steps", self.steps, minimum=2))

    def reversed(self) -> AllocatedCurve:
        return replace(self, mirrored=not self.mirrored)

    @property
    def with_tails(self) -> AllocatedCurve:
        return self if self.base.gaussian_mu is None or self.least == _LEAST else replace(self, least=_LEAST)

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
        low, high = 0.0, min(self.supremum.value, _FARTHEST)  # beyond it nothing of the curve is left, or looked at
        epsilon = min(2.0 * self._nearest / _NEAREST, 0.5 * high)
        for _ in range(_GUESSES):
            at = np.array([epsilon, epsilon * (1.0 + 1e-3)])
            least, most = self.jumped(at, 0.1)
            if not (least >= 0.9 * most).all():
                if most[0] <= delta:
                    high, epsilon = epsilon, 0.5 * (low + epsilon)
                    continue
                most = self._read(kept_station(self, *self._place(epsilon), self._nearest).bounds, at)[1]
            value, beside = most.tolist()
            low, high = (epsilon, high) if value > delta else (low, epsilon)
            slope = max(math.log(value / beside) / (1e-3 * epsilon), 1e-3) if value > beside > 0.0 else math.inf
            step = math.log(value / delta) / slope if value > 0.0 and math.isfinite(slope) else -0.5 * (epsilon - low)
            if abs(step) <= 1e-2 * epsilon:
                return max(epsilon + step, low)
            ahead = min(max(epsilon + step, 0.1 * epsilon), 4.0 * epsilon)
            epsilon = ahead if low < ahead < high else 0.5 * (low + min(high, 2.0 * epsilon))
        return epsilon

    def at(self, epsilon: float) -> tuple[float, float]:
        asked = min(epsilon, _FARTHEST)
        centre, ends = self._place(asked)
        jump = self.single_jump if _jump_tells(self, centre) else None
        # convexity: who knows which step it was sees one step
        alone = one_step_delta(self.base.reversed() if self.mirrored else self.base, asked)[1]
        if jump is None and alone <= _NOTHING:
            return self.infinite_mass.low, alone
        try:
            low, high = self._at(asked, (jump or kept_station(self, centre, ends, None)).bounds)
        except PrecisionError as refusal:
            if epsilon <= 1.0 and alone > LEAST_DELTA:
                raise PrecisionError(
                    f"a round of {self.steps} steps of such noise is beyond its lattices ({refusal}); leave the"
                    " sampling out: one step for every round is an upper bound"
                ) from None
            low, high = 0.0, alone if epsilon <= 1.0 else self.at(0.5 * asked)[1]  # delta falls
        if jump is None and self.single_jump is not None and low < (1.0 - _WIDE) * high:
            least, most = self._at(asked, self.single_jump.bounds)
            low, high = max(low, least), min(high, most)
        return low if asked == epsilon else self.infinite_mass.low, high

    def _at(self, epsilon: float, bounds: Callable[[Array], tuple[Array, Array]]) -> tuple[float, float]:
        low, high = self._read(bounds, np.array([epsilon]))
        return float(low[0]), float(high[0])

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
        start = self._jump_starts(epsilons)
        low, high = self._near(epsilons[:start], spacing)
        for at in range(start, epsilons.size, _ABREAST):
            some = epsilons[at : at + _ABREAST]
            sides = self.jumped(some, _AT_ONCE)
            low, high = np.append(low, sides[0]), np.append(high, sides[1])
            gone = np.flatnonzero(sides[1] < self._floor(some))
            if gone.size:
                end = at + int(gone[0]) + 1
                rest = epsilons.size - end
                return np.append(low[:end], np.zeros(rest)), np.append(high[:end], np.full(rest, high[end - 1]))
        return low, high

    def _jump_starts(self, epsilons: Array) -> int:
        """About the first from which on a single jump tells delta, beside what chords cost."""
        low, high = 0, epsilons.size if self.single_jump is not None else 0
        if high == 0:
            return epsilons.size
        while low < high:
            middle = (low + high) // 2
            at = epsilons[middle : middle + 1]
            least, most = self.jumped(at, _AT_ONCE)
            told = least >= (1.0 - _PART * _of_chords(most)) * most or most < self._floor(at)
            low, high = (low, middle) if told else (middle + 1, high)
        return low

    def _floor(self, epsilons: Array) -> Array:
        """The delta below which tables end."""
        return np.maximum(self.least, _LEAST * np.exp(epsilons))

    def jumped(self, epsilons: Array, narrow: float = _BY_JUMP) -> tuple[Array, Array]:
        """What a single jump tells of delta: 0 and 1 where it tells nothing."""
        if self.single_jump is None:
            return np.zeros(epsilons.size), np.ones(epsilons.size)
        return self._read(partial(self.single_jump.bounds, narrow=narrow), epsilons)

    def _near(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same from stations."""
        low, high = np.zeros(epsilons.size), np.ones(epsilons.size)
        at, reach, coarser = 0, self._nearest, 1.0
        while at < epsilons.size:
            start = float(epsilons[at])
            centre = start + min(reach, start)
            station = self.station(centre, (start, centre + reach), noise=0.6 * spacing * coarser)
            near = epsilons[at : max(int(np.searchsorted(epsilons, centre + _SEEN / station.steepness)), at + 2)]
            own_low, own_high = self._read(station.bounds, np.append(centre, near))
            widths = 1.0 - own_low / own_high
            allowed = np.maximum(_WORSE * widths[0], _of_chords(own_high))
            good = int(np.append(widths[1:] > allowed[1:], True).argmax())
            if good == 0 and centre > start:
                reach *= 0.25 if reach > spacing else 0.0
                continue
            end = at + max(good, 1)
            low[at:end], high[at:end] = own_low[1 : end - at + 1], own_high[1 : end - at + 1]
            if end == epsilons.size or high[end - 1] < LEAST_DELTA:
                low[end:], high[end:] = 0.0, np.minimum(high[end - 1], self._far(epsilons[end:]))
                break
            before = max(end - 9, 0)
            slope = math.log(high[before] / high[end - 1]) / float(epsilons[end - 1] - epsilons[before] or 1.0)
            nats = 1.0 - math.log(own_high[good])
            steepest = max(slope, station.steepness, nats)
            coarser = max(nats / _FAR, 1.0) ** 2
            at, reach = end, min(_REACH / steepest, 4.0 * max(reach, self._nearest))
        return low, high

    def _far(self, epsilons: Array) -> Array:
        """Upper bounds further out, of the reverse: Chernoff's, at some of the epsilons."""
        if not self.mirrored or epsilons.size == 0 or self.least == LEAST_DELTA:
            return np.ones(epsilons.size)
        t, (low, high) = float(self.steps), self.base.loss_range(_LOG_LEAST / self.steps - 3.0, -3.0, "Q")
        losses = np.linspace(low, high, _FAR_CELLS)
        cells = self.base.cells(losses)
        least = np.append(0.0, np.exp(losses - cells.slack - ELEMENTARY * (1.0 + np.abs(losses))))
        mass = np.exp(cells.log_q + cells.error_q) * (1.0 + 2.0 * ELEMENTARY)
        index = np.unique(np.linspace(0, epsilons.size - 1, _FAR_POINTS).astype(np.int64))
        best = np.zeros(index.size)
        for tilt in _FAR_TILTS:  # times k: what that is off by moves the bound by as much; unknown masses bound nothing
            with np.errstate(over="ignore", under="ignore"):
                moment = np.exp(-np.multiply.outer(tilt * np.exp(epsilons[index]) / t, least)) @ mass
            whole = (moment + self.base.reverse_mass_at_infinity) * (1.0 + 2.0 * _FAR_CELLS * U) + TINY
            logs = t * np.log(np.minimum(whole, 1.0)) * (1.0 - 8.0 * U)
            best = np.fmin(best, logs + tilt * (1.0 + 1e-9) - 1.0 - math.log(tilt))
        found = np.maximum(np.exp(best) * (1.0 + 1e-9), TINY)
        return np.asarray(found[np.searchsorted(index, np.arange(epsilons.size), side="right") - 1])

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

    def _read(self, bounds: Callable[[Array], tuple[Array, Array]], epsilons: Array) -> tuple[Array, Array]:
        """Bounds on delta from those on the stop-loss transform."""
        grow = np.exp(epsilons)
        low, high = bounds(-epsilons if self.mirrored else epsilons)
        scale = grow / self.steps if self.mirrored else 1.0 / self.steps
        low, high = low * scale * (1.0 - 16.0 * U), high * scale * (1.0 + 16.0 * U)
        if not self.mirrored:
            mass = self.base.mass_at_infinity
            low, high = (low + least_infinite(mass)) * (1.0 - 2.0 * U), (high + mass) * (1.0 + 2.0 * U)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)


@lru_cache(maxsize=256)
def _jump_tells(curve: AllocatedCurve, epsilon: float) -> bool:
    """Whether a single jump tells delta about an epsilon so accurately that nothing else is asked."""
    low, high = curve.jumped(np.array([epsilon]))
    return bool(low[0] >= (1.0 - _AT_ONCE) * high[0])


def _of_chords(delta: Array) -> Array:
    """About the relative width of delta that chords cost where it is so large."""
    nats = 1.0 - np.log(delta)
    return np.asarray(_CHORDS * nats * np.maximum(nats / _FAR, 1.0) ** 4)
