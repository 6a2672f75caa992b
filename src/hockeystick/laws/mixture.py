"""Two Gaussian mixtures of one width: P = sum_k p_k N(c_k, s^2), Q = sum_j q_j N(d_j, s^2).

In units of s, with y = x / s: ``L(y) = A(y) - B(y)``, ``A(y) = ln sum_k p_k e^{c_k y - c_k^2/2}``, B likewise. Where
p_k / q_k does not fall as the centre grows, neither does L as y grows: the kernel ``e^{c y}`` is totally positive, and
mixing keeps a monotone likelihood ratio. That condition is checked exactly, and every window rests on it.

Uses: group privacy of DP-SGD (several records in one batch); Poisson sampling under substitution (003, Proposition 13).
Cost: one Newton iteration a cut and step, one erfcx a cut and centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
from scipy.special import log_ndtr

from hockeystick.errors import (
    PrecisionError,
    check_fields,
    check_finite,
    check_positive,
    check_ratio,
    check_sequence,
    set_fields,
)
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.laws.mixture_rule import MixtureSummand
from hockeystick.laws.vectors import probabilities
from hockeystick.numerics.normal import LOG_SQRT_2PI, normal_intervals
from hockeystick.numerics.rationals import LOG_RATIO, Probability, exact_probabilities, float_beside, log_of, spelled
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U
from hockeystick.transforms.summand import Summand

_TABLE = 2049  # points of the table that starts the inversion of L
_NEWTON_STEPS = 40
_MOST_NODES = 1 << 24


@final
@dataclass(frozen=True)
class _Mixture:
    """One mixture in units of s: ``ln p_k`` and c_k, centres increasing, no weight zero."""

    log_weights: Array
    centres: Array

    @property
    def weight_error(self) -> float:
        """Bound on the absolute error of every log weight, and on what two sums with it lose."""
        return (LOG_RATIO + 2.0 * U) * (1.0 + float(np.abs(self.log_weights).max()))

    def log_ratio(self, y: Array) -> tuple[Array, Array]:
        """``ln sum p_k e^{c_k y - c_k^2/2}`` (to N(0, 1)) and its slope, the posterior mean of the centre."""
        c = self.centres[:, None]
        exponents = self.log_weights[:, None] + c * (y[None, :] - 0.5 * c)
        peak = exponents.max(axis=0)
        weights = np.exp(exponents - peak)
        total = weights.sum(axis=0)
        return peak + np.log(total), (weights * c).sum(axis=0) / total

    def rounding(self, y: Array) -> Array:
        """Bound on the absolute error of the first result of ``log_ratio``, that of the centres included."""
        # The sum is a convex combination in the exponent: it errs by no more than the worst term that can matter.
        c = np.abs(self.centres)[:, None]
        size = (c * (np.abs(y)[None, :] + c)).max(axis=0)
        return np.asarray(self.weight_error + 8.0 * U * size + (4.0 + self.centres.size) * ELEMENTARY)

    def log_below(self, y: float) -> float:
        """``ln`` of the mass below y (an estimate)."""
        return float(np.logaddexp.reduce(self.log_weights + log_ndtr(y - self.centres)))

    def log_above(self, y: float) -> float:
        """``ln`` of the mass above y (an estimate)."""
        return float(np.logaddexp.reduce(self.log_weights + log_ndtr(self.centres - y)))


@final
@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """sum_k p_k N(c_k, sigma^2) against sum_j q_j N(d_j, sigma^2), the loss nondecreasing in x.

    Parameters
    ----------
    sigma : float
        Standard deviation of every component, above 0.
    p_weights, q_weights : tuple of float or Fraction
        Probabilities of the components, each vector summing to 1 within 1e-9. They stand for the exact numbers
        divided by their exact sum: the attributes are that, and sum to exactly one.
    p_centres, q_centres : tuple of float
        Means of the components, finite and distinct within one mixture. Over all centres in increasing order, p / q
        must not fall.

    Examples
    --------
    >>> from fractions import Fraction
    >>> g = Fraction(1, 10)
    >>> pair = GaussianMixturePair(1.0, (1 - g, g), (0.0, 1.0), (1 - g, g), (0.0, -1.0))  # Poisson, substitution
    >>> pair.loss_bounds
    (-inf, inf)
    """

    sigma: float
    p_weights: tuple[Probability, ...]
    p_centres: tuple[float, ...]
    q_weights: tuple[Probability, ...]
    q_centres: tuple[float, ...]

    def __post_init__(self) -> None:
        check_fields(self, sigma=check_positive)
        for side in ("p", "q"):
            weights, centres = _components(side, getattr(self, f"{side}_weights"), getattr(self, f"{side}_centres"))
            set_fields(self, **{f"{side}_weights": weights, f"{side}_centres": centres})
        every = sorted({0.0, *self.p_centres, *self.q_centres})
        for low, high in {*pairwise(every), (every[0], every[-1])} - {(0.0, 0.0)}:
            check_ratio(high - low, self.sigma)
        for (_, p0, q0), (centre, p1, q1) in pairwise(self._ratios):
            if p0 * q1 > p1 * q0:
                raise ValueError(
                    f"p / q must not fall as the centre grows, but it does at centre {centre!r}: the loss would not be"
                    " monotone in x; mirror the line (negate all centres), or state the pair in the other order"
                )

    def __repr__(self) -> str:
        return spelled(self)

    @cached_property
    def _ratios(self) -> tuple[tuple[float, Fraction, Fraction], ...]:
        """Every centre with its weights in P and in Q, increasing."""
        p = {c: Fraction(w) for w, c in zip(self.p_weights, self.p_centres, strict=True) if w > 0}
        q = {c: Fraction(w) for w, c in zip(self.q_weights, self.q_centres, strict=True) if w > 0}
        return tuple((c, p.get(c, Fraction(0)), q.get(c, Fraction(0))) for c in sorted(p.keys() | q.keys()))

    @cached_property
    def _sides(self) -> tuple[_Mixture, _Mixture]:
        """P and Q in units of sigma."""
        p = np.array([(log_of(w), c / self.sigma) for c, w, _ in self._ratios if w > 0])
        q = np.array([(log_of(w), c / self.sigma) for c, _, w in self._ratios if w > 0])
        return _Mixture(p[:, 0], p[:, 1]), _Mixture(q[:, 0], q[:, 1])

    @property
    def _spread(self) -> float:
        """Distance of the outermost centres, in units of sigma."""
        return (self._ratios[-1][0] - self._ratios[0][0]) / self.sigma

    @cached_property
    def sampling_rate(self) -> float:
        """The chance that the two draw different components, where they agree as often as they can."""
        return max(float_beside(1 - sum((min(p, q) for _, p, q in self._ratios), Fraction(0)), up=True), TINY)

    # the outermost centre decides far out; a monotone ratio has p = 0 only below and q = 0 only above

    @cached_property
    def infimum(self) -> Extreme:
        _, p, q = self._ratios[0]
        return _extreme(p / q) if p > 0 else Extreme(-math.inf)

    @cached_property
    def supremum(self) -> Extreme:
        _, p, q = self._ratios[-1]
        return _extreme(p / q) if q > 0 else Extreme(math.inf)

    @property
    def anchors(self) -> tuple[float, ...]:
        return tuple(bound for bound in self.loss_bounds if math.isfinite(bound))[:1]

    def _loss(self, y: Array) -> tuple[Array, Array]:
        """L(y) and its slope."""
        p, q = self._sides
        log_p, slope_p = p.log_ratio(y)
        log_q, slope_q = q.log_ratio(y)
        return log_p - log_q, np.maximum(slope_p - slope_q, 0.0)

    def _rounding(self, y: Array) -> Array:
        """Bound on the error of L(y)."""
        return self._sides[0].rounding(y) + self._sides[1].rounding(y)

    def _reach(self, losses: Array) -> tuple[float, float]:
        """Arguments beyond which L is below, or above, all the losses, or as good as constant."""
        reach = []
        for index, step in ((0, 1), (-1, -1)):
            centres = [ratio[0] / self.sigma for ratio in self._ratios]
            end = abs(centres[index]) + 40.0
            if math.isfinite(self.loss_bounds[index]):  # L nears its bound as e^{-gap y}
                gap = min((abs(c - centres[index]) for c in centres if c != centres[index]), default=1.0)
                end += 45.0 / gap
            else:
                # of the side that lacks the outermost one
                own = float(self._sides[0 if index == 0 else 1].centres[index])
                slope = abs(own - centres[index])
                logs = sum(float(np.abs(side.log_weights).max() + np.max(side.centres**2)) for side in self._sides)
                end += (float(np.abs(losses).max(initial=0.0)) + logs + 2.0) / slope
            reach.append(-step * end)
        return reach[0], reach[1]

    def _inverse(self, losses: Array) -> Array:
        """Arguments with L near every loss: -inf below the smallest loss, +inf above the largest."""
        if self._spread == 0.0:  # P = Q: every loss is 0
            return np.where(losses < 0.0, -math.inf, math.inf)
        low, high = self._reach(losses)
        table_y = np.sinh(np.linspace(math.asinh(low), math.asinh(high), _TABLE))
        table = np.maximum.accumulate(self._loss(table_y)[0])
        place = np.clip(np.searchsorted(table, losses), 1, _TABLE - 1)
        left, right = table_y[place - 1], table_y[place]
        y = 0.5 * (left + right)
        for _ in range(_NEWTON_STEPS):
            value, slope = self._loss(y)
            left, right = np.where(value <= losses, y, left), np.where(value <= losses, right, y)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                moved = y + (losses - value) / slope
            good = (moved > left) & (moved < right)
            new = np.where(good, moved, 0.5 * (left + right))
            done = bool((np.abs(new - y) <= 4.0 * U * (1.0 + np.abs(y))).all())
            y = new
            if done:
                break
        bounded_low, bounded_high = (math.isfinite(bound) for bound in self.loss_bounds)
        y = np.where(losses < table[0], -math.inf if bounded_low else low, y)
        return np.where(losses > table[-1], math.inf if bounded_high else high, y)

    def cells(self, losses: Array) -> CellMasses:
        # a cut where L has no slope may land anywhere in order: keep the edges nondecreasing
        y = np.maximum.accumulate(self._inverse(losses))
        finite = np.isfinite(y)
        slack = np.zeros(losses.size)
        if finite.any():
            slack[finite] = np.abs(self._loss(y[finite])[0] - losses[finite]) + self._rounding(y[finite])
        low, high = self.loss_bounds
        beyond = np.array([self._reach(losses)[0], self._reach(losses)[1]])
        ends = 2.0 * float(self._rounding(beyond).max()) + 4.0 * U * (np.abs(losses) + 1.0)
        if math.isfinite(low):  # all points lie above such a cut, whose loss is the smallest there is
            slack = np.where(y == -math.inf, np.maximum(losses - low, 0.0) + ends, slack)
        if math.isfinite(high):
            slack = np.where(y == math.inf, np.maximum(high - losses, 0.0) + ends, slack)
        edges = np.concatenate(([-math.inf], y[finite], [math.inf]))
        empty = (int(np.count_nonzero(y == -math.inf)), int(np.count_nonzero(y == math.inf)))  # cells beyond all points
        log_p, error_p = (np.pad(v, empty, constant_values=fill) for v, fill in _mixed(self._sides[0], edges))
        log_q, error_q = (np.pad(v, empty, constant_values=fill) for v, fill in _mixed(self._sides[1], edges))
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        side = self._sides[0 if measure == "P" else 1]
        reach = math.sqrt(-2.0 * min(log_below, log_above, -1.0)) + 2.0
        first, last = float(side.centres[0]) - reach, float(side.centres[-1]) + reach
        low = increasing_root(lambda y: side.log_below(y) - min(log_below, -1e-3), first, last, 1e-3)
        high = increasing_root(lambda y: min(log_above, -1e-3) - side.log_above(y), first, last, 1e-3)
        loss, _ = self._loss(np.array([min(low, high), max(low, high)]))
        return max(float(loss[0]), self.loss_bounds[0]), min(float(loss[1]), self.loss_bounds[1])

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        p, q = self._sides
        reach = math.sqrt(-2.0 * min(log_tail, -1.0))
        step = min(0.4, 0.55 / max(self._spread, 1e-9)) / refine  # analytic for |Im y| < pi / spread
        centres = np.union1d(p.centres, q.centres)
        apart = np.flatnonzero(np.diff(centres) > 2.0 * reach) + 1  # between the two there is no mass
        ends = [(near[0] - reach, near[-1] + reach) for near in np.split(centres, apart)]
        if not sum(last - first for first, last in ends) <= _MOST_NODES * step:
            raise PrecisionError(f"losses of up to {self._spread**2:.2g} nats take too many points: use more noise")
        y = np.concatenate([np.arange(first, last + step, step) for first, last in ends])
        density = math.log(step) - LOG_SQRT_2PI - 0.5 * y * y
        log_p, log_q = p.log_ratio(y)[0], q.log_ratio(y)[0]
        return Nodes(log_p - log_q, log_p + density, log_q + density)

    def summand(self) -> Summand:
        return MixtureSummand(tuple((c / self.sigma, p, q) for c, p, q in self._ratios))

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        side = self._sides[0 if measure == "P" else 1]
        weights = np.exp(side.log_weights)
        component = rng.choice(weights.size, size=size, p=weights / weights.sum())
        return self._loss(side.centres[component] + rng.standard_normal(size))[0]


def _mixed(side: _Mixture, edges: Array) -> tuple[tuple[Array, float], tuple[Array, float]]:
    """``ln`` masses of the intervals between edges, bounds on their errors; each with its value for no mass."""
    log_mass, error = np.full(edges.size - 1, -math.inf), np.zeros(edges.size - 1)
    for log_weight, centre in zip(side.log_weights, side.centres, strict=True):
        part = normal_intervals(edges, float(centre), U * abs(float(centre)))
        log_mass = np.logaddexp(log_mass, log_weight + part.log_mass)
        error = np.maximum(error, part.error)
    size = np.where(np.isfinite(log_mass), np.abs(log_mass), 0.0) - float(side.log_weights.min())
    roundings = side.centres.size * (3.0 * ELEMENTARY + 4.0 * U * (1.0 + size))
    empty = log_mass == -math.inf
    return (log_mass, -math.inf), (np.where(empty, 0.0, error + side.weight_error + roundings), 0.0)


def _components(
    side: str, weights: tuple[Probability, ...], centres: tuple[float, ...]
) -> tuple[tuple[Probability, ...], tuple[float, ...]]:
    """Weights and centres, checked."""
    shares = probabilities(f"{side}_weights", weights)
    name = f"{side}_centres"
    places = tuple(check_finite(name, centre) for centre in check_sequence(name, centres))
    if len(shares) != len(places) or not shares:
        raise ValueError(
            f"{side} needs one weight for each centre, got {len(shares)} weights and {len(places)} centres"
        )
    if len(set(places)) < len(places):
        raise ValueError(f"{side}_centres must be distinct, got {places!r}; add the weights of equal centres")
    return exact_probabilities(f"{side}_weights", shares), places


def _extreme(ratio: Fraction) -> Extreme:
    log = log_of(ratio)
    return Extreme(log, 2.0 * LOG_RATIO * abs(log))
