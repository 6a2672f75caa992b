"""The saddle point of an epsilon, and roundings of tilts.

    K'(theta) = eps + 1 / theta + 1 / (1 + theta)        (004, equation 50)

Nothing certified rests on this module: it chooses tilts, windows and steps; what it chose is proved afterwards.
Cost: one exponential for each node and tilt.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.tilted_normal import tilted_normal
from hockeystick.transforms.cumulants import Scan, scan, smooth_log_delta
from hockeystick.transforms.lattice import SharedLattice
from hockeystick.transforms.rule import Array, LossRule, Sketch, Window

__all__ = [
    "SMALLEST_TILT",
    "LossSum",
    "Saddle",
    "coarse_sketches",
    "find_saddle",
    "normal_epsilon",
    "round_tilt",
    "round_tilts",
]

_GRID = 12
SMALLEST_TILT: Final = 2.0**-30
"""Below it a contour is not tried."""

_COARSE = -16.0  # ln of the accuracy of a scan

_MOST_LEVELS = 7
_SPAN = 4.0  # ratio of neighbouring tilts in the first, coarse scan


class LossSum(ABC):
    """A sum of independent privacy losses, as rules for its parts: what the contour asks of a composition."""

    gaussian_variance: float
    """Variance of the normal part of the loss (nats^2), to a relative error of 16 u; 0 where there is none."""

    @property
    @abstractmethod
    def total_count(self) -> float:
        """Number of steps outside the normal part."""

    @property
    @abstractmethod
    def typical_shift(self) -> float:
        """Largest ratio of sensitivity to noise among the parts: the scale of the tilts first tried is its inverse."""

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
    """

    theta: float
    value: float
    mean: float
    variance: float
    sketches: Sequence[Sketch]
    top: float

    def look(self, losses: LossSum, tilts: Array) -> Scan:
        """K at tilts of any size that rules can be had for; infinite beyond."""
        served = tilts <= self.top
        if served.all():
            return scan(self.sketches, losses.gaussian_variance, tilts)
        wider = losses.sketches(Window((1.0, 1.0 + float(tilts.max())), 0.0, _COARSE))
        if wider is not None:
            return scan(wider, losses.gaussian_variance, tilts)
        found = scan(self.sketches, losses.gaussian_variance, np.minimum(tilts, self.top))
        return Scan(tilts, np.where(served, found.value, np.inf), found.mean, found.variance)

    @property
    def epsilon(self) -> float:
        """The epsilon whose saddle point the tilt is."""
        return self.mean - 1.0 / self.theta - 1.0 / (1.0 + self.theta)

    def log_delta(self, epsilon: float) -> float:
        """Saddle-point estimate of ``ln delta`` at the epsilon (nats), near the saddle's own."""
        found = smooth_log_delta(np.array(self.value), np.array(self.theta), epsilon, np.array(self.variance))
        return float(found)

    @property
    def curvature(self) -> float:
        """Second derivative of the whole exponent ``K - ln(z (1 + z))``."""
        return float(self.variance + self.theta**-2.0 + (1.0 + self.theta) ** -2.0)


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
        top, sketches = coarse_sketches(losses, level)
        if sketches is None:
            return None
        found = _search(losses, sketches, top, excess)
        if found is not None:
            return found
    return None


def coarse_sketches(losses: LossSum, level: int) -> tuple[float, Sequence[Sketch] | None]:
    """The largest tilt of a level, eight times that of the level below, and rules that serve all below it, if any."""
    top = (16.0 + 4.0 / max(losses.typical_shift, 1e-3)) * 8.0**level
    return top, losses.sketches(Window((1.0, 1.0 + top), 0.0, _COARSE, cells=4 if losses.total_count > 100.0 else 16))


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


def round_tilt(tilt: float) -> float:
    """The tilt with so few bits that ``1 + theta`` is exact; `SMALLEST_TILT` for a smaller one."""
    tilt = max(tilt, SMALLEST_TILT)
    unit = 2.0 ** max(math.frexp(tilt)[1] - 21, -50)
    return round(tilt / unit) * unit


def round_tilts(tilts: Array) -> Array:
    """The tilts with so few bits that ``1 + theta`` is exact, increasing, each once."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(tilts)[1] - 21, -50))
    rounded = np.sort(np.rint(tilts / unit) * unit)
    return np.asarray(rounded[np.append(True, rounded[1:] > rounded[:-1])])
