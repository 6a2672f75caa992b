"""The composition curve by the trapezoidal rule on the line through the saddle point: planning and answers.

    delta(eps) = (h / 2 pi) sum_m e^{K(z_m) - z_m eps} / (z_m (1 + z_m)) - aliasing,   z_m = theta + i m h    (004, 28)

The plan for one epsilon: the tilt solves the saddle-point equation on coarse rules; the cut-off s_M is where the
certified bound on ``|phi|`` leaves less than the tolerance; rules are built again, accurate on ``|Im z| <= s_M``;
Lambda = 2 pi / h is where Chernoff's bounds on the aliasing fall below the tolerance. Everything chosen is then
bounded afresh, so a bad plan costs width, never truth.

Guarantee: brackets are certified on both sides, rounding included; where the tolerance is out of reach `ContourRefusal`
says why. Cost: about ``2 sqrt(M) n`` sines and ``M n`` products for n nodes in the loss and M in s; a few dozen of
each for DP-SGD, whatever the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import Chernoff, chernoff
from hockeystick.engines.contour.decay import Decay, RoughDecay
from hockeystick.engines.contour.lattice_line import LatticeLine, Runs, prepare_lattice_line, runs
from hockeystick.engines.contour.line import ContourLine, line_at, line_parts, prepare_line
from hockeystick.engines.contour.sieve import TooManyBlocksError, sieve, sieve_work
from hockeystick.engines.contour.smoothed_line import SmoothedLine, few_bits, smoothed_reach, smoothing
from hockeystick.engines.contour.tilt_choice import LinePlan, log_share, plan_line
from hockeystick.errors import PrecisionError
from hockeystick.numerics.rounding import U
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.lattice import SharedLattice
from hockeystick.transforms.log_moments import LogMoments, TiltedRule, log_moments, tilt
from hockeystick.transforms.rule import Array, LossRule, Window
from hockeystick.transforms.saddle import LossSum, Saddle, find_saddle

__all__ = [
    "MOST_WORK",
    "ContourRefusal",
    "line_for_epsilon",
    "log_complement",
    "log_tail",
    "saddle_of_delta",
    "saddle_of_epsilon",
]

MOST_WORK: Final = 250_000_000
"""Products of nodes in s and in the loss that a line may take: about half a second."""

_UNIT_GRID = np.linspace(0.0, 1.0, 16)
_CELLS = 4  # between nodes, where a rule is cut off
_MOST_NODES = 1 << 20
_MOST_SMOOTHED = 40_000_000  # products that one pass over the blocks of a smoothed line takes: 50 ms or so
_MOST_FREQUENCIES = 1 << 31  # of a smoothed line: their products with a step of 21 bits are exact
_MOST_KEPT = 1 << 17  # frequencies that may matter
_WORTH = 50.0  # times the tolerance of a line, that smoothing may widen a bracket by
_COARSER = 1.4  # times the smoothing wanted: brackets widen by the square, and would not be narrow enough


@final
class ContourRefusal(PrecisionError):  # noqa: N818 - an answer of its own, not a mistake
    """The contour cannot reach the tolerance; the message says why.

    Attributes
    ----------
    reason : str
        One word or two: ``"tail"`` (the transform decays too slowly: few steps, or atoms), ``"aliasing"``,
        ``"saddle"`` (no saddle point among the tilts tried), ``"width"`` (the bracket came out too wide), ``"atoms"``
        (they are too many to be smoothed finely) or ``"pair"`` (no certified transform of a pair).
    """

    def __init__(self, reason: str, message: str, best: object | None = None) -> None:
        super().__init__(message, best)
        self.reason = reason


@final
@dataclass(frozen=True, eq=False)
class _LatticeDecay:
    """The same for losses on a lattice, up to half its frequency."""

    parts: Sequence[tuple[Runs, float]]

    def log_bound(self, frequencies: Array) -> Array:
        """At each frequency, shape (F,)."""
        total = np.zeros(frequencies.size)
        for part, count in self.parts:
            total = total + count * part.log_bound(frequencies)
        return total * (1.0 - 1e-9)


def _reach(decay: Decay | _LatticeDecay, theta: float, scale: float, log_error: float) -> float:
    """The frequency beyond which the bound leaves ``e^log_error``; infinite beyond a few million scales."""
    low = high = math.log(scale)
    for span in (15.4, 1.05):  # the second a little over the spacing of the first
        grid = np.exp(low + span * _UNIT_GRID)
        rest = decay.log_bound(grid) + np.log(np.arctan(theta / grid) / (math.pi * theta))
        below = rest <= log_error
        if not below.any():
            return math.inf
        index = int(np.argmax(below))
        high = float(grid[index])
        low = math.log(float(grid[max(index - 1, 0)]))
    return high


def line_for_epsilon(
    losses: LossSum,
    epsilon: float,
    tolerance: float,
    *,
    saddle: Saddle | None = None,
    log_delta: float | None = None,
    work: int = MOST_WORK,
) -> ContourLine | LatticeLine | SmoothedLine:
    """A line that brackets delta_fin at and near ``epsilon`` to a relative width of about ``tolerance``.

    Parameters
    ----------
    losses : LossSum
        The composition.
    epsilon : float
        Nats, any sign.
    tolerance : float
        Relative width wanted.
    saddle : Saddle, optional
        The saddle point, where it is known.
    log_delta : float, optional
        ``ln delta_fin``, where it is known; by default its saddle-point estimate.
    work : int
        Products of nodes in s and in the loss that the line may take.

    Raises
    ------
    ContourRefusal
        Where no line of that work, and of at most a million nodes, does.
    """
    if saddle is None:
        saddle = saddle_of_epsilon(losses, epsilon)
    plan = plan_line(
        lambda t: saddle.look(losses, t),
        saddle,
        epsilon,
        tolerance=tolerance,
        log_delta=log_delta,
    )
    # errors of the identities sum q = sum p = 1 count with the exponents, all errors with the number of steps
    accuracy = math.log(tolerance / 64.0) - math.log(max(losses.total_count, 1.0) * (1.0 + 2.0 * max(plan.exponents)))
    if losses.on_lattice:
        window = Window(plan.exponents, 0.0, accuracy)
        found = _Tilted.of(losses, plan, window)
        lattice = losses.lattice(found.rules)
        if lattice is not None:
            return _lattice_line(found, lattice, plan, epsilon)
        return _smoothed_line(epsilon, tolerance, found, plan)
    rough = RoughDecay.of(saddle.sketches, 1.0 + plan.theta, losses.gaussian_variance)
    cut = _reach(rough.decay, plan.theta, 1.0 / plan.deviation, plan.log_error)
    if not math.isfinite(cut):
        raise ContourRefusal("tail", "the transform decays too slowly for the tolerance: few steps, or atoms")
    frequency = 1.02 * cut + 1.5 * 2.0 * math.pi / plan.period  # the last node lies within a step beyond the cut-off
    window = Window(plan.exponents, frequency, accuracy, cells=_CELLS if rough.is_cut else 0)
    found = _Tilted.of(losses, plan, window)
    if not rough.is_cut and any(bool(rule.dropped.any()) for rule in found.rules):
        found = _Tilted.of(losses, plan, replace(window, cells=_CELLS))
    decay = rough.measured(found.rules, found.moments)
    step, nodes = _grid(found.period(epsilon, plan.log_error), cut, found.rules, work)
    return prepare_line(
        found.rules,
        found.tilted,
        losses.gaussian_variance,
        chernoff=found.chernoff,
        step=step,
        nodes=nodes,
        log_tail=float(decay.log_bound(np.array([step * (nodes - 1)]))[0]),
    )


@final
@dataclass(frozen=True, eq=False)
class _Tilted:
    """Accurate rules, the same tilted, and K at all tilts of a plan."""

    rules: Sequence[LossRule]
    moments: Sequence[LogMoments]
    tilted: Sequence[TiltedRule]
    chernoff: Chernoff

    @classmethod
    def of(cls, losses: LossSum, plan: LinePlan, window: Window) -> _Tilted:
        rules = _rules(losses, window)
        single = [log_moments(rule, np.array(plan.exponents)) for rule in rules]
        known = chernoff(rules, single, losses.gaussian_variance, (plan.theta, *plan.tilts))
        exponent = plan.exponents[0]
        tilted = [tilt(rule, exponent, m) for rule, m in zip(rules, single, strict=True)]
        return cls(rules, single, tilted, known)

    def chernoff_with(self, variance: float) -> Chernoff:
        """K at the same tilts with a normal part of that variance."""
        return chernoff(self.rules, self.moments, variance, (self.chernoff.theta, *self.chernoff.tilts))

    def period(self, epsilon: float, log_error: float) -> float:
        """Lambda for which the aliasing falls below ``e^log_error``."""
        period = float(self.chernoff.period(epsilon, log_error))
        if not math.isfinite(period):
            raise ContourRefusal("aliasing", "no tilt bounds the aliasing")
        return period


def _smoothed_line(epsilon: float, tolerance: float, found: _Tilted, plan: LinePlan) -> SmoothedLine:
    """Two lines of discrete losses that share no lattice, as fine as the work allowed makes them."""
    parts = line_parts(found.rules, found.tilted, 1.0 + plan.theta, math.inf)
    wanted = smoothing(parts, epsilon, plan.log_error - log_share(tolerance), _WORTH * tolerance)
    finest = wanted * smoothed_reach(wanted, plan.theta, plan.log_error) * sieve_work(parts) / _MOST_SMOOTHED
    if finest > _COARSER * wanted:
        raise ContourRefusal("atoms", f"smoothing by {finest:.2g} nats, as the work allows, is too coarse: many atoms")
    eta = max(wanted, few_bits(finest))
    step = _step(found.period(epsilon, plan.log_error))
    nodes = math.ceil(smoothed_reach(eta, plan.theta, plan.log_error) / step) + 1
    if nodes > _MOST_FREQUENCIES:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps of atoms")
    theta, variance = plan.theta, eta * eta
    try:
        kept = sieve(parts, theta, step, nodes, variance=variance, log_error=plan.log_error, most=_MOST_SMOOTHED)
    except TooManyBlocksError as error:
        raise ContourRefusal("tail", "too many frequencies may matter: few steps of atoms") from error
    if kept.frequencies.size > _MOST_KEPT:
        raise ContourRefusal("tail", f"{kept.frequencies.size} frequencies matter: few steps of atoms")
    once, twice = (
        line_at(found.rules, found.tilted, noise, chernoff=found.chernoff_with(noise), step=step, kept=kept)
        for noise in (variance, 4.0 * variance)
    )
    return SmoothedLine(once, twice, eta)


def _lattice_line(found: _Tilted, lattice: SharedLattice, plan: LinePlan, epsilon: float) -> LatticeLine:
    size = 2 * math.ceil(0.5 * found.period(epsilon, plan.log_error) / lattice.spacing) + 1
    step = 2.0 * math.pi / (size * lattice.spacing)
    rows = [
        (weight, float(count))
        for t, r in zip(found.tilted, found.rules, strict=True)
        for weight, count in zip(t.weight, r.counts, strict=True)
    ]
    decay = _LatticeDecay(
        [
            (runs(weight, index, lattice.spacing), count)
            for (weight, count), index in zip(rows, lattice.indices, strict=True)
        ]
    )
    cut = _reach(decay, plan.theta, 1.0 / plan.deviation, plan.log_error)
    whole = (size + 1) // 2
    nodes = whole if not math.isfinite(cut) else min(whole, math.ceil(cut / step) + 1)
    _check_work(nodes, found.rules, MOST_WORK)
    log_tail = -math.inf if nodes == whole else float(decay.log_bound(np.array([step * (nodes - 1)]))[0])
    return prepare_lattice_line(
        found.rules, found.tilted, lattice, chernoff=found.chernoff, size=size, nodes=nodes, log_tail=log_tail
    )


def log_complement(losses: LossSum, saddle: Saddle, epsilon: float) -> float:
    """Upper bound on ``ln (1 - delta(eps))`` by Chernoff's bound, ``1 - delta(y) <= e^{K(t) - ty}``, -1 <= t <= 0."""
    tilts = np.linspace(-1.0, -1.0 / 32.0, 32)
    found = scan(saddle.sketches, losses.gaussian_variance, tilts)
    best = float(tilts[int(np.argmin(found.value - tilts * epsilon))])
    exponents = np.array([1.0 + best])
    rules = _rules(losses, Window((1.0 + best,), 0.0, -40.0))
    moments = chernoff(rules, [log_moments(rule, exponents) for rule in rules], losses.gaussian_variance, (best,))
    return moments.value + moments.error - best * epsilon + 4.0 * U * (abs(moments.value) + abs(best * epsilon))


