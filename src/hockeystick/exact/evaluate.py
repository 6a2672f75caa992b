"""The exact curve of a composition: ``exact_delta`` and ``exact_epsilon``.

Guarantee: an ``Enclosure`` is proved to contain the value of the composition curve of the stated pairs, every error
inside: quadrature, aliasing, truncation, rounding. The pairs' parameters are exact numbers. Derivations:
docs/derivations/exact.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from hockeystick.errors import UnknownPairError, check_count
from hockeystick.exact.allocation import AllocationCurve
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.atoms import Atoms
from hockeystick.exact.balls import one_at_a_time, precision
from hockeystick.exact.composite import Composite
from hockeystick.exact.contour import ContourCurve
from hockeystick.exact.curve import Curve, relative_digits
from hockeystick.exact.enclosure import Enclosure
from hockeystick.exact.enumeration import EnumerationCurve, enumeration_size
from hockeystick.exact.exponent import Log, exact_epsilon_of
from hockeystick.exact.gaussian import GaussianCurve, GaussianTransform
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.exact.laplace_sum import LaplaceCurve, laplace_size
from hockeystick.exact.lattice import LatticeCurve
from hockeystick.exact.logsum import LogSum
from hockeystick.exact.mixture import MixtureTransform
from hockeystick.exact.one_step import OneStepCurve
from hockeystick.exact.piecewise import PiecewiseCurve, piecewise_size
from hockeystick.exact.quantum import common_lattice
from hockeystick.exact.shapes import AllocationShape, MixtureShape, Shape, rational_atoms, shape_of
from hockeystick.exact.transform import Transform
from hockeystick.laws import Pair

_FEW_OUTCOMES, _MOST_OUTCOMES = 10_000, 400_000
_FEW_RESIDUES, _MOST_RESIDUES = 30_000, 5_000_000
_FEW_PRODUCTS, _MOST_PRODUCTS = 2e7, 3e9

_NOTHING = rational_atoms(((Fraction(1), Fraction(1)),))

Terms = Iterable[tuple[Pair, int]]
"""Pairs and how often each is composed."""


@one_at_a_time
def exact_delta(terms: Terms, epsilon: float | Fraction | Log, *, digits: int = 15) -> Enclosure:
    """Enclosure of delta(epsilon) of a composition, to so many relative digits; below 1e-315,652 it reaches down to 0.

    Parameters
    ----------
    terms : iterable of (Pair, int)
        The composition in one direction.
    epsilon : float, Fraction or Log
        Nats, any finite real number; a float stands for itself.
    digits : int
        Relative decimal digits, at least 1.

    Raises
    ------
    PrecisionError
        Where the digits cannot be had; its ``best`` is the narrowest enclosure found, or None.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair, SubsampledPair
    >>> print(exact_delta([(SubsampledPair(GaussianPair(1.0), 0.01), 2000)], 2.0).decimal(10))
    2.549593194e-4
    """
    point = exact_epsilon_of(epsilon)
    wanted = check_count("digits", digits)
    return Enclosure.of_ball(curve_of(terms).delta(point, wanted)).at_least(0)


@one_at_a_time
def exact_epsilon(terms: Terms, delta: float | Fraction, *, digits: int = 15) -> Enclosure:
    """Enclosure of ``inf {eps >= 0: delta(eps) <= delta}`` (nats) of a composition, to so many relative digits.

    Infinite (both ends) where no epsilon has this delta.

    Parameters
    ----------
    terms : iterable of (Pair, int)
        The composition in one direction.
    delta : float or Fraction
        In [0, 1]; a float stands for itself.
    digits : int
        Relative decimal digits, at least 1.

    Raises
    ------
    PrecisionError
        Where the digits cannot be had; its ``best`` is the narrowest enclosure found, or None.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> print(exact_epsilon([(GaussianPair(1.0), 1)], 1e-5).decimal(12))
    4.37717809568e0
    """
    from hockeystick.exact.inverse import epsilon_of

    if isinstance(delta, bool) or not isinstance(delta, int | float | Fraction):
        raise TypeError(f"delta must be a float or a Fraction, got {delta!r} of type {type(delta).__name__}")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must be in [0, 1], got {delta!r}")
    return epsilon_of(curve_of(terms), Fraction(delta), digits=check_count("digits", digits))


@one_at_a_time
def exact_infinite_mass(terms: Terms, *, digits: int = 15) -> Enclosure:
    """Enclosure of the mass of infinite losses, the limit of delta as epsilon grows.

    Parameters
    ----------
    terms : iterable of (Pair, int)
        The composition in one direction.
    digits : int
        Relative decimal digits, at least 1.
    """
    curve, wanted = curve_of(terms), check_count("digits", digits)
    bits = math.ceil(wanted * math.log2(10.0)) + 64
    while True:
        with precision(bits):
            value = curve.infinite()
            if relative_digits(value) >= wanted:
                return Enclosure.of_ball(value).at_least(0)
        bits *= 2


def curve_of(terms: Terms) -> Curve:
    """The exact curve of a composition, whose answers do not depend on what it was asked before.

    Raises
    ------
    UnknownPairError
        For a pair that has no exact transform.
    """
    counts: dict[Shape, int] = {}
    for pair, count in terms:
        shape, own = shape_of(pair), check_count("count", count)
        counts[shape] = counts.get(shape, 0) + own if shape != _NOTHING else 1
    if not counts:
        raise ValueError("a composition has at least one step, got none")
    if len(counts) > 1:
        counts.pop(_NOTHING, None)  # equal P and Q add nothing
    ((first, count), *others) = counts.items()
    if isinstance(first, AllocationShape) and count == 1 and not others:
        return AllocationCurve(first)  # it keeps the lines of one question
    return _curve(tuple(sorted(counts.items(), key=repr)))


@lru_cache(maxsize=64)
def _curve(counts: tuple[tuple[Shape, int], ...]) -> Curve:
    shift_squared, parts = Fraction(0), []
    for shape, count in counts:
        if isinstance(shape, MixtureShape) and shape.shift_squared is not None:
            shift_squared += count * shape.shift_squared
        else:
            parts.append((_transform(shape), count))
    for part, _ in parts:
        if isinstance(part, AtomicTransform) and part.kinds == 0:  # its loss is infinite, whatever is beside it
            return EnumerationCurve(Composite(((part, 1),)))
    if not parts:
        return GaussianCurve(shift_squared)
    if shift_squared:
        parts.append((GaussianTransform(shift_squared), 1))
    return _best_curve(Composite(tuple(parts)))


def _best_curve(composite: Composite) -> Curve:
    """The first way that serves: a closed form, a sum over all outcomes, a lattice, a line."""
    (first, count), *others = composite.parts
    if isinstance(first, MixtureTransform) and count == 1 and not others:
        return OneStepCurve(first)
    outcomes = enumeration_size(composite)
    if outcomes <= _FEW_OUTCOMES:
        return EnumerationCurve(composite)
    lattice = common_lattice([part for part, _ in composite.parts if isinstance(part, AtomicTransform)])
    if lattice is not None and len(lattice.indices) == len(composite.parts):
        return LatticeCurve(composite, lattice)
    if outcomes <= _MOST_OUTCOMES:
        return EnumerationCurve(composite)
    residues, products = laplace_size(composite), piecewise_size(composite)
    if residues <= _FEW_RESIDUES:
        return LaplaceCurve(composite)
    if products <= _FEW_PRODUCTS:
        return PiecewiseCurve(composite)
    otherwise: Curve | None = None
    if residues <= _MOST_RESIDUES:
        otherwise = LaplaceCurve(composite)
    elif products <= _MOST_PRODUCTS:
        otherwise = PiecewiseCurve(composite)
    return ContourCurve(composite, otherwise)


def _transform(shape: Shape) -> Transform:
    if isinstance(shape, Atoms):
        return AtomicTransform(shape)
    if isinstance(shape, LaplaceTransform):
        return shape
    if isinstance(shape, AllocationShape):
        raise UnknownPairError(
            "no exact transform is known of rounds of random allocation composed: one alone is exact"
        )
    origin = shape.p[0][0] if len(shape.p) == 1 else shape.q[0][0]
    sides = [tuple(zip(*((w, c - origin) for c, w in side), strict=True)) for side in (shape.p, shape.q)]
    return MixtureTransform(*(LogSum(weights, centres) for weights, centres in sides))
