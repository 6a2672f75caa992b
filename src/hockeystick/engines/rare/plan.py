"""Where the cuts lie, and the line between them: estimates, nothing proved.

The upper cut is as low as the excess of the steps it takes away allows, the lower one as high as the curve of the steps
it keeps allows; between them lie all losses that the line must resolve, none of which is much larger or smaller than
epsilon.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.rare.excess import least_excess
from hockeystick.engines.rare.losses import LEAST, Array, RareLosses, RareSum, kept
from hockeystick.engines.rare.powers import log_difference
from hockeystick.engines.rare.turning import least_turn

Shares = tuple[float, float]
"""Of the steps of a plan, and of its epsilon."""

_SPACING = 0.5  # of the coarse grid, in widths
_HALVINGS = 7
_FAR = 14.0  # widths beyond a cut
_ROOM = 2.0  # widths between the cuts, at least
_STRIPS = np.array([0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.2, 1.5])
_HIGHER = np.geomspace(0.5, 8.0, 12)  # widths, where the lower cut is clear of losses without the record
_CLEAR = 6.0  # widths below the lower cut that its piece may reach
_LOG_LEAST = -8.0  # frequency tried, where losses are large; elsewhere 0
_LARGEST = 600.0  # exponent
_TRIED = np.arange(5.0, 16.0)  # beyond the upper cut
_UNSEEN = 1e-20  # of the largest mass of a point: less counts for nothing
_DROP = 30.0  # of ln of the density tilted, that must be seen there


@final
@dataclass(frozen=True)
class RarePlan:
    """A plan for one epsilon.

    Attributes
    ----------
    low, high : tuple of float, of length K
        The cuts, in the base loss of each law.
    tilt, above, dropping : float
        theta of the line; the tilts that bound the aliasing and the losses below the lower cut.
    period, reach : float
        Lambda, and the largest frequency.
    half_widths : tuple of float, of length K
        Of the strip that proves the decay of each law.
    log_moment, log_part : tuple of float, of length K
        ``ln`` of the moments of the steps kept, and of those between the cuts, at the tilt of the line.
    log_error : float
        ``ln`` of the error of delta that is meant.
    power : float
        Of the bound on the excess.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    tilt: float
    above: float
    dropping: float
    period: float
    reach: float
    half_widths: tuple[float, ...]
    log_moment: tuple[float, ...]
    log_part: tuple[float, ...]
    log_error: float
    power: float


@final
class _Coarse:
    """A coarse rule of one law up to its cut."""

    def __init__(self, law: RareLosses, high: float) -> None:
        self.law, self.high, spacing = law, high, _SPACING * law.width
        low = -9.0 * law.shift - 0.5 * law.shift**2
        self.u = np.arange(low, high + _FAR * law.width, spacing)
        self.loss = law.loss(self.u)
        self._mass = np.exp(law.log_density(self.u) + self.loss) * spacing
        self.whole = self._mass * kept((self.u - high) / law.width)

    def low(self, cut: float) -> float:
        """A lower cut, or the highest that leaves room for a piece."""
        return min(cut, self.high - _ROOM * self.law.width)

    def small(self, cut: float) -> Array:
        """What a lower cut keeps."""
        return self._mass * kept((self.u - cut) / self.law.width)

    def between(self, cut: float) -> Array:
        """What it does not."""
        x, y = (self.u - cut) / self.law.width, (self.u - self.high) / self.law.width
        return self._mass * np.where(x + y > 0.0, kept(y) - kept(x), kept(-x) - kept(-y))

    def factors(self, tilts: Array) -> Array:
        """``e^{tilt l}``, shape (k, n)."""
        return np.exp(np.minimum(tilts[:, None] * self.loss, _LARGEST))

    def steepest(self) -> float:
        """The largest tilt that the upper cut outdoes."""
        place = self.high + np.append(0.0, _TRIED * self.law.width)
        loss, log_density = self.law.loss(place), self.law.log_density(place)
        fallen = np.square(_TRIED) + log_density[0] - log_density[1:] - _DROP
        return float((fallen / np.maximum(loss[1:] - loss[0], LEAST)).max())


