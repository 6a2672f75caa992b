"""Outcomes of discrete pairs as balls: masses p and q of every outcome, to any precision.

Rational vectors are exact. Noise on the integers (discrete Laplace, binomial), and the worst case of
(epsilon, delta)-DP, have masses in closed form; ``Atoms`` keeps their parameters, and how they were blended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from hockeystick.exact.balls import ball

Outcome = tuple[arb, arb]
"""Masses (p, q) of one outcome at the working precision; exactly zero where there is none."""


class Source(ABC):
    """A discrete pair (P0, Q0): frozen and hashable."""

    @abstractmethod
    def outcomes(self) -> list[Outcome]:
        """Masses at the working precision."""

    @property
    def lattice(self) -> tuple[Fraction, tuple[int, ...]] | None:
        """A number (nats) and integers k: the finite losses lie k times the number above the smallest, in order.

        None where no rational number is known to do that.
        """
        return None

    @property
    def alone(self) -> tuple[Fraction, Fraction] | None:
        """The mass of P0 where Q0 has none, and of Q0 where P0 has none; None where these are no fractions."""
        return None


@final
@dataclass(frozen=True)
class RationalSource(Source):
    """Masses given as fractions."""

    masses: tuple[tuple[Fraction, Fraction], ...]

    def outcomes(self) -> list[Outcome]:
        """The fractions as balls."""
        return [(ball(p), ball(q)) for p, q in self.masses]

    @property
    def alone(self) -> tuple[Fraction, Fraction]:
        """Of the masses."""
        of_p = sum((p for p, q in self.masses if not q), Fraction(0))
        return of_p, sum((q for p, q in self.masses if not p), Fraction(0))


@final
@dataclass(frozen=True)
class LaplaceSource(Source):
    """Discrete Laplace noise of scale b against itself moved by D: outcomes 0..D, those beyond merged into the ends."""

    scale: Fraction
    shift: int

    @property
    def lattice(self) -> tuple[Fraction, tuple[int, ...]]:
        """Losses rise by 2/b."""
        return 2 / self.scale, tuple(range(self.shift + 1))

    def outcomes(self) -> list[Outcome]:
        """``1/(1+r)`` at 0, ``(1-r)/(1+r) r^x`` between, ``r^D/(1+r)`` at D, ``r = e^{-1/b}``; P mirrored."""
        exponent = -ball(1 / self.scale)
        end = 1 / (1 + exponent.exp())
        inside = -exponent.expm1() * end
        q = [end, *(inside * (exponent * x).exp() for x in range(1, self.shift)), end * (exponent * self.shift).exp()]
        return list(zip(reversed(q), q, strict=True))


@final
@dataclass(frozen=True)
class BinomialSource(Source):
    """``Bin(n, p) + D`` against ``Bin(n, p)``."""

    trials: int
    probability: Fraction
    shift: int

    def outcomes(self) -> list[Outcome]:
        """Masses of 0..n+D."""
        n, p, none = self.trials, self.probability, arb(0)
        up, down = ball(p), ball(1 - p)
        masses = [arb.bin_uiui(n, x) * up**x * down ** (n - x) for x in range(n + 1)]
        pad = [none] * self.shift
        return list(zip(pad + masses, masses + pad, strict=True))


@final
@dataclass(frozen=True)
class WorstCaseSource(Source):
    """The four outcomes of the worst (epsilon, delta)-DP mechanism."""

    epsilon: Fraction
    delta: Fraction

    @property
    def lattice(self) -> tuple[Fraction, tuple[int, ...]] | None:
        """Losses epsilon and -epsilon, where there are two."""
        return (2 * self.epsilon, (1, 0)) if self.epsilon > 0 and self.delta < 1 else None

    @property
    def alone(self) -> tuple[Fraction, Fraction]:
        """delta, and delta."""
        return self.delta, self.delta

    def outcomes(self) -> list[Outcome]:
        """``delta``, ``(1-delta) e^eps/(1+e^eps)`` and ``(1-delta)/(1+e^eps)``, and Q mirrored."""
        low = ball(1 - self.delta) / (1 + ball(self.epsilon).exp())
        p = [ball(self.delta), low * ball(self.epsilon).exp(), low, arb(0)]
        return list(zip(p, reversed(p), strict=True))


@final
@dataclass(frozen=True)
class MirroredBinomialSource(Source):
    """``Bin(n, 1/2)`` moved by D with probability g, against the same moved by -D."""

    trials: int
    shift: int
    rate: Fraction

    def outcomes(self) -> list[Outcome]:
        """Masses of -D..n+D."""
        n, shift, none = self.trials, self.shift, arb(0)
        masses = [arb.bin_uiui(n, x) / arb(2) ** n for x in range(n + 1)]
        noise = [none] * (2 * shift) + masses + [none] * (2 * shift)  # from -2D on
        places = range(shift, n + 3 * shift + 1)
        return [
            tuple(_blend(self.rate, noise[x + way], noise[x]) for way in (-shift, shift))  # type: ignore[misc]  # two
            for x in places
        ]


@final
@dataclass(frozen=True)
class UnmergedSource(Source):
    """Noise moved by D against the same by -D on a batch of fixed size of the rate h, given that nothing is merged.

    Where P > Q it shows ((1-h) Q + h P, Q), where P < Q (P, (1-h) P + h Q), divided by the mass of all.
    """

    noise: LaplaceSource
    rate: Fraction

    def outcomes(self) -> list[Outcome]:
        """Masses of the outcomes of the noise, in the order of their losses."""
        outcomes, middle = self.noise.outcomes(), self.noise.shift / 2
        kept = [
            (_blend(self.rate, p, q), q) if k > middle else (p, q if k == middle else _blend(self.rate, q, p))
            for k, (p, q) in enumerate(outcomes)
        ]
        total = sum((p for p, _ in kept), arb(0))
        return [(p / total, q / total) for p, q in kept]


@final
@dataclass(frozen=True)
class Atoms:
    """``P = (1-a) Q0 + a P0``, ``Q = (1-b) Q0 + b P0``: closed under reversal and subsampling."""

    source: Source
    a: Fraction = Fraction(1)
    b: Fraction = Fraction(0)

    def reversed(self) -> Atoms:
        """(Q, P)."""
        return Atoms(self.source, self.b, self.a)

    def subsampled(self, rate: Fraction) -> Atoms:
        """((1 - rate) Q + rate P, Q)."""
        return Atoms(self.source, (1 - rate) * self.b + rate * self.a, self.b)

    def fractions(self) -> list[tuple[Fraction, Fraction]]:
        """Masses of rational vectors, exactly; empty for any other source."""
        masses = self.source.masses if isinstance(self.source, RationalSource) else ()
        a, b = self.a, self.b
        return [((1 - a) * q + a * p, (1 - b) * q + b * p) for p, q in masses]

    def outcomes(self) -> list[Outcome]:
        """Masses at the working precision."""
        if isinstance(self.source, RationalSource):
            return [(ball(p), ball(q)) for p, q in self.fractions()]
        return [(_blend(self.a, p, q), _blend(self.b, p, q)) for p, q in self.source.outcomes()]


def _blend(share: Fraction, p: arb, q: arb) -> arb:
    """``(1 - share) q + share p``, exactly zero where it is."""
    if share == 0 or p.is_zero():
        return q if share == 0 else ball(1 - share) * q
    if share == 1 or q.is_zero():
        return p if share == 1 else ball(share) * p
    return ball(1 - share) * q + ball(share) * p
