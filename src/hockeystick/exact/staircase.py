"""Staircase noise as balls: the line cut wherever either density steps, and every piece taken for itself.

Nothing is known here of where the loss takes which value: the two levels of a piece are those of its middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

from flint import arb

from hockeystick.exact.atoms import Atoms, Outcome, Source
from hockeystick.exact.balls import ball
from hockeystick.exact.shapes import shape_of
from hockeystick.laws.staircase import StaircasePair


@final
@dataclass(frozen=True)
class StaircaseSource(Source):
    """Staircase noise moved by D against the noise, one outcome for every loss."""

    epsilon: Fraction
    gamma: Fraction
    shift: int

    @property
    def lattice(self) -> tuple[Fraction, tuple[int, ...]]:
        """Losses are multiples of epsilon; with gamma 1/2, of every other one."""
        rises = [k + self.shift for k in sorted(self._pieces)]
        unit = math.gcd(*rises)
        return unit * self.epsilon, tuple(rise // unit for rise in rises)

    def _level(self, x: Fraction) -> int:
        """How many steps down the noise's density is at x."""
        return math.floor(abs(x) + 1 - self.gamma)

    @cached_property
    def _pieces(self) -> dict[int, list[tuple[int, Fraction]]]:
        """For each loss in units of epsilon, (level, length) of the pieces of (0, D) under Q."""
        steps = [n + self.gamma for n in range(self.shift)]
        cuts = sorted({Fraction(0), Fraction(self.shift), *steps, *(self.shift - x for x in steps)})
        pieces: dict[int, list[tuple[int, Fraction]]] = {-self.shift: [], self.shift: []}
        for low, high in pairwise(cuts):
            middle = (low + high) / 2
            level = self._level(middle)
            pieces.setdefault(level - self._level(middle - self.shift), []).append((level, high - low))
        return pieces

    def outcomes(self) -> list[Outcome]:
        """Under Q, ``a sum of length e^{-level eps}``, and beyond (0, D) the tails 1/2 and ``e^{-D eps} / 2``."""
        fall = (-ball(self.epsilon)).exp()
        a = -(-ball(self.epsilon)).expm1() / (2 * (ball(self.gamma) + fall * ball(1 - self.gamma)))
        half = arb(1) / 2
        beyond = {-self.shift: half, self.shift: half * fall**self.shift}
        masses: list[Outcome] = []
        for k, pieces in sorted(self._pieces.items()):
            q = sum((a * ball(length) * fall**level for level, length in pieces), beyond.get(k, arb(0)))
            masses.append((q * (ball(self.epsilon) * k).exp(), q))
        return masses


@shape_of.register
def _(pair: StaircasePair) -> Atoms:
    return Atoms(StaircaseSource(Fraction(pair.epsilon), Fraction(pair.gamma), pair.sensitivity))