def plan(losses: RareSum, epsilon: float, log_error: float, least: Sequence[Shares] = ((1.0, 1.0),)) -> RarePlan:
    """A plan for delta at an epsilon to within ``e^log_error``.

    The lower cut serves the runs of a share of the steps, each down to a share of the epsilon.

    Raises
    ------
    ContourRefusal
        Where there is none.
    """
    left_out = functools.cache(functools.partial(_left_out, losses, epsilon))
    high, bad = losses.base(30.0 * epsilon), losses.base(0.8 * epsilon)
    if losses.are_large:  # nothing is that far above the mean
        high = min(high, losses.laws[0].largest)
        bad = min(bad, 0.5 * high)
    high = _halved(lambda cut: left_out(cut)[1] <= log_error, high, bad)
    power, log_left_out = left_out(high)
    if not log_left_out <= log_error:
        raise ContourRefusal("tail", "losses far above epsilon are not rare")
    coarse = [_Coarse(law, cut) for law, cut in zip(losses.laws, losses.cuts(high), strict=True)]
    tilts = np.geomspace(0.5, 600.0, 40) / epsilon
    factors = [one.factors(tilts) for one in coarse]

    def dropped(place: float) -> Array:
        powers = np.zeros_like(tilts)
        for one, its, cut in zip(coarse, factors, losses.cuts(place), strict=True):
            with np.errstate(over="ignore"):
                powers += one.law.steps * np.log(its @ one.small(one.low(cut)))
        logs = np.max([share * powers - less * tilts * epsilon for share, less in least], axis=0)
        return np.asarray(logs + log_constant(tilts))

    highest = high - _ROOM * losses.laws[0].width
    low = _halved(lambda cut: float(dropped(cut).min()) <= log_error, losses.base(epsilon / 200.0), highest)
    left = dropped(low)
    if not float(left.min()) <= log_error:
        raise ContourRefusal("tail", "losses far below epsilon are not rare")
    lows = tuple(one.low(cut) for one, cut in zip(coarse, losses.cuts(low), strict=True))
    nearest = epsilon * least[0][1] if losses.are_large else epsilon  # where the periods above are next to it
    tilt, above, period = _tilts(coarse, lows, nearest, log_error)
    moments, parts = [], []
    for one, cut in zip(coarse, lows, strict=True):
        exponents = one.factors(np.array([tilt]))[0]
        moments.append(float(exponents @ one.whole))
        parts.append(exponents * one.between(cut))
    sums = np.array([part.sum() for part in parts])
    if not sums.any():
        raise ContourRefusal("tail", "losses between the cuts are next to nothing")
    log_moment, log_part = np.log(moments), np.log(np.maximum(sums, LEAST))
    log_size = float(losses.counts @ log_moment) - tilt * epsilon
    each = log_error - log_size - np.log(losses.counts * len(coarse)) + log_moment
    reaches = [_reach(*own, tilt) for own in zip(coarse, parts, each.tolist(), lows, strict=True)]
    return RarePlan(
        low=lows,
        high=tuple(one.high for one in coarse),
        tilt=tilt,
        above=above,
        dropping=float(tilts[int(np.argmin(left))]),
        period=period,
        reach=max(reach for reach, _ in reaches),
        half_widths=tuple(half_width for _, half_width in reaches),
        log_moment=tuple(log_moment.tolist()),
        log_part=tuple(log_part.tolist()),
        log_error=log_error,
        power=power,
    )


def _left_out(losses: RareSum, epsilon: float, place: float) -> tuple[float, float]:
    """The power of the bound on the excess, and about ``ln`` of it, or of the mass above the cut where that is less."""
    cuts = losses.cuts(place)
    power, excess = least_excess(losses, cuts, epsilon)
    mass = math.fsum(law.steps * law.cut_off(cut)[0][0] for law, cut in zip(losses.laws, cuts, strict=True))
    return power, min(excess, math.log(mass + 1e-300))


def _halved(fits: Callable[[float], bool], good: float, bad: float) -> float:
    """Next to where it ceases to fit."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _tilts(
    coarse: Sequence[_Coarse], lows: Sequence[float], epsilon: float, log_error: float
) -> tuple[float, float, float]:
    """The tilt of the line, a larger one, and the least period for which both bound the aliasing.

    The upper cut must outdo what tilts make of the losses above it.
    """
    steepest = max(min(one.steepest() for one in coarse), 0.2 / epsilon)
    steepest = min(steepest, _LARGEST / (1.5 * max(float(one.loss[-1]) for one in coarse)))
    tilts = np.append(np.geomspace(0.1 / epsilon, 1.5 * steepest, 50), 0.0)
    small, between = [], []
    for one, cut in zip(coarse, lows, strict=True):
        factors = one.factors(tilts)
        small.append(factors @ one.small(cut))
        between.append(factors @ one.between(cut))
    logs = log_difference(np.array(small), np.array(between), np.array([[one.law.steps for one in coarse]]))[0]
    below = max(float(logs[-1]) - log_error, 1.0)
    above = np.maximum(logs[:-1] + log_constant(tilts[:-1]) - tilts[:-1] * epsilon - log_error, 1.0)
    periods = (below + above) / tilts[:-1]
    best = int(np.argmin(periods))
    period = max(float(periods[best]), below / steepest)
    return below / period, float(tilts[best]), period


def _reach(coarse: _Coarse, part: Array, log_error: float, low_cut: float, tilt: float) -> tuple[float, float]:
    """The least frequency beyond which the strips prove less than that, and the half-width of the best strip."""
    if not part.any():
        return 1.0, float(_STRIPS[0])
    seen = part > _UNSEEN * part.max()
    part, q = part[seen], coarse.law.posterior(coarse.u[seen])
    m, w = coarse.law.shift, coarse.law.width
    clear = float(coarse.law.posterior(np.array([low_cut - _CLEAR * w]))[0]) > 0.95
    strips = np.append(_STRIPS, _HIGHER * w) if clear else _STRIPS
    argument = least_turn(q, strips[:, None])
    rising = (0.5 / m**2 + 1.0 / w**2) * np.square(strips)
    low, high = np.full(strips.size, _LOG_LEAST if coarse.law.are_large else 0.0), np.full(strips.size, 18.0)
    for _ in range(12):
        middle = 0.5 * (low + high)
        s = np.exp(middle)
        logs = rising + np.log((part * np.exp(-s[:, None] * argument)).sum(axis=1) + 1e-300)
        rest = logs + np.log(np.arctan2(tilt, s) / (math.pi * tilt))
        below = rest <= log_error
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    best = int(np.argmin(high))
    return float(math.exp(high[best])), float(strips[best])
