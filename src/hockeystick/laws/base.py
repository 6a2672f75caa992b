"""A dominating pair (P, Q) and the windows through which accountants look at it.

Symbols: the privacy loss is ``L = ln dP/dQ``; under P it may be ``+inf`` (P puts mass where Q has none), under
Q it may be ``-inf``. The hockey-stick curve is ``h(a) = P(L > ln a) - a Q(L > ln a)``, and delta(epsilon) is
``h(e^epsilon)``.

Windows: *tails* is ``Pair.cells``; *cumulants* is ``Pair.nodes`` (and the certified transforms built on the
classes' closed forms); *samples* is ``Pair.sample``. Accountants know pairs only through them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.transforms.cumulants import Nodes

__all__ = ["CellMasses", "LossQuantum", "Measure", "Nodes", "Pair"]

Array = NDArray[np.float64]

Measure = Literal["P", "Q"]
"""Which of the two distributions."""


@final
@dataclass(frozen=True)
class CellMasses:
    """Masses of the loss cells cut by m increasing losses ``l_0 < ... < l_{m-1}``: the *tails* window.

    There are m + 1 cells: below ``l_0``, the m - 1 between, and above ``l_{m-1}`` (``L = +-inf`` excluded).

    Attributes
    ----------
    log_p, log_q : ndarray, shape (m + 1,)
        ``ln`` of the mass of each cell under P and under Q; ``-inf`` for an empty cell.
    error_p, error_q : ndarray, shape (m + 1,)
        Bounds on the absolute error of each entry, that is on the relative error of the mass.
    slack : ndarray, shape (m,)
        How far (nats) the true cuts may lie from the ones asked for: the losses in the cell between cuts i - 1
        and i lie in ``[l_{i-1} - slack_{i-1}, l_i + slack_i]``.
    """

    log_p: Array
    log_q: Array
    error_p: Array
    error_q: Array
    slack: Array

    def reversed(self) -> CellMasses:
        """The cells of the pair (Q, P), whose losses are the negatives, in increasing order."""
        return CellMasses(self.log_q[::-1], self.log_p[::-1], self.error_q[::-1], self.error_p[::-1], self.slack[::-1])


@final
@dataclass(frozen=True)
class LossQuantum:
    """A number of which every finite loss is an integer multiple.

    Attributes
    ----------
    value : float
        The number (nats), above 0.
    slack : float
        Bound on the distance (nats) of any finite loss from the multiple of ``value`` nearest to it.
    """

    value: float
    slack: float


class Pair(ABC):
    """A dominating pair (P, Q): frozen, hashable, equal where its parameters are equal.

    A new pair is one subclass with the methods below; it then works with every accountant. Subclasses are frozen
    dataclasses whose parameters are exact numbers: a float stands for itself.
    """

    @property
    @abstractmethod
    def loss_bounds(self) -> tuple[float, float]:
        """Smallest and largest finite loss (nats), infinite where unbounded; `pairs.ends` bounds their errors."""

    @property
    def mass_at_infinity(self) -> float:
        """P(L = +inf), rounded up; 0 where P is absolutely continuous."""
        return 0.0

    @property
    def reverse_mass_at_infinity(self) -> float:
        """Q(L = -inf), rounded up: the mass at infinity of the reversed pair."""
        return 0.0

    @property
    def is_discrete(self) -> bool:
        """Whether all mass sits on atoms: no density, however small, between them."""
        return False

    @property
    def anchors(self) -> tuple[float, ...]:
        """Finite losses where mass concentrates (atoms, ends of the range), the most important first; nats.

        Lattices are laid through the first one or two: a guide, like `loss_range`.
        """
        return ()

    @property
    def loss_quantum(self) -> LossQuantum | None:
        """The number of which every finite loss is a multiple; None where there is none."""
        return None

    @abstractmethod
    def cells(self, losses: Array) -> CellMasses:
        """Masses of the cells cut by ``losses`` (increasing, finite, shape (m,)), with certified errors."""

    @abstractmethod
    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        """Losses ``(low, high)``, finite, with about ``e^log_below`` of the measure below and ``e^log_above`` above.

        A guide for choosing lattices, not a bound; never beyond ``loss_bounds``.
        """

    @abstractmethod
    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        """A quadrature rule that covers both distributions up to tails of about ``e^log_tail``.

        ``refine`` divides the step: comparing a rule with a finer one measures its error.
        """

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        """Independent draws of L (nats) under the measure, shape (size,); ``+-inf`` where it is."""

    def reversed(self) -> Pair:
        """The pair (Q, P)."""
        from hockeystick.laws.reversed import ReversedPair  # the class is a Pair itself

        return ReversedPair(self)

    def subsampled(self, rate: float) -> Pair:
        """The pair ((1 - rate) Q + rate P, Q): the record takes part with probability ``rate``."""
        from hockeystick.laws.subsampled import SubsampledPair

        return self if rate == 1.0 else SubsampledPair(self, rate)
