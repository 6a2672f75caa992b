"""Matrix mechanisms: noise that is correlated between steps, through a lower-triangular strategy matrix.

Rows of ``C X + Z`` are released, C the strategy, X the steps' contributions, Z normal noise. With G = C^T C the squared
sensitivity is at most the sum of |G_ij| over the steps i, j in which one record takes part, for the worst set of
steps that a pattern allows: exact where G has no negative entry there. Where a run is not known exactly, known datasets
give its lower side. Source: 2306.08153; proofs: docs/derivations/banded.md.

Guarantee: floats stand for themselves, sums are exact; what is returned is the float64 next to the true value on the
safe side. Cost: the products of whole numbers that make the entries of G that are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick.bound import Bound
from hockeystick.composition import Composition, Direction, Step, compose
from hockeystick.errors import (
    check_choice,
    check_count,
    check_fields,
    check_finite,
    check_positive,
    check_rate,
    check_ratio,
    public_door,
    shown,
)
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair, shown_by_gaussian
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.numerics.rationals import float_beside, root_beside
from hockeystick.sampling import Poisson

Participation = Literal["single", "fixed-epochs", "min-separation"]
Column = dict[int, int]

_PATTERNS = ("single", "fixed-epochs", "min-separation")
_BYTES = 8  # of an entry whose kind has an exact value everywhere


@final
@dataclass(frozen=True)
class CorrelatedNoise(Step):
    """Gaussian noise correlated between steps, as one release of a mu that is known between two numbers.

    Parameters
    ----------
    mu : float
        The release is no easier to tell apart than two unit normals at this distance; above 0. Substitution doubles it.
    known_mu : float
        The distance that known datasets show, at most ``mu``; 0 where none are known.

    Examples
    --------
    >>> CorrelatedNoise(0.5, 0.4).pair("remove")
    GaussianPair(sigma=1.0, sensitivity=0.5)
    """

    origin = "matrix mechanism: the upper bound takes the largest sensitivity, the lower bound known datasets"

    mu: float
    known_mu: float

    def __post_init__(self) -> None:
        check_fields(self, mu=check_positive, known_mu=check_finite)
        if not 0.0 <= self.known_mu <= self.mu:
            raise ValueError(f"known_mu must be between 0 and mu, got {self.known_mu!r} and {self.mu!r}")
        check_ratio(self.mu, 1.0)

    def pair(self, direction: Direction) -> Pair:
        return self.pair_of_group(direction, 1)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        return GaussianPair(1.0, float_beside(_records(direction, size) * Fraction(self.mu), up=True))

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return self.attained_by_group(direction, 1)

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...]:
        return shown_by_gaussian(float_beside(_records(direction, size) * Fraction(self.known_mu), up=False))


def _records(direction: Direction, size: int) -> int:
    """How many records' contributions a group moves the sum by, at most."""
    return 2 * size if direction == "substitute" else size


@final
@dataclass(frozen=True)
class _Strategy:
    """A matrix of whole numbers: for every column the rows that it has, times ``unit``."""

    columns: tuple[Column, ...]
    unit: Fraction

    def check_bands(self, separation: int) -> None:
        """Refuse more bands than the separation: columns so far apart would share rows."""
        bands = max(max(column) - j + 1 for j, column in enumerate(self.columns))
        if bands > separation:
            raise ValueError(
                f"separation must be at least the number of bands, got {separation} and a strategy of {bands} bands;"
                " use a matrix of fewer bands, or participation 'fixed-epochs'"
            )


@public_door
def strategy_sensitivity(
    strategy: ArrayLike,
    *,
    participation: Participation = "single",
    separation: int | None = None,
    participations: int | None = None,
) -> Bound:
    """The sensitivity of a strategy matrix: how far one record moves ``C X``, its contributions of norm at most 1.

    Parameters
    ----------
    strategy : array_like, shape (n, n)
        C, lower triangular, no column zero.
    participation : {"single", "fixed-epochs", "min-separation"}
        In which steps one record may take part: in one; in steps j, j + separation, j + 2 separation, ... for one j; in
        any that are at least ``separation`` apart, ``participations`` at most.
    separation : int, optional
        For the last two; for "min-separation" at least the number of bands of the matrix.
    participations : int, optional
        For "min-separation"; otherwise as many as there is room for.

    Returns
    -------
    Bound
        Two float64s next to each other, or equal; wider where columns of one record have negative products.

    Examples
    --------
    >>> both = strategy_sensitivity([[0.8, 0.0], [0.6, 1.0]], participation="fixed-epochs", separation=1)
    >>> f"{both:.6f}"  # the root of 1 + 2 * 0.6 + 1
    '[1.788854, 1.788855]'
    """
    least, most = _squares(_read(strategy), participation, separation, participations)
    return Bound(_root(least, up=False), _root(most, up=True), "exact sums")


