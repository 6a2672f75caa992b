"""Specifications from what is in hand already: a composition, or an event of dp-accounting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hockeystick.app.spec.model import Choice, Circumstances, Specification, StepEntry, Value
from hockeystick.app.spec.registry import Entry, kebab, mechanisms, samplings
from hockeystick.composition import Composition, Step, directions
from hockeystick.errors import check_delta, check_epsilon
from hockeystick.integrations.dp_events import from_dp_event
from hockeystick.sampling import Sampled

__all__ = ["from_composition", "from_event"]


def from_composition(
    run: Step | Composition,
    adjacency: str = "add-remove",
    *,
    delta: float | Sequence[float] = (),
    epsilon: float | Sequence[float] = (),
    unit: str = "example",
    title: str = "",
    circumstances: Circumstances | None = None,
) -> Specification:
    """The specification of a composition: what reports and receipts are made of.

    Parameters
    ----------
    run : Step or Composition
        Of mechanisms and sampling schemes that a file can name.
    adjacency : str
        Which datasets count as neighbours, as for `hockeystick.account`.
    delta, epsilon : float or sequence of float
        Where to read the curve: epsilon at these deltas, delta at these epsilons.
    unit, title : str
        What one record is, and what the run is called.
    circumstances : Circumstances, optional
        What accounting cannot see.

    Raises
    ------
    ValueError
        Where a step cannot be written in a file.

    Examples
    --------
    >>> import hockeystick as hs
    >>> made = from_composition(hs.Gaussian(1.0).poisson(0.01) * 2000, delta=1e-5)
    >>> made.composition == hs.Gaussian(1.0).poisson(0.01) * 2000
    True
    """
    if not isinstance(run, Step | Composition):
        raise TypeError(f"run must be a step or a composition, got {run!r} of type {type(run).__name__}")
    directions(adjacency)
    return Specification(
        tuple(_entry(step, count) for step, count in (run * 1).steps),
        adjacency,
        unit,
        tuple(float(level) for level in check_delta(delta).ravel()) if _given(delta) else (),
        tuple(float(level) for level in check_epsilon(epsilon).ravel()) if _given(epsilon) else (),
        title=title,
        circumstances=Circumstances() if circumstances is None else circumstances,
    )


def from_event(event: Any, adjacency: str = "add-remove", **settings: Any) -> Specification:
    """The specification of an event of dp-accounting, in any form `hockeystick.from_dp_event` takes.

    Other settings are those of `from_composition`.
    """
    return from_composition(from_dp_event(event, adjacency), adjacency, **settings)


def _given(levels: float | Sequence[float]) -> bool:
    return not isinstance(levels, Sequence) or len(levels) > 0


def _entry(step: Step, count: int) -> StepEntry:
    if not isinstance(step, Sampled):
        return StepEntry(_choice(step, mechanisms()), None, count)
    return StepEntry(_choice(step.mechanism, mechanisms()), _choice(step, samplings()), count)


def _choice(step: Step, entries: Any) -> Choice:
    name = kebab(type(step).__name__)
    entry: Entry | None = entries.get(name)
    if entry is None:
        raise ValueError(f"no file can name {step!r}: it can be accounted, but has no specification")
    values = ((parameter.name, _value(step, getattr(step, parameter.name))) for parameter in entry.parameters)
    return Choice(name, tuple((parameter, value) for parameter, value in values if value is not None))


def _value(step: Step, value: Any) -> Value | None:
    """A parameter as a file holds it: exactly."""
    if isinstance(value, tuple):
        return tuple(_number(item) for item in value)
    if isinstance(value, Fraction):
        number = _number(value)
        if isinstance(number, str):
            raise ValueError(f"no file can hold {step!r}: the parameter {value} is no float64")
        return number
    plain: Value | None = value
    return plain


def _number(item: Any) -> float | int | str:
    if not isinstance(item, Fraction):
        number: float | int | str = item
        return number
    return float(item) if Fraction(float(item)) == item else f"{item.numerator}/{item.denominator}"
