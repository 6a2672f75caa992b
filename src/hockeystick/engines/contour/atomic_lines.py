"""Lines of discrete losses: on the lattice that they share, or smoothed a little where they share none.

Guarantee: every line proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hockeystick.engines.contour.decay import Decay
from hockeystick.engines.contour.laid import TiltedRules
from hockeystick.engines.contour.lattice_line import LatticeLine, prepare_lattice_line, runs
from hockeystick.engines.contour.line import line_at, line_parts
from hockeystick.engines.contour.planned import MOST_NODES, MOST_WORK, few_bit_steps, reach_of
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.sieve import TooManyBlocksError, sieve, sieve_work
from hockeystick.engines.contour.smoothed_line import SmoothedLine, few_bits, smoothed_reach, smoothing
from hockeystick.engines.contour.tilt_choice import LinePlan, log_share
from hockeystick.numerics.rounding import U
from hockeystick.transforms.lattice import SharedLattice
from hockeystick.transforms.rule import LossRule

_MOST_SMOOTHED = 40_000_000  # products that one pass over the blocks of a smoothed line takes: 50 ms or so
_MOST_FREQUENCIES = 1 << 31  # of a smoothed line: their products with a step of 21 bits are exact
_MOST_KEPT = 1 << 17  # frequencies that may matter
_WORTH = 50.0  # times the tolerance of a line, that smoothing may widen a bracket by
_COARSER = 1.4  # times the smoothing wanted: brackets widen by the square, and would not be narrow enough


def atomic_line(
    lattice: SharedLattice | None, found: TiltedRules, plan: LinePlan, epsilon: float, *, tolerance: float, work: int
) -> LatticeLine | SmoothedLine:
    """The line of tilted rules of discrete losses.

    Raises
    ------
    ContourRefusal
        Where none of that work, and of at most a million nodes, does.
    """
    if lattice is not None:
        return _lattice_line(found, lattice, plan, epsilon)
    return _smoothed_line(epsilon, tolerance, found, plan, min(work, _MOST_SMOOTHED))


def _smoothed_line(epsilon: float, tolerance: float, found: TiltedRules, several: LinePlan, work: int) -> SmoothedLine:
    """Two lines of discrete losses that share no lattice, as fine as the work allowed makes them."""
    theta, log_error = float(several.theta[0]), float(several.log_error[0])
    parts = line_parts(found.rules, found.tilted, 1.0 + theta, math.inf)
    wanted = smoothing(parts, epsilon, log_error - log_share(tolerance), _WORTH * tolerance)
    step = float(few_bit_steps(np.array(2.0 * math.pi / found.period(epsilon, log_error))))
    finest = wanted * smoothed_reach(wanted, theta, log_error) * sieve_work(parts, step) / work
    if finest > _COARSER * wanted:
        raise ContourRefusal("atoms", f"smoothing by {finest:.2g} nats, as the work allows, is too coarse: many atoms")
    eta = max(wanted, few_bits(finest))
    nodes = math.ceil(smoothed_reach(eta, theta, log_error) / step) + 1
    if nodes > _MOST_FREQUENCIES:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps of atoms")
    variance = eta * eta
    share = U / sum(float(part.counts.sum()) for part in parts)  # no more than rounding
    parts = [part.but(share, step * nodes) for part in parts]
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
        (weight, float(doubt), count[None])
        for t, r in zip(found.tilted, found.rules, strict=True)
        for weight, doubt, count in zip(t.weight, t.weight_error, r.counts, strict=True)
    ]
    uniform = zip(rows, lattice.indices, strict=True)
    parts = [(runs(weight, index, lattice.spacing, doubt), count) for (weight, doubt, count), index in uniform]
    decay = Decay(parts, 0.0)  # up to half the frequency of the lattice
    cut = float(reach_of(decay, several)[0])
    whole = (size + 1) // 2
    nodes = whole if not math.isfinite(cut) else min(whole, math.ceil(cut / step) + 1)
    _check_work(nodes, found.rules, MOST_WORK)
    log_tail = -math.inf if nodes == whole else float(decay.log_bound(np.array([step * (nodes - 1)]))[0])
    return prepare_lattice_line(
        found.rules, found.tilted, lattice, chernoff=found.chernoff.at(0), size=size, nodes=nodes, log_tail=log_tail
    )


def _check_work(nodes: int, rules: Sequence[LossRule], work: int) -> None:
    if nodes > MOST_NODES or nodes * sum(rule.size * rule.nodes for rule in rules) > work:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: few steps, or atoms")
