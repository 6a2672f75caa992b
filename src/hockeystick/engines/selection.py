"""The best of a random number of runs: its curve from that of one run.

K runs, K of generating function f, are ranked by any order of their outputs, ties broken at random; the best is
released. With u = P(an output ranks no higher) and v the same under Q, the winner's densities are ``p f'(u)`` and ``q
f'(v)``, and (u, v) is a point of the region of all tests, ``u <= U(v) = min_x e^x v + delta(x)``. So

    delta'(eps) <= E_P phi(e^{-L}),    phi(a) = max_v (f'(U(v)) - e^eps f'(v) a)_+,

and phi is convex in a: a sum of hinges ``w_i (b_i - e^eps a)_+``, each of which the curve of one run evaluates,
``C(a) = E_P (a - e^{-L})_+ = a delta(-ln a)``, convex again. Proof: docs/derivations/selection.md, section 5.

Below, some order of the outputs: at the bottom those with a loss above l0, the ones with a loss above l > l0 last of
these; then all others. The winner is one of loss above l with probability ``f(u) - f(u - p)``, ``u = P(L > l0)``, ``p =
P(L > l)``, which differences of the one run's curve bracket. (u = 1: ranked by their loss.) The events of one order
make a pair that datasets attain, for compositions.

Guarantee: the upper side is certified where the run's is; the lower side where the run's pair is attained. Cost: some
hundreds of deltas of one run, once; a few more for each lower side.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.one_run import ALL, Event, OneRun, losses_above, losses_not_below
from hockeystick.laws.run_count import RunCount
from hockeystick.laws.selected import SHARES
from hockeystick.numerics.columns import Array, Places
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.rounding import SUBNORMAL, TINY, UNDERFLOW, U, up

_METHOD = "the best of many runs"
_LINES = 256  # through which the region of tests is seen, from either side
_EVEN, _NEAR_ONE = 2000, 1000  # cells of v
_APART = (3e-2, 1e-3, 1e-5)  # of the differences that give the masses of a test
_TAILS = 64  # events that stand for the winner among other steps, and half as many of smaller losses
_UP = 1.0 + 64.0 * U  # outward over a few roundings of terms of one sign
_FLAT = 1e-290  # lines that fall less steeply are bounded by their height: their slope may have no float


@final
class SelectedCurve:
    """delta and epsilon of the winner.

    Parameters
    ----------
    forward, backward : OneRun
        One run's pair, and its reverse.
    count : RunCount
        The number of runs.
    """

    def __init__(self, forward: OneRun, backward: OneRun, count: RunCount) -> None:
        self._forward, self._backward, self._count = forward, backward, count

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        upper = self.upper(epsilon)
        lower = 0.0 if math.isinf(epsilon) else self._lower(epsilon)
        return from_sides(lower, upper, _METHOD, self._notes(upper))

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        if delta >= 1.0:
            return Bound(0.0, 0.0, _METHOD)
        if delta == 0.0 or self.upper(math.inf) > delta:
            return Bound(0.0, math.inf, _METHOD, ("delta is next to the mass at infinite loss, or below it",))
        guess = self.guess(delta)
        find = partial(one_sided_root, target=delta, slope=5.0, step=1e-6 * max(guess, 1.0))
        upper = find(self.upper, guess=guess, above=True)
        lower = find(self._lower, guess=max(0.9 * guess, 0.0), above=False)
        return from_sides(lower, upper, _METHOD, self._notes(delta))

    def _notes(self, delta: float) -> tuple[str, ...]:
        """What a reader must know of the upper side, at about a delta."""
        rare = "a bad run wins too rarely for float64, which widens the upper side; state fewer runs"
        return (self._count.words, rare) if self._hinges[2] > 0.1 * delta else (self._count.words,)

    def guess(self, delta: float) -> float:
        """About the epsilon at this delta: that of one run."""
        x, high = self._forward.nodes
        return float(np.interp(-math.log(delta), -np.log(np.maximum(high, 1e-300)), x))

    # ------------------------------------------------------------------------------------------------------ one run

    @cached_property
    def _chords(self) -> tuple[Array, Array]:
        """Points above C(a), a increasing from 0, between which chords are above it."""
        (x, high), (y, high_back) = self._forward.nodes, self._backward.nodes
        # C rises: a bound at e^-x holds below, so that a is rounded down
        left, right = np.exp(-x[::-1]), np.exp(y[1:])
        a = np.concatenate(([0.0], left * (1.0 - 16.0 * U), right * (1.0 - 16.0 * U)))
        c = np.concatenate(([0.0], left * high[::-1] * _UP + UNDERFLOW, (np.expm1(y[1:]) + high_back[1:]) * _UP))
        return a, c

    def _above_c(self, ends: Array, epsilon: float) -> Array:
        """Upper bounds of ``e^eps C(b e^-eps)`` at ends b: by chords, and beyond the last point by slope 1."""
        a, c = self._chords
        at = ends * math.exp(-epsilon) * (1.0 + 16.0 * U)
        inside = np.minimum(at, a[-1])
        left = np.clip(np.searchsorted(a, inside, side="right") - 1, 0, a.size - 2)
        share = (inside - a[left]) / (a[left + 1] - a[left])
        above = ((1.0 - share) * c[left] + share * c[left + 1] + (at - inside)) * math.exp(epsilon)
        # the first chord rises as steeply as the last delta says: C itself may be below float64 there
        return np.where(left == 0, ends * float(self._forward.nodes[1][-1]), above) * (_UP * _UP)

    # ------------------------------------------------------------------------------------------------------ the hinges

    @cached_property
    def _hinges(self) -> tuple[Array, Array, float]:
        """Weights w_i > 0, ends b_i and a height with ``sum w_i (b_i - b)_+`` plus that above phi, b = e^eps a > 0."""
        near = 10.0 ** -np.linspace(1.0, 14.0, _NEAR_ONE)
        v = np.unique(np.concatenate((np.linspace(0.0, 1.0, _EVEN), 1.0 - near)))
        error = self._count.error
        # between two points of v: the first slope at the right end's U, the second at the left end
        first = np.exp(self._count.log_slope(1.0 - self._largest_u(v[1:]))) * (1.0 + error)
        second = np.exp(self._count.log_slope(1.0 - v[:-1])) * (1.0 - error)
        flat = second < _FLAT
        rest = float(first[flat].max()) + SUBNORMAL if flat.any() else 0.0
        kept = np.flatnonzero(~flat)[_hull(first[~flat], second[~flat])]
        slope, height = np.append(0.0, second[kept]), np.append(0.0, first[kept])
        weights = np.diff(slope)
        # Where line k is the largest the hinges up to k add up to it but for a few roundings of its height A_k, and so
        # would any line that rounding left out of the hull; ends moved outward add that share of A_k.
        return weights, np.diff(height) / weights * (1.0 + 256.0 * U), rest

    def _largest_u(self, v: Array) -> Array:
        """U(v), rounded up."""
        (x, high), (y, high_back) = self._forward.nodes, self._backward.nodes
        # any of the lines will do: about as many as tell
        some, others = (slice(None, None, max(one.size // _LINES, 1)) for one in (x, y))
        slope = np.concatenate((np.exp(x[some]), np.exp(-y[others])))
        offset = np.concatenate((high[some], -np.expm1(-y[others]) + np.exp(-y[others]) * high_back[others]))
        return np.asarray(np.minimum(((slope * v[:, None] + offset) * _UP).min(axis=1), 1.0))

    def upper(self, epsilon: float) -> float:
        """Upper bound of delta(epsilon), epsilon at least 0 and possibly infinite."""
        weights, ends, flat = self._hinges
        if math.isinf(epsilon):
            highest = float(weights @ ends) + flat  # phi(0): E_P phi on infinite losses alone
            return min(up(highest * float(self._forward.deltas(np.array([epsilon]))[1][0]), 1e-12), 1.0)
        epsilon = min(epsilon, 600.0)  # delta falls
        total = float(weights @ self._above_c(ends, epsilon)) + flat
        return min(up(total, 8.0 * U * (ends.size + 16.0)), 1.0)

    # ------------------------------------------------------------------------------------------------------ from below

    def _lower(self, epsilon: float) -> float:
        """Lower bound of delta(epsilon): the best of the orders above, as far as the nodes tell, and then proved."""
        if epsilon > 700.0:
            return 0.0
        x, (first, second) = self._forward.about[0], self._chances
        order, test = np.unravel_index(int(np.argmax(first - math.exp(epsilon) * second)), first.shape)
        lines = [
            float((p - math.exp(epsilon) * q * (1.0 + 8.0 * U)).max(initial=0.0)) for p, q in self._ordered.values()
        ]
        return max(*lines, *(self._proved(int(order), float(x[test]), apart, epsilon) for apart in _APART))

    @cached_property
    def _chances(self) -> tuple[Array, Array]:
        """About the winner's chances of each event in each order, under P and under Q: a guide."""
        (_, p, q), (_, q_back, p_back) = self._forward.about, self._backward.about
        rest_p, rest_q = np.concatenate(([0.0], 1.0 - p, p_back)), np.concatenate(([0.0], 1.0 - q, q_back))
        first = self._count.chance(np.minimum(p, 1.0 - rest_p[:, None]), rest_p[:, None])
        return first, self._count.chance(np.minimum(q, 1.0 - rest_q[:, None]), rest_q[:, None])

    def _proved(self, order: int, x: float, apart: float, epsilon: float) -> float:
        """Lower bound of delta(epsilon) for l = ``x`` and the order of this number: none above, l0 >= 0, l0 <= 0."""
        (masses,), bottom = self._forward.masses([(x, apart)]), self._bottom(order, apart)
        if masses is None or bottom is None:
            return 0.0
        (most_p, rest_p), (most_q, rest_q) = bottom
        error = self._count.error + 32.0 * U
        # the chance rises with the event and falls with the rest: P's from below, Q's from above
        p, q = np.array(min(masses[0], most_p)), np.array(min(masses[2], most_q))
        first = float(self._count.chance(p, np.array(rest_p))) * (1.0 - error)
        # below the normal range a chance is not known relative to itself: room for both, since e^eps is at least 1
        second = float(self._count.chance(q, np.array(rest_q))) * (1.0 + error) + 2.0 * TINY
        return max(first - math.exp(epsilon) * second * (1.0 + 8.0 * U), 0.0)

    def _bottom(self, order: int, apart: float) -> Event | None:
        """What ranks at the bottom; None where unknown."""
        if order == 0:
            return ALL
        first = self._forward.nodes[0].size
        run, event, place = (
            (self._forward, losses_above, 1) if order <= first else (self._backward, losses_not_below, first + 1)
        )
        (known,) = run.masses([(float(run.nodes[0][order - place]), apart)])
        return None if known is None else event(known)

    def ranked(self, share: float) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """Masses under P and Q of some outcomes of the winner in one order of the outputs: a pair it attains.

        A share of P, the outputs of the largest losses, ranks below all others, and among themselves by loss. The
        outcomes are the steps of a concave line through (0, 0), points that the events L > l are proved to be at or
        beyond, and (1, 1): its curve is the largest of the lines ``P - e^eps Q``, each of which holds for the winner.
        """
        points = [(Fraction(q), Fraction(p)) for p, q in zip(*self._ordered[share], strict=True)]
        corners = _concave(sorted([(Fraction(0), Fraction(0)), *points, (Fraction(1), Fraction(1))]))
        steps = [(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(corners)]
        return tuple(p for p, _ in steps), tuple(q for _, q in steps)

    @cached_property
    def _ordered(self) -> dict[float, tuple[Array, Array]]:
        """For every share, the winner's chances of some events: under P from below, under Q from above."""
        tails = np.array(self._tails).reshape(-1, 2, 2)
        p, q = tails[:, 0, 0], tails[:, 1, 0]
        error = self._count.error + 32.0 * U
        found = {}
        for share in SHARES:
            whole = share == 1.0 or not p.size
            (least, rest_p), (most, rest_q) = ALL if whole else tails[np.argmin(np.abs(p - share))].tolist()
            kept = p <= least  # the chance rises with the event and falls with the rest
            # below the normal range a chance is not known relative to itself
            first = self._count.chance(p[kept], np.array(rest_p)) * (1.0 - error) - TINY
            second = self._count.chance(np.minimum(q[kept], most), np.array(rest_q)) * (1.0 + error) + TINY
            telling = (second > 0.0) & (second < first) & (first < 1.0)
            found[share] = first[telling], second[telling]
        return found

    @cached_property
    def _tails(self) -> list[Event]:
        """The events L > l for some l, at negative ones from the reverse."""
        tails: list[Event] = []
        for run, event, most in (
            (self._forward, losses_above, _TAILS),
            (self._backward, losses_not_below, _TAILS // 2),
        ):
            x = run.nodes[0]
            every = run.masses([(at, apart) for at in x[:: max(x.size // most, 1)].tolist() for apart in _APART])
            for start in range(0, len(every), len(_APART)):
                found = [known for known in every[start : start + len(_APART)] if known is not None]
                if found:
                    tails.append(event(min(found, key=lambda known: known[2] - known[1])))
        return tails


def _concave(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The corners of the least concave line above points sorted by their first coordinate."""
    kept: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(kept) > 1:
            (a, b), (c, d) = kept[-2:]
            if (d - b) * (x - c) > (y - d) * (c - a):
                break
            kept.pop()
        kept.append((x, y))
    return kept


def _hull(first: Array, second: Array) -> Places:
    """The lines ``first - second b`` that are the largest somewhere on b >= 0, the flattest first."""
    heights, slopes = first.tolist(), second.tolist()
    kept: list[int] = []
    for i in np.lexsort((-first, second)).tolist():
        while kept:
            top = kept[-1]
            if heights[i] <= heights[top]:
                break
            below_first, below_second = (heights[kept[-2]], slopes[kept[-2]]) if len(kept) > 1 else (0.0, 0.0)
            before = (heights[top] - below_first) / (slopes[top] - below_second)  # quotients: products may vanish
            if slopes[i] > slopes[top] and (heights[i] - heights[top]) / (slopes[i] - slopes[top]) < before:
                kept.append(i)
                break
            kept.pop()
        else:
            kept.append(i)
    return np.array(kept, dtype=np.intp)
