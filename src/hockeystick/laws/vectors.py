"""A pair of probability vectors: P and Q on finitely many outcomes.

Entries are exact numbers (floats or fractions). Outcomes where only P has mass have loss ``+inf``, where only Q
has mass ``-inf``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_rate
from hockeystick.laws.base import Array, CellMasses, LossQuantum, Measure, Nodes, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, up

__all__ = ["DiscretePair", "Probability"]

Probability = float | Fraction
"""An exact probability."""

_MASS_TOLERANCE = 1e-9  # how far the given probabilities may sum away from one


@final
@dataclass(frozen=True)
class _Atoms:
    """Outcomes of finite loss, sorted by loss, with the errors of what was computed."""

    loss: Array
    log_p: Array
    log_q: Array
    error: float  # of every log mass
    slack: float  # of every loss


@final
@dataclass(frozen=True)
class DiscretePair(Pair):
    """Two probability vectors over the same outcomes.

    Parameters
    ----------
    p, q : tuple of float or Fraction
        Probabilities of one length, each at least 0, each vector summing to 1 within 1e-9. They are taken as exact
        numbers and are not renormalised.

    Examples
    --------
    >>> from fractions import Fraction
    >>> pair = DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> [round(loss, 6) for loss in pair.loss_bounds]
    [-1.098612, 1.098612]
    """

    p: tuple[Probability, ...]
    q: tuple[Probability, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _vector("p", self.p))
        object.__setattr__(self, "q", _vector("q", self.q))
        if len(self.p) != len(self.q):
            raise ValueError(f"p and q must have one length, got {len(self.p)} and {len(self.q)}")

    @cached_property
    def _atoms(self) -> _Atoms:
        both = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a > 0 and b > 0]
        loss = np.array([_log_ratio(a, b) for a, b in both])
        log_p = np.array([_log_ratio(a, 1) for a, _ in both])
        log_q = np.array([_log_ratio(b, 1) for _, b in both])
        order = np.argsort(loss, kind="stable")
        size = max(1.0, *(float(np.abs(v).max(initial=0.0)) for v in (loss, log_p, log_q)))
        error = 3.0 * ELEMENTARY * size  # one rounding of the ratio, one of the logarithm
        return _Atoms(loss[order], log_p[order], log_q[order], error, error)

    @property
    def is_discrete(self) -> bool:
        return True

    @cached_property
    def anchors(self) -> tuple[float, ...]:
        heaviest = np.argsort(-self._atoms.log_p, kind="stable")[:2]
        return tuple(float(loss) for loss in sorted(set(self._atoms.loss[heaviest]), reverse=True))

    @property
    def loss_bounds(self) -> tuple[float, float]:
        loss = self._atoms.loss
        return (float(loss[0]), float(loss[-1])) if loss.size else (0.0, 0.0)

    @cached_property
    def mass_at_infinity(self) -> float:
        return _sum_up([a for a, b in zip(self.p, self.q, strict=True) if b == 0])

    @cached_property
    def reverse_mass_at_infinity(self) -> float:
        return _sum_up([b for a, b in zip(self.p, self.q, strict=True) if a == 0])

    @cached_property
    def loss_quantum(self) -> LossQuantum | None:
        atoms = self._atoms
        size = np.abs(atoms.loss[np.abs(atoms.loss) > atoms.slack])
        if size.size == 0:
            return LossQuantum(1.0, atoms.slack)  # every loss is zero
        value = float(size.min())
        gaps = np.diff(np.unique(atoms.loss))
        gaps = gaps[gaps > 4.0 * atoms.slack]
        value = min(value, float(gaps.min(initial=math.inf)))
        off = float(np.abs(atoms.loss - np.round(atoms.loss / value) * value).max())
        if off > 1e-12 * float(size.max()):
            return None
        return LossQuantum(value, off + 2.0 * atoms.slack)

    def cells(self, losses: Array) -> CellMasses:
        atoms = self._atoms
        index = np.searchsorted(losses, atoms.loss, side="left")
        log_p, log_q = _grouped(atoms.log_p, index, losses.size + 1), _grouped(atoms.log_q, index, losses.size + 1)
        largest = int(np.bincount(index, minlength=1).max()) if index.size else 1
        error = np.full(losses.size + 1, atoms.error + largest * (3.0 * ELEMENTARY + 2.0 * atoms.error * U))
        # an atom lies where its computed loss says, to within its own error
        return CellMasses(log_p, log_q, error, error, np.full(losses.size, atoms.slack))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        return self.loss_bounds

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        return Nodes(self._atoms.loss, self._atoms.log_p, self._atoms.log_q)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        weights = np.array([float(w) for w in (self.p if measure == "P" else self.q)])
        with np.errstate(divide="ignore"):
            loss = np.array(
                [
                    math.inf if b == 0 else -math.inf if a == 0 else _log_ratio(a, b)
                    for a, b in zip(self.p, self.q, strict=True)
                ]
            )
        return loss[rng.choice(loss.size, size=size, p=weights / weights.sum())]

    def subsampled(self, rate: float) -> Pair:
        """((1 - rate) Q + rate P, Q), exactly."""
        g = Fraction(check_rate("rate", rate))
        mixed = tuple((1 - g) * Fraction(b) + g * Fraction(a) for a, b in zip(self.p, self.q, strict=True))
        return DiscretePair(mixed, self.q)

    def reversed(self) -> Pair:
        return DiscretePair(self.q, self.p)


def _vector(name: str, values: object) -> tuple[Probability, ...]:
    if isinstance(values, str | bytes) or not np.iterable(values):
        raise TypeError(f"{name} must be a sequence of probabilities, got {values!r}")
    entries: list[Probability] = []
    for value in values:
        if isinstance(value, bool | str) or not (isinstance(value, Fraction) or np.isrealobj(value)):
            raise TypeError(f"{name} must hold floats or fractions, got {value!r}")
        entry: Probability = value if isinstance(value, Fraction) else float(value)
        if math.isnan(entry):
            raise ValueError(f"{name} holds NaN")
        if not 0 <= entry <= 1:
            raise ValueError(f"{name} must hold probabilities in [0, 1], got {value!r}")
        entries.append(entry)
    total = float(sum(Fraction(entry) for entry in entries))
    if not abs(total - 1.0) <= _MASS_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got {total!r}; divide by the sum, or use fractions")
    return tuple(entries)


def _log_ratio(a: Probability, b: Probability | int) -> float:
    """ln(a / b), one rounding of the ratio away."""
    if isinstance(a, float) and b == 1:
        return math.log(a)
    if isinstance(a, float) and isinstance(b, float):
        ratio = a / b
    else:
        exact = Fraction(a) / Fraction(b)
        if not 2.0**-1000 < exact < 2.0**1000:
            return math.log(exact.numerator) - math.log(exact.denominator)
        ratio = float(exact)
    if 2.0**-1000 < ratio < 2.0**1000:
        return math.log(ratio)
    return math.log(a) - math.log(b)


def _sum_up(values: list[Probability]) -> float:
    """The sum, rounded up."""
    total = sum((Fraction(value) for value in values), Fraction(0))
    return up(float(total)) if total > 0 else 0.0


def _grouped(logs: Array, index: np.ndarray[tuple[int], np.dtype[np.intp]], size: int) -> Array:
    """``ln`` of the sums of ``exp(logs)`` over equal, sorted indices."""
    out = np.full(size, -math.inf)
    if logs.size:
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        out[index[starts]] = np.logaddexp.reduceat(logs, starts)
    return out
