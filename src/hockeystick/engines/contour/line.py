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
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.aliasing import Chernoff
from hockeystick.engines.contour.line_sum import LineSum, line_sum
from hockeystick.engines.contour.line_terms import LineTerms
from hockeystick.engines.contour.sieve import LinePart, Sieved, sieve
from hockeystick.numerics.rounding import U
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, LossRule

__all__ = ["ContourLine", "Curve", "line_at", "line_parts", "prepare_line"]

_LONG = 1 << 14  # nodes from which those that do not matter are looked for
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
_LEAST = 1e-300  # a lower bound below it counts as none, an upper bound is rounded up to it


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Brackets of delta_fin at several epsilons, and where their widths come from.

    Arrays of shape (E,), or (R, E) for R lines.

    Attributes
    ----------
    log_scale : ndarray
        ``ln E``, so that values too small for float64 can still be compared.
    lower, upper : ndarray
        Brackets of ``delta_fin / E``.
    log_scale_error : ndarray
        Bound on the error of ``log_scale``.
    rounding, truncation, aliasing : ndarray
        The parts of the width, relative to E.
    """

    log_scale: Array
    lower: Array
    upper: Array
    log_scale_error: Array
    rounding: Array
    truncation: Array
    aliasing: Array

    def log_lower(self) -> Array:
        """``ln`` of the lower bounds, rounded down; ``-inf`` where they are not above 0."""
        log_lower = np.log(np.maximum(self.lower, _LEAST))
        value = self.log_scale - self.log_scale_error + log_lower
        return np.where(self.lower > _LEAST, value - self._rounding(log_lower), -np.inf)

    def log_upper(self) -> Array:
        """``ln`` of the upper bounds, rounded up."""
        log_upper = np.log(np.maximum(self.upper, _LEAST))
        return self.log_scale + self.log_scale_error + log_upper + self._rounding(log_upper)

    def _rounding(self, log: Array) -> Array:
        """What ``log_scale + log``, logarithm and two or three sums, may lose: the two may cancel."""
        return 8.0 * U * (1.0 + np.abs(self.log_scale) + self.log_scale_error + np.abs(log))

    def guess(self) -> float:
        """``ln`` of about the first value, of the right order where the bracket is wide."""
        lower, upper = float(self.lower[0]), float(self.upper[0])
        return float(self.log_scale[0]) + math.log(max(0.5 * (lower + upper) if lower > 0.0 else 1e-3 * upper, 1e-300))

    def relative_width(self) -> Array:
        """``upper / lower - 1``; infinite where the lower bound is not above 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.lower > 0.0, (self.upper - self.lower) / np.maximum(self.lower, 1e-300), np.inf)
        return ratio + 2.0 * self.log_scale_error


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

    def rows(self, index: NDArray[np.intp]) -> ContourLine:
        """Some of several lines, each as often as it is named."""
        parts: dict[str, Any] = {name: getattr(self, name)[index] for name in _NUMBERS}
        picked = ContourLine(chernoff=self.chernoff.rows(index), total=self.total.rows(index), **parts)
        picked.__dict__["_terms"] = self._terms.rows(index)
        return picked

    @cached_property
    def _terms(self) -> LineTerms:
        return LineTerms.of(self.total, self.frequencies, np.asarray(self.chernoff.theta)[..., None])

    def curve(self, epsilon: Array) -> Curve:
        """Brackets of delta_fin(epsilon), epsilon of shape (E,), or (R, E) for R lines."""
        c, theta = self.chernoff, np.asarray(self.chernoff.theta)[..., None]
        value, rounding = self._sum(epsilon)
        period = 2.0 * math.pi / np.asarray(self.step)[..., None] * (1.0 - 4.0 * U)
        aliasing = c.aliasing(epsilon, period)
        above = aliasing.right + aliasing.left_upper
        truncation = self._truncation[..., None]
        k = np.asarray(c.value)[..., None]
        log_scale = k - theta * epsilon
        lower = value - rounding - truncation - above
        log_scale_error = np.asarray(c.error)[..., None] + 4.0 * U * (np.abs(k) + theta * np.abs(epsilon))
        upper = value + rounding + truncation + self._left_out(log_scale - log_scale_error) - aliasing.left_lower
        slack = 4.0 * U * (np.abs(value) + rounding + truncation + above)
        return Curve(
            log_scale=log_scale,
            lower=lower - slack,
            upper=upper + slack,
            log_scale_error=log_scale_error,
            rounding=rounding + slack,
            truncation=np.zeros_like(epsilon) + truncation,
            aliasing=above - aliasing.left_lower,
        )

    def _left_out(self, log_scale: Array) -> Array:
        """The mass left out, relative to E."""
        dropped = np.asarray(self.dropped)[..., None]
        if not dropped.any():
            return np.zeros_like(log_scale)
        log_ratio = np.log(np.where(dropped > 0.0, dropped, 1.0)) - log_scale
        grown = np.exp(np.minimum(log_ratio + 1e-9 * (1.0 + np.abs(log_ratio)), 700.0))
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
        centre, centre_rest, mean, mean_error = (
            np.asarray(number)[..., None]
            for number in (self.centre, self.centre_rest, self.normal_mean, self.normal_mean_error)
        )
        gap = (centre - epsilon) + (mean + centre_rest)
        gap_error = mean_error + 4.0 * U * (np.abs(centre - epsilon) + np.abs(mean) + np.abs(gap))
        phase = gap[..., None] * self.frequencies[..., None, :] + self.total.argument[..., None, :]
        found = np.cos(phase) * terms.real[..., None, :] - np.sin(phase) * terms.imaginary[..., None, :]
        # the phase errs by gap_error, and by 3 u of the turn: a product, a sum, and what the sum rounds of the product
        rounding = terms.fixed[..., None] + terms.turning[..., None] * (gap_error + 3.0 * U * np.abs(gap))
        scale = np.asarray(self.step)[..., None] / math.pi
        return scale * found.sum(axis=-1), scale * rounding * (1.0 + 1e-6)


