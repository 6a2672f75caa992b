"""Where the cells of a lattice may be wide: a grid fitted to a pair and a tilt.

The lattice error of a cell of width w is proportional to its tilted mass times w^2. Far out, where little tilted mass
is left, cells may therefore grow: with S(l) the tilted mass beyond l, widths ``h max(1, 0.3 S^{-0.4})`` add half of
the error that equal cells have, and a few hundred cells serve any range. A cell stays narrower than the distance over
which the density changes, and than 1 / (1 + theta). Estimates only: any grid is sound.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.laws.base import Array, Nodes, Pair

_GROWTH, _EXPONENT = 0.3, 0.4
_FEW = 64  # equal cells where there are no more than these
_MOST = 50_000  # cells of one pair: beyond, all grow alike


def fitted_grid(
    nodes: Nodes, theta: float, low: float, high: float, *, spacing: float, offset: float, equal: bool
) -> Grid:
    """A grid over [low, high] whose cells are one spacing wide in the bulk and wider in the tails.

    Parameters
    ----------
    nodes : Nodes
        The pair's quadrature nodes.
    theta : float
        Tilt.
    low, high : float
        Range to cover (nats).
    spacing, offset : float
        The lattice.
    equal : bool
        Equal cells throughout, or where these are very many, cells beside the atoms: for pairs made of atoms.
    """
    if equal and high - low > _MOST * spacing:
        return _beside_atoms(nodes, low, high, spacing=spacing, offset=offset)
    if equal or high - low <= _FEW * spacing:
        return Grid.covering(low, high, spacing, offset=offset)
    loss, width = _widths(nodes, theta, spacing)
    inside = (loss > low) & (loss < high)
    knots = np.concatenate(([low], loss[inside], [high]))
    widths = np.interp(knots, loss, width)
    # cells per nat integrate to a running number of cells
    number = np.concatenate(([0.0], np.cumsum(0.5 * (1.0 / widths[1:] + 1.0 / widths[:-1]) * np.diff(knots))))
    count = min(math.ceil(number[-1]), _MOST)
    number *= count / number[-1]
    cuts = (np.interp(np.arange(count + 1), number, knots) - offset) / spacing
    index = np.unique(np.round(cuts).astype(np.int64))
    first, last = math.floor((low - offset) / spacing), math.ceil((high - offset) / spacing)
    inner = index[(index > first) & (index < last)]
    if inner.size > 2 and last - inner[-1] < inner[-1] - inner[-2]:  # no sliver at the top
        inner = inner[:-1]
    return Grid(spacing, np.concatenate(([first], inner, [last])), offset)


def fitted_lattices(
    pair: Pair, nodes: Nodes, theta: float, within: tuple[float, float], *, spacing: float, offset: float
) -> tuple[LatticePLD, LatticePLD]:
    """Upper and lower lattice PLD of a pair, both on a fitted grid over a range of losses (nats)."""
    grid = fitted_grid(nodes, theta, *within, spacing=spacing, offset=offset, equal=pair.is_discrete)
    return connect_the_dots(GridCells.of(pair, grid)), tangents(pair, grid, tilt=theta)


def _beside_atoms(nodes: Nodes, low: float, high: float, *, spacing: float, offset: float) -> Grid:
    """The points beside each atom, where equal cells would be very many and nearly all of them empty."""
    first, last = math.floor((low - offset) / spacing), math.ceil((high - offset) / spacing)
    below = np.floor((nodes.loss - offset) / spacing).astype(np.int64)
    near = (below[:, None] + np.arange(-1, 3)).ravel()
    inner = near[(near > first) & (near < last)]
    return Grid(spacing, np.unique(np.concatenate(([first], inner, [last]))), offset)


def _widths(nodes: Nodes, theta: float, spacing: float) -> tuple[Array, Array]:
    """Allowed cell widths (nats) at increasing losses."""
    order = np.argsort(nodes.loss, kind="stable")
    loss, exponents = nodes.loss[order], (nodes.log_p + theta * nodes.loss)[order]
    weights = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    below = np.cumsum(weights)
    above = np.cumsum(weights[::-1])[::-1]
    beyond = np.maximum(np.minimum(below, above), 1e-300)
    width = spacing * np.maximum(1.0, _GROWTH * beyond**-_EXPONENT)
    gaps = np.diff(loss)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        density = nodes.log_p[order][1:-1] - np.log(0.5 * (gaps[1:] + gaps[:-1]))
        change = np.abs(np.diff(density)) / gaps[1:-1]
    slope = (
        np.pad(np.nan_to_num(change, nan=0.0, posinf=0.0), 2, mode="edge") if change.size else np.zeros(loss.size + 1)
    )
    slope = np.maximum(slope[1:], slope[:-1])[: loss.size]
    scale = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    width = np.minimum(width, np.minimum(scale, 0.5 / (1.0 + theta + slope)))
    return loss, np.maximum(width, spacing)
