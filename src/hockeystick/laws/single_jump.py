"""The stop-loss transform of a sum of t lognormal likelihood ratios, far out: by a single big jump.

Symbols: S the sum of t independent ``W = e^{mZ - m^2/2}`` of a Gaussian step, h(x) = E (W - x)+, which is the curve of
a step. Far out one term carries the sum beyond k, and the others, R together, are near their mean. With b a part of x,
which is k less that mean, and E_b the mean over others of at most b,

    E (S - k)+ = t P(W <= b)^(t-1) E_b h(k - R) + ...,

up to what no term above b adds (Chernoff's bound), and what two do (their moments). The mean of h is a Taylor series in
the moments of R: as far as `_density` says, all derivatives of ``r -> h(k - r)`` are positive, so that the series up to
an odd order is below it, and with the last derivative at c above it for R up to c. What R adds beyond is summed in
bands, each by Chernoff's bound.

Guarantee: both sides certified, rounding included. Proof: docs/derivations/random-allocation.md, section 8. Cost: some
tens of error functions for each k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Pair
from hockeystick.laws.one_step import least_one_step_deltas, one_step_deltas
from hockeystick.numerics.columns import Array
from hockeystick.numerics.normal import LOG_SQRT_2PI, normal_masses
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U

_ORDER = 8  # of the moment of R that the upper side ends with
_PLACES = 2.0  # of b, in an octave
_BELOW = (3, 2, 4, 1, 5, 6)  # of them, that b is below x, or up to one more: tried in turn
_HOPELESS = 0.1  # relative width from where on no other is tried
_BANDS = np.append(np.linspace(0.03, 0.97, 48), 1.0)  # ends of R's, beyond its mean, over x
_TILTS = np.geomspace(0.3, 700.0, 72)  # of Chernoff's bounds, over b
_MOST_POWERS = 160  # of W, whose moments bound its transform
_FACTORIALS = np.array([float(math.factorial(j)) for j in range(_ORDER)])
_LOG_FACTORIALS = np.array([math.log(math.factorial(j)) for j in range(_MOST_POWERS)])
_LOOSE = 1e-10  # relative error of all but the first term of a series
_MARGIN = 1e-3  # of the sizes of all terms, that a polynomial is above 0 by: hence known to `_LOOSE`
_ROWS = 512  # answers at once
_SEARCHED = np.geomspace(0.05, 60.0, 120)  # deviations of ln W, in which its polynomials are looked at


@final
@dataclass(frozen=True, eq=False)
class _Others:
    """R, the sum of n = t - 1 terms given that none is above b.

    Attributes
    ----------
    count : int
        n.
    log_b : float
        At least ln b.
    mass, moment : float
        At least P(W > b) and E[W; W > b].
    log_none : (float, float)
        Bounds on ``ln P(W <= b)``.
    mean, mean_error : float
        ``E_b R``, and a bound on its error.
    low, high : ndarray, shape (_ORDER + 1,)
        Bounds on ``E_b (R - E_b R)^j``, over powers of b as `log_b` says.
    tilts, logs : ndarray, shape (T,)
        Tilts, and at least ``ln E[e^{tilt W}; W <= b]``.
    """

    count: int
    log_b: float
    mass: float
    moment: float
    log_none: tuple[float, float]
    mean: float
    mean_error: float
    low: Array
    high: Array
    tilts: Array
    logs: Array

    @classmethod
    def of(cls, shift: float, count: int, b: float) -> Self:
        """Of ``count`` terms, b about as given."""
        place = (math.log(b) + 0.5 * shift * shift) / shift
        slope, offset = shift * place, 0.5 * shift * shift
        log_b = slope - offset
        off = 8.0 * U * (abs(slope) + offset)
        # most of a high moment lies beside b at a power of place / shift
        powers = np.arange(min(max(math.ceil(place / shift), _ORDER) + 3.0, _MOST_POWERS))
        centres = shift * powers
        below = normal_masses(np.array([-math.inf]), np.array([place]), centres[:, None], 2.0 * U * centres[:, None])
        logs, errors = below.log_mass[:, 0], below.error[:, 0]
        grown = offset * powers * (powers - 1.0)
        logs, errors = logs + grown, errors + 8.0 * U * (grown + np.abs(logs)) + 2.0 * ELEMENTARY
        above = normal_masses(np.full(2, place), np.full(2, math.inf), centres[:2, None], 2.0 * U * centres[:2, None])
        most = np.exp(np.minimum(above.log_mass[:, 0] + above.error[:, 0], 0.0)) * (1.0 + 2.0 * ELEMENTARY)
        least = math.exp(above.log_mass[0, 0] - above.error[0, 0]) * (1.0 - 2.0 * ELEMENTARY)
        if not most[0] < 0.5:
            raise PrecisionError("large terms are not rare")
        log_none = math.log1p(-float(most[0])) * (1.0 + ELEMENTARY), math.log1p(-least) * (1.0 - ELEMENTARY)
        log_b += off
        scaled = logs[: _ORDER + 1] - powers[: _ORDER + 1] * log_b
        raw = np.exp(scaled - logs[0])
        own = errors[: _ORDER + 1] + 4.0 * U * (np.abs(scaled) + powers[: _ORDER + 1] * abs(log_b))
        moments, sizes = _moments(raw, count, -1.0), _moments(raw, count, 1.0)
        room = sizes * (24.0 * float(own.max()) + 512.0 * U)
        mean = count * math.exp(logs[1] - logs[0])
        mean_error = mean * (2.0 * float(errors[0] + errors[1]) + 8.0 * U)
        tilts = _TILTS / math.exp(log_b)
        transforms = _log_transforms(tilts, _TILTS * (1.0 + 8.0 * U), logs, errors)
        known = np.isfinite(transforms)
        if not known.any():
            raise PrecisionError("no transform of the others is a float64")
        return cls(
            count,
            log_b,
            float(most[0]),
            float(most[1]),
            log_none,
            mean,
            mean_error,
            moments - room,
            moments + room,
            tilts[known],
            transforms[known],
        )

    def log_tails(self, r: Array) -> tuple[Array, Array]:
        """At least ``ln E_b e^{tilt (R - r)}``, hence ``ln P(R > r)``, and the tilt: a good one for each r."""
        return _chernoff(self.count * (self.logs - self.log_none[0]), self.tilts, r)

    def without(self, k: Array) -> Array:
        """At least what outcomes add in which no term is above b."""
        logs, tilts = _chernoff((self.count + 1.0) * self.logs, self.tilts, k)
        return np.exp(logs - 1.0 - np.log(tilts))  # one exponential: of a quotient the first part may underflow

    def twice(self) -> float:
        """At least what outcomes add in which two terms are: of each pair of terms, all of S."""
        pairs = 0.5 * self.count * (self.count + 1.0)
        return pairs * self.mass * (2.0 * self.moment + (self.count - 1.0) * self.mass) * (1.0 + 1e-12)


def _chernoff(logs: Array, tilts: Array, r: Array) -> tuple[Array, Array]:
    """At least ``ln E e^{tilt (R - r)}`` from those at r = 0, and the tilt that is about best."""
    breaks = np.maximum.accumulate(np.diff(logs) / np.diff(tilts))
    best = np.searchsorted(breaks, r)
    own, tilt = logs[best], tilts[best]
    return own + (1e-9 + 8.0 * U * np.abs(own)) - r * tilt * (1.0 - 8.0 * U), tilt


def _log_transforms(tilts: Array, reach: Array, logs: Array, errors: Array) -> Array:
    """At least ``ln E[e^{tilt W}; W <= b]``: terms of the series below some power, the rest by the moment of that.

    ``reach``: at least b times each tilt; ``logs``: of the moments, from the power 0 on.
    """
    each, factorials = np.arange(float(logs.size)), _LOG_FACTORIALS[: logs.size, None]
    series = np.multiply.outer(each, np.log(tilts)) + logs[:, None] - factorials
    doubt = errors[:, None] + 16.0 * U * (1.0 + np.abs(series) + np.abs(logs)[:, None] + factorials)
    # sum_{j >= k} y^j / j!, over y^k, rises with y: at b it is at most e^y min(1, y^k / k!) / y^k
    powers = np.multiply.outer(each, np.log(reach))
    rest = np.minimum(powers - factorials, 0.0) + reach - powers + series + factorials
    rest += doubt + 16.0 * U * (1.0 + 2.0 * np.abs(powers) + reach + factorials)
    with np.errstate(over="ignore"):
        below = np.cumsum(np.exp(series + doubt), axis=0)[1:-1]
        found = (below + np.exp(rest[2:])).min(axis=0)
    return np.asarray(np.log(found) + 256.0 * U)


def _moments(raw: Array, count: int, sign: float) -> Array:
    """Central moments of a sum from those of a term about 0; with the sign +1 the sizes of all that is added up."""
    central, cumulants, found = [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]
    for q in range(2, _ORDER + 1):
        ways = [math.comb(q - 1, i - 1) for i in range(1, q + 1)]
        central.append(math.fsum(math.comb(q, i) * raw[i] * (sign * raw[1]) ** (q - i) for i in range(q + 1)))
        lower = math.fsum(ways[i - 1] * cumulants[i] * central[q - i] for i in range(2, q))
        cumulants.append(central[q] + sign * lower)
        found.append(math.fsum(ways[i - 1] * count * cumulants[i] * found[q - i] for i in range(2, q + 1)))
    return np.array(found)


@lru_cache(maxsize=1024)
def _others(shift: float, count: int, place: float) -> _Others | None:
    """Those up to a b of the lattice of all, kept; None where large terms are not rare, or beyond float64."""
    try:
        return _Others.of(shift, count, 2.0 ** (place / _PLACES))
    except PrecisionError:
        return None


@lru_cache(maxsize=256)
def _density(shift: float) -> tuple[list[Array], float]:
    """Polynomials Q_0, ..., and from where on all are positive, with all their derivatives.

    With ``z = (ln w + m^2 / 2) / m^2`` the j-th derivative of the density f of W is ``(-w)^-j f Q_j(z)``.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of very much noise: none is good
        found, sizes = _polynomials(-1.0 / shift**2), _polynomials(1.0 / shift**2)
        places = _SEARCHED / shift
        good = [
            np.polyval(np.polyder(each, k), places) > _MARGIN * np.polyval(np.polyder(size, k), places)
            for each, size in zip(found, sizes, strict=True)
            for k in range(each.size)
        ]
    first = np.flatnonzero(np.all(good, axis=0))
    return found, float(places[first[0]]) if first.size else math.inf


