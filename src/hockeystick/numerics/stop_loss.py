"""E (S - k)+ and E (k - S)+ of a sum S of t independent positive numbers W, bracketed by the convex order.

The line is cut at multiples of h; of every cell its mass q and its moment p = E[W; cell] are known. Symbols:

- *above*: each cell's mass moves to its two ends, its mean kept (connect-the-dots on the linear scale): ``(p - q x) /
  h`` to the upper end, the rest to the lower. The sum S+ of t such variables is above S in convex order.
- *below*: what W is moved by is at most normal noise of variance ``pi h^2 / 8``, hence S+ is below ``S + sigma N``,
  ``sigma = h sqrt(pi t / 8)``. With G(k) = E (S - k)+, U that of S+ and kappa(y) = E (sigma N - |y|)+,
  ``U(k) <= G(k) + int G''(k - y) kappa(y) dy``. Let tents stand above kappa, ``kappa(y) <= sum_j c_j (Y_j - |y|)+ +
  r``; a tent integrates to a second difference of G, and G <= U, so that

      G(k) >= (U(k) - sum_j c_j (U(k - Y_j) + U(k + Y_j)) - r) / (1 - 2 sum_j c_j).

- *rare terms*: W above b are counted apart. For k <= b a single one carries S above k: exact, in closed form. So it is,
  nearly, where the t - 1 others are hardly ever below k - b: ``E (k - b - R)+ <= e^{-y^2 / (2 (t-1) E W^2)} (t-1) E W^2
  / (e y)``, y = (t-1) E W - (k - b), as ``e^{-x} <= 1 - x + x^2 / 2``.

Guarantee: both sides are certified. Proof: docs/derivations/random-allocation.md, sections 2 to 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.lattice_sum import LatticeSum, PointMasses, SumWindow
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U

TENTS: tuple[float, ...] = (2.0, 5.0, 20.0)
"""Half-widths of the tents, in units of sigma."""

NOISE_LOST = 1.5
"""About the width of a bracket, in units of sigma^2 G''."""

_WIDER = 1.0 + 1e-6  # how much wider than h a cell may be, for cuts that are off


@final
@dataclass(frozen=True, eq=False)
class LinearCells:
    """Masses of W in cells between multiples of a spacing.

    Attributes
    ----------
    spacing : float
        h, of few bits.
    index : ndarray of int64, shape (m,)
        1, 2, ..., m: the cuts are ``index * h``.
    log_q, log_p, error_q, error_p : ndarray, shape (m + 1,)
        ``ln`` of the mass and of the moment of every cell, the first from 0, the last unbounded, and bounds on the
        absolute errors of both.
    slack : float
        Relative distance of the true cuts from the ones asked for, and of the values in a cell from its ends.
    zero_mass : float
        Mass at W = 0, to within 32 u of itself.
    mean : float
        E W, to within a few u.
    square : float
        At least E W^2.
    """

    spacing: float
    index: Indices
    log_q: Array
    log_p: Array
    error_q: Array
    error_p: Array
    slack: float
    zero_mass: float = 0.0
    mean: float = 1.0
    square: float = math.inf

    def spread(self) -> PointMasses:
        """The masses of all but the last cell, moved to the ends of each: the first cell's to 0 and its upper end."""
        upper = self.index * self.spacing
        lower = np.append(0.0, upper[:-1])
        width = upper - lower
        present = self.log_q[:-1] > -math.inf
        q = np.exp(self.log_q[:-1])
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.where(present, np.exp(self.log_p[:-1] - self.log_q[:-1]), lower)
        share = np.clip((mean - lower) / width, 0.0, 1.0)
        # of the mean: both errors, the logarithms' rounding and the slack of the ends; it moves mass over the width
        logs = np.where(present, np.abs(self.log_p[:-1]) + np.abs(self.log_q[:-1]), 0.0)
        off_q = self.error_q[:-1] + 2.0 * ELEMENTARY + U * np.where(present, np.abs(self.log_q[:-1]), 0.0)
        off = self.error_q[:-1] + self.error_p[:-1] + 4.0 * self.slack + 2.0 * ELEMENTARY + 4.0 * U * logs
        with np.errstate(invalid="ignore", over="ignore"):  # refused below
            error = np.where(present, q * np.expm1(off_q) * 1.01 + TINY, 0.0)
            moved = np.where(present, q * np.expm1(off) * 1.01 * (upper / width) + TINY, 0.0)
        if not (np.isfinite(error) & np.isfinite(moved)).all():
            raise PrecisionError("the masses of some cells are not known")
        mass, own = np.zeros(upper.size + 1), np.zeros(upper.size + 1)
        mass[1:] += q * share
        mass[:-1] += q * (1.0 - share)
        own[1:] += error * share + TINY * present
        own[:-1] += error * (1.0 - share) + TINY * present
        mass[0] += self.zero_mass
        own[0] += 64.0 * U * self.zero_mass
        own += 4.0 * U * mass
        return PointMasses(self.spacing, np.append(0, self.index), mass, own, moved)

    @property
    def last(self) -> float:
        """b, the last cut."""
        return float(self.index[-1] * self.spacing)

    def rare_terms(self, count: int, *, below: bool) -> RareTerms:
        """The terms beyond the last cut, of a sum of so many."""
        off = float(self.error_q[-1] + self.error_p[-1])
        last = self.last * (1.0 - 2.0 * self.slack)
        log_q, log_p = float(self.log_q[-1]), float(self.log_p[-1])
        return RareTerms(log_q, log_p, off, last, mean=self.mean, count=count, below=below, square=self.square)