@public_door
def matrix_mechanism(
    strategy: ArrayLike,
    noise_multiplier: float,
    *,
    participation: Participation = "single",
    separation: int | None = None,
    participations: int | None = None,
) -> Gaussian | CorrelatedNoise:
    """The whole run of a matrix mechanism as one Gaussian step: its noise over the sensitivity, rounded down.

    Contributions may be chosen adaptively, step by step. Where columns of one record have negative products the
    sensitivity is known between two bounds, and the step is a `CorrelatedNoise` whose lower side is that of datasets.
    Else the upper side of what is asked of the step holds for the run, and the lower one but for this rounding.

    On a sample, the whole run is on one sample, drawn once; for one drawn in every step see `cyclic_matrix_mechanism`.

    Parameters
    ----------
    strategy : array_like, shape (n, n)
        C, lower triangular: ``C X + Z`` is released, or any function of it.
    noise_multiplier : float
        Standard deviation of every entry of Z, in units of the clipping norm; above 0.
    participation, separation, participations
        As for `strategy_sensitivity`.

    Examples
    --------
    >>> matrix_mechanism([[1.0, 0.0], [1.0, 1.0]], 2.0, participation="min-separation", separation=2)
    Gaussian(noise_multiplier=1.414213562373095)
    """
    noise = Fraction(check_positive("noise_multiplier", noise_multiplier))
    least, most = (square / noise**2 for square in _squares(_read(strategy), participation, separation, participations))
    mu = _root(most, up=True)
    check_ratio(mu, 1.0)
    if least < most:
        return CorrelatedNoise(mu, _root(least, up=False))
    return Gaussian(_root(1 / most, up=False))


