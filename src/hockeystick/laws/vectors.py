"""A pair of probability vectors: P and Q on finitely many outcomes.

Outcomes where only P has mass have loss ``+inf``, where only Q has mass ``-inf``. Vectors given as floats rarely sum to
one; the pair is the vectors divided by their exact sums (`hockeystick.numerics.rationals`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_probability, check_rate, check_sequence, set_fields
from hockeystick.laws.atom_table import AtomTable, precise_log
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import InfiniteMass, LossQuantum, Pair
from hockeystick.numerics.rationals import LOG_RATIO, Probability, exact_probabilities, float_beside, log_of, log_ratio

_TINY = 2.0**-1073  # twice the smallest float: what a logarithm below the normal range may be off by


@final
@dataclass(frozen=True)
class DiscretePair(AtomicPair):
    """Two probability vectors over the same outcomes.

    Parameters
    ----------
    p, q : tuple of float or Fraction
        Probabilities of one length, each at least 0, each vector summing to 1 within 1e-9. The pair is the exact
        numbers divided by their exact sum: the attributes are that, and sum to exactly one.

    Examples
    --------
    >>> from fractions import Fraction
    >>> pair = DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> [round(loss, 6) for loss in pair.loss_bounds]
    [-1.098612, 1.098612]
    """

    takes_fractions = True

    p: tuple[Probability, ...]
    q: tuple[Probability, ...]

    def __post_init__(self) -> None:
        set_fields(self, p=exact_probabilities("p", probabilities("p", self.p)))
        set_fields(self, q=exact_probabilities("q", probabilities("q", self.q)))
        if len(self.p) != len(self.q):
            raise ValueError(f"p and q must have one length, got {len(self.p)} and {len(self.q)}")

    def make_table(self) -> AtomTable:
        masses = [(Fraction(a), Fraction(b)) for a, b in zip(self.p, self.q, strict=True)]
        both = sorted((a / b, a, b) for a, b in masses if a > 0 and b > 0)
        loss, log_p, log_q = (np.array([log_of(row[k]) for row in both]) for k in range(3))
        largest = np.maximum(np.abs(log_p), np.abs(log_q))
        return AtomTable(
            loss,
            LOG_RATIO * np.abs(loss) + _TINY,
            log_p,
            log_q,
            LOG_RATIO * largest + _TINY,
            infinite_p=float_beside(sum((a for a, b in masses if b == 0), Fraction(0)), up=True),
            infinite_q=float_beside(sum((b for a, b in masses if a == 0), Fraction(0)), up=True),
            exact_losses=lambda: tuple(precise_log(ratio) for ratio, _, _ in both),
        )

    @cached_property
    def infinite_mass(self) -> InfiniteMass:
        mass = sum((Fraction(a) for a, b in zip(self.p, self.q, strict=True) if b == 0), Fraction(0))
        low, high = float_beside(mass, up=False), float_beside(mass, up=True)
        if mass == 1:
            return InfiniteMass(low, high, -math.inf, -math.inf)
        log = log_ratio(mass.denominator - mass.numerator, mass.denominator)
        return InfiniteMass(low, high, log * (1.0 + LOG_RATIO), log * (1.0 - LOG_RATIO))

    @cached_property
    def loss_quantum(self) -> LossQuantum | None:
        atoms = self.atoms
        slack = float(atoms.loss_error.max(initial=0.0))
        size = np.abs(atoms.loss[np.abs(atoms.loss) > slack])
        if size.size == 0:
            return LossQuantum(1.0, slack)  # every loss is zero
        value = float(size.min())
        gaps = np.diff(np.unique(atoms.loss))
        gaps = gaps[gaps > 4.0 * slack]
        value = min(value, float(gaps.min(initial=math.inf)))
        off = float(np.abs(atoms.loss - np.round(atoms.loss / value) * value).max())
        if off > 1e-12 * float(size.max()):
            return None
        return LossQuantum(value, off + 2.0 * slack)

    def joined(self, rate: float | Fraction) -> Pair:
        """The joined pair, exactly.

        Examples
        --------
        >>> DiscretePair((0.75, 0.25), (0.25, 0.75)).joined(Fraction(1, 2)).p
        (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
        """
        g = Fraction(rate)
        p: list[Probability] = []
        q: list[Probability] = []
        gap = Fraction(0)  # P(L > 0) - Q(L > 0)
        for a, b in ((Fraction(a), Fraction(b)) for a, b in zip(self.p, self.q, strict=True)):
            gap += max(a - b, Fraction(0))
            p.append((1 - g) * b + g * a if a > b else a)
            q.append(b if a > b else (1 - g) * a + g * b)
        p.append((1 - g) * gap)
        q.append((1 - g) * gap)
        return DiscretePair(tuple(p), tuple(q))

    def subsampled(self, rate: float | Fraction) -> DiscretePair:
        """((1 - rate) Q + rate P, Q), exactly."""
        g = rate if isinstance(rate, Fraction) else Fraction(check_rate("rate", rate))
        mixed = tuple((1 - g) * Fraction(b) + g * Fraction(a) for a, b in zip(self.p, self.q, strict=True))
        return DiscretePair(mixed, self.q)

    def reversed(self) -> DiscretePair:
        return DiscretePair(self.q, self.p)

    @property
    def is_symmetric(self) -> bool:
        return sorted(zip(self.p, self.q, strict=True)) == sorted(zip(self.q, self.p, strict=True))


def probabilities(name: str, values: object) -> tuple[Probability, ...]:
    """The entries of a vector as floats or fractions, checked; their sum is not looked at."""
    entries: list[Probability] = []
    for value in check_sequence(name, values):
        if isinstance(value, Fraction) and not 0 <= value <= 1:
            raise ValueError(f"{name} must hold probabilities in [0, 1], got {value!r}")
        entries.append(value if isinstance(value, Fraction) else check_probability(f"every entry of {name}", value))
    return tuple(entries)
