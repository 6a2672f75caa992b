"""Which line the stop-loss transform of a sum of lognormal likelihood ratios is computed on: nothing here is proved.

Symbols as in `laws/allocated_line.py`; sigma is 1 for E (S - k)+ and -1 for E (k - S)+, X = sigma (V - 1), k where X is
0. The tilt theta is at most the saddle point, ``t K'(theta) = 2 / theta`` with K = ln E[e^{theta X}; V <= b]: of a few
below it the one whose line has the fewest nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.lognormal_panels import turning_angles
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import dyadic_below
from hockeystick.numerics.stop_loss import lognormal_square, surely_beyond

_ROUGH = 500  # points that a plan is made by
_LOWEST = -14.0  # deviations of the noise of one term, from which a plan looks
_BESIDE = 12.0  # below those of V = 1, at least
_ACCURATE = 27.0  # nats that the errors shall be below the answer
_WORST_LEAD = 18.0
_MOST_LEAD = 10.0  # nats of the integrand's peak above the answer
_LADDER = 1.12 ** np.arange(-36.0, 32.0)
_BELOW = 37  # of the ladder, the last being the saddle point itself
_MOST_LOG_MOMENT = 650.0  # that float64 holds
_MOST_TILTED = 1e150  # its square is a float
_MOST_NODES = 7000
_MOST_WORK = 60_000_000  # products of complex numbers: 0.15 s


@final
@dataclass(frozen=True)
class LinePlan:
    """Tilt, step and number of nodes; the tilt of Chernoff's bound; where the panels begin and end."""

    theta: float
    step: float
    count: int
    tilt_above: float
    low: float
    top: float

    @property
    def reach(self) -> float:
        """The frequency of the last node."""
        return self.step * (self.count - 1)


def plan_line(shift: float, count: int, loss: float, largest: float, *, below: bool) -> LinePlan:
    """A line about ``k = t e^loss`` that serves losses up to ``largest``.

    Raises
    ------
    PrecisionError
        Where it would take more nodes than it may have.
    """
    sketch, log_answer = _sketch(shift, count, loss, largest, below=below)
    return sketch.plan(log_answer)


def _sketch(shift: float, count: int, loss: float, largest: float, *, below: bool) -> tuple[_Sketch, float]:
    """A sketch whose panels are long enough, and ``ln`` of the answer."""
    # b = k, or where one term is as good as sure to carry the sum there: rare terms are closed
    needed = math.log(count) + largest
    if not below:
        needed = min(needed, math.log(surely_beyond(math.exp(needed), count, lognormal_square(shift))))
    exact = (needed + 1e-9 + 0.5 * shift * shift) / shift
    sketch, top, log_answer = _Sketch(shift, count, loss, exact, below=below), exact, math.inf
    for _ in range(2):
        log_answer = min(log_answer, sketch.log_answer)
        short = min(sketch.enough(log_answer), exact)
        if abs(short - top) < 0.05:
            break
        sketch, top = _Sketch(shift, count, loss, short, below=below), short
    return sketch, min(log_answer, sketch.log_answer)


