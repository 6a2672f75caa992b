"""Tails of binomial laws in decimal arithmetic, which rounds correctly.

With ``K ~ Bin(N, g)``, ``t_k = Pr[K = k]`` and ``t_{k+1} / t_k = (N - k) / (k + 1) * g / (1 - g)``, sums of
multiples of the t_k are taken from the mode outwards. The ratios fall as k grows, so that what follows a term t in a
direction where its ratio is r < 1 is at most ``t r / (1 - r)``.

Guarantee: every quotient of sums is within `TAIL` relative of the true one. A term that is M terms from the mode has
met at most 6 M roundings, a sum one a term: for the `_MOST_TERMS` allowed less than 1e-41 with 50 digits. What is left
out is at most 1e-35 of its sum. Cost: one step of some 1e-6 s a term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property
from typing import Final, final

from hockeystick.errors import PrecisionError

TAIL: Final = Decimal("1e-30")
"""Bound on the relative errors of a `BinomialTail`."""

SEEN: Final = Decimal("1e-400")
"""Far below what float64 holds: as a fraction a smaller chance may have millions of digits."""

_MOST_TERMS = 2_000_000
_LEFT_OUT = Decimal("1e-35")
_CONTEXT = Context(prec=50, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)


@final
@dataclass(frozen=True)
class BinomialTail:
    """Pr[K >= least] for K ~ Bin(trials, rate), and the rest.

    Parameters
    ----------
    trials : int
        N, at least ``least``.
    rate : float
        g, inside (0, 1): an exact number.
    least : int
        At least 1.

    Examples
    --------
    >>> tail = BinomialTail(3, 0.5, 2)
    >>> float(tail.above), float(tail.below), float(tail.mean_share)  # (2/3 * 3 + 2/4) / 4
    (0.5, 0.5, 0.625)
    """

    trials: int
    rate: float
    least: int

    def __post_init__(self) -> None:
        if not (0.0 < self.rate < 1.0 and 1 <= self.least <= self.trials):
            raise ValueError(f"no binomial tail: {self!r}")

    @property
    def above(self) -> Decimal:
        """Pr[K >= least], to `TAIL` relative."""
        return self._sums[0]

    @property
    def below(self) -> Decimal:
        """Pr[K < least], to `TAIL` relative."""
        return self._sums[1]

    @property
    def mean_share(self) -> Decimal:
        """E[least / (K + 1) | K >= least], to `TAIL` relative."""
        return self._sums[2]

    @cached_property
    def log_above(self) -> float:
        """``ln`` of `above`, to `log_error`."""
        return float(self.above.ln(_CONTEXT))

    @cached_property
    def log_below(self) -> float:
        """``ln`` of `below`, to `log_error`."""
        return float(self.below.ln(_CONTEXT))

    @property
    def log_error(self) -> float:
        """Bound on the absolute errors of both logarithms: one rounding to float64, and `TAIL` with room."""
        return 2.0**-52 * max(abs(self.log_above), abs(self.log_below)) + 1e-29

    @cached_property
    def _sums(self) -> tuple[Decimal, Decimal, Decimal]:
        c = _CONTEXT
        above = below = shared = Decimal(0)
        for k, term in self._from_mode():
            if k >= self.least:
                above = c.add(above, term)
                shared = c.add(shared, c.divide(c.multiply(term, self.least), k + 1))
            else:
                below = c.add(below, term)
        whole = c.add(above, below)
        return c.divide(above, whole), c.divide(below, whole), c.divide(shared, above)

    def _from_mode(self) -> Iterator[tuple[int, Decimal]]:
        """``(k, t_k / t_mode)`` for all k that matter: from the mode up, then from below it down."""
        mode = min(math.floor((self.trials + 1) * self.rate), self.trials)
        if abs(mode - self.least) > _MOST_TERMS:
            raise self._too_far
        yield mode, Decimal(1)
        yield from self._outwards(mode, 1)
        yield from self._outwards(mode, -1)

    @staticmethod
    def _is_nothing(term: Decimal, ratio: Decimal, reached: Decimal) -> bool:
        """Whether all terms that follow are at most `_LEFT_OUT` of what is reached."""
        c = _CONTEXT
        return c.multiply(term, ratio) < c.multiply(c.multiply(_LEFT_OUT, c.subtract(1, ratio)), reached)

    def _outwards(self, mode: int, way: int) -> Iterator[tuple[int, Decimal]]:
        """Terms on one side of the mode, up to where the rest is nothing beside those on its side of ``least``."""
        c, n = _CONTEXT, self.trials
        odds = c.divide(Decimal(self.rate), c.subtract(Decimal(1), Decimal(self.rate)))
        k, term = mode, Decimal(1)
        reached = Decimal(1) if (mode >= self.least) == (way > 0) else Decimal(0)  # of the sum that the rest belongs to
        for _ in range(_MOST_TERMS):
            if k == (n if way > 0 else 0):
                return
            if way > 0:
                ratio = c.divide(c.multiply(odds, n - k), k + 1)
            else:
                ratio = c.divide(Decimal(k), c.multiply(odds, n - k + 1))
            own = k >= self.least if way > 0 else k < self.least
            if own and ratio < 1 and self._is_nothing(term, ratio, reached):
                return
            k, term = k + way, c.multiply(term, ratio)
            if (k >= self.least) == (way > 0):
                reached = c.add(reached, term)
            yield k, term
        raise self._too_far

    @property
    def _too_far(self) -> PrecisionError:
        return PrecisionError(
            f"{self!r} needs more than {_MOST_TERMS} terms: the largest batch is too far from the expected one"
        )