def log_tail(losses: LossSum, saddle: Saddle, epsilon: float) -> float:
    """Upper bound on ``ln delta_fin(eps)`` by Chernoff's bound, ``delta(eps) <= e^{K(theta) - theta eps}``."""
    theta = saddle.theta
    rules = _rules(losses, Window((1.0 + theta,), 0.0, -40.0))
    moments = [log_moments(rule, np.array([1.0 + theta])) for rule in rules]
    found = chernoff(rules, moments, losses.gaussian_variance, (theta,))
    finite = found.value + found.error - theta * epsilon + 4.0 * U * (abs(found.value) + abs(theta * epsilon))
    dropped = math.fsum(float(rule.dropped @ rule.counts) for rule in rules) * (1.0 + 1e-9)
    return finite if dropped == 0.0 else max(finite, math.log(dropped)) + math.log(2.0) + 1e-9


def saddle_of_epsilon(losses: LossSum, epsilon: float) -> Saddle:
    """The saddle point of an epsilon.

    Raises
    ------
    ContourRefusal
        Where it is beyond every tilt tried.
    """
    saddle = find_saddle(losses, lambda found: found.saddle_excess(epsilon))
    if saddle is None:
        raise ContourRefusal("saddle", f"no tilt tried is large enough for epsilon {epsilon:g}")
    return saddle


