"""Compositions in which one large loss does what many small ones cannot: each number of jumps on its own.

With rare sampling the loss of a step is tiny nearly always and large rarely. Between what many small losses reach and
what one large loss makes, no tilt centres the composition: tilted, it has one mode below epsilon and one far beyond,
delta lies in the valley between them, and rounding errors of the modes drown it. Cut the losses of one part into bands:
small ones, jumps of about epsilon, and jumps far beyond it, mu = mu_0 + mu_1 + mu_2. Then

    mu^{*T} = sum_{j, f} T! / ((T - j - f)! j! f!)  mu_0^{*(T - j - f)} * mu_1^{*j} * mu_2^{*f},

and every term has a tilt of its own under which no two modes lie far apart. Terms left out have at most their masses;
more than K jumps have at most the mass ``C(T, K + 1) (mu_1(R) + mu_2(R))^{K + 1}``.

Guarantee: that of the lattices, rounding included: the terms of a lattice's own measure add up to it. Choices of part,
threshold and tilts rests on estimates. Cost: that of a composition for each term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.lattice.compose import TiltedComposition, TiltedWindow, composed_infinity, log_moment
from hockeystick.engines.lattice.plan import SaddleEstimate, saddle_on, window_around
from hockeystick.engines.lattice.pld import LatticePLD, Side
from hockeystick.laws.base import Pair
from hockeystick.numerics.columns import Array, Flags
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import U, exp_up
from hockeystick.transforms.cumulants import Cumulants, smooth_log_delta
from hockeystick.transforms.nodes import Nodes

Parts = Sequence[tuple[Pair, int]]

_CUTS = (0.5, 2.0)  # of epsilon: where a loss counts as a jump, and where as a far one
_BEYOND = 1.2  # of the saddle point's tilt: where it is steep, jumps begin just above it
_FAR_TAIL = 400.0  # nats below delta, where jumps are looked for
_RARE = 1.0  # expected jumps beyond which they are no jumps
_SOME = 0.01  # expected jumps of the tilted composition, below which it has one mode
_ILL = 5.0  # nats of conditioning beyond which one tilt for all does not do
_LEFT_OUT = 1e-7  # of delta, that still more jumps may add
_MOST_JUMPS = 12
_MOST_TERMS = 24


@final
@dataclass(frozen=True)
class Term:
    """The compositions with so many losses in each band: how many there are (ln), and their tilt (estimates)."""

    counts: tuple[int, ...]
    log_weight: float
    cumulants: Cumulants
    saddle: SaddleEstimate

    @property
    def log_delta(self) -> float:
        """Estimate of ``ln`` of what the term adds to delta."""
        return self.log_weight + self.saddle.log_delta

    def on(self, cumulants: Cumulants, epsilon: float) -> Term:
        """The same term of other distributions."""
        return Term(self.counts, self.log_weight, cumulants, saddle_on(cumulants, epsilon))

    def window(self, log_outside: float) -> TiltedWindow:
        """A window outside which about ``e^log_outside`` of delta lies."""
        return window_around(self.cumulants, self.saddle, min(log_outside - self.log_delta, -1.0))


@final
@dataclass(frozen=True)
class JumpPlan:
    """Which part's losses are cut, where, and the terms that matter at one epsilon (estimates).

    Attributes
    ----------
    part : int
        Index of the part.
    cuts : tuple of float
        Where one band ends and the next begins (nats).
    epsilon : float
        What the plan is for (nats).
    terms : tuple of Term
        With few jumps.
    """

    part: int
    cuts: tuple[float, ...]
    epsilon: float
    terms: tuple[Term, ...]

    @cached_property
    def log_delta(self) -> float:
        """Estimate of ``ln delta``."""
        return float(np.logaddexp.reduce([term.log_delta for term in self.terms]))

    @cached_property
    def theta(self) -> float:
        """Estimate of ``-d ln delta / d epsilon``."""
        return math.fsum(term.saddle.theta * math.exp(term.log_delta - self.log_delta) for term in self.terms)

    def longest(self, log_alias: float) -> float:
        """About the longest window (nats) that leaves ``e^log_alias`` of delta outside."""
        windows = [term.window(log_alias + self.log_delta) for term in self.terms]
        return max(window.high - window.low for window in windows)

    def nodes(self, nodes: Nodes, part: int, count: int) -> Nodes:
        """A part's nodes with the masses that, tilted by `theta`, weigh each loss as the terms together do."""
        band = np.searchsorted(self.cuts, nodes.loss) if part == self.part else np.zeros(nodes.loss.size)
        total = np.full(nodes.loss.size, -math.inf)
        for term in self.terms:
            exponents = nodes.log_p + term.saddle.theta * nodes.loss
            share = term.log_delta - self.log_delta
            for k, steps in enumerate(term.counts if part == self.part else (count,)):
                if steps > 0 and (band == k).any():
                    own = np.where(band == k, exponents, -math.inf)
                    scale = float(np.logaddexp.reduce(own))
                    total = np.logaddexp(total, own - scale + share + math.log(steps / count))
        return Nodes(nodes.loss, total - self.theta * nodes.loss, nodes.log_q)