def _polynomials(square: float) -> list[Array]:
    """``Q' = (z + j) Q + square dQ/dz``, each from its highest power down."""
    found: list[Array] = [np.ones(1)]
    for j in range(1, _ORDER):
        risen = np.polymul([1.0, float(j)], found[-1])
        found.append(np.asarray(np.polyadd(risen, square * np.polyder(found[-1]))))
    return found


@final
class SingleJump:
    """Certified bounds on ``E (S - k)+``, of a sum of ``count`` independent lognormal W.

    Parameters
    ----------
    base : Pair
        The pair of one step.
    shift : float
        Its m, within u of itself.
    count : int
        t, at least 2.
    """

    def __init__(self, base: Pair, shift: float, count: int) -> None:
        self._base, self._shift, self._count = base, shift, count
        self._polynomials, self._steep_from = _density(shift)

    def bounds(self, losses: Array, narrow: float = 1e-8) -> tuple[Array, Array]:
        """Lower and upper bounds at ``k = t e^loss``, in an array's shape: 0 and infinite where no single jump tells.

        ``narrow``: the relative width at which no other b is tried.
        """
        with np.errstate(over="ignore"):
            k = self._count * np.exp(np.asarray(losses, dtype=np.float64))
        low, high, place, x = np.zeros(k.size), np.full(k.size, math.inf), np.zeros(k.size), k - self._count
        left = np.flatnonzero((x > 0.0) & np.isfinite(x))
        place[left] = np.floor(_PLACES * np.log2(x[left]))
        for below in _BELOW:
            for at in np.unique(place[left]).tolist():
                rows = left[place[left] == at]
                others = _others(self._shift, self._count - 1, at - below)
                if others is None:
                    continue
                for start in range(0, rows.size, _ROWS):
                    some = rows[start : start + _ROWS]
                    sides = self._sides(k[some], others)
                    low[some], high[some] = np.maximum(low[some], sides[0]), np.minimum(high[some], sides[1])
            width = 1.0 - low[left] / high[left]
            left = left[(width > narrow) & (width < _HOPELESS)]
        return low, high

    def _sides(self, k: Array, others: _Others) -> tuple[Array, Array]:
        """The same by others up to some b."""
        t, n, room = float(self._count), float(others.count), 32.0 * U * (k + others.mean) + others.mean_error
        x = k - others.mean
        usable = x > 64.0 * room
        x, room = np.where(usable, x, k), np.where(usable, room, 0.0)
        near, far = _logs(x + room, 1.0), _logs((x - room)[:, None] * (1.0 - np.append(0.0, _BANDS[:-1])), -1.0)
        steep = (far + 0.5 * self._shift**2) / self._shift**2 >= self._steep_from * (1.0 + 1e-9)
        least, most = least_one_step_deltas(self._base, near), one_step_deltas(self._base, far[:, 0])[1]
        r = k[:, None] - np.append(np.exp(far[:, 1:]) * (1.0 + 2.0 * ELEMENTARY), np.zeros((k.size, 1)), axis=1)
        r -= (8.0 * U * k + room)[:, None]  # where R is at most r, k - R is at least what the exponential says
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            terms = self._terms(far[:, 0]) * (1.0 + _LOOSE)
            moments = _over(others.high, far[:, 0] - others.log_b)
            logs, tilts = others.log_tails(r)
            chance = np.exp(np.minimum(logs, 0.0))
            series = most + (terms[:, 2:-1] * np.maximum(moments, 0.0)[:, 2:-1]).sum(axis=1)
            rest = _over(others.high[-1:], far - others.log_b, _ORDER)[..., 0]
            last = (1.0 + _LOOSE) * self._term(far, _ORDER) * rest
            farthest = chance[:, -1] + np.exp(np.minimum(logs[:, -1] - 1.0 - np.log(tilts[:, -1]), 700.0))
            bands = np.append(self._most(far[:, 2:]), np.ones((k.size, 1)), axis=1) * chance[:, :-1]
            beyond = np.cumsum(bands[:, ::-1], axis=1)[:, ::-1] + farthest[:, None]
            upper = np.where(steep[:, 1:], series[:, None] + last[:, 1:] + beyond, math.inf).min(axis=1)
            high = t * upper * math.exp(n * others.log_none[1]) + others.without(k) + others.twice()

            reached = (steep & (far >= others.log_b))[:, 1:].sum(axis=1) - 1
            end = np.take_along_axis(r, np.maximum(reached, 0)[:, None], axis=1)
            every = np.column_stack((most, self._first(far[:, 0]), terms[:, 2:-1]))
            lost = self._lost(every, x - room, end[:, 0], others)
            first = self._terms(near) * (1.0 - _LOOSE)
            sides = ((terms, far[:, 0]), (first, near))
            above, below = (values * _over(others.low, log_x - others.log_b) for values, log_x in sides)
            parts = np.where(others.low < 0.0, above, below)
            lower = least + parts[:, 2:-1].sum(axis=1) - lost
            low = t * np.maximum(lower, 0.0) * math.exp(n * others.log_none[0])
        known = usable & (reached >= 0) & (moments[:, -1] < 1.0) & np.isfinite(low) & np.isfinite(high)
        low = np.maximum(low * (1.0 - 256.0 * U) - t * TINY, 0.0)
        return np.where(known, low, 0.0), np.where(known, high * (1.0 + 256.0 * U) + t * TINY, math.inf)

    def _terms(self, log_x: Array) -> Array:
        """The derivatives at R = k - x, by powers of x over factorials, shape (n, _ORDER + 1); the first two are 0."""
        none = np.zeros((2, log_x.size))
        return np.append(none, [self._term(log_x, j) for j in range(2, _ORDER + 1)], axis=0).T

    def _term(self, log_x: Array, j: int) -> Array:
        """One of them."""
        z = (log_x + 0.5 * self._shift**2) / self._shift**2
        return np.asarray(self._density_at(log_x) * np.polyval(self._polynomials[j - 2], z) / math.factorial(j))

    def _density_at(self, log_x: Array) -> Array:
        """That of W, times the square of x."""
        place = (log_x + 0.5 * self._shift**2) / self._shift
        return np.asarray(np.exp(log_x - 0.5 * place * place - (LOG_SQRT_2PI + math.log(self._shift))))

    def _most(self, log_x: Array) -> Array:
        """At least h, at most 1, by Mills' ratio."""
        place = np.maximum((log_x - 0.5 * self._shift**2) / self._shift, 0.0)
        found = self._density_at(log_x) * (self._shift**2 * (1.0 + _LOOSE)) / (1.0 + place * place)
        return np.where(place > 0.0, np.minimum(found, 1.0), 1.0)

    def _first(self, log_x: Array) -> Array:
        """At least x P(W > x)."""
        place = (log_x + 0.5 * self._shift**2) / self._shift
        off = 16.0 * U * (np.abs(place) + self._shift)
        tail = normal_masses(place, np.full_like(place, math.inf), 0.0, off)
        return np.asarray(np.exp(log_x + tail.log_mass) * (1.0 + _LOOSE))

    def _lost(self, terms: Array, x: Array, end: Array, others: _Others) -> Array:
        """At least what the series adds where R is beyond its end: ``y^j / j! <= (2 / tilt)^j e^(tilt y / 2)``."""
        middle = 0.5 * (end + others.mean - others.mean_error)
        logs, tilts = others.log_tails(middle)
        powers = (2.0 / (x * tilts))[:, None] ** np.arange(_ORDER)
        return np.asarray(
            np.exp(np.minimum(logs, 700.0)) * (powers * terms * _FACTORIALS[:_ORDER]).sum(axis=1) * (1.0 + 1e-9)
        )


def _logs(x: Array, sign: float) -> Array:
    """``ln x``, rounded to one side."""
    logs = np.log(x)
    return np.asarray(logs + sign * 8.0 * U * (1.0 + np.abs(logs)))


def _over(moments: Array, log_x: Array, first: int = 0) -> Array:
    """Moments over powers of x, which is in their unit, from the first on, in a last axis."""
    logs = np.log(np.abs(moments)) - np.multiply.outer(log_x, first + np.arange(float(moments.size)))
    return np.asarray(np.sign(moments) * np.exp(logs))