@public_door
def cyclic_matrix_mechanism(
    strategy: ArrayLike, noise_multiplier: float, *, rate: float, separation: int
) -> Composition:
    """A banded matrix mechanism on cyclic Poisson samples: ceil(n / separation) Poisson-sampled Gaussian steps.

    Records are divided into as many parts as ``separation`` says, each by itself and without looking at the others; a
    step draws from the part whose turn it is, every record of it independently with the same probability.

    Parameters
    ----------
    strategy : array_like, shape (n, n)
        C, lower triangular, of at most ``separation`` bands.
    noise_multiplier : float
        Standard deviation of the noise on every entry of ``C X``, in units of the clipping norm; above 0.
    rate : float
        Probability that a record of the part whose turn it is takes part, in (0, 1).
    separation : int
        Number of parts, at least 1.

    Returns
    -------
    Composition
        `CorrelatedNoise` on Poisson samples, its mu the largest norm of a column over the noise. The lower side is
        that of a record whose part has m steps with columns of at least some norm, for the best m. Under 'substitute'
        they refuse, since the two records may be of different parts.

    Examples
    --------
    >>> cyclic_matrix_mechanism([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 2.0, rate=0.1, separation=2)
    Composition(steps=((Poisson(mechanism=CorrelatedNoise(mu=0.5, known_mu=0.5), rate=0.1), 2),))
    """
    noise = Fraction(check_positive("noise_multiplier", noise_multiplier))
    read, parts = _read(strategy), check_count("separation", separation)
    read.check_bands(parts)
    if check_rate("rate", rate) == 1.0:
        raise ValueError(
            f"rate must be below 1, got {rate!r}: without sampling use matrix_mechanism with participation"
            " 'min-separation'"
        )
    squares = [_product(column, column) for column in read.columns]
    _, known, times = max(
        (times * square, square, times)
        for first in range(min(parts, len(squares)))
        for times, square in enumerate(sorted(squares[first::parts], reverse=True), start=1)
    )
    scale = (read.unit / noise) ** 2
    mu, known_mu = _root(max(squares) * scale, up=True), _root(known * scale, up=False)
    others = -(-len(squares) // parts) - times
    steps = [(Poisson(CorrelatedNoise(mu, known_mu), rate), times), (Poisson(CorrelatedNoise(mu, 0.0), rate), others)]
    return compose([(step, count) for step, count in steps if count])


def checked_matrix(strategy: ArrayLike) -> NDArray[Any]:
    """The matrix, of integers or floats that float64 or int64 hold."""
    try:
        matrix = np.asarray(strategy)
    except ValueError:  # rows of several lengths
        raise ValueError(f"strategy must be a square matrix, got {shown(strategy)}") from None
    if matrix.dtype.kind not in "iuf" or matrix.dtype.itemsize > _BYTES:
        raise TypeError(f"strategy must hold integers or float64s, got an array of {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"strategy must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("strategy must be finite, but an entry is NaN or infinite")
    if np.triu(matrix, 1).any():
        row, column = (int(place[0]) for place in np.nonzero(np.triu(matrix, 1)))
        raise ValueError(
            f"strategy must be lower triangular, but entry ({row}, {column}) is {matrix[row, column].item()!r}"
        )
    empty = np.flatnonzero(~matrix.any(axis=0))
    if empty.size:
        raise ValueError(f"strategy must have no column of zeros, but column {int(empty[0])} is one")
    return matrix


def _read(strategy: ArrayLike) -> _Strategy:
    """The matrix, exact."""
    matrix = checked_matrix(strategy)
    parts = [{int(i): Fraction(column[i].item()) for i in np.flatnonzero(column)} for column in matrix.T]
    scale = max(entry.denominator for column in parts for entry in column.values())  # all are powers of two
    columns = tuple({row: int(entry * scale) for row, entry in column.items()} for column in parts)
    return _Strategy(columns, Fraction(1, scale))


def _squares(
    strategy: _Strategy, participation: str, separation: int | None, participations: int | None
) -> tuple[Fraction, Fraction]:
    """Lower and upper bound on the squared sensitivity, exact numbers."""
    pattern = check_choice("participation", participation, _PATTERNS)
    if (separation is None) != (pattern == "single"):
        raise ValueError(f"separation is for 'fixed-epochs' and 'min-separation', and they need it, not {pattern!r}")
    if participations is not None and pattern != "min-separation":
        raise ValueError(f"participations is for 'min-separation' alone, not for {pattern!r}")
    columns = strategy.columns
    if separation is None:
        least = most = max(_product(column, column) for column in columns)
    elif pattern == "min-separation":
        apart = check_count("separation", separation)
        strategy.check_bands(apart)
        room = -(-len(columns) // apart)
        times = room if participations is None else min(check_count("participations", participations), room)
        least = most = _best_apart([_product(column, column) for column in columns], apart, times)
    else:
        apart = check_count("separation", separation)
        sums = [_of_set(columns[first::apart]) for first in range(min(apart, len(columns)))]
        least, most = max(low for low, _ in sums), max(high for _, high in sums)
    return least * strategy.unit**2, most * strategy.unit**2


def _product(one: Column, other: Column) -> int:
    """An entry of G."""
    return sum(one[row] * other[row] for row in one.keys() & other.keys())


def _of_set(columns: tuple[Column, ...]) -> tuple[int, int]:
    """What one set of steps gives: a lower bound, contributions alike but for signs, and the upper one."""
    moved: Column = {}
    for column in columns:
        sign = 1 if _product(moved, column) >= 0 else -1  # either way the sum grows by the column's own square, or more
        moved |= {row: moved.get(row, 0) + sign * entry for row, entry in column.items()}
    own = sum(_product(column, column) for column in columns)
    cross = sum(abs(_product(one, other)) for i, one in enumerate(columns) for other in columns[:i])
    return _product(moved, moved), own + 2 * cross


def _best_apart(squares: list[int], apart: int, times: int) -> int:
    """The largest sum of at most that many entries, at least ``apart`` from each other."""
    best = [0] * (len(squares) + 1)  # of the first j entries
    for _ in range(times):
        longer = [0]
        for j, square in enumerate(squares):
            longer.append(max(longer[-1], square + best[max(j + 1 - apart, 0)]))
        best = longer
    return best[-1]


def _root(square: Fraction, *, up: bool) -> float:
    """The root of an exact number, rounded up or down to a float64."""
    power = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    if power >= 1024:
        raise ValueError(f"the sensitivity, or the noise over it, is about 2^{power}, beyond float64")
    return root_beside(square, up=up)
