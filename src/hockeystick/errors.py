"""What goes wrong, by name, the checks at the public door, and numpy's floating-point settings behind it.

Bad input raises ``TypeError`` (wrong kind) or ``ValueError`` (wrong range) with what was given, what is
allowed and what to try. Everything else that can fail has an exception of its own here.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

P = ParamSpec("P")
R = TypeVar("R")

LEAST_RATE = 1e-300
_MOST_WHOLE = 2.0**53
MOST_COUNT = 10**100  # its square is a float64
_LONGEST = 200  # characters of a value in an error
LEAST_RATIO, MOST_RATIO = 1e-140, 1e140  # of sensitivity to noise: their squares are floats


class HockeystickError(Exception):
    """Base of every exception that is not a plain ``TypeError`` or ``ValueError``."""


class UnknownPairError(HockeystickError):
    """No dominating pair is known (or proved) for this mechanism, sampling scheme and direction."""


class PrecisionError(HockeystickError):
    """An answer could not be computed to the precision asked for.

    Attributes
    ----------
    best : object or None
        The best certified answer obtained before giving up, if there is one.
    """

    def __init__(self, message: str, best: object | None = None) -> None:
        super().__init__(message)
        self.best = best


class TooManyOutcomesError(PrecisionError):
    """Too many outcomes matter to a question."""


class ContradictionError(HockeystickError):
    """Two certified answers to one question exclude each other: one of the two proofs, or its code, is wrong.

    Neither is to be believed until it is known which. Please report it, with the question.

    Attributes
    ----------
    answers : tuple of Bound
        The two, each with the method that gave it.
    """

    def __init__(self, message: str, answers: tuple[object, object]) -> None:
        super().__init__(message)
        self.answers = answers

    def __reduce__(self) -> tuple[object, ...]:
        return ContradictionError, (str(self), self.answers)


class NoBallArithmeticError(HockeystickError):
    """python-flint is not installed: it is the extra ``exact``."""


def shown(value: object) -> str:
    """A value as errors name it, however many numbers it has."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def one_line(error: object) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())


def set_fields(value: object, **fields: Any) -> None:
    """Set fields of a frozen dataclass, in its ``__post_init__``."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)


def check_fields(value: object, **checks: Callable[[str, Any], Any]) -> None:
    """Set fields of a frozen dataclass to what a check makes of them; each is told the name and what was given."""
    set_fields(value, **{name: check(name, getattr(value, name)) for name, check in checks.items()})


def require_ball_arithmetic(purpose: str) -> None:
    """Refuse what cannot be done without python-flint.

    Parameters
    ----------
    purpose : str
        What needs it.

    Raises
    ------
    NoBallArithmeticError
        Where it is not installed.
    """
    try:
        import_module("flint")
    except ModuleNotFoundError:
        raise NoBallArithmeticError(
            f"{purpose} needs ball arithmetic (python-flint): pip install 'hockeystick[exact]', or '.[exact]' in"
            " a checkout"
        ) from None


def public_door(function: Callable[P, R]) -> Callable[P, R]:
    """The function under numpy's default floating-point settings, whatever the caller's (`numpy.errstate`).

    What is behind it counts on underflow going to 0 in silence: a caller who has made that raise gets the same answers.
    """

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            return function(*args, **kwargs)

    return inside


@contextmanager
def needs_extra(package: str, extra: str) -> Iterator[None]:
    """Imports inside may fail for want of ``package``: the error then says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"this needs {package}, which is not installed: pip install 'hockeystick[{extra}]', or '.[{extra}]' in a"
            " checkout",
            name=package,
        ) from None


def _real(name: str, value: Any, allowed: str) -> float:
    """``value`` as a float; a ``TypeError`` for other kinds and a ``ValueError`` for NaN."""
    if type(value) is float and not math.isnan(value):  # nearly always, and a thousand times in a long composition
        return value
    if isinstance(value, np.ndarray) and value.ndim > 0:
        raise TypeError(f"{name} must be a single real number {allowed}, got an array of shape {value.shape}")
    if isinstance(value, np.ndarray | np.generic):
        real = value.dtype.kind in "iuf"
    else:
        real = isinstance(value, numbers.Real | SupportsFloat) and not isinstance(value, bool | type)
    if not real:
        raise TypeError(f"{name} must be a real number {allowed}, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a real number {allowed}, got one beyond float64") from None
    if math.isnan(number):
        raise ValueError(f"{name} is NaN; it must be a real number {allowed}")
    return number


def check_real(name: str, value: Any) -> float:
    """A real number, infinities included."""
    return _real(name, value, "or infinite")


