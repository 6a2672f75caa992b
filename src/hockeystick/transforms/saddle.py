"""The saddle point of an epsilon, and roundings of tilts.

    K'(theta) = eps + 1 / theta + 1 / (1 + theta)        (004, equation 50)

Nothing certified rests on this module: it chooses tilts, windows and steps; what it chose is proved afterwards.
Cost: one exponential for each node and tilt.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.numerics.columns import Places, across
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.tilted_normal import tilted_normal
from hockeystick.transforms.cumulants import Scan, scan, smooth_log_delta
from hockeystick.transforms.rule import Array, LossRule, Numbers, Rows, Sketch, Window

if TYPE_CHECKING:
    from hockeystick.transforms.lattice import SharedLattice
    from hockeystick.transforms.replicas import Replicas

_GRID = 12
SMALLEST_TILT: Final = 2.0**-30
"""Below it a contour is not tried."""

_COARSE = -16.0  # ln of the accuracy of a scan

_FEW = 100.0  # steps
_MOST_LEVELS = 7
_ROOM = 1.4  # times the saddle point, that rules serve where they do for the choice of a line
_SPAN = 4.0  # ratio of neighbouring tilts in the first, coarse scan
_FACTORS = np.array(
    [0.01, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 0.96, 1.0, 1.02, 1.05, 1.1, 1.2, 1.4, 1.8, 2.5]
)[:, None]
_GAPS = np.array([0.1, 0.3, 0.8, 2.0, 4.0, 7.5])[:, None]  # over the standard deviation at the saddle point
_FIXED = np.array([-1.0, -0.5, 0.0])[:, None]
_FARTHEST = 1e4
_LEAST_EPSILON = 1e-100  # tilts for a smaller one are no guide


class LossSum(ABC):
    """A sum of independent privacy losses, as rules for its parts: what the contour asks of a composition.

    Or R such sums of like parts, each of one run, whose numbers have the shape (R,).
    """

    gaussian_variance: Numbers
    """Variance of the normal part of the loss (nats^2), to a relative error of 16 u; 0 where there is none."""

    replicas: Replicas | None = None
    """Those of the losses on lattices that count as normal; None where there are none."""

    @property
    @abstractmethod
    def total_count(self) -> Numbers:
        """Number of steps outside the normal part."""

    @property
    @abstractmethod
    def typical_shift(self) -> Numbers:
        """Largest ratio of sensitivity to noise among the parts: the scale of the tilts first tried is its inverse."""

    def at(self, rows: Rows) -> LossSum:
        """The sums of some of the runs."""
        return self

    def alike(self, window: Window) -> Iterator[tuple[Places, LossSum, Window]]:
        """Runs whose rules have as many nodes, a few at a time, with their part of the window."""
        yield np.zeros(1, dtype=np.intp), self, window

    @abstractmethod
    def rules(self, window: Window) -> Sequence[LossRule] | None:
        """Rules for the other parts that serve the window; None where one would be too long."""

    @abstractmethod
    def sketches(self, window: Window) -> Sequence[Sketch] | None:
        """The same without errors."""

    @property
    def on_lattice(self) -> bool:
        """Whether all losses may share a lattice."""
        return False

    def lattice(self, rules: Sequence[LossRule]) -> SharedLattice | None:
        """The lattice that the losses of the rules share; None where there is none."""
        return None


@final
@dataclass(frozen=True)
class Saddle:
    """A tilt and estimates of what the sum does there.

    Attributes
    ----------
    theta : float
        The tilt.
    value, mean, variance : float
        K, K' and K''.
    sketches : sequence of Sketch
        The coarse rules used.
    top : float
        The largest tilt that they serve.
    around : Scan, optional
        What is found at tilts around it (`tilts_around`), shape (k, R), where that is at hand.

    Of R sums (`stacked`) the numbers have the shape (R,).
    """

    theta: Any
    value: Any
    mean: Any
    variance: Any
    sketches: Sequence[Sketch]
    top: Any
    around: Scan | None = None

    @classmethod
    def at(cls, losses: LossSum, sketches: Sequence[Sketch], tops: Array, theta: Array, variance: Array) -> Saddle:
        """Those of R sums at given tilts, shape (R,), and what is around them; ``variance`` is about K'' there."""
        tilts = tilts_around(theta, variance)
        around = _look(losses, sketches, tops, theta, tilts)
        here = around.at(((tilts == across(theta)).argmax(axis=0), np.arange(theta.size)))
        return cls(theta, here.value, here.mean, here.variance, sketches, tops, around)

    @classmethod
    def stacked(cls, several: Sequence[Saddle]) -> Saddle:
        """Those of several sums with sketches of one length, whose numbers have a leading axis."""
        numbers: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in several])
            for name in ("theta", "value", "mean", "variance", "top")
        }
        sketches = tuple(Sketch.joined(own) for own in zip(*(one.sketches for one in several), strict=True))
        return cls(**numbers, sketches=sketches)

    def row(self, place: int) -> Saddle:
        """One of several, without its rules."""
        theta, value, mean, variance, top = (
            float(one[place]) for one in (self.theta, self.value, self.mean, self.variance, self.top)
        )
        return Saddle(theta, value, mean, variance, (), top)

    def times(self, rows: Rows, ratio: Array, gaussian_variance: Array) -> Saddle:
        """Those of runs, by whose they are: of so many times as many steps, given the variances of normal parts."""
        columns = (self.theta, self.value, self.mean, self.variance)
        found = Scan(*(column[rows] for column in columns)).times(ratio, gaussian_variance)
        return Saddle(found.tilts, found.value, found.mean, found.variance, (), self.top[rows])

    def looked_around(self, losses: LossSum) -> Scan:
        """What is around it: R sums."""
        if self.around is not None:
            return self.around
        return _look(losses, self.sketches, self.top, self.theta, tilts_around(self.theta, self.variance))

    @property
    def epsilon(self) -> Any:
        """The epsilon whose saddle point the tilt is."""
        return self.mean - 1.0 / self.theta - 1.0 / (1.0 + self.theta)

    def log_delta(self, epsilon: Any) -> Any:
        """Saddle-point estimate of ``ln delta`` at the epsilon (nats), near the saddle's own."""
        value, theta, at, variance = map(np.asarray, (self.value, self.theta, epsilon, self.variance))
        return smooth_log_delta(value, theta, at, variance)[()]

    @property
    def curvature(self) -> Any:
        """Second derivative of the whole exponent ``K - ln(z (1 + z))``."""
        theta = np.asarray(self.theta)
        return (self.variance + theta**-2.0 + (1.0 + theta) ** -2.0)[()]


