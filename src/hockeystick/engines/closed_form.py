"""Curves with a closed form: one step, compositions of Gaussian pairs alone, and of few Laplace pairs.

One step is read off the tails of its pair (`laws/one_step.py`). Composing N(D_j, s_j^2) against N(0, s_j^2), each T_j
times, is the Gaussian pair with ``mu^2 = sum_j T_j (D_j / s_j)^2``: project on the direction of the means. delta grows
with mu, so that mu rounded down and up brackets the curve. Laplace pairs add up to polynomials (`laplace_sum.py`).

Guarantee: lower and upper are certified. Cost: one or two evaluations of the tails for delta, a search for epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.root_bracket import LogBracket, Targets, inverse_interpolated, root_brackets
from hockeystick.engines.laplace_sum import Beginnings, LaplaceSum
from hockeystick.errors import MOST_RATIO, PrecisionError
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.one_step import least_one_step_deltas, one_step_delta, one_step_deltas
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.numerics.rounding import TINY, U

_OFF = 1e-3  # of the reach, by which interpolation on fans is off
_FANS = 10  # fans tried
_NEARER = np.array([0.25, 0.05, 1e-2, 1e-3, 1e-5, 1e-8, 0.0])  # of the bracket, about a secant's crossing
_ZERO = np.zeros(1)
_NEAR_END = np.geomspace(1.0, 1e-14, 15)  # of the distance from a largest loss
_FAN = np.linspace(0.0, 1.05, 15)  # of the guess, which is next to or above the crossing


def as_one_gaussian(parts: Sequence[tuple[Pair, int]]) -> tuple[GaussianPair, GaussianPair] | None:
    """Gaussian pairs of unit noise just below and just above the composition; None where another pair takes part.

    Examples
    --------
    >>> below, above = as_one_gaussian([(GaussianPair(2.0), 16)])
    >>> below.sensitivity < 2.0 < above.sensitivity
    True
    """
    squares = []
    for pair, count in parts:
        mu = pair.gaussian_mu
        if mu is None:
            return None
        squares.append(count * float(mu) * float(mu))
    total = math.sqrt(math.fsum(squares))
    # relative errors: one rounding for each shift, two for its square and count, half of all that under the root
    least, most = total * (1.0 - 8.0 * U), total * (1.0 + 8.0 * U)
    if most > MOST_RATIO:
        raise PrecisionError(
            f"these steps are one with a sensitivity over noise of {total:.3g}, more than the {MOST_RATIO:g} that"
            " brackets are computed for: epsilon is enormous; use more noise"
        )
    return GaussianPair(1.0, least), GaussianPair(1.0, most)


@final
class PairSides:
    """The sides of the tails of one pair, or of two next to each other that bracket the curve."""

    def __init__(self, below: Pair, above: Pair, method: str) -> None:
        self._below, self._above, self.method = below, above, method
        self.is_dear, self.is_smooth = above.curve is not None, not above.is_discrete
        self.step, self.error = (1e-8, "points") if self.is_dear else (1e-12, "rounding")

    @cached_property
    def is_joint(self) -> bool:
        """Whether each of any epsilons is answered as it is alone."""
        return not self.is_dear and self._above.tails(_ZERO) is not None

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        """Both at increasing epsilons, or at any where that is joint."""
        return one_step_deltas(self._below, epsilons, above=self._above)

    def side(self, side: int, epsilon: float) -> float:
        """The lower (0) or upper (1) one at one epsilon."""
        return one_step_delta(self._above if side else self._below, epsilon)[side]

    def least(self, epsilons: Array) -> Array:
        """The lower ones, where no curve is given of the pair."""
        return least_one_step_deltas(self._below, epsilons)

    def guess(self, delta: float) -> float:
        """Where the largest loss with so much mass above it is, or what a given curve says."""
        if self._above.curve is not None:
            return max(self._above.curve.guess(delta), 0.0)
        log_delta = math.log(max(delta, 1e-320))
        return max(self._above.loss_range(log_delta, log_delta)[1], 0.0)

    def beginnings(self, deltas: Array, guesses: Array) -> Beginnings:
        """By interpolation on fans of the lower sides."""
        points = guesses[:, None] * _FAN
        near = self.least(points.ravel()).reshape(points.shape)
        place = np.argmax(near < deltas[:, None], axis=1)
        told = (deltas > 1e-300) & (near[:, -1] < deltas) & (deltas < near[:, 0])
        steep = near[np.arange(deltas.size), place] == 0.0
        rows, ends = np.flatnonzero(told & ~steep), np.flatnonzero(told & steep)
        start, slope = _interpolated(points[rows], near[rows], deltas[rows])
        reach, at_zero = guesses[rows], near[:, 0] <= deltas
        if ends.size:  # next to a largest loss, the guess: delta is about a power of the distance from it
            away = (guesses[ends] - points[ends, place[ends] - 1])[:, None] * _NEAR_END
            near = self.least((guesses[ends, None] - away).ravel()).reshape(away.shape)
            reached = near[:, -1] < deltas[ends]
            ends, away, near = ends[reached], away[reached], near[reached]
            turned, fall = _interpolated(-np.log(away), near, deltas[ends])
            distance = np.exp(-turned)
            rows, start = np.append(rows, ends), np.append(start, guesses[ends] - distance)
            slope, reach = np.append(slope, fall / distance), np.append(reach, distance)
        return Beginnings(at_zero, rows, start, _OFF * reach, slope, reach)


Sides = PairSides | LaplaceSum
"""Certified sides of delta, as a closed form gives them, and what a search may know of them: what a bracket says of
where it is from (`method`) and of what keeps its sides apart (`error`), how near epsilon is looked for, relative to it
(`step`), whether delta has few kinks or none (`is_smooth`), whether each question takes long, so that none are asked in
fans (`is_dear`), and whether those asked together are answered as each is alone, to the bit (`is_joint`)."""


@final
class ClosedForm:
    """A curve whose delta has a closed form: of one step, of Gaussians, or of Laplace noise."""

    def __init__(self, sides: Sides) -> None:
        self._of = sides

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = (float(side[0]) for side in self._of.sides(np.array([epsilon])))
        return from_sides(lower, upper, self._of.method, errors={self._of.error: upper - lower})

    @property
    def is_joint(self) -> bool:
        """Whether `deltas` and `epsilons` answer."""
        return self._of.is_joint

    @property
    def method(self) -> str:
        """What answers."""
        return self._of.method

    def deltas(self, epsilons: Array) -> tuple[Array, Array]:
        """Both sides of delta at several epsilons, as each has alone."""
        return self._of.sides(epsilons)

    def epsilons(self, deltas: Array) -> tuple[Array, Array]:
        """Both sides of epsilon at several deltas, as each has alone; infinite ones where it is to be asked alone."""
        if not self._of.is_smooth:
            return np.zeros(deltas.size), np.full(deltas.size, np.inf)
        guesses = np.array([self._of.guess(delta) for delta in deltas.tolist()])
        lower, upper = self._crossings(deltas, guesses)
        narrow = upper - lower <= 2.0 * self._of.step * np.maximum(1.0, guesses)
        return lower, np.where(narrow, upper, np.inf)

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation."""
        return self._of.side(1, epsilon) <= delta

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        guess = self._of.guess(delta)
        step = self._of.step * max(1.0, guess)
        lower, upper = 0.0, math.inf
        if guess > 0.0 and not self._of.is_dear:
            if self._of.is_smooth:
                (lower,), (upper,) = (side.tolist() for side in self._crossings(np.array([delta]), np.array([guess])))
            if not upper - lower <= 2.0 * step:
                lower, upper = self._narrowed(delta, guess, step)
        if not upper - lower <= 2.0 * step:
            lower, upper = self._searched(delta, guess, step)
        return from_sides(lower, upper, self._of.method, errors={self._of.error: upper - lower})

    def _crossings(self, deltas: Array, guesses: Array) -> tuple[Array, Array]:
        """Where smooth sides cross each delta, by interpolation; infinite brackets where that does not tell."""
        lower, upper = np.zeros(deltas.size), np.full(deltas.size, np.inf)
        near = self._of.beginnings(deltas, guesses)
        if near.at_zero.any():
            upper[self._of.sides(_ZERO)[1] <= deltas] = 0.0
        rows = near.rows
        if rows.size:
            even = np.zeros(rows.size)
            found = root_brackets(
                lambda which, at: self._log_ratios(at, deltas[rows[which], None]),
                Targets(even, even),
                start=near.start,
                spread=near.spread,
                slope=near.slope,
                reach=near.reach,
            )
            lower[rows], upper[rows] = np.maximum(found.lower, 0.0), found.upper
        return lower, upper

    def _narrowed(self, delta: float, guess: float, step: float) -> tuple[float, float]:
        """Where convex sides cross ``delta``, kinks or not, by fans about secants; infinite where no fan holds it.

        delta is convex in ``e^epsilon``: a straight line between the kinks of discrete losses.
        """
        points, below, above = guess * _FAN, 0.0, math.inf
        lower, upper = self._of.sides(points)
        for _ in range(_FANS):
            before, beyond = np.flatnonzero(lower >= delta), np.flatnonzero(upper <= delta)
            if beyond.size and points[beyond[0]] == 0.0:
                return 0.0, 0.0
            if before.size == 0 or beyond.size == 0:
                break
            first, last = int(before[-1]), int(beyond[0])
            below, above = float(points[first]), float(points[last])
            width = above - below
            fall = float(lower[first] - upper[last])
            if width <= 2.0 * step or not fall > 0.0:
                break
            excess = float(lower[first]) - delta
            crossing = below + math.log1p(excess / fall * math.expm1(min(width, 700.0)))
            moves = np.maximum(width * _NEARER, 0.4 * step)
            nearer = [crossing - moves, crossing + moves]
            if first > 0:  # a convex curve lies above the straight line through two points before
                slope = float(lower[first - 1] - lower[first]) / -math.expm1(float(points[first - 1]) - below)
                sooner = below + math.log1p(excess / slope) if slope > 0.0 else below
                moves = np.maximum((crossing - sooner) * _NEARER, 0.4 * step)
                nearer += [sooner - moves, sooner + moves]
            points = np.unique(np.clip(np.concatenate((*nearer, (below, crossing, above))), below, above))
            lower, upper = self._of.sides(points)
        return below, above

    def _log_ratios(self, points: Array, deltas: Array) -> LogBracket:
        """``ln(side / delta)`` at points of each question, shape (n, P), rounded, but on the right side of 0."""
        epsilons, place = np.unique(points, return_inverse=True)
        lower, upper = (side[place].reshape(points.shape) for side in self._of.sides(epsilons))
        log_lower, log_upper = np.log(np.maximum(lower, TINY) / deltas), np.log(np.maximum(upper, TINY) / deltas)
        log_lower = np.where(lower >= deltas, np.maximum(log_lower, 0.0), np.minimum(log_lower, -TINY))
        log_upper = np.where(upper <= deltas, np.minimum(log_upper, 0.0), np.maximum(log_upper, TINY))
        return LogBracket(np.where(lower > TINY, log_lower, -np.inf), log_upper)

    def _searched(self, delta: float, guess: float, step: float) -> tuple[float, float]:
        """The crossing of each side, whatever its shape."""
        near, far = self._of.side(1, guess), self._of.side(1, guess * (1.0 + 1e-3) + 1e-3)
        slope = math.log(near / far) / (1e-3 * guess + 1e-3) if near > far > 0.0 else 1.0
        lower, upper = (partial(self._of.side, side) for side in (0, 1))
        return crossings(lower, upper, delta, guess=guess, slope=slope, step=step)


