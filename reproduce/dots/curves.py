"""Hockey-stick curves of one step in closed form, and of lattices that stand for it: for figures 2 to 4.

A curve is a function of ``alpha = e^epsilon``. With noise multiplier s, the loss of the Laplace mechanism lies in
[-1/s, 1/s] and ``h(alpha) = 1 - sqrt(alpha e^{-1/s})`` where ln alpha does; that of the Gaussian has no end and
``h(alpha) = Phi(1/2s - s ln alpha) - alpha Phi(-1/2s - s ln alpha)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hockeystick.engines.lattice.algorithm2 import algorithm_2
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_down, buckets_up
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.laws import GaussianPair, LaplacePair
from hockeystick.laws.base import Pair
from reproduce.style import LOOKS, figure, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ROUNDING",
    "Array",
    "Curve",
    "Estimator",
    "area",
    "buckets_above",
    "buckets_below",
    "dots",
    "gaussian",
    "hull_of_tangents",
    "laplace",
    "picture_of",
    "stick_of",
]

Array = NDArray[np.float64]
Estimator = Callable[[Pair, Grid], LatticePLD]

ROUNDING = 2e-15  # of the values shown here, all of them sums in [0, 1] rounded to nearest


@dataclass(frozen=True)
class Curve:
    """A mechanism, its dominating pair, its curve and the curve's right derivative."""

    label: str
    pair: Pair
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def gaussian(noise: float) -> Curve:
    """The Gaussian mechanism of sensitivity 1."""

    def value(alpha: Array) -> Array:
        loss = np.log(alpha)
        return np.asarray(ndtr(0.5 / noise - noise * loss) - alpha * ndtr(-0.5 / noise - noise * loss))

    def slope(alpha: Array) -> Array:
        return np.asarray(-ndtr(-0.5 / noise - noise * np.log(alpha)))

    return Curve(f"Gaussian, noise {noise:.3g}", GaussianPair(noise), value, slope)


def laplace(noise: float) -> Curve:
    """The Laplace mechanism of sensitivity 1."""
    end = 1.0 / noise

    def value(alpha: Array) -> Array:
        inside = -np.expm1(0.5 * (np.log(np.maximum(alpha, 1e-300)) - end))
        return np.where(alpha <= math.exp(-end), 1.0 - alpha, np.maximum(inside, 0.0))

    def slope(alpha: Array) -> Array:
        inside = -0.5 * np.exp(-0.5 * (end + np.log(np.maximum(alpha, 1e-300))))
        return np.where(alpha < math.exp(-end), -1.0, np.where(alpha < math.exp(end), inside, 0.0))

    return Curve(f"Laplace, noise {noise:.3g}", LaplacePair(noise), value, slope)


def dots(pair: Pair, grid: Grid) -> LatticePLD:
    """Connect the dots."""
    return connect_the_dots(GridCells.of(pair, grid))


def hull_of_tangents(pair: Pair, grid: Grid) -> LatticePLD:
    """The paper's Algorithm 2."""
    return algorithm_2(GridCells.of(pair, grid))


def buckets_above(pair: Pair, grid: Grid) -> LatticePLD:
    """Privacy buckets, every loss rounded up."""
    return buckets_up(bucket_cells(pair, grid, "upper"))


def buckets_below(pair: Pair, grid: Grid) -> LatticePLD:
    """Privacy buckets, every loss rounded down."""
    return buckets_down(bucket_cells(pair, grid, "lower"))


def stick_of(pld: LatticePLD, alphas: Array) -> Array:
    """The curve of a lattice at each ``alpha`` above 0."""
    return np.array([pld.hockey_stick(math.log(alpha)) for alpha in alphas])


def area(gap: Array, alphas: Array) -> float:
    """The area of a gap between two curves."""
    return float(np.trapezoid(gap, alphas))


def picture_of(
    alphas: Array, found: Mapping[Curve, Mapping[str, Array]], kinds: Mapping[str, str], grid: Grid
) -> Figure:
    """The curves of each mechanism side by side, and how far each estimate is from the truth."""
    picture, axes = figure(columns=2, height=4.2)
    end = float(alphas[-1])
    points = np.exp(grid.points)
    points = points[(points > alphas[0]) & (points < end)]
    for panel, (curve, values) in zip(axes, found.items(), strict=True):
        inset = panel.inset_axes((0.5, 0.5, 0.48, 0.42))
        for name, kind in kinds.items():
            look = LOOKS[name].line(kind, marker="")
            panel.plot(alphas, values[name], label=LOOKS[name].label, **look)
            inset.plot(alphas, values[name] - values["exact"], **look)
        inset.set_title("estimate − exact", fontsize=8.0)
        inset.tick_params(labelsize=7.0)
        panel.plot(points, curve.value(points), ".", color=LOOKS["exact"].colour, label="at the lattice points")
        panel.set(title=curve.label, xlim=(0.0, end), ylim=(0.0, 1.02), xlabel="α = exp(ε)")
    axes[0].set_ylabel("hockey-stick divergence δ")
    legend_below(picture, axes, columns=len(kinds) + 1)
    return picture