def _look(losses: LossSum, sketches: Sequence[Sketch], tops: Array, theta: Array, tilts: Array) -> Scan:
    """K of R sums at tilts of any size that rules can be had for, shape (k, R); infinite beyond.

    Where the rules at hand serve far more than the saddle point, no others are made.
    """
    served = tilts <= across(tops)
    found = scan(sketches, losses.gaussian_variance, np.minimum(tilts, across(tops)))
    if served.all():
        return found
    value = np.where(served, found.value, np.inf)
    mean, variance = found.mean, found.variance
    beyond = np.flatnonzero(~served.all(axis=0) & (_ROOM * theta > tops))
    if beyond.size == 0:
        return Scan(tilts, value, mean, variance)
    own, largest = losses.at(beyond), tilts[:, beyond].max(axis=0)
    window = Window.of(np.array([np.ones_like(largest), 1.0 + largest]), 0.0 * largest, _COARSE + 0.0 * largest)
    for rows, some, part in own.alike(window):
        wider, columns = some.sketches(part), beyond[rows]
        if wider is not None:
            more = scan(wider, some.gaussian_variance, np.ascontiguousarray(tilts[:, columns]))
            value[:, columns], mean[:, columns], variance[:, columns] = more.value, more.mean, more.variance
    return Scan(tilts, value, mean, variance)


