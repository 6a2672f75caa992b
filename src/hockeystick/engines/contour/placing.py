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
from typing import TYPE_CHECKING

import numpy as np

from hockeystick.engines.contour.aliasing import chernoff, log_constant
from hockeystick.engines.contour.laid import TiltedRules, rules_for
from hockeystick.engines.contour.planned import MOST_WORK, accuracy_of, lines_for_epsilons
from hockeystick.engines.contour.refusal import ContourRefusal as ContourRefusal
from hockeystick.engines.contour.tilt_choice import plan_lines
from hockeystick.numerics.rounding import U
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import Array, Window, by_run
from hockeystick.transforms.saddle import LossSum, Saddle, find_saddle

if TYPE_CHECKING:
    from hockeystick.engines.contour.lines import Line


def line_for_epsilon(
    losses: LossSum,
    epsilon: float,
    tolerance: float,
    *,
    saddle: Saddle | None = None,
    log_delta: float | None = None,
    work: int = MOST_WORK,
) -> Line:
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
    several = saddle if np.ndim(saddle.theta) else Saddle.stacked([saddle])
    at, wanted = np.array([epsilon]), np.array([tolerance])
    known = None if log_delta is None else np.array([log_delta])
    plan = plan_lines(losses, several, at, tolerance=wanted, log_delta=known)
    if not losses.on_lattice:
        most, sketches = np.array([work]), several.sketches
        (found,) = lines_for_epsilons(losses, at, wanted, plan=plan, sketches=sketches, work=most)
        if isinstance(found, ContourRefusal):
            raise found
        return found
    window = Window.of(plan.exponents, np.zeros(1), accuracy_of(losses, plan, wanted))
    tilted = TiltedRules.of(losses, plan, window)
    from hockeystick.engines.contour.atomic_lines import atomic_line  # loaded where losses are discrete

    return atomic_line(losses.lattice(tilted.rules), tilted, plan, epsilon, tolerance=tolerance, work=work)


def log_complement(losses: LossSum, saddle: Saddle, epsilon: float) -> float:
    """Upper bound on ``ln (1 - delta(eps))`` by Chernoff's bound, ``1 - delta(y) <= e^{K(t) - ty}``, -1 <= t <= 0.

    What the rules leave out counts with its mass: ``1 - delta`` is the mean of a number of at most 1.
    """
    tilts = np.linspace(-1.0, -1.0 / 32.0, 32)
    found = scan(saddle.sketches, losses.gaussian_variance, tilts)
    best = float(tilts[int(np.argmin(found.value - tilts * epsilon))])
    exponents = np.array([1.0 + best])
    rules = rules_for(losses, Window((1.0 + best,), 0.0, -40.0))
    counts, moments = [rule.counts for rule in rules], [log_moments(rule, exponents, fine=0) for rule in rules]
    known = chernoff(counts, moments, losses.gaussian_variance, (best,))
    log_gap = known.value + known.error - best * epsilon + 4.0 * U * (abs(known.value) + abs(best * epsilon))
    left_out = math.fsum(float(rule.dropped @ rule.counts) for rule in rules)
    return float(np.logaddexp(log_gap, math.log(left_out))) + 1e-9 if left_out > 0.0 else log_gap


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
        every = best[None]
        moments = [log_moments(rule, 1.0 + every if rows.size > 1 else 1.0 + every[:, 0], fine=0) for rule in rules]
        counts = [rule.counts for rule in rules]
        finite = chernoff(counts, moments, some.gaussian_variance, every).log_delta_bound(epsilon[rows])
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
