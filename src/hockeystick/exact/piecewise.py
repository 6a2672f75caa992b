"""Few steps of subsampled Laplace noise, cut at the kinks: a polynomial between each two of them, every error kept.

One step's loss has two atoms, of mass A at ``l`` and of mass B at ``l + D``, and a smooth density f between them. So
after t steps the atoms, and with them all kinks of the curve, are at ``t l + k D``, k = 0, ..., t, and

    delta_t(eps) = A delta_{t-1}(eps - l) + B delta_{t-1}(eps - l - D) + integral of f(x) delta_{t-1}(eps - x) dx

takes the functions on two neighbouring cells of ``delta_{t-1}`` to that on one of ``delta_t``. With
``phi(v) = D f(l + v D)`` and u in [0, 1] the place in a cell, from the kth kink to the next,

    delta_t[k](u) = A delta_{t-1}[k](u) + B delta_{t-1}[k-1](u)
                    + integral_0^u phi(v) delta_{t-1}[k](u - v) dv + integral_u^1 phi(v) delta_{t-1}[k-1](1 + u - v) dv,

``delta_t[k] = 0`` for ``k >= t``, and ``1 - e^eps`` for ``k < 0``. On Chebyshev series cut off at a degree this is one
matrix for each neighbour, the same for all t and k. Proof and error: docs/derivations/exact.md, section 10.

Guarantee: an enclosure. Cost: ``(T N)^2`` operations for T steps and series of degree N, some 30 for 15 digits, more
where losses are large; every further epsilon is almost free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from flint import acb, arb, arb_mat, fmpz_poly

from hockeystick.errors import PrecisionError
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.balls import LOW_BITS, ball, precision, working_bits
from hockeystick.exact.composite import Composite
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.exact.laplace_sum import OfLaplace

_BIT_STEP = 32
_SPARE_BITS = 24  # of those that a closed form starts with
_RHOS = (1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 1.6, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 5.0, 9.0, 17.0, 33.0)
_ACROSS, _UP = 24, 4  # boxes that cover an ellipse
_HIGHEST_DEGREE = 250
_MORE = 6  # degrees of the cells' series above that of the density
_USUAL_DEGREE = 30
_MOST_OUTCOMES = 1_000


def piecewise_size(composite: Composite) -> float:
    """About the number of operations; infinite unless there is one kind of Laplace noise, and little else."""
    laplace = [(part, count) for part, count in composite.parts if isinstance(part, LaplaceTransform)]
    others = [(part, count) for part, count in composite.parts if isinstance(part, AtomicTransform)]
    shifts = sum(count * math.log(max(2, part.kinds)) for part, count in others)
    if len(laplace) != 1 or len(laplace) + len(others) < len(composite.parts) or shifts > math.log(_MOST_OUTCOMES):
        return math.inf
    return float((laplace[0][1] * _USUAL_DEGREE) ** 2)


@final
@dataclass(frozen=True)
class _Series:
    """A Chebyshev series on [0, 1], and how far it may be from the function it stands for."""

    coefficients: tuple[arb, ...]
    error: arb


@final
@dataclass(frozen=True)
class _Cells:
    """The curve between its kinks: ``columns`` holds the series of the cells, ``errors`` a bound for each."""

    columns: tuple[tuple[arb, ...], ...]
    errors: tuple[arb, ...]


def _values(x: arb, degree: int) -> list[arb]:
    """``T_0(x), ..., T_degree(x)``. Balls widen by up to ``1 + sqrt(2)`` a degree: two more bits for each."""
    row = [arb(1), x]
    while len(row) <= degree:
        row.append(2 * x * row[-1] - row[-2])
    return row[: degree + 1]


def _nodes(count: int) -> list[arb]:
    """The places in [0, 1] whose values determine a series of so many coefficients."""
    return [(1 + (arb(2 * i + 1) / (2 * count)).cos_pi()) / 2 for i in range(count)]


@lru_cache(maxsize=16)
def _from_values(count: int, bits: int) -> arb_mat:
    """The matrix that takes values at the nodes to coefficients."""
    with precision(bits):
        return arb_mat(
            [
                [
                    (arb((2 * i + 1) * k % (4 * count)) / (2 * count)).cos_pi() * (2 if k else 1) / count
                    for i in range(count)
                ]
                for k in range(count)
            ]
        )


def _modulus(function: Callable[[acb], acb], rho: float) -> arb | None:
    """A bound on a function over the Bernstein ellipse of rho around [0, 1]; None where it may not be analytic there.

    Boxes cover the upper half: the function is real on the real line.
    """
    wide, high = (arb(rho) + 1 / arb(rho)) / 4, (arb(rho) - 1 / arb(rho)) / 4
    largest = arb(0)
    for i in range(_ACROSS):
        left, right = (-(arb(k) / _ACROSS).cos_pi() for k in (i, i + 1))
        nearest = arb(0) if left < 0 < right else min(abs(left), abs(right), key=float)
        top = (high * (1 - nearest * nearest).sqrt()).upper()
        for j in range(_UP):
            side = (top * j / _UP).union(top * (j + 1) / _UP)
            value = function(acb(arb(1) / 2 + wide * left.union(right), side)).abs_upper()
            if not value.is_finite():
                return None
            largest = largest.max(value)
    return largest.upper()


def _series(function: Callable[[acb], acb], bits: int) -> _Series:
    """A function on [0, 1] as the series that agrees with it at Chebyshev's points, to about ``2^-bits``."""
    best: tuple[int, arb] | None = None
    with precision(LOW_BITS):
        size = abs(function(acb(arb(1) / 2))).upper()
        for rho in _RHOS:
            modulus = _modulus(function, rho)
            if modulus is None:
                break
            growth = max(0.0, float((modulus / size).log()))
            degree = math.ceil((bits * math.log(2.0) + growth + 3.0) / math.log(rho))
            if best is None or degree < best[0]:
                # |a_k| <= 2 M rho^-k, and what is beyond the degree counts twice, once as its alias
                best = degree, (4 * modulus * arb(rho) ** -degree / (arb(rho) - 1)).upper()
    if best is None or best[0] > _HIGHEST_DEGREE:
        raise PrecisionError(
            "the density of one step of subsampled Laplace noise bends too sharply for a polynomial: there is very"
            " little noise, or more digits are asked for, or a smaller delta, than it can give; use the accountant"
            " Certified, the default, whose bracket needs none"
        )
    with precision(working_bits() + 2 * best[0]):
        values = arb_mat([[function(acb(u)).real] for u in _nodes(best[0] + 1)])
        found = _from_values(best[0] + 1, working_bits()) * values
    return _Series(tuple(found.entries()), best[1])