def _interpolated(points: Array, near: Array, deltas: Array) -> tuple[Array, Array]:
    """About where falling values cross each delta, and how steeply their logarithm falls there."""
    place, own = np.argmax(near < deltas[:, None], axis=1), np.arange(deltas.size)
    logs = np.log(np.maximum(near, 1e-320))
    before, after = points[own, place - 1], points[own, place]
    five = np.clip(place - 3, 0, points.shape[1] - 5)[:, None] + np.arange(5)
    start = inverse_interpolated(points[own[:, None], five], logs[own[:, None], five] - np.log(deltas)[:, None])
    start = np.where((before <= start) & (start <= after), start, 0.5 * (before + after))
    return start, (logs[own, place - 1] - logs[own, place]) / (after - before)


def closed_form(parts: Sequence[tuple[Pair, int]]) -> ClosedForm | None:
    """The closed form that serves this composition, if one does."""
    if len(parts) == 1 and parts[0][1] == 1:
        pair = parts[0][0]
        return ClosedForm(PairSides(pair, pair, pair.method))
    gaussians = as_one_gaussian(parts)
    if gaussians is not None:
        return ClosedForm(PairSides(*gaussians, "closed form of Gaussians"))
    laplace = LaplaceSum.of(parts)
    return None if laplace is None else ClosedForm(laplace)


def joint_form(engine: object) -> ClosedForm | None:
    """The closed form that an engine is, if it answers many questions as each alone."""
    return engine if isinstance(engine, ClosedForm) and engine.is_joint else None
