"""Curves with a closed form: one step, compositions of Gaussian pairs alone, of few Laplace pairs, and few outcomes.

One step is read off the tails of its pair (`laws/one_step.py`), known atoms off their list (`enumeration/sides.py`), as
few outcomes of several steps are. Composing N(D_j, s_j^2) against N(0, s_j^2), each T_j times, is the Gaussian pair
with ``mu^2 = sum_j T_j (D_j / s_j)^2``: project on the direction of the means. delta grows with mu, so that mu rounded
down and up brackets the curve. Laplace pairs add up to polynomials (`laplace_sum.py`).

Guarantee: lower and upper are certified. Cost: one or two evaluations of the tails for delta, a search for epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.root_bracket import (
    Beginnings,
    LogBracket,
    Targets,
    inverse_interpolated,
    root_brackets,
)
from hockeystick.errors import MOST_RATIO, PrecisionError
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.one_step import least_one_step_deltas, one_step_deltas
from hockeystick.numerics.columns import Flags, Places
from hockeystick.numerics.one_sided_root import crossings_of
from hockeystick.numerics.rounding import TINY, U

if TYPE_CHECKING:  # loaded where losses are discrete, or Laplace's
    from hockeystick.engines.enumeration.sides import OutcomeSides
    from hockeystick.engines.laplace_sum import LaplaceSum

METHOD = "closed form of Gaussians"

_OFF = 1e-3  # of the reach, by which interpolation on fans is off
_TANGENTS = 60  # at most: a few do
_DOUBTS = 4.0  # times the width of delta, that the end of a bracket of epsilon may be off
_ZERO, _NOWHERE = np.zeros(1), np.zeros(0)
_ROUNDINGS = np.array([-2048.0, -512.0, -128.0, -32.0, -8.0, 0.0, 8.0, 32.0, 128.0, 512.0, 2048.0])  # about a loss
_NEAR_END = np.geomspace(1.0, 1e-14, 15)  # of the distance from a largest loss
_FAN = np.linspace(0.0, 1.05, 15)  # of the guess, which is next to or above the crossing
_COARSE_FAN = np.linspace(0.15, 0.9, 6)  # of the same, where tangents lead on


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


class SmoothSides(ABC):
    """The sides of losses with a density, and the beginnings of a search by interpolation on fans of lower ones."""

    method: str
    step, error, tells, is_joint = 1e-12, "rounding", True, True

    @abstractmethod
    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        """Both at increasing epsilons, or at any where that is joint."""

    @abstractmethod
    def least_at(self, points: Array, rows: Places) -> Array:
        """The lower ones at points of some of the questions, shape (n, P), where no curve is given of the pair."""

    @abstractmethod
    def guesses(self, deltas: Array) -> Array:
        """Where the largest losses with so much mass above them are, or what a given curve says."""

    def beginnings(self, deltas: Array, guesses: Array) -> Beginnings:
        """About where each delta is crossed."""
        points = guesses[:, None] * _FAN
        near = self.least_at(points, np.arange(deltas.size))
        place = np.argmax(near < deltas[:, None], axis=1)
        told = (deltas >= 1e-300) & (near[:, -1] < deltas) & (deltas < near[:, 0])
        steep = near[np.arange(deltas.size), place] == 0.0
        rows, ends = np.flatnonzero(told & ~steep), np.flatnonzero(told & steep)
        start, slope = _interpolated(points[rows], near[rows], deltas[rows])
        reach, at_zero = guesses[rows], near[:, 0] <= deltas
        if ends.size:  # next to a largest loss, the guess: delta is about a power of the distance from it
            away = (guesses[ends] - points[ends, place[ends] - 1])[:, None] * _NEAR_END
            near = self.least_at(guesses[ends, None] - away, ends)
            reached = near[:, -1] < deltas[ends]
            ends, away, near = ends[reached], away[reached], near[reached]
            turned, fall = _interpolated(-np.log(away), near, deltas[ends])
            distance = np.exp(-turned)
            rows, start = np.append(rows, ends), np.append(start, guesses[ends] - distance)
            slope, reach = np.append(slope, fall / distance), np.append(reach, distance)
        return Beginnings(at_zero, rows, start, _OFF * reach, slope, reach)


@final
class PairSides(SmoothSides):
    """The sides of the tails of one pair, or of two next to each other that bracket the curve."""

    def __init__(self, below: Pair, above: Pair, method: str) -> None:
        self._below, self._above, self.method = below, above, method
        is_dear, self._is_smooth = above.curve is not None, not above.is_discrete
        if is_dear:
            self.step, self.error = 1e-8, "points"
        self.is_joint = not is_dear and above.tails(_NOWHERE) is not None
        self.tells = self.is_joint or (self._is_smooth and not is_dear)

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        return one_step_deltas(self._below, epsilons, above=self._above)

    def least_at(self, points: Array, rows: Places) -> Array:
        return self._least(points.ravel()).reshape(points.shape)

    def guesses(self, deltas: Array) -> Array:
        return np.array([self._guess(delta) for delta in deltas.tolist()])

    def beginnings(self, deltas: Array, guesses: Array) -> Beginnings:
        return super().beginnings(deltas, guesses) if self._is_smooth else self._by_tangents(deltas, guesses)

    def _least(self, epsilons: Array) -> Array:
        return least_one_step_deltas(self._below, epsilons)

    def _guess(self, delta: float) -> float:
        if self._above.curve is not None:
            return max(self._above.curve.guess(delta), 0.0)
        return guess_at(self._above, delta)

    def _by_tangents(self, deltas: Array, guesses: Array) -> Beginnings:
        """Where tangents lead from before the crossings, and how steeply the logarithms fall there.

        delta is convex in ``e^epsilon``: no tangent leads beyond. Between kinks of discrete losses it is straight.
        """
        at_zero = self._least(_ZERO) <= deltas
        rows = np.flatnonzero((deltas >= 1e-300) & ~at_zero)
        points, deltas = guesses[rows, None] * _COARSE_FAN, deltas[rows]
        near = self.least_at(points, rows)
        start = np.where(near >= deltas[:, None], points, 0.0).max(axis=1)
        finite, left = deltas - self._above.mass_at_infinity, np.arange(deltas.size)
        log_q = np.zeros(deltas.size)
        for _ in range(_TANGENTS):
            if left.size == 0 or (found := self._above.tails(start[left])) is None:
                break
            log_q[left] = found.log_q
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                to = found.log_p + np.log1p(-finite[left] / np.exp(found.log_p)) - found.log_q
            ahead = (start[left] < to) & np.isfinite(to)
            start[left] = np.where(ahead, to, start[left])
            left = left[ahead]
        return Beginnings(at_zero, rows, start, np.zeros(rows.size), np.exp(start + log_q) / deltas, guesses[rows])


def guess_at(pair: Pair, delta: float) -> float:
    """Where the largest loss with so much mass above it is."""
    log_delta = math.log(max(delta, 1e-320))
    return max(pair.loss_range(log_delta, log_delta)[1], 0.0)


Sides: TypeAlias = "SmoothSides | LaplaceSum | OutcomeSides"
"""Certified sides of delta, as a closed form gives them, and what a search may know of them: what a bracket says of
where it is from (`method`) and of what keeps its sides apart (`error`), how near epsilon is looked for, relative to it
(`step`), whether beginnings are told (`tells`), and whether epsilons asked together are answered as each is alone, to
the bit (`is_joint`)."""


class ClosedForm:
    """A curve whose delta has a closed form: of one step, of Gaussians, of Laplace noise, or of few outcomes."""

    def __init__(self, sides: Sides) -> None:
        self._of = sides

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = self._sides(epsilon)
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
        guesses = self._of.guesses(deltas)
        lower, upper = self._crossings(deltas, guesses)
        return lower, np.where(self._is_narrow(lower, upper, deltas, guesses), upper, np.inf)

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation."""
        return self._sides(epsilon)[1] <= delta

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        asked = np.array([delta])
        guesses = self._of.guesses(asked)
        guess, lower, upper, narrow = float(guesses[0]), 0.0, math.inf, False
        if guess > 0.0 and self._of.tells:
            sides = self._crossings(asked, guesses)
            narrow = bool(self._is_narrow(*sides, asked, guesses)[0])
            lower, upper = (float(side[0]) for side in sides)
        if not narrow:
            lower, upper = self._searched(delta, guess, self._of.step * max(1.0, guess))
        return from_sides(lower, upper, self._of.method, errors={self._of.error: upper - lower})

    def _is_narrow(self, lower: Array, upper: Array, deltas: Array, guesses: Array) -> Flags:
        """Whether brackets are as narrow as is looked for, or about as what is known of delta at their ends allows."""
        narrow = np.asarray(upper - lower <= 2.0 * self._of.step * np.maximum(1.0, guesses))
        rows = np.flatnonzero(~narrow & np.isfinite(upper) & (lower < upper))
        if rows.size:
            ends = np.stack((lower[rows], upper[rows]), axis=1)
            (low, below), (above, high) = (side.T for side in self._at(ends, rows))
            off = np.maximum(low - deltas[rows], deltas[rows] - high)
            narrow[rows] = off <= _DOUBTS * np.minimum(above - low, high - below)
        return narrow

    def _crossings(self, deltas: Array, guesses: Array) -> tuple[Array, Array]:
        """Where the sides cross each delta, from beginnings; infinite brackets where these do not lead there."""
        lower, upper = np.zeros(deltas.size), np.full(deltas.size, np.inf)
        near = self._of.beginnings(deltas, guesses)
        if near.at_zero.any():
            every = np.arange(deltas.size)
            upper[self._at(np.zeros((deltas.size, 1)), every)[1][:, 0] <= deltas] = 0.0
        rows = near.rows
        if rows.size:
            even = np.zeros(rows.size)
            found = root_brackets(
                lambda which, at: self._log_ratios(at, rows[which], deltas[rows[which], None]),
                Targets(even, even),
                start=near.start,
                spread=near.spread,
                slope=near.slope,
                reach=near.reach,
            )
            proved = np.isfinite(found.upper - found.lower)
            lower[rows[proved]], upper[rows[proved]] = np.maximum(found.lower[proved], 0.0), found.upper[proved]
        left = np.flatnonzero(np.isinf(upper))
        if left.size:  # deltas taken a few roundings from a loss, the guess or where beginnings are
            about = guesses.copy()
            about[rows] = near.start
            about, deltas = about[left, None], deltas[left, None]
            sizes = about, np.maximum(about, 1.0)
            ends = np.maximum(np.hstack([about + U * size * _ROUNDINGS for size in sizes]), 0.0)
            low, high = self._at(ends, left)
            lower[left] = np.where(low >= deltas, ends, 0.0).max(axis=1)
            upper[left] = np.where(high <= deltas, ends, np.inf).min(axis=1)
        return lower, upper

    def _at(self, points: Array, rows: Places) -> tuple[Array, Array]:
        """Both sides at points of some of the questions, shape (n, P)."""
        epsilons, place = np.unique(points, return_inverse=True)
        lower, upper = (side[place].reshape(points.shape) for side in self._of.sides(epsilons))
        return lower, upper

    def _log_ratios(self, points: Array, rows: Places, deltas: Array) -> LogBracket:
        """``ln(side / delta)`` at points of each question, shape (n, P), rounded, but on the right side of 0."""
        lower, upper = self._at(points, rows)
        log_lower, log_upper = np.log(np.maximum(lower, TINY) / deltas), np.log(np.maximum(upper, TINY) / deltas)
        log_lower = np.where(lower >= deltas, np.maximum(log_lower, 0.0), np.minimum(log_lower, -TINY))
        log_upper = np.where(upper <= deltas, np.minimum(log_upper, 0.0), np.maximum(log_upper, TINY))
        return LogBracket(np.where(lower > TINY, log_lower, -np.inf), log_upper)

    def _searched(self, delta: float, guess: float, step: float) -> tuple[float, float]:
        """The crossing of each side, whatever its shape."""
        near, far = self._sides(guess)[1], self._sides(guess * (1.0 + 1e-3) + 1e-3)[1]
        slope = math.log(near / far) / (1e-3 * guess + 1e-3) if near > far > 0.0 else 1.0
        return crossings_of(self._sides, delta, guess=guess, slope=slope, step=step)

    def _sides(self, epsilon: float) -> tuple[float, float]:
        """Both at one epsilon."""
        lower, upper = self._of.sides(np.array([epsilon]))
        return float(lower[0]), float(upper[0])


@final
class GaussianForm(ClosedForm):
    """The closed form of a composition of Gaussian pairs alone, between two pairs of unit noise."""

    def __init__(self, below: GaussianPair, above: GaussianPair) -> None:
        super().__init__(PairSides(below, above, METHOD))
        self.pairs = below, above


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
        listed = _listed(pair) if pair.is_discrete else None
        return ClosedForm(PairSides(pair, pair, pair.method) if listed is None else listed)
    gaussians = as_one_gaussian(parts)
    if gaussians is not None:
        return GaussianForm(*gaussians)
    if all(pair.laplace_loss is None for pair, _ in parts):
        return None
    from hockeystick.engines.laplace_sum import LaplaceSum

    laplace = LaplaceSum.of(parts)
    return None if laplace is None else ClosedForm(laplace)


def _listed(pair: Pair) -> OutcomeSides | None:
    from hockeystick.engines.enumeration.sides import OutcomeSides

    return OutcomeSides.of_step(pair)


def joint_form(engine: object) -> ClosedForm | None:
    """The closed form that an engine is, if it answers many questions as each alone."""
    return engine if isinstance(engine, ClosedForm) and engine.is_joint else None
