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
from hockeystick.engines.rare.losses import Array, RareLosses, kept, log_difference
from hockeystick.engines.rare.turning import least_turn

Shares = tuple[float, float]
"""Of the steps of a plan, and of its epsilon."""

_SPACING = 0.5  # of the coarse grid, in widths
_HALVINGS = 7
_ALL = 40.0  # deviations above the mean, beyond which there is nothing
_FAR = 14.0  # widths beyond a cut
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
    low, high : float
        The cuts, in the base loss.
    tilt, above, dropping : float
        theta of the line; the tilts that bound the aliasing and the losses below the lower cut.
    period, reach : float
        Lambda, and the largest frequency.
    half_width : float
        Of the strip that proves the decay.
    log_moment, log_part : float
        ``ln`` of the moments of the steps kept, and of those between the cuts, at the tilt of the line.
    log_error : float
        ``ln`` of the error of delta that is meant.
    power : float
        Of the bound on the excess.
    """

    low: float
    high: float
    tilt: float
    above: float
    dropping: float
    period: float
    reach: float
    half_width: float
    log_moment: float
    log_part: float
    log_error: float
    power: float


@final
class _Coarse:
    """A coarse rule up to a cut."""

    def __init__(self, losses: RareLosses, high: float) -> None:
        self.losses, self.high, spacing = losses, high, _SPACING * losses.width
        low = -9.0 * losses.shift - 0.5 * losses.shift**2
        self.u = np.arange(low, high + _FAR * losses.width, spacing)
        self.loss = losses.loss(self.u)
        self._mass = np.exp(losses.log_density(self.u) + self.loss) * spacing
        self.whole = self._mass * kept((self.u - high) / losses.width)

    def small(self, cut: float) -> Array:
        """What a lower cut keeps."""
        return self._mass * kept((self.u - cut) / self.losses.width)

    def between(self, cut: float) -> Array:
        """What it does not."""
        x, y = (self.u - cut) / self.losses.width, (self.u - self.high) / self.losses.width
        return self._mass * np.where(x + y > 0.0, kept(y) - kept(x), kept(-x) - kept(-y))

    def factors(self, tilts: Array) -> Array:
        """``e^{tilt l}``, shape (k, n)."""
        return np.exp(np.minimum(tilts[:, None] * self.loss, _LARGEST))


def plan(losses: RareLosses, epsilon: float, log_error: float, least: Sequence[Shares] = ((1.0, 1.0),)) -> RarePlan:
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
        high = min(high, 0.5 * losses.shift**2 + _ALL * losses.shift)
        bad = min(bad, 0.5 * high)
    high = _halved(lambda cut: left_out(cut)[1] <= log_error, high, bad)
    power, log_left_out = left_out(high)
    if not log_left_out <= log_error:
        raise ContourRefusal("tail", "losses far above epsilon are not rare")
    coarse = _Coarse(losses, high)
    tilts = np.geomspace(0.5, 600.0, 40) / epsilon
    factors = coarse.factors(tilts)

    def dropped(cut: float) -> Array:
        with np.errstate(over="ignore"):
            powers, falls = losses.steps * np.log(factors @ coarse.small(cut)), tilts * epsilon
        logs = np.max([share * powers - less * falls for share, less in least], axis=0)
        return np.asarray(logs + log_constant(tilts))

    low = _halved(
        lambda cut: float(dropped(cut).min()) <= log_error, losses.base(epsilon / 200.0), high - 2.0 * losses.width
    )
    left = dropped(low)
    if not float(left.min()) <= log_error:
        raise ContourRefusal("tail", "losses far below epsilon are not rare")
    nearest = epsilon * least[0][1] if losses.are_large else epsilon  # where the periods above are next to it
    tilt, above, period = _tilts(coarse, low, nearest, log_error)
    exponents = coarse.factors(np.array([tilt]))[0]
    moment, part = float(exponents @ coarse.whole), exponents * coarse.between(low)
    if not part.sum() > 0.0:
        raise ContourRefusal("tail", "losses between the cuts are next to nothing")
    log_part = math.log(part.sum())
    log_size = math.log(losses.steps) + (losses.steps - 1.0) * math.log(moment) - tilt * epsilon
    reach, half_width = _reach(coarse, part, tilt, log_error - log_size, low)
    return RarePlan(
        low=low,
        high=high,
        tilt=tilt,
        above=above,
        dropping=float(tilts[int(np.argmin(left))]),
        period=period,
        reach=reach,
        half_width=half_width,
        log_moment=math.log(moment),
        log_part=log_part,
        log_error=log_error,
        power=power,
    )


def _left_out(losses: RareLosses, epsilon: float, cut: float) -> tuple[float, float]:
    """The power of the bound on the excess, and about ``ln`` of it, or of the mass above the cut where that is less."""
    power, excess = least_excess(losses, cut, epsilon)
    (mass, _), _ = losses.cut_off(cut)
    return power, min(excess, math.log(losses.steps * mass + 1e-300))


def _halved(fits: Callable[[float], bool], good: float, bad: float) -> float:
    """Next to where it ceases to fit."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _tilts(coarse: _Coarse, low: float, epsilon: float, log_error: float) -> tuple[float, float, float]:
    """The tilt of the line, a larger one, and the least period for which both bound the aliasing.

    The upper cut must outdo what tilts make of the losses above it.
    """
    place = coarse.high + np.append(0.0, _TRIED * coarse.losses.width)
    loss, log_density = coarse.losses.loss(place), coarse.losses.log_density(place)
    fallen = np.square(_TRIED) + log_density[0] - log_density[1:] - _DROP
    steepest = max(float((fallen / (loss[1:] - loss[0])).max()), 0.2 / epsilon)
    steepest = min(steepest, _LARGEST / (1.5 * float(coarse.loss[-1])))
    tilts = np.append(np.geomspace(0.1 / epsilon, 1.5 * steepest, 50), 0.0)
    factors, steps = coarse.factors(tilts), coarse.losses.steps
    small, between = factors @ coarse.small(low), factors @ coarse.between(low)
    logs = log_difference(small, between, steps)
    below = max(float(logs[-1]) - log_error, 1.0)
    above = np.maximum(logs[:-1] + log_constant(tilts[:-1]) - tilts[:-1] * epsilon - log_error, 1.0)
    periods = (below + above) / tilts[:-1]
    best = int(np.argmin(periods))
    period = max(float(periods[best]), below / steepest)
    return below / period, float(tilts[best]), period