@final
class _Sketch:
    """The terms on a grid of the noise."""

    def __init__(self, shift: float, count: int, loss: float, top: float, *, below: bool) -> None:
        self.m, self.t, self.loss, self.below = shift, count, loss, below
        self.sign = -1.0 if below else 1.0
        self.top = min(top, shift + 37.0)
        self.offset = 0.5 * shift * shift + loss
        lowest = min(_LOWEST, self.offset / shift - _BESIDE)
        length = self.top - lowest
        if length < 1.0:
            raise PrecisionError(f"a loss of {loss:g} needs noise below {lowest:g} deviations")
        x = self.top - length * np.arange(_ROUGH + 1) / _ROUGH
        weight = np.where(np.arange(_ROUGH + 1) == 0, 0.5, 1.0) * length / _ROUGH
        self.x, self.excess = x, np.expm1(np.minimum(shift * x - self.offset, 690.0))
        self.log_q = np.log(weight) - 0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
        self.saddle = self._saddle()
        self.tilts = self.saddle * _LADDER
        self.log_moments = self._moment(self.tilts)
        self.heights = count * self.log_moments  # ln of Chernoff's bound, but for 1 / (e theta)
        self.log_answer = self._answer()

    def _moment(self, tilts: Array) -> Array:
        exponents = self.log_q + self.sign * np.multiply.outer(tilts, self.excess)
        peak = exponents.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(exponents - peak).sum(axis=-1)) + peak[..., 0])

    def _mean(self, theta: float) -> tuple[float, float]:
        """Tilted mean of X, and variance of theta X."""
        exponents = self.log_q + self.sign * theta * self.excess
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        mean = float(weights @ self.excess)
        return self.sign * mean, float(weights @ np.minimum(theta * np.abs(self.excess - mean), _MOST_TILTED) ** 2)

    def _saddle(self) -> float:
        # e^{-theta (V - 1)} falls where the normal density rises
        least = min(self.m, 1.0) if self.below else float(self.excess[0])
        if not least > 0.0:
            raise PrecisionError("no sum of such terms is as large as that")
        low, high = -2.0 * math.log(self.t) - 12.0, math.log(600.0 / least)
        high = max(high, low + 1.0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            theta = math.exp(middle)
            low, high = (low, middle) if self.t * self._mean(theta)[0] > 2.0 / theta else (middle, high)
        return math.exp(0.5 * (low + high))

    def _answer(self) -> float:
        """``ln`` of the transform, by the saddle point, rare terms included."""
        theta = self.saddle
        curvature = self.t * self._mean(theta)[1] + 2.0  # times the square of theta, which may be no float
        log_g = float(self.heights[_BELOW - 1]) - math.log(theta) - 0.5 * math.log(2.0 * math.pi * curvature)
        if self.below:
            return log_g
        tail = 0.5 * math.erfc((self.top - self.m) / math.sqrt(2.0)), 0.5 * math.erfc(self.top / math.sqrt(2.0))
        rare = self.t * (tail[0] - tail[1] * math.exp(min(self.m * self.top - 0.5 * self.m**2, 690.0)))
        return float(np.logaddexp(log_g, math.log(rare) - self.loss)) if rare > 0.0 else log_g

    def enough(self, log_answer: float) -> float:
        """Where the panels may end: what lies beyond may not matter."""
        missing = math.log(self.t) + (math.log(self.t) if self.below else -self.loss) - log_answer + _ACCURATE
        return (0.0 if self.below else self.m) + math.sqrt(2.0 * max(missing, 4.0))

    def plan(self, log_answer: float) -> LinePlan:
        """The line of the fewest nodes, or nearly."""
        wanted = log_answer - _ACCURATE
        leads = self.heights - 2.0 * np.log(self.tilts) - log_answer
        best: tuple[float, int, float, float] | None = None
        for place in range(_BELOW - 1, 0, -1):
            if leads[place] > max(_MOST_LEAD, leads[_BELOW - 1] + 1.0):
                break
            period, above = self._period(place, log_answer)
            cost = period * (1.0 + max(leads[place], 0.0) / 20.0)
            if best is None or cost < best[0]:
                best = cost, place, period, above
        if best is None or leads[best[1]] > _WORST_LEAD:
            raise PrecisionError("single large terms hide the sum about that point")
        _, place, period, above = best
        theta, step = float(self.tilts[place]), dyadic_below(2.0 * math.pi / period)
        reach = self._reach(theta, wanted)
        # below, also what the tilt adds to the density counts
        gained = np.maximum(self.sign * theta * self.excess, 0.0) if self.below else 0.0
        left = gained - 0.5 * self.x**2 > min(self.log_moments[place], 0.0) - _ACCURATE - 12.0 - math.log(self.t)
        low = min(float(self.x[left].min(initial=0.0)), -1.0)
        if reach <= (_MOST_NODES - 2.0) * step:
            plan = LinePlan(theta, step, math.ceil(reach / step) + 2, above, low, self.top)
            if self._work(plan) <= _MOST_WORK:
                return plan
        raise PrecisionError("the line about that point would be too long")

    def _work(self, plan: LinePlan) -> float:
        turns = (plan.reach + plan.theta) * float(self.excess[0] - self.excess[-1]) / 7.0
        return plan.count * 12.0 * (turns + (self.top - plan.low) * max(1.7, self.m))

    def _period(self, place: int, log_answer: float) -> tuple[float, float]:
        """The least period whose copies are far below the answer, and the tilt that shows it."""
        theta, wanted = float(self.tilts[place]), log_answer - _ACCURATE
        left = float(np.logaddexp(log_answer, math.log(_ACCURATE / theta)) - wanted) / theta
        left = float(np.logaddexp(log_answer, math.log(left)) - wanted) / theta
        others = self.tilts[place + 1 :]
        shown = (self.heights[place + 1 :] - 1.0 - np.log(others) - wanted) / (others - theta)
        shown = np.where(self.log_moments[place + 1 :] < _MOST_LOG_MOMENT, shown, math.inf)
        at = int(np.argmin(shown))
        end = self.t * (1.0 if self.below else float(self.excess[0]))
        right = min(float(shown[at]), 1.0001 * end)
        return max(left, right), float(others[at])

    def _reach(self, theta: float, wanted: float) -> float:
        """The frequency beyond which the integrand is below ``wanted``."""
        edge, angles = self.sign * theta * float(self.excess[0]) - 0.5 * self.top**2, turning_angles(self.m)
        versed, sine = 2.0 * np.sin(0.5 * angles) ** 2, np.sin(angles)
        back = (float(self.excess[0]) + 1.0) * self.m / angles

        def beyond(s: float) -> float:
            lead = -self.sign * theta * versed - s * sine
            exponents = self.log_q + np.multiply.outer(self.sign * theta + lead, self.excess) + lead[:, None]
            log_turned = 0.5 * (angles / self.m) ** 2 + np.log(np.exp(exponents).sum(axis=-1) + 1e-300)
            fall = back * (s * sine + min(self.sign, 0.0) * theta * versed) - 0.5 * angles / self.m
            with np.errstate(invalid="ignore", divide="ignore"):
                found = np.where(fall > 0.0, np.logaddexp(log_turned, edge - np.log(np.maximum(fall, 1e-300))), np.inf)
            log_d = float(found.min())
            return self.t * log_d - math.log(math.pi * s)

        low = high = 0.5 * theta
        while beyond(high) > wanted:
            low, high = high, 1.5 * high
            if high > 1e9 * theta:
                raise PrecisionError("the transform decays too slowly")
        for _ in range(5):
            middle = math.sqrt(low) * math.sqrt(high)
            low, high = (middle, high) if beyond(middle) > wanted else (low, middle)
        return high
