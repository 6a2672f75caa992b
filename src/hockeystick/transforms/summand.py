"""A privacy loss as a summand of a composed one: what becomes of its transform when the law is sampled or reversed.

A law that has a certified transform states it as a `Summand`. Summands of one class become few `RuleSource` batches, so
that a thousand distinct steps cost little more than one.

Guarantee: that of the rules. Cost: none beyond them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Self, final

from hockeystick.errors import UnknownPairError
from hockeystick.transforms.replicas import LatticeNormal
from hockeystick.transforms.rule import LossRule, RuleSource, Window

Order = Literal["forward", "reversed"]
"""Whether the loss is that of ((1 - g) Q + g P, Q), or of the reverse."""


class Summand(ABC):
    """One law as a summand: frozen, hashable, equal where its transform is the same."""

    @property
    def normal_variance(self) -> float:
        """Variance (nats^2) of a loss that is normal, to 4 u relative; 0 for every other."""
        return 0.0

    @property
    def lattice_normal(self) -> LatticeNormal | None:
        """The loss, where it is a normal density on a fine lattice; None for every other."""
        return None

    @abstractmethod
    def reversed(self) -> Summand:
        """The summand of (Q, P)."""

    def subsampled(self, rate: Fraction) -> Summand:
        """The summand of ((1 - rate) Q + rate P, Q).

        Raises
        ------
        UnknownPairError
            Where its transform is not certified.
        """
        raise UnknownPairError("no certified transform is known for a sample of this pair")

    def joined(self, rate: Fraction) -> Summand:
        """The summand of the pair of fixed-size sampling under substitution, at a rate below 1.

        Raises
        ------
        UnknownPairError
            Where its transform is not certified.
        """
        raise UnknownPairError("no certified transform is known for this noise in batches of a fixed size")

    @property
    def is_atomic(self) -> bool:
        """Whether the losses are discrete, of a law that has rules of its own."""
        return False

    @property
    def leaves_out(self) -> bool:
        """As in `RuleSource`, of a law that has rules of its own."""
        return False

    @property
    def scale(self) -> float:
        """As in `RuleSource`, of a law that has rules of its own."""
        raise NotImplementedError

    def rule(self, window: Window, count: float) -> LossRule | None:
        """The rule of this law alone, composed so often; laws of which many make one batch have none."""
        raise NotImplementedError

    def precise(self, rule: LossRule) -> Sequence[Fraction] | None:
        """The losses of such a rule to within `transforms.lattice.PRECISE`; None where not known."""
        return None

    @classmethod
    def sources(cls, group: Sequence[tuple[Summand, float]]) -> list[RuleSource]:
        """Batches for summands of this class, each with the number of times it is composed."""
        return [Repeated(one, count) for one, count in group]


@final
@dataclass(frozen=True, eq=False)
class Repeated(RuleSource):
    """A law that has rules of its own, and how often it is composed."""

    of: Summand
    count: float

    @property
    def steps(self) -> float:
        """The count."""
        return self.count

    @property
    def scale(self) -> float:
        """That of the law."""
        return self.of.scale

    @property
    def is_atomic(self) -> bool:
        """As the law is."""
        return self.of.is_atomic

    @property
    def leaves_out(self) -> bool:
        """As the law does."""
        return self.of.leaves_out

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]] | None:
        """The losses of the law, and the count."""
        found = self.of.precise(rule)
        return None if found is None else [(found, self.count)]

    def rule(self, window: Window) -> LossRule | None:
        """That of the law."""
        return self.of.rule(window, self.count)


@dataclass(frozen=True, kw_only=True)
class SampledSummand(Summand):
    """A symmetric noise against itself moved, which is its own reverse, sampled at rate g; or the reverse of that.

    Attributes
    ----------
    rate : float
        g, in (0, 1].
    order : {"forward", "reversed"}
        Whether P or Q is the mixture; without sampling both are one.
    """

    rate: float = 1.0
    order: Order = "forward"

    def reversed(self) -> Self:
        """(Q, P): without sampling itself, the line mirrored."""
        if self.rate == 1.0:
            return self
        return replace(self, order="reversed" if self.order == "forward" else "forward")

    def subsampled(self, rate: Fraction) -> Self:
        """The rates multiply; a reversed sampled law has no certified transform when sampled again."""
        if self.order == "reversed":
            raise UnknownPairError("no certified transform is known for a sample of a reversed sampled pair")
        product = rate if self.rate == 1.0 else Fraction(self.rate) * rate
        own = float(product)
        if own.as_integer_ratio() != product.as_integer_ratio():
            raise UnknownPairError(f"the product of the rates of nested sampling is not a float: {product}")
        return replace(self, rate=own)
