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
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import chernoff, log_constant
from hockeystick.engines.contour.lattice_line import LatticeLine, Runs, prepare_lattice_line, runs
from hockeystick.engines.contour.line import ContourLine, line_at, line_parts
from hockeystick.engines.contour.planned import (
    MOST_NODES,
    TiltedRules,
    accuracy_of,
    few_bit_steps,
    lines_for_epsilons,
    reach_of,
    rules_for,
)
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.sieve import TooManyBlocksError, sieve, sieve_work
from hockeystick.engines.contour.smoothed_line import SmoothedLine, few_bits, smoothed_reach, smoothing
from hockeystick.engines.contour.tilt_choice import LinePlan, log_share, plan_lines
from hockeystick.numerics.rounding import U
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.lattice import SharedLattice
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import Array, LossRule, Window, by_run
from hockeystick.transforms.saddle import SMALLEST_TILT, LossSum, Saddle, find_saddle, round_tilts

__all__ = [
    "MOST_WORK",
    "ContourRefusal",
    "line_for_epsilon",
    "lines_for_epsilons",
    "log_complement",
    "log_tail",
    "normal_tilts",
    "saddle_of_delta",
    "saddle_of_epsilon",
]

MOST_WORK: Final = 250_000_000
"""Products of nodes in s and in the loss that a line may take: about half a second."""

_ABOUT = np.array([0.25, 0.5, 0.7, 1.0, 1.4, 2.0])  # times a tilt, where the best one may be
_MOST_SMOOTHED = 40_000_000  # products that one pass over the blocks of a smoothed line takes: 50 ms or so
_MOST_FREQUENCIES = 1 << 31  # of a smoothed line: their products with a step of 21 bits are exact
_MOST_KEPT = 1 << 17  # frequencies that may matter
_WORTH = 50.0  # times the tolerance of a line, that smoothing may widen a bracket by
_COARSER = 1.4  # times the smoothing wanted: brackets widen by the square, and would not be narrow enough


@final
@dataclass(frozen=True, eq=False)
class _LatticeDecay:
    """The same for losses on a lattice, up to half its frequency."""

    parts: Sequence[tuple[Runs, float]]

    def log_bound(self, frequencies: Array) -> Array:
        """At each frequency, shape (F,)."""
        total = np.zeros(frequencies.size)
        for part, count in self.parts:
            total = total + count * part.log_bound(frequencies.ravel())
        return (total * (1.0 - 1e-9)).reshape(frequencies.shape)


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
    several = Saddle.stacked([saddle])
    at, wanted = np.array([epsilon]), np.array([tolerance])
    known = None if log_delta is None else np.array([log_delta])
    if not losses.on_lattice:
        (found,) = lines_for_epsilons(losses, at, wanted, saddle=several, log_delta=known, work=np.array([work]))
        if isinstance(found, ContourRefusal):
            raise found
        return found
    plan = plan_lines(losses, several, at, tolerance=wanted, log_delta=known)
    window = Window.of(plan.exponents, np.zeros(1), accuracy_of(losses, plan, wanted))
    tilted = TiltedRules.of(losses, plan, window)
    lattice = losses.lattice(tilted.rules)
    if lattice is not None:
        return _lattice_line(tilted, lattice, plan, epsilon)
    return _smoothed_line(epsilon, tolerance, tilted, plan, min(work, _MOST_SMOOTHED))


def _smoothed_line(epsilon: float, tolerance: float, found: TiltedRules, several: LinePlan, work: int) -> SmoothedLine:
    """Two lines of discrete losses that share no lattice, as fine as the work allowed makes them."""
    theta, log_error = float(several.theta[0]), float(several.log_error[0])
    parts = line_parts(found.rules, found.tilted, 1.0 + theta, math.inf)
    wanted = smoothing(parts, epsilon, log_error - log_share(tolerance), _WORTH * tolerance)
    finest = wanted * smoothed_reach(wanted, theta, log_error) * sieve_work(parts) / work
    if finest > _COARSER * wanted:
        raise ContourRefusal("atoms", f"smoothing by {finest:.2g} nats, as the work allows, is too coarse: many atoms")
    eta = max(wanted, few_bits(finest))
    step = float(few_bit_steps(np.array(2.0 * math.pi / found.period(epsilon, log_error))))
    nodes = math.ceil(smoothed_reach(eta, theta, log_error) / step) + 1
    if nodes > _MOST_FREQUENCIES:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps of atoms")
    variance = eta * eta
    try:
        kept = sieve(parts, theta, step, nodes, variance=variance, log_error=log_error, most=work)
    except TooManyBlocksError as error:
        raise ContourRefusal("tail", "too many frequencies may matter: few steps of atoms") from error
    if kept.frequencies.size > _MOST_KEPT:
        raise ContourRefusal("tail", f"{kept.frequencies.size} frequencies matter: few steps of atoms")
    once, twice = (
        line_at(parts, noise, chernoff=found.chernoff_with(noise), step=step, kept=kept)
        for noise in (variance, 4.0 * variance)
    )
    return SmoothedLine(once, twice, eta)