def saddle_of_delta(losses: LossSum, log_delta: float) -> Saddle:
    """The tilt at which the saddle-point estimate of ``ln delta`` is ``log_delta``.

    Raises
    ------
    ContourRefusal
        Where it is beyond every tilt tried.
    """
    saddle = find_saddle(losses, lambda found: log_delta - found.smooth_log_delta()[1])
    if saddle is None:
        raise ContourRefusal("saddle", f"no tilt tried is large enough for ln delta {log_delta:g}")
    return saddle


def _step(period: float) -> float:
    """The distance of nodes, of 21 bits."""
    exact = 2.0 * math.pi / period
    unit = 2.0 ** (math.floor(math.log2(exact)) - 20)
    return math.floor(exact / unit) * unit


def _grid(period: float, cut: float, rules: Sequence[LossRule], work: int) -> tuple[float, int]:
    """Step of few bits, and number of nodes."""
    step = _step(period)
    nodes = math.ceil(cut / step) + 1
    _check_work(nodes, rules, work)
    return step, nodes


def _rules(losses: LossSum, window: Window) -> Sequence[LossRule]:
    rules = losses.rules(window)
    if rules is None:
        raise ContourRefusal("tail", "a rule would need too many nodes at the frequencies and tilts asked for")
    return rules


def _check_work(nodes: int, rules: Sequence[LossRule], work: int) -> None:
    if nodes > _MOST_NODES or nodes * sum(rule.size * rule.nodes for rule in rules) > work:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps, or atoms")
