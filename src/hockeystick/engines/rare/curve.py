"""The curve of a rarely sampled Gaussian step, composed some hundreds of times, where large losses are rare.

There the law of the loss is a spike, as wide as the rate is small, with a broad tail; the contour would need a node for
every width of the spike, and a lattice a point. Here the two are taken apart.

Guarantee: both sides certified. Cost: 5 to 30 ms a line, one or two for an answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.root_bracket import Targets, root_brackets
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.rare.losses import RareLosses
from hockeystick.laws.base import Pair

if TYPE_CHECKING:
    from hockeystick.engines.rare.line import RareLine

__all__ = ["RareCurve"]

_METHOD: Final = "rare large losses"
_MOST_RATE = 0.01
_MOST_DRAWN = 2.0  # rate times steps
_ROUNDS = 4
_SHARE = 0.1  # of the tolerance, that a line is planned for
_MOST_ERROR = 1e-2  # relative to delta
_LEAST_ERROR = 1e-9
_LEAST = 1e-250
_LOG_COARSE = math.log(1e-2)  # of the relative error of delta on the way to its epsilon
_NEAR = 0.3  # of epsilon, by which a line may be off on the way


@final
class RareCurve:
    """The curve of T steps of one rarely sampled Gaussian pair.

    Parameters
    ----------
    losses : RareLosses
        The law.
    tolerance : float
        Width of the epsilon bracket asked for (nats), and relative width of the delta bracket.
    """

    def __init__(self, losses: RareLosses, tolerance: float) -> None:
        self.losses, self.tolerance = losses, tolerance

    @classmethod
    def of(cls, parts: tuple[tuple[Pair, int], ...], tolerance: float) -> RareCurve | None:
        """The curve, where large losses may be rare."""
        if len(parts) != 1:
            return None
        ((pair, count),) = parts
        known = pair.sampled_gaussian
        if known is None or count < 2:
            return None
        mu, rate = known
        if not (rate <= _MOST_RATE and rate * count <= _MOST_DRAWN and 0.05 <= mu <= 4.0):
            return None
        return cls(RareLosses(float(mu), rate, float(count)), tolerance)

    def _line(self, epsilon: float, log_error: float) -> RareLine:
        """The line near an epsilon."""
        from hockeystick.engines.rare.line import rare_line  # lines that few answers need load late

        return rare_line(self.losses, epsilon, log_error)

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        guess = max(self.losses.one_large(epsilon), _LEAST) if epsilon > 0.0 else 0.0
        best: Bound | None = None
        for _ in range(_ROUNDS if guess > 0.0 else 0):
            line = self._line(epsilon, math.log(_SHARE * self.tolerance * guess))
            lower, upper = (float(side[0]) for side in line.sides(np.array([epsilon])))
            best = from_sides(max(lower, 0.0), min(upper, 1.0), _METHOD)
            if 0.0 < upper - lower <= self.tolerance * lower:
                return best
            guess = max(0.5 * (lower + upper), 1e-3 * guess)
        raise _refused(best)

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        if delta < _LEAST:
            raise _refused(None)
        exceeded, undercut = targets_of(delta, 0.0, 0.0)
        targets = Targets(np.array([exceeded]), np.array([undercut]))
        log_delta = math.log(delta)
        point = self._near(log_delta)
        share, best = _SHARE * self.tolerance, None
        for _ in range(_ROUNDS):
            line = self._line(point, log_delta + self._log_error(share, point))
            after = line.epsilon(log_delta)
            lower, upper = _crossing(line, targets, after)
            width = upper - lower
            if math.isfinite(width):
                best = from_sides(max(lower, 0.0), upper, _METHOD)
                if width <= self.tolerance:
                    return best
                share *= min(0.5 * self.tolerance / width, 0.5)
            point = after
        raise _refused(best)

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Nothing that is known at once."""
        return False

    def _near(self, log_delta: float) -> float:
        """About the epsilon of a delta, by coarse lines."""
        point = self._guess(math.exp(log_delta))
        for _ in range(_ROUNDS):
            after = self._line(point, log_delta + _LOG_COARSE).epsilon(log_delta)
            near, point = abs(after - point) <= _NEAR * point, after
            if near:
                break
        return point

    def _guess(self, delta: float) -> float:
        """About the epsilon of a delta: as if one step had a large loss, and the others normal ones."""
        m, g, steps = self.losses.shift, self.losses.rate, self.losses.steps
        low, high = 1e-9, 200.0
        for _ in range(16):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.losses.one_large(middle) > delta else (low, middle)
        return low + g * math.sqrt(steps * math.expm1(m * m))

    def _log_error(self, share: float, epsilon: float) -> float:
        """``ln`` of the relative error of delta that moves epsilon by about ``share``."""
        near, far = (max(self.losses.one_large(one), 1e-300) for one in (epsilon, 1.05 * epsilon))
        slope = max(math.log(near / far) / (0.05 * epsilon), 1.0)
        return math.log(min(max(share * slope, _LEAST_ERROR), _MOST_ERROR))


def _crossing(line: RareLine, targets: Targets, guess: float) -> tuple[float, float]:
    """Where the sides of a line cross a delta."""
    found = root_brackets(
        lambda _, points: line.bracket(points),
        targets,
        start=np.array([guess]),
        spread=np.array([1e-4 * guess]),
        slope=np.array([1.0 / guess]),
        reach=np.array([0.1 * guess]),
    )
    return float(found.lower[0]), float(found.upper[0])


def _refused(best: Bound | None) -> ContourRefusal:
    return ContourRefusal("width", "no line of rare large losses was narrow enough", best)
