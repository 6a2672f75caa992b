"""The Poisson-subsampled pair ((1 - g) Q + g P, Q) of any base pair (P, Q), g the sampling rate.

Its loss is ``l' = ln(1 - g + g e^l)``, increasing in the base's loss l, so every window is the base's window with
the losses mapped and the masses mixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_rate
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import INFINITE, CellMasses, Extreme, GaussianTail, Measure, Nodes, Pair, derives
from hockeystick.laws.sampled_loss import base_losses, sampled_loss_error, sampled_losses
from hockeystick.numerics.columns import Array, Flags
from hockeystick.numerics.rationals import product_up
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U, up
from hockeystick.transforms.summand import Summand


@derives("subsampled")
@final
@dataclass(frozen=True)
class SubsampledPair(Pair):
    """((1 - rate) Q + rate P, Q) for a base pair (P, Q).

    Parameters
    ----------
    base : Pair
        The pair (P, Q): with and without the record.
    rate : float
        Probability that the record takes part, in (0, 1].

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> low, high = SubsampledPair(GaussianPair(1.0), 0.5).loss_bounds
    >>> round(low, 6), high
    (-0.693147, inf)
    """

    base: Pair
    rate: float

    def __post_init__(self) -> None:
        check_fields(self, rate=check_rate)

    @cached_property
    def infimum(self) -> Extreme:
        return self._extreme(Extreme(-math.inf) if self._has_bottom else self.base.infimum)

    @cached_property
    def supremum(self) -> Extreme:
        return self._extreme(self.base.supremum)

    def _extreme(self, base: Extreme) -> Extreme:
        if base.value == math.inf:
            return Extreme(math.inf)
        if base.value == -math.inf and self.rate < 1.0:  # the logarithm of 1 - g, without a rounding of g e^u
            least = math.log1p(-self.rate)
            return Extreme(least, ELEMENTARY * abs(least))
        loss = self._sampled(np.array([base.value]))
        if np.isinf(loss[0]):
            return Extreme(float(loss[0]))
        return Extreme(
            float(loss[0]), float(sampled_loss_error(loss, np.array([base.value]), self.rate, base.error)[0])
        )

    @cached_property
    def sampling_rate(self) -> float:
        inner = self.base.sampling_rate  # a product is rounded up, and kept where it has relative accuracy
        return self.rate if inner == 1.0 else max(up(self.rate * inner, 2.0 * U), TINY)

    @cached_property
    def sampled_gaussian(self) -> tuple[Fraction, float] | None:
        mu = self.base.gaussian_mu
        return None if mu is None or self.rate == 1.0 else (mu, self.rate)

    @property
    def gaussian_tail(self) -> GaussianTail | None:
        # sampling only lowers the curve, which is jointly convex
        own, base = super().gaussian_tail, self.base.gaussian_tail
        return own if own is not None or base is None else GaussianTail(base.mu, base.epsilon, attained=base.attained)

    @property
    def _has_bottom(self) -> bool:
        """Whether Q has mass where P has none, which the mixture sees at ln(1 - g)."""
        return self.base.reverse_mass_at_infinity > 0.0 and self.rate < 1.0

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @property
    def anchors(self) -> tuple[float, ...]:
        anchors = tuple(float(loss) for loss in self._sampled(np.array(self.base.anchors)))
        return anchors or ((math.log1p(-self.rate),) if self.rate < 1.0 else ())  # where a rare record leaves the loss

    @property
    def mass_at_infinity(self) -> float:
        return product_up(self.rate, self.base.mass_at_infinity)

    @property
    def reverse_mass_at_infinity(self) -> float:
        # where P has no mass the mixture still has (1 - rate) of Q's, unless the rate is one
        return self.base.reverse_mass_at_infinity if self.rate == 1.0 else 0.0

    @cached_property
    def atoms(self) -> AtomTable | None:
        atoms = self.base.atoms
        return None if atoms is None else atoms.subsampled(Fraction(self.rate))

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        atoms = self.base.atoms_but(log_drop)
        return None if atoms is None else atoms.subsampled(Fraction(self.rate))

    def _sampled(self, loss: Array) -> Array:
        return sampled_losses(loss, self.rate)

    def cells(self, losses: Array) -> CellMasses:
        if self.rate == 1.0:
            return self.base.cells(losses)
        cuts = base_losses(losses, self.rate)
        inside = np.isfinite(cuts)
        base = self.base.cells(cuts[inside])
        slack = self._slack(losses, cuts, inside, base.slack)
        log_p, error_p = self._mixed(base)
        # Q's mass where P has none: at base loss -inf, which the mixture sees at ln(1 - g)
        log_q, error_q, log_p, error_p = self._with_bottom(base.log_q, base.error_q, log_p, error_p)
        below = np.zeros(losses.size - np.count_nonzero(inside))  # cuts below every loss: empty cells
        log_p, log_q = (np.append(below - math.inf, logs) for logs in (log_p, log_q))
        error_p, error_q = (np.append(below, errors) for errors in (error_p, error_q))
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses | None:
        if self.rate == 1.0:
            return self.base.tails(cuts, upper=upper)
        if self.base.mass_at_infinity or self.base.reverse_mass_at_infinity:
            return None
        places = base_losses(cuts, self.rate)
        inside = np.isfinite(places)
        base = self.base.tails(places[inside], upper=upper)
        if base is None:
            return None
        mixed, slack = self._mixed(base), self._slack(cuts, places, inside, base.slack)
        log_p, log_q = (np.full(cuts.size, 0.0 if upper else -math.inf) for _ in "PQ")  # of a cut below every loss
        error_p, error_q = np.zeros(cuts.size), np.zeros(cuts.size)
        (log_p[inside], error_p[inside]), log_q[inside], error_q[inside] = mixed, base.log_q, base.error_q
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def _mixed(self, base: CellMasses) -> tuple[Array, Array]:
        """``ln`` of the masses under (1 - rate) Q + rate P, and bounds on their errors."""
        g, log_rest = self.rate, math.log1p(-self.rate)
        log_p = np.logaddexp(log_rest + base.log_q, math.log(g) + base.log_p)
        size = np.where(np.isfinite(log_p), np.abs(log_p), 0.0)
        # A sum of two masses is off by no more than a mean of what they are: ELEMENTARY of ln g or of ln(1 - g) and
        # the rounding of a number whose mean, weighted by mass, is at most 1 above ``size``. Then exp, log1p and a
        # last sum.
        rounding = ELEMENTARY * max(-math.log(g), -log_rest) + 3.0 * ELEMENTARY + 2.0 * U * (1.0 + size)
        return log_p, np.maximum(base.error_p, base.error_q) + rounding

    def _with_bottom(self, log_q: Array, error_q: Array, log_p: Array, error_p: Array) -> tuple[Array, ...]:
        """Put the mass of Q at base loss -inf into the lowest cell, for both measures."""
        mass = self.base.reverse_mass_at_infinity
        if mass == 0.0:
            return log_q, error_q, log_p, error_p
        log_q, log_p, error_q, error_p = log_q.copy(), log_p.copy(), error_q.copy(), error_p.copy()
        log_mass, log_rest = math.log(mass), math.log1p(-self.rate)
        log_q[0] = np.logaddexp(log_q[0], log_mass)
        log_p[0] = np.logaddexp(log_p[0], log_mass + log_rest)
        # the mass as it is rounded up, its logarithms, their sum, and that of the two masses
        rounding = INFINITE + 4.0 * ELEMENTARY + (ELEMENTARY + 2.0 * U) * (abs(log_mass) + abs(log_rest))
        error_q[0] += rounding
        error_p[0] += rounding
        return log_q, error_q, log_p, error_p

    def _slack(self, losses: Array, cuts: Array, inside: Flags, base: Array) -> Array:
        """How far the mapped cuts lie from those asked for: the map's own rounding and the base's slack."""
        g = self.rate
        # the decision that a cut lies below all losses, expm1(l) <= -g: expm1 and a quotient, over e^l = 1 - g
        slack = 8.0 * U * (np.abs(losses) + g / max(1.0 - g, U))
        base_cuts = cuts[inside]
        forward = self._sampled(base_cuts)
        # d l' / d l = g e^l / r <= 1, which grows by at most e^s within s; 1.01 for its rounding
        slope = 1.01 * np.exp(np.minimum(math.log(g) + base_cuts - forward, 0.0) + np.minimum(base, 700.0))
        rounding = sampled_loss_error(forward, base_cuts, g) + 2.0 * U * np.abs(losses[inside])
        slack[inside] = np.abs(forward - losses[inside]) + rounding + np.minimum(slope, 1.0) * base
        return slack

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        low, high = self.loss_ranges(np.array([log_below]), np.array([log_above]), measure)
        return low.item(), high.item()

    def loss_ranges(self, log_below: Array, log_above: Array, measure: Measure = "P") -> tuple[Array, Array]:
        low, high = self.base.loss_ranges(log_below, log_above, "Q")
        if measure == "P":
            # P' = (1-g) Q + g P: its upper tail is the larger of Q's and g times P's
            rest = np.minimum(log_above - math.log(self.rate), -1e-3)
            high = np.maximum(high, self.base.loss_ranges(log_below, rest, "P")[1])
        return self._sampled(np.full_like(low, -math.inf) if self._has_bottom else low), self._sampled(high)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        g = self.rate
        base = self.base.nodes(log_tail, refine=refine)
        log_rest = math.log1p(-g) if g < 1.0 else -math.inf
        loss, log_q = self._sampled(base.loss), base.log_q
        log_p = np.logaddexp(log_rest + base.log_q, math.log(g) + base.log_p)
        mass = self.base.reverse_mass_at_infinity
        if mass > 0.0 and g < 1.0:
            loss = np.append(loss, math.log1p(-g))
            log_q = np.append(log_q, math.log(mass))
            log_p = np.append(log_p, math.log(mass) + math.log1p(-g))
        finite = np.isfinite(loss)
        return Nodes(loss[finite], log_p[finite], log_q[finite])

    def summand(self) -> Summand:
        return self.base.summand().subsampled(Fraction(self.rate))

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.base.sample(rng, size, "Q")
        if measure == "P":
            takes_part = rng.random(size) < self.rate
            loss[takes_part] = self.base.sample(rng, int(np.count_nonzero(takes_part)), "P")
        return self._sampled(loss)
