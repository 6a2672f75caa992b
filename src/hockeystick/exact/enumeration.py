"""Discrete compositions summed outcome by outcome.

    delta(eps) = delta_inf + sum over multisets of outcomes of (p - e^eps q)_+

The composition is cut into two halves X and Y of about equal size, every half a list of composed outcomes
(multinomial masses). With Y sorted by loss and its masses summed from the top, ``A(l) = P_Y(L > l)`` and
``B(l) = Q_Y(L > l)``,

    delta_fin(eps) = sum_x p_x A(eps - l_x) - e^eps q_x B(eps - l_x).

Guarantee: an enclosure. Losses are compared in floats only where these are clear of their rounding, and of the radius
of the balls that they are the middles of; the outcomes in doubt are added one by one, as the nonnegative part of a
ball. Cost: the sizes of the two halves.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

from flint import arb

from hockeystick.exact.atomic import AtomicTransform, log_ratio
from hockeystick.exact.atoms import Outcome
from hockeystick.exact.balls import LOW_BITS, precision, working_bits
from hockeystick.exact.composite import Composite
from hockeystick.exact.curve import CompositeCurve

_MARGIN = 1e-12  # of the largest possible sum: far above the rounding of the floats that losses are added up in


@final
class _Composed(NamedTuple):
    """A composed outcome: its loss as a float, and its masses."""

    loss: float
    p: arb
    q: arb


@final
@dataclass(frozen=True)
class _Half:
    """Composed outcomes, losses decreasing, and sums of their masses from the top."""

    outcomes: tuple[_Composed, ...]
    losses: tuple[float, ...]  # negated, so that they increase
    above_p: tuple[arb, ...]
    above_q: tuple[arb, ...]


def _multisets(kinds: int, count: int) -> int:
    return math.comb(count + kinds - 1, kinds - 1) if kinds else 0


def _halves(sizes: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Every (kinds, count) split in two, and the pieces dealt to two halves: lists of (index, count)."""
    pieces = [
        (index, part) for index, (_, count) in enumerate(sizes) for part in (count // 2, count - count // 2) if part
    ]
    pieces.sort(key=lambda piece: -_multisets(sizes[piece[0]][0], piece[1]))
    left: list[tuple[int, int]] = []
    right: list[tuple[int, int]] = []
    for piece in pieces:
        (left if _size(sizes, left) <= _size(sizes, right) else right).append(piece)
    return left, right


def _size(sizes: list[tuple[int, int]], pieces: list[tuple[int, int]]) -> int:
    return math.prod(_multisets(sizes[index][0], count) for index, count in pieces)


def enumeration_size(composite: Composite) -> float:
    """Number of composed outcomes of both halves; infinite where a part is not discrete."""
    sizes = []
    for part, count in composite.parts:
        if not isinstance(part, AtomicTransform):
            return math.inf
        sizes.append((part.kinds, count))
    left, right = _halves(sizes)
    return _size(sizes, left) + _size(sizes, right)


def _powers(outcomes: list[Outcome], losses: list[float], count: int) -> Iterator[_Composed]:
    """The composed outcomes of ``count`` equal steps: a multinomial distribution."""
    if len(outcomes) < 2:
        yield from (_Composed(count * loss, p**count, q**count) for (p, q), loss in zip(outcomes, losses, strict=True))
        return
    tables = [(_exponentials(p, count), _exponentials(q, count)) for p, q in outcomes]
    factorial = arb(count).fac()
    unfinished = [(count, 0.0, factorial, factorial)]  # how many steps are left
    for (own_p, own_q), own in zip(tables[:-1], losses, strict=False):
        following = []
        for left, loss, p, q in unfinished:
            yield _Composed(loss + left * own, p * own_p[left], q * own_q[left])
            following += [(left - k, loss + k * own, p * own_p[k], q * own_q[k]) for k in range(left)]
        unfinished = following
    for left, loss, p, q in unfinished:
        yield _Composed(loss + left * losses[-1], p * tables[-1][0][left], q * tables[-1][1][left])


def _exponentials(mass: arb, count: int) -> list[arb]:
    """``mass^k / k!``."""
    result = [arb(1)]
    for k in range(1, count + 1):
        result.append(result[-1] * mass / k)
    return result


def _product(parts: list[list[_Composed]]) -> list[_Composed]:
    result = [_Composed(0.0, arb(1), arb(1))]
    for part in parts:
        result = [_Composed(x.loss + y.loss, x.p * y.p, x.q * y.q) for x in result for y in part]
    return result


@final
class EnumerationCurve(CompositeCurve):
    """The curve of a discrete composition, outcome by outcome."""

    def __init__(self, composite: Composite) -> None:
        super().__init__(composite)
        self._parts = [part for part, _ in composite.parts if isinstance(part, AtomicTransform)]
        sizes = [(part.kinds, count) for part, (_, count) in zip(self._parts, composite.parts, strict=True)]
        self._pieces = _halves(sizes)
        with precision(LOW_BITS + composite.count.bit_length()):
            losses = [[log_ratio(outcome) for outcome in part.finite()] for part in self._parts]
            self._losses = [[float(loss) for loss in own] for own in losses]
            doubts = [
                max((float((_MARGIN * abs(loss) + loss.rad()).upper()) for loss in own), default=0.0) for own in losses
            ]
        self._doubt = _MARGIN + sum(count * doubt for doubt, (_, count) in zip(doubts, composite.parts, strict=True))
        self._prepare = lru_cache(maxsize=4)(self._outcomes)

    def _outcomes(self, bits: int) -> tuple[tuple[_Composed, ...], _Half]:
        """Both halves at one precision."""
        with precision(bits):
            lists = []
            for pieces in self._pieces:
                parts = [
                    list(_powers(self._parts[index].finite(), self._losses[index], count)) for index, count in pieces
                ]
                lists.append(_product(parts))
            lists.sort(key=len)
            ordered = sorted(lists[1], key=lambda outcome: -outcome.loss)
            above_p, above_q = [arb(0)], [arb(0)]
            for outcome in ordered:
                above_p.append(above_p[-1] + outcome.p)
                above_q.append(above_q[-1] + outcome.q)
            losses = tuple(-outcome.loss for outcome in ordered)
            return tuple(lists[0]), _Half(tuple(ordered), losses, tuple(above_p), tuple(above_q))

    def formula(self, epsilon: arb) -> arb:
        """Delta at the working precision."""
        left, right = self._prepare(working_bits())
        order, point = epsilon.exp(), float(epsilon)
        doubt = self._doubt + float((_MARGIN * abs(epsilon) + epsilon.rad()).upper())
        total_p, total_q, doubtful = arb(0), arb(0), arb(0)
        for x in left:
            level = x.loss - point  # an outcome y counts where its loss is above -level
            sure = bisect.bisect_left(right.losses, level - doubt)
            total_p += x.p * right.above_p[sure]
            total_q += x.q * right.above_q[sure]
            for i in range(sure, bisect.bisect_right(right.losses, level + doubt)):
                y = right.outcomes[i]
                doubtful += (x.p * y.p - order * x.q * y.q).nonnegative_part()
        return total_p - order * total_q + doubtful + self.composite.infinite()