def tilts_around(theta: Array, variance: Array) -> Array:
    """Tilts around saddle points, on the scales of theta and of the deviation, each with few bits; shape (k, R)."""
    theta, variance = across(theta), across(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore"):
        gaps = np.where(variance > 0.0, _GAPS / np.sqrt(variance), theta * _FACTORS[: _GAPS.size])
    every = np.concatenate((theta * _FACTORS, theta + gaps, theta - gaps, _FIXED + np.zeros(theta.size)))
    return round_tilts(np.where((every >= -1.0) & (every <= _FARTHEST * (1.0 + theta)), every, 0.0))


def find_saddle(losses: LossSum, excess: Callable[[Scan], Array]) -> Saddle | None:
    """The tilt at which ``excess``, increasing in the tilt, is zero; None where that is beyond all tilts tried.

    Parameters
    ----------
    losses : LossSum
        The sum of losses.
    excess : callable
        From a scan of k tilts to k numbers.
    """
    for level in range(_MOST_LEVELS):
        _, tops, sketches = next(level_sketches(losses, level), (None, None, None))
        if tops is None or sketches is None:
            return None
        found = _search(losses, sketches, float(tops[0]), excess)
        if found is not None:
            return found
    return None


def level_sketches(losses: LossSum, level: int) -> Iterator[tuple[Places, Array, Sequence[Sketch] | None]]:
    """Of R sums, those with sketches of one length: which, the largest tilts of a level, and the rules."""
    tops = (16.0 + 4.0 / np.maximum(np.atleast_1d(losses.typical_shift), 1e-3)) * 8.0**level
    few = is_few(np.atleast_1d(losses.total_count))
    for cells, those in ((4, ~few), (16, few)):
        own = those.nonzero()[0]
        if own.size == 0:
            continue
        top, nothing = tops[own], np.zeros(own.size)
        window = Window.of(np.array([1.0 + nothing, 1.0 + top]), nothing, _COARSE + nothing, cells)
        for rows, some, part in losses.at(own).alike(window):
            yield own[rows], top[rows], some.sketches(part)


def is_few(steps: Any) -> Any:
    """Whether the decay of so many steps needs finer cells."""
    return steps <= _FEW


def _search(losses: LossSum, sketches: Sequence[Sketch], top: float, excess: Callable[[Scan], Array]) -> Saddle | None:
    """The saddle point if it is below ``top``."""
    high = top
    for _ in range(4):
        tilts = high * _SPAN ** np.arange(1.0 - _GRID, 1.0)
        coarse = excess(scan(sketches, losses.gaussian_variance, tilts))
        if not coarse[-1] > 0.0:
            return None
        if coarse[0] <= 0.0 or tilts[0] < SMALLEST_TILT:
            break
        high = float(tilts[0])
    index = int(np.argmax(coarse > 0.0))
    low = float(tilts[max(index - 1, 0)])
    fine = scan(sketches, losses.gaussian_variance, low * (float(tilts[index]) / low) ** np.linspace(0.0, 1.0, _GRID))
    gap = excess(fine)
    theta = float(np.exp(np.interp(0.0, gap, np.log(fine.tilts))))
    theta = round_tilt(theta)
    columns = (fine.value, fine.mean, fine.variance)
    value, mean, variance = (float(np.interp(theta, fine.tilts, column)) for column in columns)
    return Saddle(theta, value, mean, variance, sketches, top)


def normal_epsilon(losses: LossSum, log_delta: float) -> float:
    """The epsilon of at least 0 at ``ln delta``, were the loss normal; infinite where no rule serves."""
    sketches = losses.sketches(Window((1.0,), 0.0, _COARSE))
    if sketches is None:
        return math.inf
    found = scan(sketches, losses.gaussian_variance, np.zeros(1))
    mean, deviation = float(found.mean[0]), math.sqrt(max(float(found.variance[0]), 1e-300))
    farthest = mean + 40.0 * deviation
    return increasing_root(
        lambda epsilon: log_delta - tilted_normal(0.0, (mean - epsilon) / deviation, deviation).log,
        0.0,
        max(farthest, 0.0),
        max(1e-6 * deviation, 1e-12 * abs(farthest)),
    )


def normal_tilts(epsilon: Array, log_delta: Array, factors: Array) -> Array:
    """So many times the saddle point of a normal loss whose curve passes through each point, shape (k, n)."""
    depth = np.sqrt(-2.0 * log_delta)
    twice = np.sqrt(depth * depth + 2.0 * epsilon) + depth  # 2 epsilon over the mu of the normal loss
    saddle = np.maximum(0.25 * twice * twice / np.maximum(epsilon, _LEAST_EPSILON) - 0.5, SMALLEST_TILT)
    return round_tilts(factors * across(saddle))


def round_tilt(tilt: float) -> float:
    """The tilt with so few bits that ``1 + theta`` is exact; `SMALLEST_TILT` for a smaller one."""
    tilt = max(tilt, SMALLEST_TILT)
    unit = 2.0 ** max(math.frexp(tilt)[1] - 21, -50)
    return round(tilt / unit) * unit


def round_tilts(tilts: Array) -> Array:
    """The tilts with so few bits that ``1 + theta`` is exact, increasing along the first axis."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(tilts)[1] - 21, -50))
    return np.sort(np.rint(tilts / unit) * unit, axis=0)
