"""What a calibration returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import final

from hockeystick import notebook
from hockeystick.bound import Bound
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import HockeystickError


class UnreachableTargetError(HockeystickError):
    """No value of the family meets the target, proved at the safest one.

    Attributes
    ----------
    value : float
        The safest value tried.
    bound : Bound
        The quantity there.
    """

    def __init__(self, message: str, *, value: float, bound: Bound) -> None:
        super().__init__(message)
        self.value = value
        self.bound = bound

    def if_steady(self) -> UnreachableTargetError:
        """The same where which values are safer was told from estimates, and so rests on the two ends."""
        words = (
            "; if privacy does not get steadily better or worse along these values, others may meet it: name a range"
        )
        return UnreachableTargetError(f"{self}{words}", value=self.value, bound=self.bound)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(UnreachableTargetError, str(self), value=self.value, bound=self.bound), ()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """The best value of a family that is proved to meet a target.

    Attributes
    ----------
    value : float or int
        Safe: the certified upper bound meets the target there. ``float(calibration)`` is this.
    unsafe : float, int or None
        The nearest value proved to miss the target; None where every value allowed meets it, where none could be
        proved to miss it, or where the accountant has upper bounds alone, such as ``Moments()`` (``notes`` says which).
    precision : float
        ``|value - unsafe| / value``: the best value lies between the two. Without an unsafe value, the distance to the
        end of those allowed, 0 where all meet the target; with upper bounds alone, to a value that they do not prove
        safe.
    target : str
        What was aimed at, in words.
    bound : Bound
        The quantity aimed at, at ``value``.
    bound_at_unsafe : Bound or None
        The same at ``unsafe``.
    curve : PrivacyCurve
        The privacy curve at ``value``.
    evaluations, estimates : int
        How many certified evaluations and how many estimates it took.
    notes : tuple of str
        What a reader must know: where the precision asked for was not reached, and why.
    """

    value: float
    unsafe: float | None
    precision: float
    target: str
    bound: Bound
    bound_at_unsafe: Bound | None
    curve: PrivacyCurve
    evaluations: int
    estimates: int
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"this calibration found a real number, {self.value!r}; use float() or .value")
        return self.value

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        sides = (0.0, math.inf) if self.bound_at_unsafe is None else self.bound_at_unsafe.sides
        unsafe = "" if self.unsafe is None else f"{self.unsafe!r}: {notebook.bracket(*sides)}"
        rows = [("target", self.target), ("safe", f"{self.value!r}: {notebook.bracket(*self.bound.sides)}")]
        rows += [("unsafe", unsafe), *(("note", note) for note in self.notes)]
        return notebook.table("Calibration", rows, remark=f"{self.evaluations} certified evaluations")