def _lattice_line(found: TiltedRules, lattice: SharedLattice, several: LinePlan, epsilon: float) -> LatticeLine:
    log_error = float(several.log_error[0])
    size = 2 * math.ceil(0.5 * found.period(epsilon, log_error) / lattice.spacing) + 1
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
    cut = float(reach_of(decay, several)[0])
    whole = (size + 1) // 2
    nodes = whole if not math.isfinite(cut) else min(whole, math.ceil(cut / step) + 1)
    _check_work(nodes, found.rules, MOST_WORK)
    log_tail = -math.inf if nodes == whole else float(decay.log_bound(np.array([step * (nodes - 1)]))[0])
    return prepare_lattice_line(
        found.rules, found.tilted, lattice, chernoff=found.chernoff.rows(0), size=size, nodes=nodes, log_tail=log_tail
    )


def log_complement(losses: LossSum, saddle: Saddle, epsilon: float) -> float:
    """Upper bound on ``ln (1 - delta(eps))`` by Chernoff's bound, ``1 - delta(y) <= e^{K(t) - ty}``, -1 <= t <= 0."""
    tilts = np.linspace(-1.0, -1.0 / 32.0, 32)
    found = scan(saddle.sketches, losses.gaussian_variance, tilts)
    best = float(tilts[int(np.argmin(found.value - tilts * epsilon))])
    exponents = np.array([1.0 + best])
    rules = rules_for(losses, Window((1.0 + best,), 0.0, -40.0))
    moments = chernoff(rules, [log_moments(rule, exponents) for rule in rules], losses.gaussian_variance, (best,))
    return moments.value + moments.error - best * epsilon + 4.0 * U * (abs(moments.value) + abs(best * epsilon))


def normal_tilts(epsilon: Array, delta: Array) -> Array:
    """Tilts about the saddle point of a normal loss whose curve passes through each point, shape (k, n)."""
    depth = np.sqrt(-2.0 * np.log(delta))
    mu = np.sqrt(depth * depth + 2.0 * epsilon) - depth
    saddle = np.maximum(epsilon / (mu * mu) - 0.5, SMALLEST_TILT)
    return np.ascontiguousarray(round_tilts(saddle[:, None] * _ABOUT).T)


def log_tail(losses: LossSum, tilts: Array, epsilon: Array, *, goal: Array | float = math.inf) -> Array:
    """Upper bounds on ``ln delta_fin(eps)`` of R sums: about the least of Chernoff's bounds at tilts, shape (k, R).

    All above 0. Infinite where that seems to be above ``goal``, or a rule would be too long: nothing is proved then.
    """
    found = np.full_like(epsilon, np.inf)
    nothing = np.zeros_like(epsilon)
    wanted = nothing + goal
    for rows, some, window in losses.alike(Window.of(1.0 + tilts, nothing, nothing - 40.0)):
        rules, own = some.rules(window), np.ascontiguousarray(tilts[:, rows])
        if rules is None:
            continue
        value = scan([rule.sketch for rule in rules], some.gaussian_variance, own).value
        about = value - own * epsilon[rows] + log_constant(own)
        near = about.min(axis=0) <= wanted[rows]
        if not near.any():
            continue
        best = own[np.argmin(about, axis=0), np.arange(rows.size)]
        every = np.array([best, best])  # the first is that of no line
        moments = [log_moments(rule, 1.0 + every if rows.size > 1 else 1.0 + every[:, 0]) for rule in rules]
        finite = chernoff(rules, moments, some.gaussian_variance, every).log_delta_bound(epsilon[rows])
        left_out = [by_run(rule.dropped * rule.counts, rows.size) for rule in rules]
        dropped = np.asarray(sum(left_out, nothing[rows])) * (1.0 + 1e-9)
        known = np.maximum(finite, np.log(np.where(dropped > 0.0, dropped, 1.0))) + math.log(2.0) + 1e-9
        found[rows] = np.where(near, np.where(dropped > 0.0, known, finite), np.inf)
    return found


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


def _check_work(nodes: int, rules: Sequence[LossRule], work: int) -> None:
    if nodes > MOST_NODES or nodes * sum(rule.size * rule.nodes for rule in rules) > work:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps, or atoms")