@lru_cache(maxsize=32)
def _atoms(transform: LaplaceTransform, bits: int) -> tuple[arb, arb, arb, arb]:
    """``(l, D, A, B)`` of a step, at so many bits: the density asks for them at every point."""
    with precision(bits):
        ends = transform.atoms()
        (low, mass), (high, other) = ends if transform.a > transform.b else reversed(ends)
        return low, high - low, mass, other


@final
@dataclass(frozen=True)
class _Step:
    """One step: its two atoms, and the density of its loss between them."""

    transform: LaplaceTransform

    def atoms(self) -> tuple[arb, arb, arb, arb]:
        """``(l, D, A, B)``."""
        return _atoms(self.transform, working_bits())

    def density(self, u: acb) -> acb:
        """phi, analytic wherever it is finite.

        With ``W = e^w = (e^x (1-b) - (1-a)) / (a - b e^x)``, w the plain pair's loss where that of the mixtures is x,
        the density is ``r_a(w) e^{-m/2} W^{-3/2} / 4 |a - b| e^x / (a - b e^x)^2``.
        """
        low, width, _, _ = self.atoms()
        m, a, b = (ball(x) for x in (self.transform.m, self.transform.a, self.transform.b))
        order = (low + width * u).exp()
        below = a - b * order
        plain = (order * (1 - b) - (1 - a)) / below
        if plain.imag.contains(0) and not plain.real > 0:
            return acb(arb("nan"))  # the power is cut along the negative line
        power = (plain.log() * (-arb(3) / 2) - m / 2).exp()
        return (1 - a + a * plain) * power * abs(a - b) * order / (4 * below * below) * width


