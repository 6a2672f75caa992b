"""The laws of one discrete step, and their outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

from flint import acb, arb, ctx

from hockeystick.independent.balls import UnreachedError, real
from hockeystick.independent.laws import Law

MOST_DEGREE = 200_000
"""Outcomes of a lattice, and values of a noise, that are still listed."""


class Atoms(Law):
    """Finitely many outcomes (p, q, k): their masses, and k where the loss is k times the unit, else None.

    missing: the mass of P that was left out; beyond: the supremum of the losses where some was, None where infinite.
    """

    def __init__(
        self, outcomes: list[tuple[Any, Any, int | None]], unit: Any, missing: Any = 0, beyond: Any = None
    ) -> None:
        self.unit, self.missing = unit, missing
        endless = [p for p, q, _ in outcomes if q == 0 and p != 0]
        self.infinite = reduce(lambda a, b: a + b, endless) if endless else Fraction(0)
        finite = [(p, q, k) for p, q, k in outcomes if not (p == 0 or q == 0)]
        self.atoms: list[tuple[Any, Any]] = [
            (real(p), (real(p) / real(q)).log() if k is None else k * unit if k else Fraction(0)) for p, q, k in finite
        ]
        indices = [k for _, _, k in finite if k is not None]
        self.indices = indices if len(indices) == len(finite) else None
        exact = all(isinstance(loss, Fraction | int) for _, loss in self.atoms)
        losses = [loss for _, loss in self.atoms]
        if missing:
            self.limit = beyond
        elif losses:
            self.limit = max(losses) if exact else reduce(lambda a, b: a.max(b), map(real, losses))
        else:
            self.limit = Fraction(0)

    def moment(self, z: Any, size: Any = 1) -> Any:
        if len(self.atoms) > 500 or self.missing:
            raise UnreachedError("too many outcomes for a contour")
        return sum((acb(p) * (z * real(loss)).exp() for p, loss in self.atoms), acb(arb(0)))


def sampled(outcomes: list[tuple[Any, Any, int | None]], g: Fraction, kind: str) -> list[tuple[Any, Any, int | None]]:
    """The outcomes of a pair on a sample: remove, add, or (symmetric noise) joined."""
    if g == 1 and kind == "joined":
        return outcomes
    if g == 1:
        mixed = outcomes
    else:
        exact = all(isinstance(x, Fraction) for p, q, _ in outcomes for x in (p, q))
        outcomes = outcomes if exact else [(real(p), real(q), k) for p, q, k in outcomes]
        w = g if exact else real(g)
        mixed = [((1 - w) * q + w * p, q, 0 if k == 0 else None) for p, q, k in outcomes]
    turned = [(q, p, None if k is None else -k) for p, q, k in mixed]
    if kind == "remove":
        return mixed
    if kind == "add":
        return turned
    rises = [bool(real(p) > real(q)) for p, q, _ in outcomes]
    falls = [bool(real(p) < real(q)) for p, q, _ in outcomes]
    same = sum(k == 0 or p == q for p, q, k in outcomes)
    if sum(rises) + sum(falls) + same < len(outcomes):
        raise UnreachedError("outcomes differ by less than the working precision tells")
    above = [item for item, up in zip(mixed, rises, strict=True) if up]
    # add's losses below 0 lie, by the symmetry of the noise, where Q0 and P0 trade places: {u > 0} under Q0
    below = [item for item, up in zip(turned, rises, strict=True) if up]
    masses = [p for p, _, _ in above + below]
    rest = 1 - reduce(lambda a, b: a + b, masses) if masses else Fraction(1)
    if sum(rises) != sum(falls):
        raise UnreachedError("the noise is not symmetric")
    return [*above, *below, (rest, rest, 0)]


def normalised(weights: Sequence[Any]) -> list[Fraction]:
    """Float vectors mean the exact rationals divided by their exact sum."""
    exact = [Fraction(w) for w in weights]
    return [w / sum(exact) for w in exact]


def _staircase(given: Mapping[str, Any], moved: int) -> list[tuple[Any, Any, int | None]]:
    """Where noise of the density ``a e^{-n eps}``, n the steps of height gamma on every length of one, tells D = moved.

    At x = j + u between 0 and D the noise is n(x) = j + [u > gamma] steps down, the noise moved D - 1 - j + [u < 1 -
    gamma]; the loss is the difference, in epsilons. Beyond, it is D or -D.
    """
    epsilon = Fraction(given["epsilon"])
    fall = math.exp(-0.5 * float(epsilon))
    gamma = Fraction(given.get("gamma", fall / (1.0 + fall)))  # by default a float, as the mechanism states it
    step = (-real(epsilon)).exp()
    height = (1 - step) / (2 * (real(gamma) + step * real(1 - gamma)))
    cuts = [Fraction(0), min(gamma, 1 - gamma), max(gamma, 1 - gamma), Fraction(1)]
    masses = {moved: (real(Fraction(1, 2)), step**moved / 2), -moved: (step**moved / 2, real(Fraction(1, 2)))}
    for j in range(moved):
        for left, right in pairwise(cuts):
            middle, share = (left + right) / 2, height * real(right - left)
            still, gone = j + int(middle > gamma), moved - 1 - j + int(middle < 1 - gamma)
            p, q = masses.get(still - gone, (real(Fraction(0)), real(Fraction(0))))
            if right > left:
                masses[still - gone] = (p + share * step**gone, q + share * step**still)
    return [(p, q, k) for k, (p, q) in masses.items()]


def _discrete_gaussian(given: Mapping[str, Any], farther: int, count: int) -> tuple[dict[int, Any], int, Any]:
    """The noise's masses to a reach, and so much farther; the reach; the mass beyond it."""
    variance = Fraction(given["sigma"]) ** 2
    reach = math.isqrt(math.ceil(2 * variance * (ctx.prec + count.bit_length() + 8))) + 2
    if reach > MOST_DEGREE:
        raise UnreachedError("the noise has too many values")
    weights = [(real(-Fraction(x * x) / (2 * variance))).exp() for x in range(reach + farther + 1)]
    rest = weights[reach] / (1 - (real(-Fraction(reach) / variance)).exp())  # one side, from reach + 0 on
    total = 2 * sum(weights[1:], arb(0)) + 1 + arb(0).union(2 * rest)
    mass = {x: weights[abs(x)] / total for x in range(-reach - farther, reach + farther + 1)}
    return mass, reach, (2 * rest).upper()


