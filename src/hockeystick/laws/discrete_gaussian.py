"""The discrete Gaussian pair: masses proportional to e^{-x^2 / 2 s^2} on the integers, moved by an integer D.

The loss at x is ``D (2x - D) / (2 s^2)``: infinitely many atoms, at multiples of D / (2 s^2), or of D / s^2 for even D.
The mass of a run a..b of integers is summed term by term from the end nearer to 0,

    sum_{x=a}^{b} e^{-x^2/2s^2} = e^{-a^2/2s^2} sum_{j>=0} e^{-(2 a j + j^2)/2s^2}     (a >= 0),

all terms positive, cut off where the rest is below e^-45 of the first term: every mass is accurate relative to itself.

Source: Canonne, Kamath and Steinke 2020. Cost: at most about 10 s terms a cell, no more than there are integers in it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_count, check_fields, check_positive, check_ratio
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, CellMasses, Extreme, LossQuantum, Measure, Nodes, Pair
from hockeystick.laws.discrete_gaussian_rule import DiscreteGaussianSummand, log_normaliser
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_up, up
from hockeystick.transforms.summand import Summand

_LARGEST_SIGMA = 1e6
_MOST_LISTED = 1 << 12  # integers in a table
_REST = 45.0  # e^-45: what may be left out of a sum, relative to its first term
_CHUNK = 1 << 20
_LARGE_LOSS = 750.0  # nats
_FAR = 2.0**40  # integers beyond which no cut needs to be told apart: their mass is zero in float64


class IntegerPair(Pair):
    """A pair on the integers, its loss increasing: a subclass says where cuts lie, and the masses of runs."""

    is_discrete = True

    @abstractmethod
    def _places(self, losses: Array) -> tuple[Array, Array]:
        """The last integer at or below each cut, and how far losses there may lie beyond it."""

    @abstractmethod
    def _masses(self, first: Array, last: Array, slack: Array) -> CellMasses:
        """Masses of the integers from the first to the last, both included."""

    def cells(self, losses: Array) -> CellMasses:
        x, slack = self._places(losses)
        return self._masses(np.append(-math.inf, x + 1.0), np.append(x, math.inf), slack)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses:
        x, slack = self._places(cuts)
        end = np.full(x.size, math.inf if upper else -math.inf)
        return self._masses(x + 1.0, end, slack) if upper else self._masses(end, x, slack)


@final
@dataclass(frozen=True)
class DiscreteGaussianPair(IntegerPair):
    """Discrete Gaussian noise moved by ``sensitivity``, against the noise.

    Parameters
    ----------
    sigma : float
        s, above 0 and at most 1e6; close to the standard deviation.
    sensitivity : int
        D, at least 1.

    Examples
    --------
    >>> DiscreteGaussianPair(2.0).loss_quantum.value
    0.125
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, sigma=check_positive, sensitivity=check_count)
        if self.sigma > _LARGEST_SIGMA:
            raise ValueError(f"sigma must be at most {_LARGEST_SIGMA:g}, got {self.sigma!r}; count in larger units")
        check_ratio(self.sensitivity, self.sigma)

    infimum = Extreme(-math.inf)
    supremum = Extreme(math.inf)

    @cached_property
    def loss_quantum(self) -> LossQuantum | None:
        steps = 2.0 if self.sensitivity % 2 == 0 else 1.0
        value = steps * self._unit
        return LossQuantum(value, 4.0 * U * _LARGE_LOSS)  # rounding of the quantum, for losses up to that size

    @property
    def _unit(self) -> float:
        """D / (2 s^2): the loss is this times 2x - D."""
        return self.sensitivity / (2.0 * self.sigma * self.sigma)

    @cached_property
    def _log_normaliser(self) -> float:
        """``ln sum_x e^{-x^2/2s^2}``."""
        return log_normaliser(self.sigma)[0]

    def _loss(self, x: Array) -> Array:
        return np.asarray(self._unit * (2.0 * x - self.sensitivity))

    def _places(self, losses: Array) -> tuple[Array, Array]:
        x = np.minimum(np.maximum(np.floor(0.5 * (losses / self._unit + self.sensitivity)), -_FAR), _FAR)
        # an integer is on the wrong side of a cut only if its loss is within rounding of it
        slack = 8.0 * U * (np.abs(losses) + 2.0 * self._unit * self.sensitivity)
        far = np.abs(x) >= _FAR
        slack[far] = np.maximum(slack[far], np.abs(self._loss(x[far]) - losses[far]))
        return x, slack

    def _masses(self, first: Array, last: Array, slack: Array) -> CellMasses:
        both = [np.concatenate((end, end - self.sensitivity)) for end in (first, last)]
        (log_q, log_p), (error_q, error_p) = (part.reshape(2, -1) for part in self.runs(*both))
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def runs(self, first: Array, last: Array) -> tuple[Array, Array]:
        """``ln`` of the noise's masses of runs of integers, bounds on their errors; in an empty run last < first."""
        mirrored = last <= 0.0
        low, high = np.where(mirrored, -last, first), np.where(mirrored, -first, last)
        straddling = low < 0.0  # holds 0 and integers on both sides of it
        starts = np.concatenate((np.where(straddling, 0.0, low), straddling))
        ends = np.concatenate((high, np.where(straddling, -low, -1.0)))
        with np.errstate(invalid="ignore"):
            right, left = self._sum_from(starts, ends).reshape(2, -1)
        log_mass = np.logaddexp(right, left) - self._log_normaliser
        empty = log_mass == -math.inf
        near = np.where(straddling | empty, 0.0, low)
        s = self.sigma
        size = 0.5 * (near / s) ** 2
        terms = np.minimum(np.maximum(high - low, 0.0) + 1.0, 11.0 * s + 12.0)
        error = (
            8.0 * ELEMENTARY
            + U * (6.0 * size + 4.0 * abs(self._log_normaliser) + 4.0 * _REST + terms)
            + 4.0 * math.exp(-_REST + 1.0)
        )
        return log_mass, np.where(empty, 0.0, error)

    def _sum_from(self, low: Array, high: Array) -> Array:
        """``ln sum_{x=low}^{high} e^{-x^2/2s^2}`` for 0 <= low, high possibly infinite; -inf where high < low."""
        two = 2.0 * self.sigma * self.sigma
        # number of terms after which the rest is below e^-45 of the first: (2 low j + j^2) / 2s^2 >= 45 + ln(1 + s)
        reach = two * (_REST + math.log1p(self.sigma))
        enough = np.floor(reach / (low + np.sqrt(low * low + reach))) + 2.0
        count = np.maximum(np.minimum(high - low + 1.0, enough), 0.0).astype(np.int64)
        out = np.full(low.size, -math.inf)
        occupied = np.flatnonzero(count)
        if occupied.size == 0:
            return out
        blocks = np.searchsorted(np.cumsum(count[occupied]), np.arange(0, int(count.sum()), _CHUNK))
        for start, stop in zip(blocks, np.append(blocks[1:], occupied.size), strict=True):
            rows = occupied[start:stop]
            if rows.size == 0:
                continue
            lengths = count[rows]
            starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
            j = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
            base = np.repeat(low[rows], lengths)
            sums = np.add.reduceat(np.exp(-(j * (2.0 * base + j)) / two), starts)
            out[rows] = np.log(sums) - low[rows] * low[rows] / two
        return out

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        centre = float(self.sensitivity) if measure == "P" else 0.0
        below, above = (self.sigma * math.sqrt(-2.0 * min(log, -1e-3)) for log in (log_below, log_above))
        low, high = self._loss(np.array([math.floor(centre - below), math.ceil(centre + above)]))
        return float(low), float(high)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        reach = self.sigma * math.sqrt(-2.0 * min(log_tail, -1.0))
        first, last = math.floor(-reach) - 1, math.ceil(self.sensitivity + reach) + 1
        # where there are very many atoms, every stride-th one stands for its neighbours: the trapezoidal rule
        stride = max(1, math.floor(0.2 * self.sigma / refine))
        x = np.arange(first, last + stride, stride, dtype=np.float64)
        scale = math.log(stride) - self._log_normaliser
        two = 2.0 * self.sigma * self.sigma
        return Nodes(self._loss(x), scale - (x - self.sensitivity) ** 2 / two, scale - x * x / two)

    def listed(self, log_drop: float) -> tuple[int, float] | None:
        """How far from either centre integers are listed, and a bound on the mass beyond; None where they are many."""
        s = self.sigma
        # beyond r the masses fall at least by e^{-r / s^2} from one integer to the next, on either side of either noise
        r = math.ceil(s * math.sqrt(2.0 * max(math.log(8.0 + 4.0 * s * s) - log_drop, 1.0)))
        if 2 * r + self.sensitivity > _MOST_LISTED:
            return None
        return r, up(exp_up(-0.5 * (r / s) ** 2) * (2.0 * (1.0 + 1e-9)) / -math.expm1(-r / (s * s)))

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        if (listed := self.listed(log_drop)) is None:
            return None
        s, shift, (r, dropped) = self.sigma, float(self.sensitivity), listed
        x = np.arange(-r, self.sensitivity + r + 1.0)
        log_z, z_error = log_normaliser(s)
        log_p, log_q = (-y * y / (2.0 * s * s) - log_z for y in (x - shift, x))
        size = np.maximum(np.abs(log_p), np.abs(log_q)) + abs(log_z)
        loss = self._loss(x)
        return AtomTable(loss, 8.0 * U * np.abs(loss), log_p, log_q, 16.0 * U * size + z_error, dropped=dropped)

    def summand(self) -> Summand:
        return DiscreteGaussianSummand(self.sigma, self.sensitivity)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        x = discrete_gaussian(rng, self.sigma, size)
        return self._loss(x + (float(self.sensitivity) if measure == "P" else 0.0))

    def reversed(self) -> Pair:
        return self  # mirror the line about D/2


def discrete_gaussian(rng: np.random.Generator, sigma: float, size: int) -> Array:
    """Draws by rejection from a discrete Laplace distribution (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
    scale = math.floor(sigma) + 1.0
    drawn: list[Array] = []
    missing = size
    while missing > 0:
        count = 2 * missing + 16
        geometric = rng.geometric(-math.expm1(-1.0 / scale), (2, count)) - 1.0
        x = geometric[0] - geometric[1]
        accept = np.exp(-((np.abs(x) - sigma * sigma / scale) ** 2) / (2.0 * sigma * sigma))
        kept = x[rng.random(count) < accept][:missing]
        drawn.append(kept)
        missing -= kept.size
    return np.concatenate(drawn) if drawn else np.empty(0)