@lru_cache(maxsize=8)
def _powers_of_series(degree: int) -> arb_mat:
    """Column j holds the coefficients of ``T_j(2u - 1)`` as a polynomial in u: integers."""
    ahead, polynomial, rows = fmpz_poly([-2, 4]), fmpz_poly([-1, 2]), [fmpz_poly([1])]
    while len(rows) <= degree:
        rows.append(polynomial)
        polynomial = ahead * polynomial - rows[-2]
    return arb_mat([[row[i] for row in rows] for i in range(degree + 1)])


@lru_cache(maxsize=8)
def _series_of_powers(degree: int) -> arb_mat:
    """Column n holds the series of ``u^n``, ``2^{1-2n} binom(2n, n-k)``, half of that for k = 0."""
    return arb_mat(
        [
            [arb(math.comb(2 * n, n - k)) * arb(2) ** (bool(k) - 2 * n) if k <= n else 0 for n in range(degree + 1)]
            for k in range(degree + 1)
        ]
    )


@final
@dataclass(frozen=True)
class _Passage:
    """What a neighbouring cell adds: a matrix, what cutting the series off may lose, and the mass that passes."""

    matrix: arb_mat
    lost: arb_mat
    mass: arb


def _passage(density: Sequence[arb], degree: int, atom: arb, mass: arb, *, mirrored: bool) -> _Passage:
    """From the cell of the same index; mirrored (``u -> 1 - u``, every odd coefficient negated) from the one before.

    Of powers of u the integral is ``a! b! / (a + b + 1)! u^{a+b+1}``.
    """
    own = [-c if mirrored and k % 2 else c for k, c in enumerate(density)]
    top = len(own) + degree
    powers = (_powers_of_series(len(own) - 1) * arb_mat([[c] for c in own])).entries()
    factorials = [arb(n).fac() for n in range(top + 1)]
    convolved = [
        [
            powers[n - 1 - b] * factorials[n - 1 - b] * factorials[b] / factorials[n] if 0 < n - b <= len(own) else 0
            for b in range(degree + 1)
        ]
        for n in range(top + 1)
    ]
    rows = (_series_of_powers(top) * (arb_mat(convolved) * _powers_of_series(degree))).tolist()
    if mirrored:
        rows = [[-x if (i + j) % 2 else x for j, x in enumerate(row)] for i, row in enumerate(rows)]
    lost = [sum((abs(row[j]) for row in rows[degree + 1 :]), arb(0)).upper() for j in range(degree + 1)]
    kept = [[x + atom if i == j else x for j, x in enumerate(row)] for i, row in enumerate(rows[: degree + 1])]
    return _Passage(arb_mat(kept), arb_mat([lost]), mass)


@lru_cache(maxsize=8)
def _composed(transform: LaplaceTransform, count: int, bits: int) -> _Cells:
    """The curve of so many steps, between its kinks."""
    step = _Step(transform)
    _, width, first, second = step.atoms()
    wider = math.ceil(count * math.log2(1.0 + 2.0 * float(1 - first - second)))  # about what errors grow by
    density = _series(step.density, bits - _SPARE_BITS + wider)
    exponential = _series(lambda u: (width * (u - 1)).exp(), bits - _SPARE_BITS + wider)
    degree = max(len(density.coefficients), len(exponential.coefficients)) - 1 + _MORE
    with precision(bits + wider):
        return _compose(step, density, exponential, degree, count)


