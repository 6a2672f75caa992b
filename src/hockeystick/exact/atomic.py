"""Discrete pairs: M(z) as a finite sum over the atoms of the loss.

    M(z) = sum_i p_i (p_i / q_i)^z    over the outcomes with p_i > 0 and q_i > 0

|phi| does not decay, so on a line such a pair needs the company of one whose transform does; alone it is summed exactly
(``enumeration``, ``lattice``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import final

from flint import acb, arb

from hockeystick.exact.atoms import Atoms, Outcome
from hockeystick.exact.balls import LOW_BITS, ball, precision, working_bits
from hockeystick.exact.transform import POWERS, Line, Sketch, Transform, turned


def log_ratio(outcome: Outcome) -> arb:
    """The loss of an outcome that has mass under both."""
    return (outcome[0] / outcome[1]).log()


@final
@dataclass(frozen=True)
class AtomicTransform(Transform):
    """``M(z)`` of a discrete pair."""

    atoms: Atoms

    def finite(self) -> list[Outcome]:
        """The outcomes of finite loss."""
        return [(p, q) for p, q in self.atoms.outcomes() if not p.is_zero() and not q.is_zero()]

    def infinite_mass(self) -> arb:
        """P-mass of the outcomes that have none under Q: exactly one where there are no others."""
        if not self.finite():
            return arb(1)
        return sum((p for p, q in self.atoms.outcomes() if q.is_zero()), arb(0))

    def infinite_fraction(self) -> Fraction | None:
        """Where the source knows its own as fractions."""
        atoms = self.atoms
        if atoms.source.alone is None:
            return None
        # an outcome of P0 alone has the masses a and b times its own, one of Q0 alone 1 - a and 1 - b times
        of_p, of_q = atoms.source.alone
        nothing = Fraction(0)
        return (atoms.a * of_p if atoms.b == 0 else nothing) + ((1 - atoms.a) * of_q if atoms.b == 1 else nothing)

    def loss_limit(self) -> arb:
        """The largest finite loss; minus infinity where there is none."""
        return reduce(arb.max, map(log_ratio, self.finite()), arb.neg_inf())

    def loss_floor(self) -> arb:
        """The smallest finite loss."""
        return reduce(arb.min, map(log_ratio, self.finite()), arb.pos_inf())

    @cached_property
    def _floats(self) -> tuple[tuple[float, float], ...]:
        """``(loss, ln p)`` of every outcome of finite loss."""
        with precision(LOW_BITS):
            return tuple((float(log_ratio(o)), float(o[0].log())) for o in self.finite())

    @cached_property
    def kinds(self) -> int:
        """Number of outcomes of finite loss."""
        return len(self._floats)

    @property
    def float_losses(self) -> tuple[float, ...]:
        """The finite losses, about."""
        return tuple(loss for loss, _ in self._floats)

    def sketch(self, theta: float) -> Sketch:
        """Estimates at one tilt."""
        return Sketch.of([(theta * loss + log_p, loss) for loss, log_p in self._floats])

    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)`` at the points of a line."""
        with precision(working_bits() + POWERS):
            outcomes, theta = self.finite(), ball(line.theta)
            losses = [log_ratio(outcome) for outcome in outcomes]
            weights = [p * (theta * loss).exp() for (p, _), loss in zip(outcomes, losses, strict=True)]
            return [acb(sum(weights, arb(0))), *turned(weights, [acb(0, loss) for loss in losses], line)]


def finite_outcomes(parts: Iterable[tuple[AtomicTransform, int]]) -> Iterator[tuple[arb, arb]]:
    """``(loss, mass)`` of every sequence of outcomes of finite loss."""
    for outcome in product(*(part.finite() for part, count in parts for _ in range(count))):
        loss, mass = arb(0), arb(1)
        for p, q in outcome:
            loss += log_ratio((p, q))
            mass *= p
        yield loss, mass