def prepare_line(
    rules: Sequence[LossRule],
    tilted: Sequence[TiltedRule],
    gaussian_variance: float,
    *,
    chernoff: Chernoff,
    step: float,
    nodes: int,
    log_tail: float,
) -> ContourLine:
    """The line through ``chernoff.theta`` with M = ``nodes`` nodes.

    Parameters
    ----------
    rules, tilted : sequences of LossRule and TiltedRule
        The parts of the loss, and the same tilted by theta.
    gaussian_variance : float
        Variance of the normal part.
    chernoff : Chernoff
        K at theta and around it.
    step, nodes : float, int
        h and M.
    log_tail : float
        As in `ContourLine`.
    """
    parts = line_parts(rules, tilted, 1.0 + chernoff.theta, step * (nodes - 1))
    if nodes > _LONG:
        theta, variance = chernoff.theta, gaussian_variance
        kept = sieve(parts, theta, step, nodes, variance=variance, log_error=_NEGLIGIBLE)
    else:
        sums = (line_sum(part.tilted, part.counts, step, nodes, part.quadrature) for part in parts)
        nothing = np.zeros(nodes)
        total = functools.reduce(operator.add, sums, LineSum(nothing, nothing, nothing, nothing))
        kept = Sieved(step * np.arange(float(nodes)), total, 0.0)
    return line_at(rules, tilted, gaussian_variance, chernoff=chernoff, step=step, kept=kept, log_rest=log_tail)


def line_parts(
    rules: Sequence[LossRule], tilted: Sequence[TiltedRule], exponent: float, reach: float
) -> Sequence[LinePart]:
    """The tilted rules with what is needed to sum them at frequencies up to ``reach``."""
    return [
        LinePart(
            part,
            rule.counts,
            1.01 * (rule.quadrature.error_up_to(reach, exponent, part.quadrature) + part.quadrature),
        )
        for rule, part in zip(rules, tilted, strict=True)
    ]


def line_at(
    rules: Sequence[LossRule],
    tilted: Sequence[TiltedRule],
    gaussian_variance: float,
    *,
    chernoff: Chernoff,
    step: float,
    kept: Sieved,
    log_rest: float | None = None,
) -> ContourLine:
    """The line of nodes whose sums without the normal part are known.

    ``log_rest`` bounds ``ln prod |phi|^T``, the normal part included, from the last node on; by default the normal part
    alone does.
    """
    s = kept.frequencies
    normal = -0.5 * gaussian_variance * s * s
    total = kept.total + LineSum(normal, np.zeros_like(s), 24.0 * U * np.abs(normal), normal * (1.0 - 1e-9))
    centres = [float(v) for rule, part in zip(rules, tilted, strict=True) for v in part.centre * rule.counts]
    centre = math.fsum(centres)
    mean = gaussian_variance * (chernoff.theta + 0.5)
    return ContourLine(
        chernoff=chernoff,
        step=step,
        frequencies=s,
        total=total,
        left_out=kept.left_out,
        centre=centre,
        centre_rest=math.fsum([*centres, -centre]),
        normal_mean=mean,
        normal_mean_error=24.0 * U * abs(mean),
        log_tail=float(normal[-1]) * (1.0 - 1e-9) if log_rest is None else log_rest,
        dropped=math.fsum(float(rule.dropped @ rule.counts) for rule in rules) * (1.0 + 1e-9),
    )