@final
@dataclass(frozen=True)
class _Band:
    """Some of a pair's nodes."""

    chosen: Nodes
    loss_bounds: tuple[float, float]

    def nodes(self, log_tail: float) -> Nodes:
        """The chosen ones, whatever the tail."""
        return self.chosen


def plan_jumps(parts: Parts, epsilon: float, saddle: SaddleEstimate) -> JumpPlan | None:
    """A plan for one epsilon above 0; None where one tilt for all does as well.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        The composition.
    epsilon : float
        Nats.
    saddle : SaddleEstimate
        Its saddle point, if it had one mode.
    """
    plan = _plan(parts, epsilon, saddle.log_delta) if _jumps_when_tilted(parts, epsilon, saddle) else None
    if plan is None:
        return None
    cumulants = Cumulants(parts, min(plan.log_delta, saddle.log_delta) - 60.0)
    value, _, second = cumulants(saddle.theta)
    # what delta would be, were the tilted composition one mode around epsilon: the more it is, the worse
    expected = smooth_log_delta(np.array(value), np.array(saddle.theta), epsilon, np.array(second))
    return plan if abs(float(expected) - plan.log_delta) > _ILL else None


def epsilon_with_jumps(parts: Parts, log_delta: float, saddle: SaddleEstimate) -> float | None:
    """Estimate of the epsilon at ``ln delta`` where the saddle point's is wrong; None where it is right."""
    epsilon = max(saddle.epsilon, 0.0)
    plan = _plan(parts, epsilon, log_delta) if _jumps_when_tilted(parts, epsilon, saddle) else None
    if plan is None or abs(plan.log_delta - log_delta) < _ILL:
        return None

    def excess(log_epsilon: float) -> float:
        at = math.exp(log_epsilon)
        found = _plan(parts, at, log_delta)
        estimate = saddle_on(Cumulants(parts, log_delta - 60.0), at).log_delta if found is None else found.log_delta
        return log_delta - estimate

    middle = math.log(epsilon)
    return math.exp(increasing_root(excess, middle - 7.0, middle + 3.0, 1e-3))


def _jumps_when_tilted(parts: Parts, epsilon: float, saddle: SaddleEstimate) -> bool:
    """Whether the composition tilted to its saddle point jumps at all."""
    if not epsilon > 0.0:
        return False
    theta, expected = _BEYOND * saddle.theta, 0.0
    for pair, count in parts:
        nodes = pair.nodes(min(saddle.log_delta, 0.0) - _FAR_TAIL)
        exponents = nodes.log_p + theta * nodes.loss
        large = exponents[nodes.loss > _CUTS[0] * epsilon]
        expected += count * math.exp(min(_log_sum(large) - _log_sum(exponents), 0.0))
    return expected > _SOME


def _plan(parts: Parts, epsilon: float, log_delta: float) -> JumpPlan | None:
    """The terms at one epsilon; None where there are no rare jumps that matter to a delta of that size."""
    cuts = tuple(cut * epsilon for cut in _CUTS)
    log_tail = min(log_delta, 0.0) - _FAR_TAIL
    every = [pair.nodes(log_tail) for pair, _ in parts]
    expected = [
        math.log(count) + _log_sum(nodes.log_p[nodes.loss > cuts[0]])
        for nodes, (_, count) in zip(every, parts, strict=True)
    ]
    part = int(np.argmax(expected))
    pair, count = parts[part]
    if not -math.inf < expected[part] < math.log(_RARE):
        return None
    others = [one for k, one in enumerate(parts) if k != part]
    bands = _bands(every[part], cuts, pair.loss_bounds)
    log_masses = [_log_sum(band.chosen.log_p) for band in bands]
    terms: list[Term] = []
    best = -math.inf
    for counts, log_weight in _counts(count, log_masses, most=_MOST_JUMPS):
        log_mass = log_weight + sum(n * log for n, log in zip(counts[1:], log_masses[1:], strict=True) if n)
        if log_mass < best + math.log(_LEFT_OUT):
            continue
        own = [(band, n) for band, n in zip(bands, counts, strict=True) if n > 0]
        cumulants = Cumulants([*others, *own], log_tail)
        terms.append(Term(counts, log_weight, cumulants, saddle_on(cumulants, epsilon)))
        best = max(best, terms[-1].log_delta)
        if len(terms) > _MOST_TERMS:
            return None  # too many jumps matter
    return JumpPlan(part, cuts, epsilon, tuple(terms))


def _bands(nodes: Nodes, cuts: tuple[float, ...], bounds: tuple[float, float]) -> list[_Band]:
    """The pair's nodes between the cuts."""
    band = np.searchsorted(cuts, nodes.loss)
    ends = (bounds[0], *cuts, bounds[1])
    return [
        _Band(Nodes(nodes.loss[band == k], nodes.log_p[band == k], nodes.log_q[band == k]), (ends[k], ends[k + 1]))
        for k in range(len(cuts) + 1)
    ]


