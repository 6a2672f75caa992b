"""One number for a whole privacy curve: the smallest mu of Gaussian DP that is proved, and what the summary loses.

Symbols: ``G_mu`` is the trade-off function of N(mu, 1) against N(0, 1), ``d_mu`` its curve (Dong, Roth and Su 2022);
``l_i <= delta(eps_i) <= u_i`` are certified values of the run's curve, ``a_i = e^eps_i``.

The run is mu-GDP where ``delta(eps) <= d_mu(eps)`` for every eps >= 0, in the worse direction (G_mu is
symmetric, so that settles eps < 0 too). Proof, for all epsilons:

- *Between points.* h is convex, so over a cell it lies below the chord through (a_i, u_i) and (a_{i+1}, u_{i+1}). A
  chord with slope -Phi(x) is itself below the curve of mu if and only if its height at a = 0 is at most Phi(x + mu):
  both ends of it must lie below the tangent of that slope. This needs no grid.
- *Beyond the last point.* Where losses are bounded, delta is 0 from the largest loss on. Where they are not, every pair
  is bounded by a Gaussian one of some m_j after a bounded part e_j (`gaussian_tail`): with m^2 = sum T_j m_j^2 and
  e = sum T_j e_j, ``h(a) <= H_m(a e^-e)``, and comparing derivatives, H_m(a e^-e) is below the curve of mu > m for
  ``eps >= (mu/2 - m/2 + e/m) / (1/m - 1/mu)``.
- *The limit.* With a Gaussian part, sampled at any rate, ``-2 ln delta(eps) / eps^2`` tends to 1/m^2, so no mu below m
  will do: the smallest mu of DP-SGD is that of the run without sampling. Such a summary is useless; ``floor`` asks for
  ``delta(eps) <= max(d_mu(eps), floor)`` instead, which is decided by the part of the curve that matters.

Guarantee: certified on both sides where the curve is. Cost: some ten to a few hundred evaluations of the curve.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace
from typing import final

import numpy as np

from hockeystick.bound import Bound, Estimate, agreed, from_sides
from hockeystick.decimals import plain
from hockeystick.errors import check_positive, check_probability, public_door
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.rounding import U, up
from hockeystick.readouts.directions import Asked, ways
from hockeystick.readouts.envelope import Enclosure
from hockeystick.readouts.gaussian_dp import CompositionTail, Point, delta_of, mu_below, mu_of_cell, tail_of, worst_tail
from hockeystick.together import Curve

_EVALUATIONS = 600
_LARGEST = 600.0  # nats
_CLEARLY, _ROUGHLY = 0.5, 0.95  # of what is allowed, and of what is known: lower sides that seem to show less of mu
_IDLE = 3  # looks at both sides of where the lower side shows most that together find no more


@public_door
def smallest_mu(curve: Curve, *, floor: float = 0.0, tolerance: float = 1e-3, allowed: float = 0.0) -> Bound | Estimate:
    """The smallest mu for which the run is mu-Gaussian-DP, proved over all epsilons.

    Parameters
    ----------
    curve : PrivacyCurve
        From `hockeystick.account`. Whatever the relation, both ways round count: Gaussian DP is symmetric.
    floor : float
        Where above 0, ``delta(eps) <= max(d_mu(eps), floor)`` is asked for instead: the trade-off function is
        then above ``G_mu - floor``.
    tolerance : float
        Relative width asked for; the accountant's own width limits it.
    allowed : float
        Where above 0, what matters is whether mu is at most this: where lower sides cost more than upper ones, those of
        epsilons above 0 that seem to show clearly less are not sought.

    Returns
    -------
    Bound or Estimate
        ``upper`` is proved: the run is upper-GDP. Infinite where no mu will do.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(2.0) * 4
    >>> f"{float(smallest_mu(hs.account(run))):.6f}"
    '1.000000'
    >>> sampled = hs.account(hs.Gaussian(2.0).poisson(0.01) * 100)
    >>> bound = smallest_mu(sampled, floor=1e-9)
    >>> float(bound) < 0.1 < float(smallest_mu(sampled))  # without a floor the far tail decides: no gain from sampling
    True
    """
    ignored, width = check_probability("floor", floor), check_positive("tolerance", tolerance)
    ask = Asked(curve)
    search = _Search(ask, ignored, width, _CLEARLY * allowed)
    low, high, notes = search.run(_tail(curve) if search.limit.lower <= ignored else None)  # else infinite
    method = f"Gaussian DP above {curve.accountant.name}"
    if floor > 0.0:
        notes = (*notes, f"holds for delta(epsilon) <= max(delta of mu, {plain(floor)})")
    if ask.certified:
        return from_sides(low, high, method, notes)
    return Estimate(high, high - low if math.isfinite(high) else 0.0, method, notes)


def _tail(curve: Curve) -> CompositionTail | None:
    """The tail of the largest delta, both ways round; None where one is not known."""
    tails = []
    for name in ways(curve):
        tail = tail_of(curve.composition.pairs(name))
        if tail is None:
            return None
        if curve.composition.attained(name) is not None:
            tail = replace(tail, attained=False, gaussian=False)  # dominating pairs say nothing about the lower side
        tails.append(tail)
    return worst_tail(tails)


@final
class _Search:
    """Branch and bound over cells of epsilon for the mu that the curve needs."""

    def __init__(self, ask: Asked, floor: float, tolerance: float, least: float = 0.0) -> None:
        self._ask, self._evaluate = ask, ask.both_ways()
        self._floor, self._tolerance, self._least = floor, tolerance, least
        self.limit = self._evaluate(math.inf)
        self._low, self._everywhere = 0.0, math.inf
        self._shown: dict[float, float] = {}
        self._spent = 0
        self._uppers: list[tuple[float, float]] = []

    def run(self, tail: CompositionTail | None) -> tuple[float, float, tuple[str, ...]]:
        """Both sides of the smallest mu, and what to say about them."""
        floor = self._floor
        self._everywhere = math.inf if tail is None else tail.everywhere
        first = self._point(0.0)
        if first.upper <= floor:
            return 0.0, 0.0, ()
        if self.limit.lower > floor:
            return math.inf, math.inf, ("delta does not fall to the floor: a part of the mass is at infinite loss",)
        if tail is not None and tail.gaussian and (first.lower > floor or floor == 0.0):
            return tail.least, tail.mu, ("closed form: all steps are Gaussian",)
        if floor > 0.0:
            return self._above_floor(first)
        if tail is None or self.limit.upper > 0.0:
            return self._low, math.inf, ("no bound on the tail is known for these pairs: give a floor",)
        if tail.attained:
            self._low = max(self._low, tail.least)
            if tail.epsilon == 0.0:
                return self._low, tail.mu, ("the far tail decides, as if nothing was sampled: give a floor",)
        return self._whole(first, tail)

    def _above_floor(self, first: Point) -> tuple[float, float, tuple[str, ...]]:
        """Where only the part of the curve above the floor counts."""
        points = [first]
        while points[-1].upper > self._floor:
            if points[-1].epsilon > _LARGEST:
                return self._low, self._everywhere, ("delta was not seen to fall to the floor",)
            points.append(self._point(max(2.0 * points[-1].epsilon, 0.25)))
        end, start = points.pop(), points.pop()
        while end.upper < start.upper * math.exp(-5.0 * self._tolerance) and self._spent < 60:
            between = 0.5 * (start.epsilon + end.epsilon)
            if between in {start.epsilon, end.epsilon}:
                break  # the bracket steps below the floor between two neighbouring floats
            middle = self._point(between)  # the last cell ends just beyond the floor
            if middle.upper <= self._floor:
                end = middle
            else:
                points.append(start)
                start = middle
        points += [start, end]
        return self._sides(self._cells(points))

    def _whole(self, first: Point, tail: CompositionTail) -> tuple[float, float, tuple[str, ...]]:
        """Where every epsilon counts: up to the largest loss, or to where the tail settles."""
        points = [first]
        while (epsilon := max(2.0 * points[-1].epsilon, 0.25)) < min(self._end(tail), _LARGEST):
            points.append(self._point(epsilon))
        end = min(self._end(tail), _LARGEST)
        beyond = 0.0 if tail.mu == 0.0 and end == tail.epsilon else tail.settled_mu(end)
        points.append(Point.at(end, 0.0, 0.0) if tail.mu == 0.0 and end == tail.epsilon else self._point(end))
        points = [point for point in points if point.epsilon < end] + [points[-1]]
        high = max(self._cells(points), beyond) if math.isfinite(beyond) else math.inf
        return self._sides(min(high, tail.everywhere))

    def _sides(self, high: float) -> tuple[float, float, tuple[str, ...]]:
        """The upper side, and the lower one that cells have raised, raised further next to where it is largest."""
        idle = 0
        while idle < _IDLE and 0.0 < self._low < high / (1.0 + self._tolerance):
            before, places = self._low, sorted(self._shown)
            at = max(range(len(places)), key=lambda place: self._shown[places[place]])
            for beside in (*places[max(at - 1, 0) : at], *places[at + 1 : at + 2]):
                self._point(0.5 * (places[at] + beside))
            idle = idle + 1 if self._low <= before * (1.0 + self._tolerance) else 0
        return self._low, high, ()

    def _end(self, tail: CompositionTail) -> float:
        return tail.settled_from(max(self._low, tail.mu * (1.0 + self._tolerance)))

    def _point(self, epsilon: float) -> Point:
        least = max(_ROUGHLY * self._low, self._least if epsilon > 0.0 else 0.0)
        value = self._evaluate(epsilon, max(self._floor, delta_of(least, epsilon)))
        self._spent += 1
        # delta falls: what bounds it before bounds it here
        upper = min([value.upper, *(known for before, known in self._uppers if before <= epsilon)])
        self._uppers.append((epsilon, upper))
        shown = self._shown[epsilon] = mu_below(epsilon, value.lower) if value.lower > self._floor else 0.0
        self._low = max(self._low, shown)
        if self._ask.certified:
            agreed(Bound(value.lower, value.upper, "the curve"), Bound(0.0, upper, "the curve at a smaller epsilon"))
        return Point.at(epsilon, min(value.lower, upper), upper)

    def _cells(self, points: list[Point]) -> float:
        """The mu that all cells need, split until it is close to what the points need."""
        heap = [self._cell(start, end) for start, end in itertools.pairwise(points)]
        heapq.heapify(heap)
        while True:
            negative_mu, _, start, end = heap[0]
            needed = -negative_mu
            narrow = end.epsilon - start.epsilon <= 1e-9 * end.epsilon
            if needed <= self._low * (1.0 + self._tolerance) or narrow or self._spent > _EVALUATIONS:
                return needed
            if needed <= (1.0 + 0.25 * self._tolerance) * max(start.needed, end.needed):
                return needed  # the width of the curve itself decides
            middle = self._point(0.5 * (start.epsilon + end.epsilon))
            heapq.heapreplace(heap, self._cell(start, middle))
            heapq.heappush(heap, self._cell(middle, end))

    def _cell(self, start: Point, end: Point) -> tuple[float, float, Point, Point]:
        needed = 0.0 if start.upper <= self._floor else min(mu_of_cell(start, end), self._everywhere)
        return -needed, start.epsilon, start, end


@public_door
def regret(curve: Curve, mu: float, *, tolerance: float = 1e-2) -> Bound | Estimate:
    """What the summary "mu-GDP" of a run loses: the smallest r with ``f(alpha + r) - r <= G_mu(alpha)`` everywhere.

    0 where the summary says all; the distance of the two trade-off functions along the diagonal. By duality
    ``r = sup_eps (d_mu(eps) - delta(eps)) / (1 + e^eps)``, over eps >= 0 where both curves hold both ways round:
    f is the convex function that the curve states, the hull of both directions.

    Parameters
    ----------
    curve : PrivacyCurve
        From `hockeystick.account`.
    mu : float
        Of the summary, at least the run's own.
    tolerance : float
        Relative width asked for, or 1e-5 absolute.

    Examples
    --------
    >>> import hockeystick as hs
    >>> curve = hs.account(hs.Laplace(1.0))
    >>> f"{regret(curve, smallest_mu(curve).upper):.4f}"
    '[0.0370, 0.0371]'
    """
    mu_upper, width = check_positive("mu", mu), check_positive("tolerance", tolerance)
    ask = Asked(curve)
    enclosure = Enclosure(ask.both_ways())
    # beyond these sizes delta is 0, or 1 as far as points reach, to far less than the roundings below
    pair, side = GaussianPair(1.0, min(max(mu_upper, 1e-140), 100.0)), enclosure.forward
    above: dict[float, tuple[float, float]] = {}
    for _ in range(_EVALUATIONS):
        epsilons = [float(epsilon) for epsilon in side.epsilon]
        above |= {epsilon: one_step_delta(pair, epsilon) for epsilon in epsilons if epsilon not in above}
        gauss = np.array([above[epsilon] for epsilon in epsilons])
        corners = enclosure.corners()[0]
        found = float(np.max((gauss[:, 0] - side.upper) / (1.0 + corners.a[0::2])))
        # the Gaussian curve is convex: below its chords, and below its last value beyond the last point
        heights = np.interp(corners.a[1:-1:2], corners.a[0::2], gauss[:, 1]) * (1.0 + 32.0 * U)
        heights = np.ravel(np.column_stack((gauss[:, 1], np.append(heights, gauss[-1, 1]))))
        losses = (heights - corners.lower) / (1.0 + corners.a) * (1.0 + 32.0 * U) + 4.0 * U
        losses[-1] = up(gauss[-1, 1] / (1.0 + corners.a[-2]), 32.0 * U)
        index = int(np.argmax(losses))
        most = max(float(losses[index]), 0.0)
        point = None if corners.sampled[index] else side.next_point(float(corners.a[index]))
        if most - found <= max(width * most, 1e-5) or point is None:
            break
        enclosure.add(side, point)
    low = max(found * (1.0 - 32.0 * U) - 4.0 * U, 0.0)
    method = f"regret of Gaussian DP above {curve.accountant.name}"
    if ask.certified:
        return from_sides(low, most, method)
    return Estimate(most, most - low, method)
