"""Noise on the integers on a Poisson sample under substitution: moved by D where the record is drawn, or else by -D.

With f the masses of the noise, ``X = (1-g) f(x) + g f(x - D)`` against ``Y = (1-g) f(x) + g f(x + D)``. The loss is the
difference of those of a sampled record, ``ln r(a) - ln r(b)`` with ``r(u) = 1 - g + g e^u``, a the logarithm of
``f(x - D) / f(x)`` and b that of ``f(x + D) / f(x)``; it increases in x where the noise is log-concave. The mirror
image of the line is the reverse, since the noise is even.

Guarantee: certified masses and losses. The pair dominates, and is attained: docs/derivations/fixed-size.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import UnknownPairError, check_fields, check_rate
from hockeystick.laws.atom_rules import AtomSummand
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.laws.binomial import BinomialPair, binomial_log_masses
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair, IntegerPair, discrete_gaussian
from hockeystick.laws.discrete_gaussian_rule import log_normaliser
from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.rationals import product_up
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand

_FAR = 2.0**40  # integers beyond which no cut needs to be told apart: their mass is zero in float64
_LEFT_OUT = -740.0  # ln of the mass that a table may leave out


@final
@dataclass(frozen=True, eq=False)
class _EitherWay:
    """Outcomes of the noise: ``ln f`` with its error, and the losses ``ln r(a)``, ``ln r(b)`` with theirs."""

    log_f: Array
    error: Array
    up: Array
    down: Array
    up_error: Array
    down_error: Array

    @property
    def loss(self) -> Array:
        return self.up - self.down

    @property
    def loss_error(self) -> Array:
        return self.up_error + self.down_error + U * np.abs(self.up - self.down)

    def table(self, *, infinite: float = 0.0, dropped: float = 0.0) -> AtomTable:
        """All of them as a table."""
        log_p, log_q = self.log_f + self.up, self.log_f + self.down
        error = self.error + np.maximum(self.up_error, self.down_error) + U * np.maximum(np.abs(log_p), np.abs(log_q))
        return AtomTable(
            self.loss, self.loss_error, log_p, log_q, error, infinite_p=infinite, infinite_q=infinite, dropped=dropped
        )


@final
@dataclass(frozen=True)
class EitherWayBinomialPair(AtomicPair):
    """The pair of binomial noise of probability 1/2.

    Parameters
    ----------
    base : BinomialPair
        The noise, and D.
    rate : float
        g, in (0, 1).
    """

    base: BinomialPair
    rate: float

    @property
    def sampling_rate(self) -> float:
        return self.rate

    def reversed(self) -> Pair:
        return self

    def make_table(self) -> AtomTable:
        n, shift = self.base.trials, self.base.sensitivity
        atoms = self.base.atoms  # x from D to n, where f(x - D) and f(x) are not 0
        up, off = np.full(n + 1, -math.inf), np.zeros(n + 1)
        up[shift:], off[shift:] = atoms.loss, atoms.loss_error
        log_half = -math.log(2.0)
        log_f, error = binomial_log_masses(n, log_half, log_half), 3.0 * ELEMENTARY * (1.0 - 3.0 * n * log_half)
        loss = sampled_losses(up, self.rate)
        off = sampled_loss_error(loss, up, self.rate, off)
        found = _EitherWay(log_f, np.full(n + 1, error), loss, loss[::-1], off, off[::-1])
        return found.table(infinite=product_up(self.rate, self.base.mass_at_infinity))


@final
@dataclass(frozen=True)
class EitherWayDiscreteGaussianPair(IntegerPair):
    """The pair of discrete Gaussian noise.

    Parameters
    ----------
    base : DiscreteGaussianPair
        The noise, and D.
    rate : float
        g, in (0, 1).

    Examples
    --------
    >>> from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
    >>> EitherWayDiscreteGaussianPair(DiscreteGaussianPair(2.0), 0.1).loss_bounds
    (-inf, inf)
    """

    infimum, supremum = Extreme(-math.inf), Extreme(math.inf)

    base: DiscreteGaussianPair
    rate: float

    def __post_init__(self) -> None:
        check_fields(self, rate=check_rate)

    @property
    def sampling_rate(self) -> float:
        return self.rate

    def reversed(self) -> Pair:
        return self

    def _losses(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """``ln r(a)`` and ``ln r(b)`` at integers, and bounds on their errors."""
        s, shift = self.base.sigma, float(self.base.sensitivity)
        a, b = (0.5 * (sign * 2.0 * x - shift) * shift / (s * s) for sign in (1.0, -1.0))
        up, down = sampled_losses(a, self.rate), sampled_losses(b, self.rate)
        up_error, down_error = (
            sampled_loss_error(loss, u, self.rate, 8.0 * U * np.abs(u)) for loss, u in ((up, a), (down, b))
        )
        return up, down, up_error, down_error

    def _loss(self, x: Array) -> Array:
        up, down, *_ = self._losses(x)
        return up - down

    def _places(self, losses: Array) -> tuple[Array, Array]:
        low, high = np.full(losses.size, -_FAR), np.full(losses.size, _FAR)
        while (high - low > 1.0).any():
            middle = np.floor(0.5 * (low + high))
            below = self._loss(middle) <= losses
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        slack = np.zeros(losses.size)
        for x in (low, high):  # an integer is on the wrong side of a cut only if its loss is within rounding of it
            up, down, *errors = self._losses(x)
            slack = np.maximum(slack, errors[0] + errors[1] + U * np.abs(up - down))
        far = np.abs(low) >= _FAR
        slack[far] = np.maximum(slack[far], np.abs(self._loss(low[far]) - losses[far]))
        return low, slack

    def _masses(self, first: Array, last: Array, slack: Array) -> CellMasses:
        shift = float(self.base.sensitivity)
        mixed = [self.base.runs(first + move, last + move) for move in (0.0, -shift, shift)]
        sides = []
        for moved in (1, 2):
            parts = [(mixed[0], math.log1p(-self.rate)), (mixed[moved], math.log(self.rate))]
            logs = [log + share for (log, _), share in parts]
            log = np.logaddexp(*logs)
            size = np.where(np.isfinite(log), np.abs(log), 0.0) + sum(abs(share) for _, share in parts)
            error = np.maximum(*(off for (_, off), _ in parts)) + 4.0 * ELEMENTARY * (1.0 + size)
            sides.append((log, np.where(np.isfinite(log), error, 0.0)))
        (log_p, error_p), (log_q, error_q) = sides
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        ends = self.base.sensitivity + self.base.sigma * np.sqrt(-2.0 * np.minimum([log_below, log_above], -1e-3))
        low, high = self._loss(np.array([-math.ceil(ends[0]), math.ceil(ends[1])], dtype=np.float64))
        return float(low), float(high)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        s, shift = self.base.sigma, float(self.base.sensitivity)
        reach = math.ceil(s * math.sqrt(-2.0 * min(log_tail, -1.0)) + shift) + 1.0
        stride = max(1, math.floor(0.2 * s / refine))  # the trapezoidal rule, as for the noise alone
        x = np.arange(-reach, reach + stride, stride)
        up, down, *_ = self._losses(x)
        log_f = math.log(stride) - log_normaliser(s)[0] - x * x / (2.0 * s * s)
        return Nodes(up - down, log_f + up, log_f + down)

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        if (listed := self.base.listed(log_drop)) is None:
            return None
        s, reach = self.base.sigma, float(listed[0] + self.base.sensitivity)
        x = np.arange(-reach, reach + 1.0)
        log_z, z_error = log_normaliser(s)
        log_f = -x * x / (2.0 * s * s) - log_z
        return _EitherWay(log_f, 16.0 * U * (np.abs(log_f) + abs(log_z)) + z_error, *self._losses(x)).table(
            dropped=listed[1]
        )

    @cached_property
    def _listed(self) -> AtomTable | None:
        return self.atoms_but(_LEFT_OUT)

    def summand(self) -> Summand:
        if self._listed is None:
            raise UnknownPairError(f"no certified transform is known for {self!r}, of so many atoms: use a lattice")
        return AtomSummand(self._listed)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        x = discrete_gaussian(rng, self.base.sigma, size)
        drawn = rng.random(size) < self.rate
        return self._loss(x + (1.0 if measure == "P" else -1.0) * self.base.sensitivity * drawn)
