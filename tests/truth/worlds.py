"""Small worlds: a few records, a mechanism of few outputs, a scheme drawn out, and what neighbours then release.

Nothing here knows of dominating pairs. A law is the masses of the outputs, in numbers of an mpmath context: floats
where the best neighbours are looked for, fifty digits where they are proved. A scheme gives the law of its outputs by
going through every batch that it may draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import comb
from typing import Any

import mpmath
import numpy as np
from mpmath import fp

import hockeystick as hs

__all__ = ["BASES", "POPULATION", "SCHEMES", "Base", "World"]

mp = mpmath.mp.clone()
mp.dps = 50

Law = dict[Any, Any]
Records = tuple[int, ...]
Mechanism = Callable[[Any, Records], Law]
"""The law on a batch, in numbers of a context."""

VALUES = (-1, 0, 1)
_MOST_MIXED = 20_000
OTHERS = 2
POPULATION = OTHERS + 1


@dataclass(frozen=True)
class Base:
    """A mechanism, its query put every way that matters, and whether substitution moves it twice as far."""

    step: Any
    queries: Callable[[Fraction], Sequence[Mechanism]]
    doubles: bool = False


def _binomial(trials: int) -> Mechanism:
    def law(ctx: Any, batch: Records) -> Law:
        return {sum(batch) + k: ctx.mpf(comb(trials, k)) / 2**trials for k in range(trials + 1)}

    return law


def _laplace(scale: float) -> Mechanism:
    """Noise beyond the largest sums tells no more than at them: the ends are merged."""

    def law(ctx: Any, batch: Records) -> Law:
        t, total = ctx.exp(-1 / ctx.mpf(scale)), sum(batch)
        inside = {y: (1 - t) / (1 + t) * t ** abs(y - total) for y in range(-POPULATION + 1, POPULATION)}
        return inside | {y: t ** abs(y - total) / (1 + t) for y in (-POPULATION, POPULATION)}

    return law


def _both_ways(law: Mechanism) -> Callable[[Fraction], list[Mechanism]]:
    return lambda _: [law, lambda ctx, batch: law(ctx, tuple(-value for value in batch))]


def _candidates(
    chance: Callable[[Any, Any], Any], epsilon: float, odds: Iterable[Callable[[Any], Any]]
) -> Callable[[Fraction], list[Mechanism]]:
    """Two candidates whose gap, in units of the noise, starts anywhere and moves by epsilon with a record."""

    def put(gap: Callable[[Any], Any], scale: Fraction) -> Mechanism:
        def law(ctx: Any, batch: Records) -> Law:
            x = gap(ctx) + ctx.mpf(epsilon) * scale.numerator * sum(batch) / scale.denominator
            first = chance(ctx, x) if x >= 0 else 1 - chance(ctx, -x)
            return {"first": first, "second": 1 - first}

        return law

    return lambda scale: [put(gap, scale) for gap in odds]


def _gaps(epsilon: float) -> list[Callable[[Any], Any]]:
    return [lambda ctx, k=k: ctx.mpf(epsilon) * k / 2 for k in (-2, -1, 0, 1, 2)]


def _logits(epsilon: float) -> list[Callable[[Any], Any]]:
    """Gaps at which the chances are those of the outcomes that the lower side tries, under one law or the other."""
    chances = [
        side[0] for pair in hs.ExponentialMechanism(epsilon).attained("remove") or () for side in (pair.p, pair.q)
    ]
    return [lambda ctx, q=q: ctx.log(ctx.mpf(q.numerator) / (q.denominator - q.numerator)) for q in chances]


def _told(true: float, other: float, rest: float) -> Mechanism:
    """What is reported is whether the sum is above zero: told truly, or not."""

    def law(ctx: Any, batch: Records) -> Law:
        here, there = (true, other) if sum(batch) > 0 else (other, true)
        return {"above": ctx.mpf(here), "not": ctx.mpf(there), "else": ctx.mpf(rest)}

    return law


def _leaking(epsilon: float, lost: float) -> Mechanism:
    """The worst mechanism of (epsilon, delta)-DP."""

    def law(ctx: Any, batch: Records) -> Law:
        high, low = ((1 - ctx.mpf(lost)) / (1 + ctx.exp(side * ctx.mpf(epsilon))) for side in (-1, 1))
        masses = [ctx.mpf(lost), high, low, ctx.mpf(0)]
        return dict(zip("abcd", masses if sum(batch) > 0 else masses[::-1], strict=True))

    return law


BASES: dict[str, Base] = {
    "Binomial": Base(hs.Binomial(3), _both_ways(_binomial(3)), doubles=True),
    "DiscreteLaplace": Base(hs.DiscreteLaplace(1.5), _both_ways(_laplace(1.5)), doubles=True),
    "ExponentialMechanism": Base(
        hs.ExponentialMechanism(1.0), _candidates(lambda ctx, x: 1 / (1 + ctx.exp(-x)), 1.0, _logits(1.0))
    ),
    "ReportNoisyMax": Base(
        hs.ReportNoisyMax(0.75, "laplace"),
        _candidates(lambda ctx, x: 1 - ctx.exp(-x) * (2 + x) / 4, 0.75, _gaps(0.75)),
    ),
    "PermuteAndFlip": Base(hs.PermuteAndFlip(1.0), _candidates(lambda ctx, x: 1 - ctx.exp(-x) / 2, 1.0, _gaps(1.0))),
    "RandomizedResponse": Base(hs.RandomizedResponse(0.75, categories=3), _both_ways(_told(0.75, 0.125, 0.125))),
    "ApproximateDP": Base(hs.ApproximateDP(0.5, 0.01), _both_ways(_leaking(0.5, 0.01))),
}
"""Mechanisms of few outputs."""


def _mixed(parts: Iterable[tuple[Any, Law]]) -> Law:
    total: Law = {}
    for weight, law in parts:
        for output, mass in law.items():
            total[output] = total.get(output, 0) + weight * mass
    return total


def _product(laws: Sequence[Law]) -> Law:
    found: Law = {(): 1}
    for law in laws:
        found = {(*outputs, output): a * b for outputs, a in found.items() for output, b in law.items()}
    return found


Scheme = Callable[[Any, Mechanism, Records], Law]


def _unsampled(ctx: Any, law: Mechanism, data: Records) -> Law:
    return law(ctx, data)


def _poisson(rate: float, largest: int = POPULATION) -> Scheme:
    def scheme(ctx: Any, law: Mechanism, data: Records) -> Law:
        g, parts = ctx.mpf(rate), []
        for drawn in product((False, True), repeat=len(data)):
            batch = tuple(value for value, taken in zip(data, drawn, strict=True) if taken)
            weight = g ** len(batch) * (1 - g) ** (len(data) - len(batch))
            kept = list(combinations(batch, min(len(batch), largest)))
            parts += [(weight / len(kept), law(ctx, own)) for own in kept]
        return _mixed(parts)

    return scheme


def _evenly(ctx: Any, laws: list[Law]) -> Law:
    return _mixed((ctx.mpf(1) / len(laws), law) for law in laws)


def _fixed(size: int) -> Scheme:
    return lambda ctx, law, data: _evenly(ctx, [law(ctx, batch) for batch in combinations(data, size)])


def _shuffled(ctx: Any, law: Mechanism, data: Records) -> Law:
    return _evenly(ctx, [_product([law(ctx, (value,)) for value in order]) for order in permutations(data)])


def _allocated(steps: int) -> Scheme:
    def scheme(ctx: Any, law: Mechanism, data: Records) -> Law:
        ways = []
        for places in product(range(steps), repeat=len(data)):
            batches = [tuple(v for v, own in zip(data, places, strict=True) if own == i) for i in range(steps)]
            ways.append(_product([law(ctx, batch) for batch in batches]))
        return _evenly(ctx, ways)

    return scheme


SCHEMES: dict[str, tuple[Callable[[Any], Any], Scheme]] = {
    "none": (lambda step: step, _unsampled),
    "poisson": (lambda step: step.poisson(0.25), _poisson(0.25)),
    "one micro-batch": (lambda step: step.poisson(0.25, micro_batches=1), _poisson(0.25)),
    "nothing to cut": (
        lambda step: step.poisson(0.25, largest_batch=POPULATION, population=POPULATION),
        _poisson(0.25),
    ),
    "cut batches": (lambda step: step.poisson(0.5, largest_batch=1, population=POPULATION), _poisson(0.5, 1)),
    "fixed size": (lambda step: step.without_replacement(batch_size=1, population=POPULATION), _fixed(1)),
    "two of three": (lambda step: step.without_replacement(batch_size=2, population=POPULATION), _fixed(2)),
    "shuffled": (lambda step: step.shuffled(batch_size=1, population=POPULATION), _shuffled),
    "random allocation": (lambda step: step.random_allocation(steps=2), _allocated(2)),
    "balls in bins": (lambda step: step.balls_in_bins(bins=2), _allocated(2)),
    "one step": (lambda step: step.random_allocation(steps=1), _allocated(1)),
}
"""How a scheme is written here, and drawn out in a world."""

REPLACES = {"cut batches", "fixed size", "two of three"}
"""Schemes in which a record pushes another one out, so that the guarantee is that of a replaced record."""


class World:
    """All neighbours of a world, and what they release.

    Parameters
    ----------
    mechanism, scheme : str
        Of `BASES` and `SCHEMES`.
    direction : str
        Which neighbours.
    """

    def __init__(self, mechanism: str, scheme: str, direction: str) -> None:
        base, self._scheme = BASES[mechanism], SCHEMES[scheme][1]
        replaces = direction == "substitute" or scheme in REPLACES
        queries = base.queries(Fraction(1, 2 if replaces and not base.doubles else 1))
        ways = [(law, *ends) for law in queries for ends in _ends(direction)]
        alike = {_signature(vectors): (way, vectors) for way in ways for vectors in (self._vectors(fp, way),)}
        self._ways = [way for way, _ in alike.values()]
        self._rough = [tuple(map(np.array, vectors)) for _, vectors in alike.values()]

    def _vectors(self, ctx: Any, way: tuple[Mechanism, Records, Records]) -> tuple[list[Any], list[Any]]:
        law, here, there = way
        p, q = self._scheme(ctx, law, here), self._scheme(ctx, law, there)
        outputs = list({**p, **q})
        return [p.get(y, 0) for y in outputs], [q.get(y, 0) for y in outputs]

    def most(self, epsilon: float, count: int, shown: int = 3) -> Any:
        """The largest delta of so many releases: looked for in floats, then computed for the largest few.

        Every release may put its query another way, where there are not too many.
        """
        kinds = range(len(self._ways))
        mixed = len(self._ways) ** count <= _MOST_MIXED
        runs = list(combinations_with_replacement(kinds, count)) if mixed else [(i,) * count for i in kinds]
        best = np.argsort([self._about(run, epsilon) for run in runs])[-shown:]
        a = mp.exp(mp.mpf(epsilon))
        return max(_delta([self._vectors(mp, self._ways[i]) for i in runs[int(k)]], a) for k in best)

    def most_of_best(self, epsilon: float, mean: float) -> Any:
        """The largest delta of the best of a Poisson number of releases, the outputs ranked in any order."""
        a, found = mp.exp(mp.mpf(epsilon)), mp.mpf(0)
        for way in self._ways:
            masses = list(zip(*self._vectors(mp, way), strict=True))
            for order in permutations(masses):
                # that all releases rank up to here, under either law; the best is the last of these
                ends = range(len(order) + 1)
                p, q = ([mp.exp(mean * (sum(row[:k]) - 1)) for k in ends] for row in zip(*order, strict=True))
                gains = (p[k + 1] - p[k] - a * (q[k + 1] - q[k]) for k in ends[:-1])
                found = max(found, mp.fsum(max(gain, mp.mpf(0)) for gain in gains))
        return found

    def _about(self, run: tuple[int, ...], epsilon: float) -> float:
        u = v = np.ones(1)
        for p, q in (self._rough[i] for i in run):
            u, v = np.outer(u, p).ravel(), np.outer(v, q).ravel()
        return float(np.maximum(u - np.exp(epsilon) * v, 0.0).sum())


def _signature(vectors: tuple[list[float], list[float]]) -> tuple[tuple[float, float], ...]:
    """Alike for releases that tell alike."""
    return tuple(sorted((round(p, 12), round(q, 12)) for p, q in zip(*vectors, strict=True)))


def _ends(direction: str) -> list[tuple[Records, Records]]:
    """The two neighbouring datasets."""
    found = []
    for others in sorted({tuple(sorted(own)) for own in product(VALUES, repeat=OTHERS)}):
        for x in VALUES:
            if direction in {"remove", "add"}:
                ends = [((*others, x), others)]
            elif direction == "substitute":
                ends = [((*others, x), (*others, y)) for y in VALUES]
            else:
                ends = [((*others, x), (*others, 0))]
            found += [own[::-1] if direction in {"add", "zero-in"} else own for own in ends]
    return found


def _delta(releases: list[tuple[list[Any], list[Any]]], a: Any) -> Any:
    masses = [(mp.mpf(1), mp.mpf(1))]
    for pair in releases:
        masses = [(u * p, v * q) for u, v in masses for p, q in zip(*pair, strict=True)]
    return sum((max(u - a * v, mp.mpf(0)) for u, v in masses), mp.mpf(0))
