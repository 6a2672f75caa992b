"""A continuous pair that the caller states: the privacy loss as a function of x, and the tails of P and Q.

The cuts in the loss are found by bisection in x; the mass of a cell is a difference of tails, or of distribution
functions, whichever loses less: ``ln(e^s - e^t) = s + ln(1 - e^{t-s})``, in error by at most
``(e_s e^s + e_t e^t) / (e^s - e^t)``, where e_s and e_t are the stated errors. Where the functions do not tell that
mass from nothing, as in a gap of both measures, its outcomes count as ones of the cells beside it.

Guarantee: certified if the stated errors are bounds. See docs/how-to/user-defined-pair.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import (
    check_fields,
    check_finite,
    check_positive,
    check_real,
    check_sequence,
    one_line,
    set_fields,
    shown,
)
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

Function = Callable[[Array], Array]

_FUNCTIONS = ("loss", "log_cdf_p", "log_tail_p", "log_cdf_q", "log_tail_q")
_NODES = 4000
_BISECTIONS = 200
_FAR = 600.0  # nats, whose exponential is a float64


@final
@dataclass(frozen=True, kw_only=True)
class ContinuousPair(Pair):
    """P against Q on the line, the loss continuous and nondecreasing in x.

    All functions take an array and return one of the same shape; the logarithms may be ``-inf``. Equality and hash go
    by the functions' identity: state a pair once and use it everywhere.

    Parameters
    ----------
    loss : callable
        ``L(x) = ln(p(x) / q(x))`` (nats).
    log_cdf_p, log_tail_p : callable
        ``ln P(X <= x)`` and ``ln P(X > x)``, each accurate relative to its mass.
    log_cdf_q, log_tail_q : callable
        The same for Q.
    search : tuple of float
        Finite x-range in which cuts are looked for: all of both measures that matters.
    bounds : tuple of float
        Smallest and largest loss; infinite where unbounded.
    loss_error : float
        Bound on the absolute error of ``loss`` within the search range (nats).
    mass_error : float
        Bound on the absolute error of the four logarithms within the search range.

    Examples
    --------
    >>> from scipy.special import log_ndtr
    >>> pair = ContinuousPair(
    ...     loss=lambda x: x - 0.5,
    ...     log_cdf_p=lambda x: log_ndtr(x - 1.0), log_tail_p=lambda x: log_ndtr(1.0 - x),
    ...     log_cdf_q=log_ndtr, log_tail_q=lambda x: log_ndtr(-x),
    ...     search=(-37.0, 38.0), loss_error=1e-14, mass_error=1e-12,
    ... )
    >>> from hockeystick.laws.one_step import one_step_delta
    >>> lower, upper = one_step_delta(pair, 1.0)
    >>> lower < 0.12693673750664397 < upper, upper - lower < 1e-10
    (True, True)
    """

    loss: Function
    log_cdf_p: Function
    log_tail_p: Function
    log_cdf_q: Function
    log_tail_q: Function
    search: tuple[float, float]
    bounds: tuple[float, float] = (-math.inf, math.inf)
    loss_error: float
    mass_error: float

    def __post_init__(self) -> None:
        for name in _FUNCTIONS:
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function of an array, got {getattr(self, name)!r}")
        set_fields(
            self, search=_two("search", self.search, check_finite), bounds=_two("bounds", self.bounds, check_real)
        )
        if not self.search[0] < self.search[1]:
            raise ValueError(f"search must hold two increasing numbers, got {self.search!r}")
        if not self.bounds[0] <= self.bounds[1] or self.bounds[0] == math.inf or self.bounds[1] == -math.inf:
            raise ValueError(f"bounds must hold the smallest and the largest loss, got {self.bounds!r}")
        check_fields(self, loss_error=check_positive, mass_error=check_positive)
        self._check_functions()

    def _check_functions(self) -> None:
        """Refuse functions that contradict one another: some mistakes show, others rest on the caller's word."""
        x = np.linspace(*self.search, _NODES)
        losses, *logs = (_answered(name, getattr(self, name), x) for name in _FUNCTIONS)
        if not np.isfinite(losses).all():
            raise ValueError("loss must be finite over the search range; narrow search")
        if not (np.diff(losses) >= -2.0 * self.loss_error).all():
            raise ValueError(
                "loss must be nondecreasing in x over the search range; mirror x, or state the other order"
            )
        cdf_p, tail_p, cdf_q, tail_q = logs
        for side, log_cdf, log_tail in (("p", cdf_p, tail_p), ("q", cdf_q, tail_q)):
            off = float(np.abs(np.exp(np.minimum(log_cdf, 1.0)) + np.exp(np.minimum(log_tail, 1.0)) - 1.0).max())
            if off > 2.0 * self.mass_error + 16.0 * U:
                raise ValueError(
                    f"log_cdf_{side} and log_tail_{side} must be logarithms of probabilities that sum to one within"
                    f" mass_error, {self.mass_error!r}, got sums that are up to {off:.3g} off"
                )
        with np.errstate(invalid="ignore"):  # -inf less -inf
            # the ratio of the tails is at least what p / q is at x, and that of the distribution functions at most
            short = np.maximum(losses - (tail_p - tail_q), (cdf_p - cdf_q) - losses)
            room = self.loss_error + 2.0 * self.mass_error + 4.0 * U * np.abs([losses, *logs]).sum(axis=0)
            wrong = np.flatnonzero(short > room)
        if wrong.size:
            raise ValueError(
                "loss must be ln(p / q) of the P and Q that the tails are of, to within the errors stated, which it is"
                f" not at x = {float(x[wrong[0]])!r}; exchange P and Q, or state larger errors"
            )

    @property
    def infimum(self) -> Extreme:
        return Extreme(self.bounds[0], self.loss_error)

    @property
    def supremum(self) -> Extreme:
        return Extreme(self.bounds[1], self.loss_error)

    def _inverse(self, losses: Array) -> Array:
        """The largest x found with ``loss(x) <= l``; an end of the search range where the cut lies beyond it."""
        left, right = (np.full(losses.size, end, dtype=np.float64) for end in self.search)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (left + right)
            if ((middle <= left) | (middle >= right)).all():
                break
            below = self.loss(middle) <= losses
            left, right = np.where(below, middle, left), np.where(below, right, middle)
        return np.where(self.loss(right) <= losses, right, left)

    def cells(self, losses: Array) -> CellMasses:
        inside = (losses >= self.bounds[0]) & (losses < self.bounds[1])
        x = np.maximum.accumulate(self._inverse(losses[inside]))
        slack = 4.0 * U * (np.abs(losses) + 1.0) + 2.0 * self.loss_error  # the decision that a cut is out of bounds
        slack[inside] = np.abs(self.loss(x) - losses[inside]) + self.loss_error
        empty = (int(np.count_nonzero(losses < self.bounds[0])), int(np.count_nonzero(losses >= self.bounds[1])))
        p, q = self._masses("P", x), self._masses("Q", x)
        _give_away(p, q)
        return CellMasses(
            np.pad(p.log, empty, constant_values=-math.inf),
            np.pad(q.log, empty, constant_values=-math.inf),
            np.pad(p.error, empty),
            np.pad(q.error, empty),
            slack,
        )

    def _side(self, measure: Measure) -> tuple[Function, Function]:
        return (self.log_cdf_p, self.log_tail_p) if measure == "P" else (self.log_cdf_q, self.log_tail_q)

    def _masses(self, measure: Measure, x: Array) -> _Masses:
        log_cdf, log_tail = self._side(measure)
        return _differences(log_cdf(x), log_tail(x), self.mass_error, x)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        log_cdf, log_tail = self._side(measure)
        x = np.linspace(*self.search, 20 * _NODES)
        low = max(int(np.searchsorted(log_cdf(x), log_below)) - 1, 0)
        high = min(int(np.searchsorted(-log_tail(x), -log_above)), x.size - 1)
        ends = self.loss(np.array([x[min(low, high)], x[max(low, high)]]))
        return max(float(ends[0]), self.bounds[0]), min(float(ends[1]), self.bounds[1])

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        x = np.linspace(*self.search, _NODES * refine)
        log_p, log_q = self._masses("P", x).log, self._masses("Q", x).log
        loss = self.loss(np.concatenate((x[:1], 0.5 * (x[:-1] + x[1:]), x[-1:])))
        present = np.maximum(log_p, log_q) > log_tail - 5.0
        return Nodes(loss[present], log_p[present], log_q[present])

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        log_cdf, _ = self._side(measure)
        level = np.log(rng.random(size))
        left, right = (np.full(size, end, dtype=np.float64) for end in self.search)
        for _ in range(60):
            middle = 0.5 * (left + right)
            below = log_cdf(middle) < level
            left, right = np.where(below, middle, left), np.where(below, right, middle)
        return self.loss(right)


