"""What an accountant is: a way to turn the composition of one direction into a privacy curve.

An accountant sees dominating pairs with their counts, never a mechanism. A new accountant is one file with a
frozen dataclass (its settings) and a curve class (its state).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hockeystick.bound import Bound, Estimate
from hockeystick.errors import check_positive, public_door
from hockeystick.laws.base import Pair
from hockeystick.laws.base import Parts as Parts
from hockeystick.numerics.columns import Array as Array
from hockeystick.numerics.columns import Flags
from hockeystick.numerics.columns import Places as Places

if TYPE_CHECKING:
    from hockeystick.engines.contour.answers import Answers
    from hockeystick.engines.selected import Answering
    from hockeystick.engines.together import Quantity


AUTOMATIC = "automatic"
"""What leaves the choice of the accountant to the library, as None does in Python."""


def check_accountant(accountant: object, default: Accountant) -> Accountant:
    """An accountant; the default one where the choice is left open."""
    if accountant is None or (isinstance(accountant, str) and accountant == AUTOMATIC):
        return default
    if not isinstance(accountant, Accountant):
        raise TypeError(
            "accountant must be one of hockeystick.accountants, such as Certified(), or 'automatic',"
            f" got {accountant!r}"
        )
    return accountant


def check_length(name: str, value: Any) -> float:
    """A number of nats that a grid can be made of."""
    length = check_positive(name, value)
    if not 1e-100 <= length <= 1e100:
        raise ValueError(f"{name} must be between 1e-100 and 1e100, got {value!r}")
    return length


class DirectedCurve(ABC):
    """The privacy curve of one direction, as one accountant sees it. Scalars in, one result out."""

    def __init_subclass__(cls) -> None:
        """Every curve answers under numpy's own settings, whoever asks it."""
        super().__init_subclass__()
        for name in ("__init__", "delta", "delta_above", "epsilon", "is_below", "is_below_beside"):
            if name in vars(cls):
                setattr(cls, name, public_door(vars(cls)[name]))

    @abstractmethod
    def delta(self, epsilon: float) -> Bound | Estimate:
        """delta(epsilon) for one epsilon of at least 0, infinity included (nats)."""

    def delta_above(self, epsilon: float, least: float) -> Bound | Estimate:
        """The same, where a lower side of ``least`` or less is as good as none, and need not be sought."""
        return self.delta(epsilon)

    @abstractmethod
    def epsilon(self, delta: float) -> Bound | Estimate:
        """The smallest epsilon of at least 0 with delta(epsilon) at most ``delta``, in [0, 1] (nats)."""

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta`` is proved at once, for far less than an answer costs."""
        return False

    def is_below_beside(self, other: DirectedCurve, *, epsilon: float, delta: float, quantity: Quantity) -> bool:
        """The same, by what answered the curve of the other direction, too, which was asked for the quantity."""
        return self.is_below(epsilon, delta)


@dataclass(frozen=True, eq=False)
class EngineCurve(DirectedCurve):
    """The curve of an engine, as it answers or as `read` makes of it."""

    engine: Answering

    def delta(self, epsilon: float) -> Bound | Estimate:
        return self.read(lambda engine: engine.delta(epsilon))

    def epsilon(self, delta: float) -> Bound | Estimate:
        return self.read(lambda engine: engine.epsilon(delta))

    def read(self, ask: Callable[[Answering], Bound | Estimate]) -> Bound | Estimate:
        """What the engine is asked, answered."""
        return ask(self.engine)


class Together(ABC):
    """Several curves that answer many questions in one pass, each the same to the bit as alone."""

    @abstractmethod
    def answers(self, owners: Places, values: Array, quantity: Quantity) -> Answers | None:
        """``quantity`` of the curve ``owners[i]`` at ``values[i]``, where one answers; None where none does."""

    @abstractmethod
    def are_below(self, own: Places, beside: Places, epsilon: Array, delta: Array, quantity: Quantity) -> Flags:
        """`DirectedCurve.is_below_beside` ``beside[i]`` of the curve ``own[i]``, each at a point of its own."""


class Accountant(ABC):
    """A method of accounting, with its settings.

    Attributes
    ----------
    concurrent : bool
        Whether the curves of two directions may be asked in two threads at once.
    """

    concurrent: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The method's name, as results carry it."""
        return type(self).__name__

    def together(self, curves: Sequence[DirectedCurve]) -> Together | None:
        """What answers many questions of these curves in one pass; None where nothing does."""
        return None

    def attains(self, parts: Parts) -> bool:
        """Whether the steps attain both sides of `directed` where their pairs are not attained step by step."""
        return False

    def shown_by(self, pair: Pair) -> Pair:
        """What datasets are known to show of a step: the pair itself, where it can be looked at among others."""
        return pair

    @abstractmethod
    def directed(self, parts: Parts) -> DirectedCurve:
        """The curve of the composition of one direction.

        Raises
        ------
        PrecisionError
            Where the method cannot serve this composition at all; the message says what can.
        """
