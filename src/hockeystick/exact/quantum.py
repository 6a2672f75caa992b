"""The lattice of a discrete composition: one number of which all differences of losses are multiples, found exactly.

Losses of rational vectors are logarithms of rationals: ``c_i = c_1^{k_i / d}`` is tested by raising both sides to
integer powers. Other sources state theirs, where it is rational in nats. Two atoms always are a lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

from flint import arb

from hockeystick.exact.atomic import AtomicTransform, log_ratio
from hockeystick.exact.atoms import Atoms, RationalSource
from hockeystick.exact.balls import ball, precision

_LARGEST_DIVISOR = 12
_LARGEST_INDEX = 4096
_CHECK_BITS = 128


@final
@dataclass(frozen=True)
class Quantum:
    """The spacing: ``nats``, or ``ln(ratio) / divisor``, or the distance of the only two losses of ``pair`` (nats)."""

    nats: Fraction | None = None
    ratio: Fraction | None = None
    divisor: int = 1
    pair: Atoms | None = None

    def value(self) -> arb:
        """The spacing at the working precision."""
        if self.nats is not None:
            return ball(self.nats)
        if self.ratio is not None:
            return ball(self.ratio).log() / self.divisor
        losses = [log_ratio(outcome) for outcome in AtomicTransform(self.pair).finite()] if self.pair else []
        return losses[0].max(losses[1]) - losses[0].min(losses[1])


@final
@dataclass(frozen=True)
class Lattice:
    """For every discrete part the integers of its outcomes of finite loss, counted from its smallest loss."""

    quantum: Quantum
    indices: tuple[tuple[int, ...], ...]


def common_lattice(parts: list[AtomicTransform]) -> Lattice | None:
    """The lattice on which all parts lie, None where none is found."""
    lattice = _candidate(parts)
    return lattice if lattice is not None and _fits(parts, lattice) else None


def _fits(parts: list[AtomicTransform], lattice: Lattice) -> bool:
    """Whether every loss, as a ball, meets its lattice point: a second look at exact arithmetic."""
    with precision(_CHECK_BITS):
        spacing = lattice.quantum.value()
        return all(
            (log_ratio(outcome) - part.loss_floor()).overlaps(spacing * k)
            for part, indices in zip(parts, lattice.indices, strict=True)
            for outcome, k in zip(part.finite(), indices, strict=True)
        )


def _candidate(parts: list[AtomicTransform]) -> Lattice | None:
    found = [_own_lattice(part) for part in parts]
    quanta, indices = [q for q, _ in found if q is not None], [list(i) for _, i in found]
    if any(q is None for q, _ in found) or not quanta:
        return None
    if all(q.nats is not None for q in quanta):
        sizes = [q.nats for q in quanta if q.nats is not None]
        spacing = _greatest_divisor(sizes)
        scales = [int(size / spacing) for size in sizes]
        if max(scales) > _LARGEST_INDEX:
            return None
        scaled = tuple(tuple(k * scale for k in own) for own, scale in zip(indices, scales, strict=True))
        return Lattice(Quantum(nats=spacing), scaled)
    if len(set(quanta)) == 1:
        return Lattice(quanta[0], tuple(tuple(own) for own in indices))
    return None


def _greatest_divisor(sizes: list[Fraction]) -> Fraction:
    common = math.lcm(*(size.denominator for size in sizes))
    return Fraction(math.gcd(*(int(size * common) for size in sizes)), common)


def _own_lattice(part: AtomicTransform) -> tuple[Quantum | None, tuple[int, ...]]:
    atoms, source = part.atoms, part.atoms.source
    plain = {atoms.a, atoms.b} == {Fraction(0), Fraction(1)}
    if plain and source.lattice is not None:
        spacing, indices = source.lattice
        largest = max(indices)
        return Quantum(nats=spacing), indices if atoms.a == 1 else tuple(largest - k for k in indices)
    if isinstance(source, RationalSource):
        return _rational_lattice([p / q for p, q in atoms.fractions() if p and q])
    if part.kinds == 2:
        first, second = part.float_losses
        return Quantum(pair=atoms), (0, 1) if first < second else (1, 0)
    return None, ()


def _rational_lattice(ratios: list[Fraction]) -> tuple[Quantum | None, tuple[int, ...]]:
    """The lattice of the logarithms of ratios."""
    lowest = min(ratios)
    quotients = [ratio / lowest for ratio in ratios]
    above = sorted(c for c in quotients if c > 1)
    if not above:
        return None, ()
    base = min([above[0], *(b / a for a, b in pairwise(above) if b > a)])
    for divisor in range(1, _LARGEST_DIVISOR + 1):
        indices = [_index(c, base, divisor) for c in quotients]
        if all(k is not None for k in indices):
            return Quantum(ratio=base, divisor=divisor), tuple(k for k in indices if k is not None)
    return None, ()


def _index(quotient: Fraction, base: Fraction, divisor: int) -> int | None:
    """k with ``quotient^divisor == base^k``, None where there is none."""
    size, unit = divisor * _log(quotient), _log(base)
    if not size < 65.0 * unit:  # nor where the base is so near to one that its logarithm is 0
        return None
    k = round(size / unit)
    return k if k <= 64 and quotient**divisor == base**k else None


def _log(value: Fraction) -> float:
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)
