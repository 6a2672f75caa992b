"""Masses of intervals under a unit normal distribution, each accurate relative to itself.

Two formulas meet. A *narrow* interval of width w about its middle m has mass

    phi(m) w (1 + He2(m) w^2/24 + He4(m) w^4/1920 + He6(m) w^6/322560 + R),

with the Hermite polynomials He_k, which needs no difference of tails: the remainder is the eighth-order term
of the Taylor series of the density, |R| <= 2 ((|m| + 2) w)^8 / 92897280 while (|m| + 2) w <= 0.1. A *wide*
one is the difference of two tails, e^{-a^2} (erfcx(a) - e^{-(b-a)(b+a)} erfcx(b)) / 2 in units of sqrt 2.

Guarantee: the stated error bounds ``|computed ln mass - true ln mass|``. Cost: one erfcx per edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array, Flags
from hockeystick.numerics.error_functions import erf, erfcx
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, U

_NARROW = 0.1  # bound on (|m| + 2) w under which the series is used
_AT_ONCE = 1 << 13
LOG_SQRT_2PI = 0.9189385332046727
_SQRT_HALF = 0.7071067811865476


@final
@dataclass(frozen=True)
class IntervalMasses:
    """``ln`` of the masses of consecutive intervals and a bound on the absolute error of each, shape (..., m)."""

    log_mass: Array
    error: Array


def normal_intervals(edges: Array, centre: Array | float = 0.0, centre_error: Array | float = 0.0) -> IntervalMasses:
    """``ln`` of the mass of each interval between consecutive edges under N(centre, 1).

    Parameters
    ----------
    edges : ndarray, shape (m + 1,)
        Nondecreasing, exact by definition; the ends may be infinite.
    centre : float or ndarray, shape (..., 1)
        The mean.
    centre_error : float or ndarray
        Bound on the distance between ``centre`` and the true mean.

    Returns
    -------
    IntervalMasses
        Shape (..., m); an empty interval has ``-inf`` and error 0.
    """
    return normal_masses(edges[:-1], edges[1:], centre, centre_error)


def normal_masses(
    left: Array, right: Array, centre: Array | float = 0.0, centre_error: Array | float = 0.0
) -> IntervalMasses:
    """The same of any intervals between ``left`` and ``right``, to the bit as of each alone.

    A few at a time: the arrays stay in the processor's cache.
    """
    count = left.size
    if count <= _AT_ONCE:
        return _masses(left, right, centre, centre_error)

    def some(numbers: Array | float, own: slice) -> Array | float:
        return numbers[..., own] if isinstance(numbers, np.ndarray) and numbers.shape[-1:] == (count,) else numbers

    pieces = [slice(first, first + _AT_ONCE) for first in range(0, count, _AT_ONCE)]
    found = [_masses(left[own], right[own], some(centre, own), some(centre_error, own)) for own in pieces]
    log_mass, error = (
        np.concatenate(one, axis=-1) for one in zip(*((a.log_mass, a.error) for a in found), strict=True)
    )
    return IntervalMasses(log_mass, error)


def _masses(left: Array, right: Array, centre: Array | float, centre_error: Array | float) -> IntervalMasses:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # of empty intervals and infinite ends
        middle = 0.5 * (left + right) - centre
        width = np.broadcast_to(right - left, middle.shape)
        log_mass, error = np.empty(middle.shape), np.empty(middle.shape)
        reach = (np.abs(middle) + 2.0) * width
        narrow = reach <= _NARROW
        if narrow.any():
            # beside centre_error two roundings of numbers of the middle's size and the centre's; the width is one of an
            # exact difference, whatever the centre
            off = centre_error + 2.0 * U * (np.abs(middle) + np.abs(centre))
            log_mass[narrow], error[narrow] = _narrow(width[narrow], middle[narrow], reach[narrow], off[narrow])
        wide = ~narrow
        if wide.any():
            log_mass[wide], error[wide] = _wide(left - centre, right - centre, wide, centre, centre_error)
    empty = left == right
    log_mass[..., empty], error[..., empty] = -np.inf, 0.0
    return IntervalMasses(log_mass, error)


def _narrow(width: Array, middle: Array, reach: Array, off: Array) -> tuple[Array, Array]:
    """Narrow intervals, from the Taylor series about the middle, which is ``off`` at most."""
    square, w2 = middle * middle, width * width
    he4 = (square - 6.0) * square + 3.0
    he6 = ((square - 15.0) * square + 45.0) * square - 15.0
    series = 1.0 + w2 * ((square - 1.0) / 24.0 + w2 * (he4 / 1920.0 + w2 * (he6 / 322560.0)))
    log_width = np.log(width * series)
    logs = log_width - (0.5 * square + LOG_SQRT_2PI)
    size = np.abs(middle)
    error = (
        2.0 * reach**8 / 92897280.0
        + (size + width + off) * off * 1.01  # |d ln mass / dm| is at most |m| + w, on the way as well
        + U * (square + 2.0 * np.abs(logs) + 14.0)
        + ELEMENTARY * (1.0 + np.abs(log_width))
    )
    return logs, error


def _wide(
    left: Array, right: Array, where: Flags, centre: Array | float, centre_error: Array | float
) -> tuple[Array, Array]:
    """The wide intervals, from differences of tails, in units of sqrt 2."""
    (left, off_left), (right, off_right) = (_edges(edges, where, centre, centre_error) for edges in (left, right))
    mirrored = right <= 0.0
    near, far = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    off_near, off_far = np.where(mirrored, off_right, off_left), np.where(mirrored, off_left, off_right)
    logs, bound = np.empty(near.shape), np.empty(near.shape)
    straddling = near < 0.0
    if straddling.any():
        off_both = off_near[straddling] + off_far[straddling]
        logs[straddling], bound[straddling] = _straddle(-near[straddling], far[straddling], off_both)
    tail = ~straddling
    if tail.any():
        logs[tail], bound[tail] = _tail(near[tail], far[tail], off_near[tail], off_far[tail])
    return logs, bound


def _edges(edges: Array, where: Flags, centre: Array | float, centre_error: Array | float) -> tuple[Array, Array]:
    """Some of the edges in units of sqrt 2, and their errors."""
    t = edges * _SQRT_HALF
    off = _SQRT_HALF * centre_error + 2.0 * U * (np.abs(t) + np.abs(centre))
    return t[where], np.where(np.isfinite(t), off, 0.0)[where]


def _straddle(left: Array, right: Array, off: Array) -> tuple[Array, Array]:
    """Intervals that contain the centre: a sum of two positive halves."""
    mass = 0.5 * (erf(left) + erf(right))
    log_mass = np.log(mass)
    # the density of the unit normal in units of sqrt 2 is at most 1/sqrt(pi) < 0.57
    return log_mass, 2.0 * ELEMENTARY + 4.0 * U + 0.57 * off / mass + ELEMENTARY * np.abs(log_mass)


def _tail(near: Array, far: Array, off_near: Array, off_far: Array) -> tuple[Array, Array]:
    """Intervals on one side of the centre: a difference of two scaled tails."""
    finite = np.isfinite(far)
    inner = np.where(finite, far, near)  # keeps inf * 0 out of the exponent
    scaled_near = erfcx(near)
    exponent = (inner - near) * (inner + near)
    scaled_far = np.where(finite, np.exp(-exponent) * erfcx(inner), 0.0)
    gap = scaled_near - scaled_far
    log_gap = np.log(0.5 * gap)
    log_mass = log_gap - near * near
    # |d ln erfcx / dt| <= 1 + 2 t for the near tail taken with its factor e^{-near^2}
    slip_near = off_near * (1.2 + 2.0 * near)
    slip_far = np.where(finite, off_far, 0.0) * (1.2 + 2.0 * inner)
    relative = (
        scaled_near * (ERFCX + slip_near) + scaled_far * (ERFCX + ELEMENTARY + 3.0 * U * exponent + slip_far)
    ) / gap
    # A far edge that runs off with the near one moves the whole interval: already counted edge by edge.
    relative = relative * 1.01 + 2.0 * U
    absolute = U * (2.0 * near * near + 2.0 * np.abs(log_mass) + 4.0) + ELEMENTARY * np.abs(log_gap)
    # ln(1 + r) for a relative error r; no bound where the difference has no accuracy left, but of a whole tail the
    # logarithm itself moves by at most (1.2 + 2 t) off
    whole = 2.0 * (ERFCX + U) + 1.01 * off_near * (1.2 + 2.0 * (near + off_near))
    rest = np.where(finite, np.inf, whole)
    return log_mass, np.where(relative < 0.5, -np.log1p(-np.minimum(relative, 0.5)), rest) + absolute