def _two(name: str, ends: object, check: Callable[[str, object], float]) -> tuple[float, ...]:
    """Two numbers, each checked."""
    found = tuple(check(name, end) for end in check_sequence(name, ends))
    if len(found) != 2:
        raise ValueError(f"{name} must hold two numbers, got {ends!r}")
    return found


def _answered(name: str, function: Function, x: Array) -> Array:
    """What a function says of an array, of the same shape and without NaN."""
    found: object = function(x)
    if not (isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == x.shape):
        raise TypeError(
            f"{name} must return an array of float64 of the shape of its argument, {x.shape}, got"
            f" {one_line(shown(found))}"
        )
    if np.isnan(found).any():
        raise ValueError(f"{name} is NaN at x = {float(x[np.isnan(found)][0])!r}; it must hold real numbers")
    return found


@final
@dataclass(frozen=True)
class _Masses:
    """Masses of the intervals cut at some points.

    Attributes
    ----------
    log, error : ndarray, shape (m + 1,)
        ``ln`` of them, and bounds on the absolute errors; infinite where nothing is known.
    most : ndarray, shape (m + 1,)
        Upper bounds on the true ``ln``.
    """

    log: Array
    error: Array
    most: Array


def _differences(log_cdf: Array, log_tail: Array, error: float, x: Array) -> _Masses:
    """The masses of the m + 1 intervals cut at m points x, by the functions there."""
    if x.size == 0:  # one interval: everything
        return _Masses(np.zeros(1), np.zeros(1), np.zeros(1))
    from_right = log_tail[:-1] < log_cdf[1:]
    large = np.where(from_right, log_tail[:-1], log_cdf[1:])
    small = np.where(from_right, log_tail[1:], log_cdf[:-1])
    empty = (large == -math.inf) | (x[1:] == x[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = np.where(large == -math.inf, -math.inf, small - large)
        kept = np.where(empty, 0.0, -np.expm1(np.minimum(drop, 0.0)))
        between = large + np.log(kept)
        own = error + U * (2.0 * np.abs(large) + 4.0)
        relative = np.where(kept > 0.0, 2.0 * own / kept, math.inf) + 2.0 * ELEMENTARY
        # ln(1 + r) for a relative error r; no bound where the difference has no accuracy left
        errors = np.where(relative < 0.5, -np.log1p(-np.minimum(relative, 0.5)), math.inf) + U * np.abs(between)
        most = large + np.log(kept * (1.0 + 4.0 * ELEMENTARY) + 2.0 * np.expm1(np.minimum(own, _FAR)))
    errors, most = np.where(empty, 0.0, errors), np.where(empty, -math.inf, most + U * np.abs(most))
    ends = log_cdf[:1], log_tail[-1:]
    return _Masses(
        np.concatenate((ends[0], between, ends[1])),
        np.concatenate(([error], errors, [error])),
        np.concatenate((ends[0] + error, most, ends[1] + error)),
    )


def _give_away(p: _Masses, q: _Masses) -> None:
    """Count outcomes of cells of which nothing is known as ones of the next cells on either side, whose errors grow.

    Above, they may be moved up, to the next cell with its errors; below, they may be left out: P(S) - a Q(S) of any
    other outcomes S is below the curve. For the reverse up is down, so that both sides have the errors, of both masses.
    Where there are no such cells nothing is known of these: then their masses are at most what is stated.
    """
    unknown = np.isinf(p.error) | np.isinf(q.error)
    held = np.flatnonzero(~unknown & (p.log > -math.inf) & (q.log > -math.inf))
    cells = np.flatnonzero(unknown)
    place = np.searchsorted(held, cells)
    between = (place > 0) & (place < held.size)
    for side in (p, q):
        lost = cells[~between]
        side.log[lost], side.error[lost] = side.most[lost], math.inf
        given, more = cells[between], np.zeros(unknown.size)
        for beside in (held[place[between] - 1], held[place[between]]):
            with np.errstate(over="ignore"):  # next to it the cell's own mass is nothing: nothing is known of it, too
                np.add.at(more, beside, np.exp(side.most[given] - side.log[beside]))
        side.error[:] += np.log1p(more) * (1.0 + 1e-9)
        side.log[given], side.error[given] = -math.inf, 0.0