@final
@dataclass(frozen=True)
class RareTerms:
    """The terms W > b of a sum, counted apart.

    Attributes
    ----------
    log_q, log_p : float
        ``ln`` of their mass and of their moment.
    off : float
        Bound on the sum of the absolute errors of both.
    last : float
        At most b.
    mean : float
        E W, to within a few u.
    count : int
        t.
    below : bool
        Whether ``E (k - S)+`` is meant.
    square : float
        At least E W^2.
    """

    log_q: float
    log_p: float
    off: float
    last: float
    mean: float
    count: int
    below: bool
    square: float = math.inf

    def bounds(self, k: Array) -> tuple[Array, Array]:
        """Bounds on ``E[(S - k)+; some W > b]``, or on ``E[(k - S)+; some W > b]``: closed where k <= b."""
        t, q, p = float(self.count), math.exp(self.log_q), math.exp(self.log_p)
        if q == 0.0 and p == 0.0:
            tiny = np.full_like(k, 0.0 if self.log_p == -math.inf else t * TINY)
            return np.zeros_like(k), tiny
        off = self.off + 4.0 * ELEMENTARY + 4.0 * U * (abs(self.log_q) + abs(self.log_p))
        log_none = math.log1p(-q) if q < 1.0 else -math.inf  # a mass of all, to a rounding
        some, other = -math.expm1(t * log_none), -math.expm1((t - 1.0) * log_none)
        # E[(k - S)+; some W > b], the same event of each W at a time
        missed = np.where(
            k <= self.last, 0.0, np.minimum(k * some, t * q * self._short(k)) * (1.0 + 4.0 * off) + t * TINY
        )
        if self.below:
            return np.zeros_like(k), missed
        carried = t * (p + max(self.mean - p, 0.0) * other)
        room = 8.0 * (off + 8.0 * U) * (carried + k * some) + t * TINY
        low = np.maximum(carried - k * some - room, 0.0)
        return low, np.maximum(carried - k * some + missed, 0.0) + room

    def _short(self, k: Array) -> Array:
        """At least E (k - b - R)+, R the sum of all W but one."""
        others = self.count - 1.0
        left = np.maximum(k - self.last * (1.0 - 4.0 * U), 0.0)
        y = np.maximum(others * self.mean - left - 32.0 * U * (others + k), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = others * self.square / y
            found = np.exp(-0.5 * y / spread) * spread / math.e * (1.0 + 1e-6)
        return np.asarray(np.minimum(left, np.where(np.isfinite(found), found, math.inf)))


def lognormal_square(shift: float) -> float:
    """E W^2 of a lognormal W of mean 1, rounded up; infinite where float64 cannot hold it."""
    return math.exp(shift * shift) * (1.0 + 4.0 * U * (2.0 + shift * shift)) if shift < 26.0 else math.inf


def surely_beyond(k: float, count: int, square: float) -> float:
    """About the least b with which a term above it carries the sum above k, but for one case in e^30."""
    return k - (count - 1.0) + math.sqrt(60.0 * (count - 1.0) * square)


def noise_deviation(spacing: float, count: int) -> float:
    """sigma, rounded up: the deviation of normal noise that covers what ``count`` cells of this width move."""
    return spacing * math.sqrt(math.pi * count / 8.0) * (1.0 + 1e-12)


def _coefficients() -> tuple[Array, float]:
    """The tents' c_j and the rest r, in units of sigma, rounded up: the chords of kappa between 0 and the Y_j."""
    ends = np.array((0.0, *TENTS))
    phi = np.exp(-0.5 * ends * ends) / math.sqrt(2.0 * math.pi)
    kappa = phi - 0.5 * ends * np.array([math.erfc(y / math.sqrt(2.0)) for y in ends])
    # far out the difference cancels: kappa(y) <= phi(y) / y^2; what is too large is on the safe side
    kappa[1:] = np.minimum(kappa[1:] + 1e-15, phi[1:] / ends[1:] ** 2)
    kappa *= 1.0 + 1e-9
    slopes = -np.diff(kappa) / np.diff(ends)
    return np.append(slopes[:-1] - slopes[1:], slopes[-1]) * (1.0 + 1e-9), float(kappa[-1])


_TENT_WEIGHTS, _REST = _coefficients()


@final
class StopLoss:
    """Certified bounds on ``E (S - k)+``, or on ``E (k - S)+``, of a sum of ``count`` independent W.

    Parameters
    ----------
    cells : LinearCells
        Of one term.
    count : int
        t, at least 2.
    window : SumWindow
        Where to look; of -S where ``below``.
    reference : float
        A point k about which answers are wanted.
    below : bool
        Whether ``E (k - S)+`` is meant.
    """

    def __init__(self, cells: LinearCells, count: int, window: SumWindow, *, reference: float, below: bool) -> None:
        if cells.slack * 2.0 * cells.last > (_WIDER - 1.0) * cells.spacing:
            raise PrecisionError("a lattice as fine as that is finer than the values of float64")
        self._sign, self._count = -1.0 if below else 1.0, count
        masses = cells.spread()
        self._sum = LatticeSum(masses.mirrored() if below else masses, count, window, reference=self._sign * reference)
        self.steepness = window.theta * reference  # how fast the errors fall with ln k, about the reference: nats a nat
        self._deviation = noise_deviation(cells.spacing * _WIDER, count)
        self._stretch = 2.0 * cells.slack + 16.0 * U
        self.rare = cells.rare_terms(count, below=below)

    def bounds(self, losses: Array) -> tuple[Array, Array]:
        """Lower and upper bounds at ``k = t e^loss``, arrays of the shape of ``losses``, at least 0.

        The last cut may be below k: then what rare terms add is bounded, not known.
        """
        k = self._count * np.exp(np.asarray(losses, dtype=np.float64))
        signed = self._sign * k
        low = self._noise_removed(signed)
        high = self._above(signed)
        rare_low, rare_high = self.rare.bounds(k)
        return (low + rare_low) * (1.0 - 4.0 * U), (high + rare_high) * (1.0 + 4.0 * U)

    def _above(self, k: Array) -> Array:
        """Upper bound on the transform of S+, its points at most the stretch off."""
        return np.asarray(self._sum.bounds(k - np.abs(k) * self._stretch)[1] * (1.0 + self._stretch))

    def _noise_removed(self, k: Array) -> Array:
        """Lower bound on that of S, from that of S+ at k and from above about it."""
        at = self._sum.bounds(k + np.abs(k) * self._stretch)[0] * (1.0 - self._stretch)
        about = np.zeros_like(at)
        for weight, tent in zip(_TENT_WEIGHTS, TENTS, strict=True):
            reach = tent * self._deviation
            # rounded, an arm is at most a few u of k and of itself off: the stretch covers it
            about = about + weight * (self._above(k - reach) + self._above(k + reach))
        rest = _REST * self._deviation
        below = (at - (about + rest) * (1.0 + 64.0 * U)) / (1.0 - 2.0 * float(_TENT_WEIGHTS.sum()))
        return np.asarray(np.maximum(below, 0.0) * (1.0 - 64.0 * U))
