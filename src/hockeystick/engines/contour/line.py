"""One line in the complex plane, and the composition curve near its saddle point.

    delta_fin(eps) = E (S - right - left),     E = e^{K(theta) - theta eps},
    S = (h / 2 pi) sum_m e^{sum_k T_k ln phi_k(s_m)} e^{i s_m (sum_k T_k c_k - eps)} / (z_m (1 + z_m))

with ``z_m = theta + i s_m`` and phi_k the transform of the k-th loss about its centre c_k, tilted by theta. K and phi
are computed once; another epsilon costs M multiplications. What is left out beyond the last node is at most
``D arctan(theta / s_M) / (pi theta)``, D the bound on ``prod |phi_k|^{T_k}`` from there on.

Guarantee: both sides certified (`docs/derivations/contour.md`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import Chernoff, Copies
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.engines.contour.line_part import LinePart, Sieved
from hockeystick.engines.contour.line_sum import LineSum, line_sum
from hockeystick.engines.contour.line_terms import LineTerms
from hockeystick.numerics.columns import Places, column
from hockeystick.numerics.rounding import U
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, LossRule, Numbers, node_sum

LONGEST: Final = 1 << 14
"""Nodes from which those that do not matter are looked for."""

_NEGLIGIBLE = -70.0  # ln of what these may add to S
_NUMBERS = (
    "step",
    "frequencies",
    "left_out",
    "centre",
    "centre_rest",
    "normal_mean",
    "normal_mean_error",
    "log_tail",
    "dropped",
)


@final
@dataclass(frozen=True, eq=False)
class ContourLine:
    """A line at theta with step h and M nodes at and above the real axis, or several such lines.

    Attributes
    ----------
    chernoff : Chernoff
        K at theta, and the bounds on the aliasing.
    step : float
        h, of few bits: ``m h`` is exact. It and the numbers below are arrays of shape (R,) where R lines of one length
        are `stacked`; arrays then have a leading axis.
    frequencies : ndarray, shape (M,)
        ``s_m``, increasing from 0: those of the nodes kept.
    total : LineSum
        ``sum T ln phi`` about the centres there, the normal part included.
    left_out : float
        Bound on what the other nodes up to the last one add to S.
    centre, centre_rest : float
        ``sum_k T_k c_k`` as an unevaluated sum of two floats.
    normal_mean, normal_mean_error : float
        K' of the normal part.
    log_tail : float
        Upper bound on ``ln prod |phi|^T`` at and beyond ``M h``.
    dropped : float
        Bound on the mass that the rules leave out on purpose: delta may be larger by that much.
    rules : sequence of LossRule
        What the line is the sum of, planned for about as many steps; nothing where runs share them.
    """

    chernoff: Chernoff
    step: float
    frequencies: Array
    total: LineSum
    left_out: float
    centre: float
    centre_rest: float
    normal_mean: float
    normal_mean_error: float
    log_tail: float
    dropped: float
    rules: Sequence[LossRule] = ()

    @classmethod
    def stacked(cls, lines: Sequence[ContourLine]) -> ContourLine:
        """Several lines of as many nodes each as one, whose numbers have a leading axis for the line."""
        if len(lines) == 1:
            return lines[0]
        stacks: dict[str, Any] = {name: np.array([getattr(line, name) for line in lines]) for name in _NUMBERS}
        return cls(
            chernoff=Chernoff.stacked([line.chernoff for line in lines]),
            total=LineSum.stacked([line.total for line in lines]),
            **stacks,
        )

    def rows(self, index: Places | int) -> ContourLine:
        """One of several lines, or some of them, each as often as it is named; for `curve`, which asks no total."""
        parts: dict[str, Any] = {name: getattr(self, name)[index] for name in _NUMBERS}
        picked = ContourLine(chernoff=self.chernoff.at(index), total=self.total, **parts)
        picked.__dict__["_terms"] = self._terms.at(index)
        return picked

    def part(self, row: int, nodes: int, rules: Sequence[LossRule]) -> ContourLine:
        """One of several lines, up to so many nodes; all that depends on where it ends but `log_tail` follows."""
        numbers: dict[str, Any] = {name: getattr(self, name)[row] for name in _NUMBERS}
        numbers["frequencies"] = self.frequencies[row, :nodes]
        return ContourLine(
            chernoff=self.chernoff.at(row), total=self.total.at((row, slice(nodes))), rules=rules, **numbers
        )

    @cached_property
    def _terms(self) -> LineTerms:
        return LineTerms.of(self.total, self.frequencies, column(self.chernoff.theta))

    def curve(self, epsilon: Array) -> Curve:
        """Brackets of delta_fin(epsilon), epsilon of any shape, or (R, E) for R lines."""
        theta, k, k_error, truncation = self._columns
        value, rounding = self._sum(epsilon)
        aliasing = self._copies.at(epsilon)
        above = aliasing.right + aliasing.left_upper
        moved = theta * epsilon
        log_scale = k - moved
        lower = value - rounding - truncation - above
        log_scale_error = k_error + 4.0 * U * np.abs(moved)
        upper = value + rounding + truncation + self._left_out(log_scale - log_scale_error) - aliasing.left_lower
        slack = 4.0 * U * (np.abs(value) + rounding + truncation + above)
        return Curve(
            log_scale=log_scale,
            lower=lower - slack,
            upper=upper + slack,
            log_scale_error=log_scale_error,
            rounding=rounding + slack,
            truncation=truncation + np.zeros(epsilon.shape),
            aliasing=above - aliasing.left_lower,
        )

    @cached_property
    def _copies(self) -> Copies:
        return self.chernoff.copies(2.0 * math.pi / column(self.step) * (1.0 - 4.0 * U))

    @cached_property
    def _columns(self) -> tuple[Array, ...]:
        """Theta, K and the error of ``ln E`` at epsilon 0, and the truncation, to broadcast against epsilons."""
        c = self.chernoff
        return tuple(map(column, (c.theta, c.value, c.error + 4.0 * U * np.abs(c.value), self._truncation)))

    @cached_property
    def _turning(self) -> tuple[Array, ...]:
        """The first part of the centre, what else is in the gap, h over pi, and what the rounding of S is made of."""
        terms, scale, mean = self._terms, np.asarray(self.step) / math.pi, np.asarray(self.normal_mean)
        turning = scale * (1.0 + 1e-6) * terms.turning
        fixed = scale * (1.0 + 1e-6) * terms.fixed + turning * (self.normal_mean_error + 4.0 * U * np.abs(mean))
        return tuple(map(column, (self.centre, mean + self.centre_rest, scale, fixed, turning)))

    def _left_out(self, log_scale: Array) -> Array | float:
        """The mass left out, relative to E."""
        dropped = column(self.dropped)
        if not dropped.any():
            return 0.0
        log_ratio = np.log(np.where(dropped > 0.0, dropped, 1.0)) - log_scale
        with np.errstate(over="ignore"):  # infinite: beyond float64 nothing is said
            grown = np.exp(log_ratio + 1e-9 * (1.0 + np.abs(log_ratio)))
        return np.where(dropped > 0.0, grown, 0.0)

    @cached_property
    def _truncation(self) -> Array:
        """What is left out beyond the last node, relative to E."""
        theta, edge = np.asarray(self.chernoff.theta), self.frequencies[..., -1]
        with np.errstate(divide="ignore", over="ignore"):
            log_rest = self.log_tail + np.log(np.arctan(theta / edge) / (math.pi * theta))
        known = np.exp(np.minimum(log_rest, 700.0)) * (1.0 + 1e-9) + self.left_out
        return np.where(edge > 0.0, known, np.inf)

    def _sum(self, epsilon: Array) -> tuple[Array, Array]:
        """S and a bound on its rounding error, of the shape of epsilon."""
        terms = self._terms
        centre, rest, scale, fixed, turning = self._turning
        away = centre - epsilon
        gap = away + rest
        found = gap[..., None] * self.frequencies[..., None, :]
        found += terms.argument[..., None, :]
        np.cos(found, out=found)
        found *= terms.size[..., None, :]
        # The gap errs by its mean's error, and by 4 u of what it is made of. The phase errs by that times s, and by 3 u
        # of the turn: a product, a sum, and what the sum rounds of the product.
        return scale * node_sum(found), fixed + turning * U * (4.0 * np.abs(away) + 7.0 * np.abs(gap))


def summed_line(
    parts: Sequence[LinePart],
    gaussian_variance: Numbers,
    *,
    chernoff: Chernoff,
    step: Numbers,
    nodes: int,
    log_tail: Numbers,
    most: int | None = None,
) -> ContourLine:
    """The line of one run, or those of R runs, through ``chernoff.theta`` with M = ``nodes`` nodes.

    Runs that share rules share the steps of these. Only the first ``most`` nodes are summed, the same to the bit.

    Parameters
    ----------
    parts : sequence of LinePart
        The parts of the loss, tilted by theta (`line_parts`).
    gaussian_variance : float or ndarray
        Variance of the normal part.
    chernoff : Chernoff
        K at theta and around it.
    step, nodes : float or ndarray, int
        h and M.
    log_tail : float or ndarray
        As in `ContourLine`.
    most : int, optional
        By default all nodes.
    """
    if parts and nodes > LONGEST:  # of a normal loss alone there is nothing to look at
        from hockeystick.engines.contour.sieve import sieve  # loaded where lines are long

        theta, own, variance = (float(np.reshape(one, ())) for one in (chernoff.theta, step, gaussian_variance))
        kept = sieve(parts, theta, own, nodes, variance=variance, log_error=_NEGLIGIBLE)
        if np.ndim(step):
            kept = Sieved(kept.frequencies[None], LineSum.stacked([kept.total]), np.array([kept.left_out]))
    else:
        sums = [line_sum(p.tilted, p.counts, step, nodes, p.quadrature, rows=p.rows, most=most) for p in parts]
        shared = [part.rows for part in parts if part.rows is not None]
        if shared:
            step = np.asarray(step)[shared[0]]
        frequencies = np.asarray(step)[..., None] * np.arange(float(most or nodes))
        total = functools.reduce(operator.add, sums) if sums else LineSum(*[np.zeros(frequencies.shape)] * 4)
        kept = Sieved(frequencies, total, np.zeros(np.shape(step)))
    return line_at(parts, gaussian_variance, chernoff=chernoff, step=step, kept=kept, log_rest=log_tail)


def line_parts(
    rules: Sequence[LossRule], tilted: Sequence[TiltedRule], exponent: Any, reach: Any
) -> Sequence[LinePart]:
    """The tilted rules with what is needed to sum them at frequencies up to ``reach``."""
    return [
        LinePart(
            part,
            rule.counts,
            1.01 * (rule.quadrature.error_up_to(reach, exponent, part.quadrature) + part.quadrature),
            rule.dropped,
        )
        for rule, part in zip(rules, tilted, strict=True)
    ]


def line_at(
    parts: Sequence[LinePart],
    gaussian_variance: Numbers,
    *,
    chernoff: Chernoff,
    step: Numbers,
    kept: Sieved,
    log_rest: Numbers | None = None,
) -> ContourLine:
    """The line of nodes whose sums without the normal part are known.

    ``log_rest`` bounds ``ln prod |phi|^T``, the normal part included, from the last node on; by default the normal part
    alone does.
    """
    s = kept.frequencies
    normal = -0.5 * column(gaussian_variance) * s * s
    total = kept.total + LineSum(normal, np.zeros(s.shape), 24.0 * U * np.abs(normal), normal * (1.0 - 1e-9))
    runs = np.size(step)
    centre, rest = _two_floats([part.composed(part.tilted.centre) for part in parts], runs)
    left_out = np.array([math.fsum(row) for row in _by_run([part.composed(part.dropped) for part in parts], runs)])
    several = np.ndim(step) > 0
    mean = gaussian_variance * (chernoff.theta + 0.5)
    numbers: dict[str, Any] = {
        "step": step,
        "left_out": kept.left_out,
        "centre": centre if several else float(centre[0]),
        "centre_rest": rest if several else float(rest[0]),
        "normal_mean": mean,
        "normal_mean_error": 24.0 * U * np.abs(mean),
        "log_tail": normal[..., -1] * (1.0 - 1e-9) if log_rest is None else log_rest,
        "dropped": (left_out if several else float(left_out[0])) * (1.0 + 1e-9),
    }
    return ContourLine(chernoff=chernoff, frequencies=s, total=total, **numbers)


def _by_run(rows: Sequence[Array], runs: int) -> Sequence[Sequence[float]]:
    """Numbers of rules of several parts, gathered for each run."""
    if runs == 1:
        return [[number for row in rows for number in row.tolist()]]
    return [list(one) for one in zip(*(row.tolist() for row in rows), strict=True)]


def _two_floats(rows: Sequence[Array], runs: int) -> tuple[Array, Array]:
    """The exact sums of numbers of each run, but for what two floats cannot hold."""
    every = _by_run(rows, runs)
    first = [math.fsum(row) for row in every]
    rest = [math.fsum([*row, -one]) for row, one in zip(every, first, strict=True)]
    return np.array(first), np.array(rest)
