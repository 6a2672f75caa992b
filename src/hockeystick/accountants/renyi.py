"""Renyi divergences of a composition, and from a curve of them to epsilon and delta.

Symbols: order alpha > 1, ``R_alpha = K(alpha - 1) / (alpha - 1)``; divergences of a composition add up. From R at one
order,

    classic    delta = e^{(alpha - 1)(R - eps)}                                         (004, equation 40)
    tight      delta = e^{(alpha - 1)(R - eps)} (alpha - 1)^{alpha - 1} / alpha^alpha     (004, equation 43)

and the best order of the curve is taken. The tight one is that of Canonne, Kamath and Steinke (2020) and of Asoodeh et
al. (2020); `hockeystick.accountants.Moments` takes the best of all real orders.

Guarantee: divergences are certified brackets where K is bounded (`hockeystick.engines.moments.log_moment`);
conversions of an upper bound are certified upper bounds. Cost: about a millisecond for a pair and order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike

from hockeystick.bound import Bound, Estimate, Real
from hockeystick.composition import Composition, Direction, Step, directions
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.engines.moments.log_moment import MomentBracket, log_moment_bounds, moments_of_pair
from hockeystick.errors import (
    PrecisionError,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    public_door,
    set_fields,
)
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rationals import float_beside
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_up

RENYI_ORDERS: tuple[float, ...] = (
    *(1.0 + x / 10.0 for x in range(1, 100)),
    *(float(n) for n in range(11, 65)),
    128.0,
    256.0,
)
"""The grid that deep-learning libraries use: tenths up to 10.9, then integers up to 64, then 128 and 256."""

Conversion = Literal["tight", "classic"]

LARGEST_ORDER = 1e150
"""Whose square is a float64."""

_METHOD = "Renyi divergence"
_INFINITE = "the dominating pair has infinite losses"
_CONVERSIONS = ("tight", "classic")


@final
@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Renyi divergences at several orders.

    Parameters
    ----------
    orders : array_like of float, shape (k,)
        Above 1, at most 1e150.
    divergence : Bound, Estimate or array_like, shape (k,)
        Divergences (nats). Plain numbers are taken as upper bounds that the caller vouches for.

    Examples
    --------
    >>> curve = RenyiCurve([2, 4, 8, 16], [0.1, 0.2, 0.4, 0.8])
    >>> round(float(curve.epsilon(delta=1e-5)), 6)
    1.318151
    """

    orders: Array
    divergence: Bound | Estimate

    def __init__(self, orders: ArrayLike, divergence: Bound | Estimate | ArrayLike) -> None:
        set_fields(self, orders=_checked_orders(orders))
        if not isinstance(divergence, Bound | Estimate):
            given = np.atleast_1d(np.asarray(divergence, dtype=np.float64))
            if np.isnan(given).any() or (given < 0.0).any():
                raise ValueError(f"divergences must be at least 0 and not NaN, got {divergence!r}")
            divergence = Bound(np.zeros_like(given), given, "as given", ("upper bounds as given by the caller",))
        if np.shape(divergence.sides[1]) != self.orders.shape:
            raise ValueError(f"{self.orders.size} orders need as many divergences, got {np.shape(divergence.sides[1])}")
        set_fields(self, divergence=divergence)

    @public_door
    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        """The composition of two curves with the same orders.

        Each may be the larger of two directions, but not of the same one: the sum is an upper bound, and below is what
        either of them tells alone. To know both sides, ask for the divergences of the composition.
        """
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        if not np.array_equal(self.orders, other.orders):
            raise ValueError("only curves with the same orders add up; evaluate both at one grid")
        a, b = self.divergence, other.divergence
        if isinstance(a, Bound) and isinstance(b, Bound):
            lower = np.maximum(a.lower, b.lower)
            with np.errstate(over="ignore"):  # beyond float64: infinite
                upper = _up(np.asarray(a.upper) + np.asarray(b.upper))
            return RenyiCurve(self.orders, Bound(lower, upper, a.method, (*a.notes, *b.notes)))
        value = np.asarray(a.sides[1]) + np.asarray(b.sides[1])
        error = np.asarray(a.estimate.error) + np.asarray(b.estimate.error)
        return RenyiCurve(self.orders, Estimate(value, error, _METHOD))

    @public_door
    def __mul__(self, count: int) -> RenyiCurve:
        """The curve of ``count`` repetitions."""
        times = float(check_count("count", count))
        d = self.divergence
        if isinstance(d, Bound):
            least, most = (float_beside(Fraction(count), up=side) for side in (False, True))
            with np.errstate(over="ignore"):  # beyond float64: infinite, the lower side the largest number
                lower, upper = _down(least * np.asarray(d.lower)), _up(most * np.asarray(d.upper))
            return RenyiCurve(self.orders, Bound(lower, upper, d.method, d.notes))
        return RenyiCurve(
            self.orders, Estimate(times * np.asarray(d.value), times * np.asarray(d.error), d.method, d.notes)
        )

    __rmul__ = __mul__

    @public_door
    def epsilon(self, delta: ArrayLike, *, conversion: Conversion = "tight") -> Bound | Estimate:
        """Upper bound on epsilon at the best order (nats), of the shape of ``delta``.

        Parameters
        ----------
        delta : float or array_like
            In [0, 1].
        conversion : {"tight", "classic"}
            How divergences are converted.
        """
        kind = check_choice("conversion", conversion, _CONVERSIONS)
        return self._converted(check_delta(delta), lambda value: self._epsilon(value, kind))

    @public_door
    def delta(self, epsilon: ArrayLike, *, conversion: Conversion = "tight") -> Bound | Estimate:
        """Upper bound on delta at the best order, of the shape of ``epsilon``.

        Parameters
        ----------
        epsilon : float or array_like
            At least 0 (nats).
        conversion : {"tight", "classic"}
            How divergences are converted.
        """
        kind = check_choice("conversion", conversion, _CONVERSIONS)
        return self._converted(check_epsilon(epsilon), lambda value: self._delta(value, kind))

    def _converted(self, values: Array, convert: Callable[[float], float]) -> Bound | Estimate:
        with np.errstate(over="ignore", invalid="ignore"):  # an order whose bound leaves float64 tells nothing
            upper: Real = np.array([convert(float(value)) for value in values.ravel()]).reshape(values.shape)
        upper = float(upper) if np.ndim(upper) == 0 else upper
        method = f"{_METHOD}, best of {self.orders.size} orders"
        if isinstance(self.divergence, Bound):
            return Bound(np.zeros_like(upper), upper, method, (*self.divergence.notes, "the lower side is trivial"))
        return Estimate(upper, np.full_like(upper, math.nan), method, self.divergence.notes)

    def _log_kernel(self, kind: str) -> Array:
        """``ln ((alpha - 1)^(alpha - 1) / alpha^alpha)``, rounded up; 0 for classic."""
        if kind == "classic":
            return np.zeros_like(self.orders)
        theta = self.orders - 1.0
        value = -theta * np.log1p(1.0 / theta) - np.log1p(theta)
        return np.asarray(value * (1.0 - 4.0 * ELEMENTARY))

    def _epsilon(self, delta: float, kind: str) -> float:
        if delta <= 0.0:
            return math.inf
        theta, r, kernel = self.orders - 1.0, np.asarray(self.divergence.sides[1]), self._log_kernel(kind)
        log_delta = math.log(delta)
        value = r + (kernel - log_delta) / theta
        rounding = 8.0 * U * (np.abs(r) + (np.abs(kernel) + abs(log_delta)) / theta)
        best = float(np.fmin.reduce(value + rounding, initial=math.inf))
        return max(best, 0.0)

    def _delta(self, epsilon: float, kind: str) -> float:
        if math.isinf(epsilon):
            return 1.0 if np.isinf(np.asarray(self.divergence.sides[1])).all() else 0.0
        theta, r, kernel = self.orders - 1.0, np.asarray(self.divergence.sides[1]), self._log_kernel(kind)
        value = theta * (r - epsilon) + kernel
        rounding = 8.0 * U * (theta * (np.abs(r) + epsilon) + np.abs(kernel) + 1.0)
        best = float(np.fmin.reduce(value + rounding, initial=math.inf))
        return min(exp_up(best), 1.0) if best < 0.0 else 1.0