def check_finite(name: str, value: Any) -> float:
    """A finite real number."""
    number = _real(name, value, "(finite)")
    if math.isinf(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def check_positive(name: str, value: Any, *, hint: str = "") -> float:
    """A finite real number above zero."""
    number = _real(name, value, "above 0")
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be finite and above 0, got {value!r}" + (f"; {hint}" if hint else ""))
    return number


def check_probability(name: str, value: Any) -> float:
    """A real number in [0, 1]."""
    number = _real(name, value, "in [0, 1]")
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value!r}")
    return abs(number)  # -0.0 is 0


def check_inside(name: str, value: Any) -> float:
    """A probability that is neither 0 nor 1."""
    number = _real(name, value, "above 0 and below 1")
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {value!r}")
    return number


def check_rate(name: str, value: Any) -> float:
    """A sampling rate, in (0, 1], whose inverse is a float."""
    number = _real(name, value, "in (0, 1]")
    if 0.0 < number < LEAST_RATE:
        raise ValueError(f"{name} must be at least {LEAST_RATE:g}, got {value!r}: no record would ever be drawn")
    if not 0.0 < number <= 1.0:
        raise ValueError(
            f"{name} must be in (0, 1], got {value!r}; it is the expected batch size divided by the number of examples"
        )
    return number


def check_ratio(sensitivity: float, noise: float) -> None:
    """Sensitivity over noise within what float64 can square."""
    if not LEAST_RATIO <= sensitivity / noise <= MOST_RATIO:
        raise ValueError(
            f"sensitivity over noise must be between {LEAST_RATIO:g} and {MOST_RATIO:g}, got {sensitivity!r} over"
            f" {noise!r}: beyond, the noise hides everything or nothing"
        )


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """An integer of at least ``minimum``: of Python, numpy or pandas, or a float with nothing after its point."""
    allowed = f"{name} must be an integer of at least {minimum}"
    number = whole(value)
    if number is None:
        raise TypeError(f"{allowed}, got {value!r} of type {type(value).__name__}")
    if number < minimum:
        raise ValueError(f"{allowed}, got {number}")
    if number > MOST_COUNT:
        raise ValueError(f"{name} must be at most 10^100, got one of {number.bit_length()} bits")
    return number


def whole(value: Any) -> int | None:
    """The integer that a value stands for; None for true, false, and what is not whole.

    Floats count up to 2^53: beyond, their neighbours are integers too, and which one was meant is not known.
    """
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return int(operator.index(value))
    except TypeError:
        return _whole_real(value) if isinstance(value, numbers.Real) else None


def _whole_real(value: Any) -> int | None:
    number = value.item() if isinstance(value, np.generic) else value  # 2^53 is no float16
    return round(number) if abs(number) <= _MOST_WHOLE and number % 1 == 0 else None


def check_sequence(name: str, values: Any) -> tuple[Any, ...]:
    """Several values, in order: no single one, no text, and nothing that would lose a value or the order."""
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not np.iterable(values):
        raise TypeError(f"{name} must be a sequence, got {values!r}")
    return tuple(values)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of a few strings."""
    allowed = tuple(choices)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def check_reals(name: str, value: ArrayLike, allowed: str) -> NDArray[np.float64]:
    """A real number or an array of them; the words say which are allowed."""
    number: Any = value
    if isinstance(number, float) and not math.isnan(number):
        return np.array(number, dtype=np.float64)
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise ValueError(f"{name} holds masked values; it must be {allowed}: leave them out, as with compressed()")
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must hold real numbers {allowed}, as many in every row, got {value!r}") from None
    if array.dtype == np.bool_ or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise TypeError(f"{name} must hold real numbers {allowed}, got {value!r}")
    array = array.astype(np.float64)
    if np.isnan(array).any():
        raise ValueError(f"{name} {'holds' if array.ndim else 'is'} NaN; it must be {allowed}")
    return array


def check_epsilon(value: ArrayLike) -> NDArray[np.float64]:
    """Epsilon or an array of them: real numbers of at least 0, infinity included (nats)."""
    array = check_reals("epsilon", value, "at least 0")
    if (array < 0.0).any():
        raise ValueError(f"epsilon must be at least 0, got {float(array.min())!r}")
    return array


def check_delta(value: ArrayLike) -> NDArray[np.float64]:
    """Delta or an array of them: real numbers in [0, 1]."""
    return check_probabilities("delta", value)


def check_probabilities(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """A probability or an array of them: real numbers in [0, 1]."""
    array = check_reals(name, value, "in [0, 1]")
    outside = array[(array < 0.0) | (array > 1.0)]
    if outside.size:
        raise ValueError(f"{name} must be in [0, 1], got {float(outside.flat[0])!r}")
    return array