def _binomial_masses(given: Mapping[str, Any]) -> list[Any]:
    n, a = given["trials"], Fraction(given.get("probability", 0.5))
    if n > 3000:
        raise UnreachedError("the noise has too many values")
    return [real(math.comb(n, x)) * real(a) ** x * real(1 - a) ** (n - x) for x in range(n + 1)]


def mirrored_outcomes(
    name: str, given: Mapping[str, Any], g: Fraction, count: int
) -> tuple[list[tuple[Any, Any, int | None]], Any, Any]:
    """Even noise on a sum, moved by D where the record is drawn, against the same moved by -D: as `outcomes_of`."""
    shift, missing, w = given.get("sensitivity", 1), 0, real(g)
    if shift > MOST_DEGREE:
        raise UnreachedError("the noise has too many values")
    if name == "discrete-laplace":  # the loss is the same from D on, and up to -D
        t = (-real(1 / Fraction(given["scale"]))).exp()
        end = tuple(t**k / (1 + t) for k in (0, shift, 2 * shift))
        inner = [
            tuple((1 - t) / (1 + t) * t ** abs(x - d) for d in (shift, 0, -shift)) for x in range(1 - shift, shift)
        ]
        moved, middle = [end[::-1], *inner, end], shift
    else:
        if name == "binomial":
            masses, last = dict(enumerate(_binomial_masses(given))), given["trials"]
            places = range(-shift, last + shift + 1)
        else:
            masses, reach, missing = _discrete_gaussian(given, 2 * shift, count)
            last, places = 0, range(-reach - shift, reach + shift + 1)
        moved = [tuple(masses.get(x - d, arb(0)) for d in (shift, 0, -shift)) for x in places]
        middle = -places.start + last // 2 if last % 2 == 0 else -1
    pairs = [((1 - w) * still + w * up, (1 - w) * still + w * down) for up, still, down in moved]
    if len(pairs) == 3:  # of sensitivity 1: a lattice
        unit = (pairs[2][0] / pairs[2][1]).log()
        return [(p, q, k - 1) for k, (p, q) in enumerate(pairs)], unit, missing
    return [(p, q, 0 if k == middle else None) for k, (p, q) in enumerate(pairs)], Fraction(0), missing