@public_door
def renyi(
    run: Pair | Step | Composition, orders: ArrayLike = RENYI_ORDERS, *, adjacency: str = "add-remove"
) -> RenyiCurve:
    """Renyi divergences of a pair, a step or a composition.

    Parameters
    ----------
    run : Pair, Step or Composition
        What is released; a pair stands for itself and needs no adjacency.
    orders : array_like of float
        Above 1, at most 1e150; by default a grid as deep-learning libraries use it.
    adjacency : {"add-remove", "add", "remove", "substitute", "zero-out"}
        Which datasets count as neighbours; of several directions the larger divergence is taken, order by order.

    Returns
    -------
    RenyiCurve
        With a ``Bound`` where K is bounded for all pairs, else with an ``Estimate``.

    Examples
    --------
    >>> import hockeystick as hs
    >>> curve = hs.renyi(hs.Gaussian(noise_multiplier=2.0), [2.0, 8.0])
    >>> curve.divergence.upper.round(12)
    array([0.25, 1.  ])
    """
    grid = _checked_orders(orders)
    if isinstance(run, Pair):
        own = None if run.is_known_by_moments_alone else moments_of_pair(run, grid)
        return RenyiCurve(grid, _divergence(((run, 1),), grid, own))
    if not isinstance(run, Step | Composition):
        raise TypeError(f"run must be a pair, a step or a composition, got {run!r} of type {type(run).__name__}")
    composition = run * 1
    return RenyiCurve(grid, _largest([_of_run(composition, direction, grid) for direction in directions(adjacency)]))