def _reach(coarse: _Coarse, part: Array, tilt: float, log_error: float, low_cut: float) -> tuple[float, float]:
    """The least frequency beyond which the strips prove less than that, and the half-width of the best strip."""
    seen = part > _UNSEEN * part.max()
    part, q = part[seen], coarse.losses.posterior(coarse.u[seen])
    m, w = coarse.losses.shift, coarse.losses.width
    clear = float(coarse.losses.posterior(np.array([low_cut - _CLEAR * w]))[0]) > 0.95
    strips = np.append(_STRIPS, _HIGHER * w) if clear else _STRIPS
    argument = least_turn(q, strips[:, None])
    rising = (0.5 / m**2 + 1.0 / w**2) * np.square(strips)
    low, high = np.full(strips.size, _LOG_LEAST if coarse.losses.are_large else 0.0), np.full(strips.size, 18.0)
    for _ in range(12):
        middle = 0.5 * (low + high)
        s = np.exp(middle)
        logs = rising + np.log((part * np.exp(-s[:, None] * argument)).sum(axis=1) + 1e-300)
        rest = logs + np.log(np.arctan2(tilt, s) / (math.pi * tilt))
        below = rest <= log_error
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    best = int(np.argmin(high))
    return float(math.exp(high[best])), float(strips[best])