def _binomial(given: Mapping[str, Any], shift: int) -> list[tuple[Any, Any, int | None]]:
    n, a, noise = given["trials"], Fraction(given.get("probability", 0.5)), _binomial_masses(given)
    padded, middle = [Fraction(0)] * shift, (n + shift if a == Fraction(1, 2) else None)  # where noise is symmetric
    pairs = zip([*padded, *noise], [*noise, *padded], strict=True)
    return [(p, q, 0 if 2 * x == middle else None) for x, (p, q) in enumerate(pairs)]


def outcomes_of(
    name: str, given: Mapping[str, Any], moved: int, count: int
) -> tuple[list[tuple[Any, Any, int | None]], Any, Any]:
    """The outcomes of an unsampled discrete mechanism under remove, the unit of its losses, the mass left out."""
    unit: Any
    if name == "discrete-pair":
        p, q = normalised(given["p"]), normalised(given["q"])
        return [(a, b, None) for a, b in zip(p, q, strict=True)], None, 0
    if name == "randomized-response":
        true, others = Fraction(given.get("probability", 0.75)), given.get("categories", 2) - 1
        other = (1 - true) / others
        unit = (real(true) / real(other)).log() if true and other else Fraction(0)
        rest = other * (others - 1)
        return [(true, other, 1), (other, true, -1), (rest, rest, 0)], unit, 0
    if name == "approximate-dp":
        unit, lost = Fraction(given["epsilon"]), Fraction(given.get("delta", 0.0))
        high = real(1 - lost) / (1 + (-real(unit)).exp())
        low = real(1 - lost) / (1 + real(unit).exp())
        ends: list[tuple[Any, Any, int | None]] = [(lost, Fraction(0), None), (Fraction(0), lost, None)] if lost else []
        side = int(unit > 0)
        return [(high, low, side), (low, high, -side), *ends] if lost < 1 else ends, unit, 0
    # replacing a count in 0..s by another moves the sum by at most s
    shift = given.get("sensitivity", 1) * (1 if given.get("values") == "counts" else moved)
    if shift > MOST_DEGREE:
        raise UnreachedError("the noise has too many values")
    if name == "discrete-laplace":
        unit = 1 / Fraction(given["scale"])
        t = (-real(unit)).exp()
        masses = [1 / (1 + t), *((1 - t) / (1 + t) * t**x for x in range(1, shift)), t**shift / (1 + t)]
        return [(masses[shift - x], masses[x], 2 * x - shift) for x in range(shift + 1)], unit, 0
    if name == "discrete-gaussian":
        mass, reach, missing = _discrete_gaussian(given, shift, count)
        ratio = Fraction(shift) / (2 * Fraction(given["sigma"]) ** 2)
        listed = [
            (mass[x - shift], mass[x - shift] * real(-(2 * x - shift) * ratio).exp(), 2 * x - shift)
            for x in range(-reach, shift + reach + 1)
        ]
        return listed, ratio, missing
    if name == "staircase":
        return _staircase(given, moved), Fraction(given["epsilon"]), 0
    if name == "binomial":
        return _binomial(given, shift), Fraction(0), 0
    raise UnreachedError(f"{name} is not known to the checker")