def _checked_orders(orders: ArrayLike) -> Array:
    try:
        grid = np.atleast_1d(np.asarray(orders, dtype=np.float64)).copy()
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"orders must be real numbers above 1, got {orders!r}") from None
    if np.isnan(grid).any():
        raise ValueError("orders hold NaN; they must be finite and above 1")
    if grid.ndim != 1 or grid.size == 0 or not ((grid > 1.0) & (grid <= LARGEST_ORDER)).all():
        raise ValueError(f"orders must be one or more numbers above 1, at most {LARGEST_ORDER:g}, got {orders!r}")
    grid.setflags(write=False)
    return grid


def _of_run(composition: Composition, direction: Direction, orders: Array) -> Bound | Estimate:
    """Divergences of one direction, at least those of datasets that are known where the pairs are not attained."""
    found, groups = _divergence(composition.pairs(direction), orders), composition.attained(direction)
    if groups is None or not isinstance(found, Bound):
        return found
    lower = np.zeros_like(orders)
    for pairs, count in groups:
        shown = [_divergence(((pair, count),), orders) for pair in pairs]
        each = [np.asarray(one.lower) for one in shown if isinstance(one, Bound)]
        lower = np.maximum(_down(lower + np.max(each, axis=0, initial=0.0)), 0.0)
    return Bound(lower, found.upper, found.method, (*found.notes, *composition.provenance(direction)))


def _divergence(
    parts: Iterable[tuple[Pair, int]], orders: Array, known: MomentBracket | None = None
) -> Bound | Estimate:
    """Divergences of one direction, from what is known of its moments: by default what is proved of all steps."""
    theta = orders - 1.0  # exact up to 2^53; beyond, one rounding off
    composition = tuple(parts)
    if any(pair.mass_at_infinity > 0.0 for pair, _ in composition):
        return Bound(np.full_like(theta, math.inf), np.full_like(theta, math.inf), _METHOD, (_INFINITE,))
    bracket = log_moment_bounds(composition, orders) if known is None else known
    has_windows = not any(pair.is_known_by_moments_alone for pair, _ in composition)
    if has_windows and not np.isfinite(bracket.upper).all():
        window = CumulantWindow(composition)
        with suppress(OverflowError):
            found = [window.checked(float(t)) for t in theta]
            value = np.array([c.log_moment for c in found]) / theta
            error = np.array([c.error * max(abs(c.log_moment), c.theta**2 * c.variance) for c in found]) / theta
            if np.isfinite(value + error).all():
                return Estimate(value, error, _METHOD, ("no certified bound of the moments is known for this pair",))
        raise PrecisionError("the moments at these orders leave float64: ask lower orders")
    lower, upper = bracket.lower / theta, bracket.upper / theta  # two roundings: no more than two steps
    return Bound(np.maximum(_down(_down(lower)), 0.0), _up(_up(upper)), _METHOD)


def _largest(curves: list[Bound | Estimate]) -> Bound | Estimate:
    """The larger divergence, order by order."""
    bounds = [curve for curve in curves if isinstance(curve, Bound)]
    if len(bounds) == len(curves):
        lower = np.max([np.asarray(bound.lower) for bound in bounds], axis=0)
        upper = np.max([np.asarray(bound.upper) for bound in bounds], axis=0)
        return Bound(lower, upper, _METHOD, tuple(dict.fromkeys(note for bound in bounds for note in bound.notes)))
    values = np.array([np.asarray(curve.sides[1]) for curve in curves])
    errors = np.array([np.asarray(c.estimate.error) for c in curves])
    notes = tuple(dict.fromkeys(note for curve in curves for note in curve.notes))
    return Estimate(values.max(axis=0), errors.max(axis=0), _METHOD, notes)


def _up(values: Array) -> Array:
    return np.asarray(np.nextafter(values, math.inf))


def _down(values: Array) -> Array:
    return np.asarray(np.nextafter(values, -math.inf))