def _counts(count: int, log_masses: Sequence[float], *, most: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """How often each band may be hit, the fewest jumps first, with ``ln`` of the number of orders."""
    for jumps in range(min(count, most) + 1):
        for far in range(jumps + 1):
            near = jumps - far
            if (far and log_masses[2] == -math.inf) or (near and log_masses[1] == -math.inf):
                continue
            yield (count - jumps, near, far), math.log(math.comb(count, jumps) * math.comb(jumps, far))


def _log_sum(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs)) if logs.size else -math.inf


@final
class JumpComposition:
    """A composition of lattice PLDs of one side and spacing, added up over the number of jumps.

    Parameters
    ----------
    parts : sequence of (LatticePLD, int)
        PLDs with their counts.
    plan : JumpPlan
        What to cut.
    log_alias : float
        ``ln`` of the fraction of delta that may lie outside the windows.
    points : int
        Largest number of lattice points in a window; a longer one is cut, and what it leaves out counts as aliased.
    """

    def __init__(
        self, parts: Sequence[tuple[LatticePLD, int]], plan: JumpPlan, *, log_alias: float, points: int
    ) -> None:
        self.side: Side = parts[0][0].side
        self.spacing = parts[0][0].spacing
        self._epsilon = plan.epsilon
        self.delta_at_infinity = composed_infinity(parts)[self.side == "upper"]
        pld, count = parts[plan.part]
        band = np.searchsorted(plan.cuts, pld.losses)
        others = [(replace(own, mass_at_infinity=0.0), n) for k, (own, n) in enumerate(parts) if k != plan.part]
        own = [_part(pld, band == k) for k in range(len(plan.cuts) + 1)]
        self._terms = []
        self.is_cut = False
        for term in plan.terms:
            chosen = [*others, *((one, n) for one, n in zip(own, term.counts, strict=True) if n > 0)]
            if any((one.log_mass == -math.inf).all() for one, _ in chosen):
                continue  # nothing can fall into that band
            cumulants = Cumulants(chosen, -math.inf)  # of the lattices: nodes may end elsewhere
            window = term.on(cumulants, plan.epsilon).window(log_alias + plan.log_delta)
            kept = replace(window, high=min(window.high, window.low + points * self.spacing))
            self.is_cut |= kept.high < window.high
            self._terms.append(TiltedComposition(chosen, kept, log_weight=term.log_weight))
        self.remainder = _left_out(own, count, plan, math.fsum(n * one.excess for one, n in parts))

    def delta(self, epsilon: float) -> float:
        """The side's bound on delta at one epsilon (nats), in [0, 1]."""
        sign = 1.0 if self.side == "upper" else -1.0
        parts = [term.delta(epsilon) for term in self._terms]
        parts.append(self.delta_at_infinity)
        if sign > 0.0:
            parts.append(self.remainder)
        return min(math.fsum(parts) * (1.0 + sign * 4.0 * U), 1.0)

    def budget(self, epsilon: float) -> dict[str, float]:
        """Sizes of the errors inside ``delta(epsilon)``, in units of delta: aliasing, rounding, truncation."""
        budgets = [term.budget(epsilon) for term in self._terms]
        total = {name: min(math.fsum(b[name] for b in budgets), 1.0) for name in ("aliasing", "rounding")}
        total["truncation"] = min(self.delta_at_infinity + self.remainder, 1.0)
        return total

    def nearest_epsilon(self, delta: float) -> float:
        """Estimate of where delta(epsilon) crosses ``delta``: where the plan was made for."""
        return self._epsilon


def _left_out(bands: Sequence[LatticePLD], count: int, plan: JumpPlan, excess: float) -> float:
    """The mass of all terms that the plan leaves out, rounded up."""
    found = [log_moment(band, 0.0) for band in bands]
    logs, rounding = [log for log, _ in found], [error for _, error in found]
    chosen = {term.counts for term in plan.terms}
    most = max(count - counts[0] for counts in chosen)
    total = 0.0
    for counts, log_weight in _counts(count, logs, most=most):
        if counts not in chosen:
            jumps = zip(counts[1:], logs[1:], rounding[1:], strict=True)
            log_mass = log_weight * (1.0 + 4.0 * U) + sum(n * (log + error) for n, log, error in jumps if n)
            total += exp_up(min(log_mass + excess, 0.0))
    if most < count:
        log_jump = float(np.logaddexp(logs[1], logs[2])) + max(rounding[1:])
        log_weight = math.log(math.comb(count, most + 1))
        if log_jump > -math.inf:
            total += exp_up(min(log_weight * (1.0 + 4.0 * U) + (most + 1) * (log_jump + 4.0 * U) + excess, 0.0))
    return min(total * (1.0 + 1e-9), 1.0)


def _part(pld: LatticePLD, chosen: Flags) -> LatticePLD:
    """Some of a PLD's points; one without mass where there is none."""
    if not chosen.any():
        return replace(pld, index=pld.index[:1].copy(), log_mass=np.array([-math.inf]), mass_at_infinity=0.0)
    return replace(pld, index=pld.index[chosen].copy(), log_mass=pld.log_mass[chosen].copy(), mass_at_infinity=0.0)
