"""What answers about one point of a round of random allocation: a contour or a lattice, and far out a single jump.

Symbols as in `laws/allocated.py`: S the sum of t independent likelihood ratios W, k the point at which E (S - k)+ or
E (k - S)+ is wanted, told as the loss ``ln(k / t)``: with much noise likelihood ratios are 1 to a float.

Guarantee: every station's bounds are certified; which is taken proves nothing. Cost: a millisecond for a single jump,
some tens for a contour, some hundreds for a lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.allocated_line import StopLossLine
from hockeystick.laws.allocated_line_plan import plan_line
from hockeystick.laws.allocated_plan import plan_sum
from hockeystick.laws.base import Pair
from hockeystick.laws.extent import LEAST_DELTA
from hockeystick.laws.single_jump import SingleJump
from hockeystick.numerics.lattice_sum import SumWindow
from hockeystick.numerics.rounding import ELEMENTARY, dyadic_below, exp_up
from hockeystick.numerics.stop_loss import (
    NOISE_LOST,
    TENTS,
    LinearCells,
    StopLoss,
    lognormal_square,
    noise_deviation,
    surely_beyond,
)

_EPSILON_WIDTH = 7e-7  # nats asked of one round
_RELATIVE_WIDTH = 2e-4  # of delta, asked for as well
_OF_CHORDS = 1e-6  # the same where chords are drawn through its answers
_ROUGH = 2048  # cells that a plan is made by
_MOST_POINTS = 1 << 21  # of one lattice
_LOG_RARE = (-40.0, -80.0, -160.0, -320.0, -640.0)  # ln of the P-mass of losses too rare to matter, tried in turn
_NEGLIGIBLE = 1e-8  # of the answer, that they may add
_SURELY = 3.0  # nats, by which a guide of the answer may be too small

Station = StopLossLine | StopLoss


@dataclass(frozen=True)
class AllocatedStations:
    """The sum of a round, with the parameters of `AllocatedCurve`."""

    base: Pair
    steps: int
    mirrored: bool = False
    least: float = field(default=LEAST_DELTA, repr=False)

    def station(self, centre: float, ends: tuple[float, float], noise: float | None = None) -> Station:
        """What answers about one epsilon and serves a range of them: a line, or a lattice where none is as narrow.

        ``noise``: the standard deviation of a lattice's noise, over k, where more accuracy is of no use.
        """
        loss, *losses = (-at if self.mirrored else at for at in (centre, *ends))
        line = _kept_line(self, loss, max(loss, *losses))
        width = 1.0 if line is None else seen(line, loss)
        if line is not None and width <= (
            _OF_CHORDS if noise else min(_EPSILON_WIDTH * line.steepness, _RELATIVE_WIDTH)
        ):
            return line
        lattice = self._lattice(loss, losses, noise)
        return line if line is not None and width <= seen(lattice, loss) else lattice

    @cached_property
    def single_jump(self) -> SingleJump | None:
        """What tells how large the sum is far out, where W is lognormal."""
        if self.mirrored or self.base.gaussian_mu is None:
            return None
        return SingleJump(self.base, float(self.base.gaussian_mu), self.steps)

    def line(self, loss: float, largest: float) -> StopLossLine | None:
        """The contour, where W is lognormal and a line is short enough."""
        if self.base.gaussian_mu is None:
            return None
        shift = float(self.base.gaussian_mu)
        try:
            plan = plan_line(shift, self.steps, loss, largest, below=self.mirrored)
            return StopLossLine(plan, shift, self.steps, reference=loss, below=self.mirrored)
        except PrecisionError:
            return None  # a lattice may serve

    def _lattice(self, loss: float, losses: list[float], noise: float | None) -> StopLoss:
        """A lattice, whatever the likelihood ratio."""
        k, *points = (self.steps * math.exp(at) for at in (loss, loss, *losses))
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
            if rare <= _NEGLIGIBLE * float(station.bounds(np.array([loss]))[1][0]) < math.inf:
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
        losses = np.log(np.array([k - arm, k, k + arm]) / self.steps)
        before, at, after = (float(x) for x in station.bounds(losses)[1])
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


@lru_cache(maxsize=8)
def kept_station(curve: AllocatedStations, centre: float, ends: tuple[float, float], noise: float | None) -> Station:
    """A station, kept for the next question."""
    return curve.station(centre, ends, noise)


@lru_cache(maxsize=32)
def _kept_line(curve: AllocatedStations, loss: float, largest: float) -> StopLossLine | None:
    """A line, kept: where one is narrow enough, rough answers and accurate ones are read off the same."""
    return curve.line(loss, largest)


def seen(station: Station, loss: float) -> float:
    """The relative width of the bracket at ``k = t e^loss``."""
    low, high = (float(side[0]) for side in station.bounds(np.array([loss])))
    return 1.0 - low / high if 0.0 < high < math.inf else 1.0
