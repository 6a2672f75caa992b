"""Functions of one or two numbers, measured against ball arithmetic in every way the engines call them.

An array function has one loop for arrays whose elements lie side by side, others for strides, for the few elements
left over at the end of a vector register, for arrays that do not start at its boundary, and for single numbers. Each
is measured, on the same points.

A point is an exact float. Its true value is held as an unevaluated sum of two floats, so that the error of a computed
value is known to its last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

Array = NDArray[Any]
Points = Callable[[np.random.Generator, int], Array]
"""Arguments, shape (arguments, about n)."""

_SHORT = (1, 2, 3, 4, 5, 6, 7, 9)  # lengths below and just above the vector registers in use


def relative(truth: Array, _arguments: Array) -> Array:
    """The scale of a relative error."""
    return np.abs(truth)


@final
@dataclass(frozen=True)
class Function:
    """One function of numbers, and how its error is measured.

    Attributes
    ----------
    truth : callable
        Balls in, a ball out; or two for a complex value, real and imaginary part.
    points : callable
        The arguments at which it is measured.
    scale : callable
        ``scale(truth, arguments)``: the errors that the bound is relative to, by default ``|truth|``.
    single : bool
        Whether it takes Python's floats and no arrays.
    """

    truth: Callable[..., Any]
    points: Points
    scale: Callable[[Array, Array], Array] = relative
    single: bool = False

    def __call__(self, call: Callable[..., Any], generator: np.random.Generator, count: int) -> float:
        """The largest error of ``call`` on about ``count`` points, relative to the scale."""
        arguments = self.points(generator, count)
        high, low = _truths(self.truth, arguments)
        with np.errstate(all="ignore"):
            scale = self.scale(high, arguments)
            values = self._values(call, arguments)
            return max(float(np.max(np.abs(error_of(value, high, low)) / scale)) for value in values)

    def _values(self, call: Callable[..., Any], arguments: Array) -> list[Array]:
        if self.single:
            return [np.array([call(*row) for row in arguments.T.tolist()])]
        return [np.asarray(value) for value in _in_every_way(call, arguments)]


def error_of(value: Array, high: Array, low: Array) -> Array:
    """``value - (high + low)``: exact but for the last rounding where the value is near."""
    return np.where(np.isfinite(value), (value - high) - low, np.inf)


def _in_every_way(call: Callable[..., Any], arguments: Array) -> list[Array]:
    """The values at all points: side by side, strided, reversed, misaligned, in short pieces, one by one."""
    count = arguments.shape[1]
    spread = np.repeat(arguments, 3, axis=1)[:, ::3]
    shifted = np.concatenate((arguments[:, :1], arguments), axis=1)[:, 1:]
    ends = np.cumsum(np.resize(_SHORT, count))
    pieces = [call(*piece.copy()) for piece in np.split(arguments, ends[ends < count], axis=1)]
    few = slice(None, None, max(count // 400, 1))
    singles = np.full(count, np.nan, dtype=np.asarray(pieces[0]).dtype)
    singles[few] = [call(*column) for column in arguments[:, few].T]  # numpy's own scalars
    whole = call(*arguments)
    one_by_one = np.where(np.isnan(singles), whole, singles)
    return [whole, call(*spread), call(*arguments[:, ::-1])[::-1], call(*shifted), np.concatenate(pieces), one_by_one]


def _truths(truth: Callable[..., Any], arguments: Array) -> tuple[Array, Array]:
    """The true values as sums of two floats, complex where the function is."""
    halves = []
    for row in arguments.T.tolist():
        ball = truth(*(acb(value) if isinstance(value, complex) else arb(value) for value in row))
        parts = (ball.real, ball.imag) if isinstance(ball, acb) else (ball,)
        high = [float(part.mid()) for part in parts]
        low = [float((part - arb(near)).mid()) for part, near in zip(parts, high, strict=True)]
        halves.append((complex(*high), complex(*low)) if len(parts) == 2 else (high[0], low[0]))
    both = np.array(halves)
    return both[:, 0], both[:, 1]


# -------------------------------------------------------------------------------------------------------------- points


def uniform(low: float, high: float) -> Points:
    """Points of one argument, uniform."""
    return lambda generator, count: generator.uniform(low, high, (1, count))


def logarithmic(low: float, high: float) -> Points:
    """Positive points of one argument whose logarithm is uniform."""
    return lambda generator, count: np.exp2(generator.uniform(np.log2(low), np.log2(high), (1, count)))


def both_signs(points: Points) -> Points:
    """The same points, each with either sign."""

    def drawn(generator: np.random.Generator, count: int) -> Array:
        found = points(generator, count)
        return np.asarray(found * generator.choice([-1.0, 1.0], found.shape))

    return drawn


def mixed(*points: Points) -> Points:
    """Points of every kind given, as many of each."""
    return lambda generator, count: np.concatenate([one(generator, count // len(points) + 1) for one in points], axis=1)


def near(centre: float, least: float) -> Points:
    """Numbers around a centre, at distances of every size."""
    offsets = both_signs(logarithmic(least, 0.5))
    return lambda generator, count: np.asarray(centre + offsets(generator, count))


def paired(first: Points, second: Points) -> Points:
    """Points of two arguments."""
    return lambda generator, count: np.concatenate((first(generator, count), second(generator, count)))


def complex_numbers(part: Points) -> Points:
    """Complex numbers whose parts are of one size, of different sizes, or near an axis."""
    return lambda generator, count: np.asarray(part(generator, count) + 1j * part(generator, count))