def _compose(step: _Step, density: _Series, exponential: _Series, degree: int, count: int) -> _Cells:
    """The same, from the series of phi and of ``e^{D (u - 1)}``."""
    low, _, first, second = step.atoms()
    inside = 1 - first - second
    with precision(working_bits() + 3 * (degree + len(density.coefficients))):  # powers' coefficients grow like 5.83^n
        same, before = (
            _passage(density.coefficients, degree, atom, (atom + inside).upper(), mirrored=mirrored)
            for atom, mirrored in ((first, False), (second, True))
        )
    cells, nothing = _Cells((), ()), (arb(0),) * (degree + 1)
    for t in range(count):
        scale = (low * t).exp()  # below the first kink the curve is 1 - e^eps
        padded = [-scale * c for c in exponential.coefficients] + list(nothing[len(exponential.coefficients) :])
        columns = ((padded[0] + 1, *padded[1:]), *cells.columns, nothing)
        errors = ((scale * exponential.error).upper(), *cells.errors, arb(0))
        cells = _next(columns, errors, same, before, density.error)
    return cells


def _next(
    columns: tuple[tuple[arb, ...], ...], errors: tuple[arb, ...], same: _Passage, before: _Passage, doubt: arb
) -> _Cells:
    """One step more: ``columns`` and ``errors`` from the cell before the first to the one after the last."""
    whole = arb_mat([list(column) for column in columns]).transpose()
    parts = [(passage.matrix * whole).transpose().tolist() for passage in (same, before)]
    with precision(LOW_BITS):
        sizes = arb_mat([[abs(c).upper() for c in column] for column in columns]).transpose()
        lost = [(passage.lost * sizes).entries() for passage in (same, before)]
        totals = (arb_mat([[1] * sizes.nrows()]) * sizes).entries()
        new_errors = []
        for k in range(1, len(columns)):
            passed_on = same.mass * errors[k] + before.mass * errors[k - 1]
            own = lost[0][k] + lost[1][k - 1] + doubt * (totals[k] + totals[k - 1])
            new_errors.append((passed_on + own).upper())
    new = tuple(tuple(x + y for x, y in zip(parts[0][k], parts[1][k - 1], strict=True)) for k in range(1, len(columns)))
    return _Cells(new, tuple(new_errors))


@final
class PiecewiseCurve(OfLaplace):
    """The curve of one kind of Laplace noise, subsampled or not, and discrete pairs."""

    def of_noise(self, epsilon: arb) -> arb:
        """The Laplace pair's own delta."""
        ((transform, count),) = self.noise
        low, width, _, _ = _Step(transform).atoms()
        place = (epsilon - low * count) / width
        if not place.is_finite():  # at so few bits the width may be 0
            return arb(0, 1)
        if place <= 0:
            return -epsilon.expm1()
        if place >= count:
            return arb(0)
        bits = _BIT_STEP * math.ceil(working_bits() / _BIT_STEP)  # several precisions share one table
        with precision(bits):
            cells = _composed(transform, count, bits)
        found: arb | None = None
        for k in range(_floor(place.lower()), _floor(place.upper()) + 1):
            value = _value(cells, k, place - k) if 0 <= k < count else arb(0) if k > 0 else -epsilon.expm1()
            found = value if found is None else found.union(value)
        return found if found is not None else arb(0, 1)


def _floor(point: arb) -> int:
    """The largest integer that is at most an exact number."""
    return int(str(point.floor().unique_fmpz()))


def _value(cells: _Cells, index: int, u: arb) -> arb:
    """The curve at a place in a cell: from the middle of the ball by the largest slope, as ``|T_j'| <= j^2``."""
    column = cells.columns[index]
    with precision(working_bits() + 2 * len(column)):
        middle = u.mid().max(arb(0)).min(arb(1))
        value = sum((c * x for c, x in zip(column, _values(2 * middle - 1, len(column) - 1), strict=True)), arb(0))
        slope = sum((2 * j * j * abs(c) for j, c in enumerate(column)), arb(0))
        return value + arb(0, (slope * u.rad() + cells.errors[index]).upper())
