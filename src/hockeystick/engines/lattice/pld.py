"""A privacy loss distribution on a lattice.

The losses are ``offset + index * spacing``: positions are integers until the last step. Where spacing and offset are
dyadic rationals the losses are exact in float64; elsewhere their rounding is in the slack.

A lattice PLD stands for a measure mu on (-inf, +inf]; its curve is ``h(a) = integral of (1 - a e^{-l})_+ dmu``.
A pair is bounded from above (below) when its own curve lies below (above) this one for every a >= 0. That
relation survives composition: the curve of two measures composed is ``integral of h_2(a e^{-l}) dmu_1(l)``, which
grows with h_2, and the two may trade places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np

from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U
from hockeystick.transforms.nodes import Nodes

Side = Literal["upper", "lower"]
"""Which side of the pair's curve a lattice keeps to."""

_MOST = 1.0 + 1e-8  # a lower bound's total mass: probability vectors may sum to one within 1e-9


@final
@dataclass(frozen=True, eq=False)
class LatticePLD:
    """Masses on a lattice of losses, and at ``+inf``, that bound a pair's hockey-stick curve from one side.

    Attributes
    ----------
    side : "upper" or "lower"
        The curve of the masses, with every loss moved by ``slack`` outward, lies above (below) the pair's.
    spacing : float
        Distance of neighbouring lattice points (nats), above 0.
    index : ndarray of int64, shape (n,)
        Increasing lattice indices of the points that carry mass; points between them carry none.
    offset : float
        Where index 0 lies (nats).
    log_mass : ndarray, shape (n,)
        ``ln`` of the masses of the finite points; ``-inf`` where there is none.
    mass_at_infinity : float
        Mass at loss ``+inf``.
    slack : float
        Nats per step by which the true losses may lie beyond the points.

    Guarantee
    ---------
    The masses are at least 0 and sum to at most ``1 + excess``. The Q-mass ``sum exp(log_mass - loss)`` of a lower
    lattice may be above 1: its curve may lie below ``1 - a``.
    """

    side: Side
    spacing: float
    index: Indices
    offset: float
    log_mass: Array
    mass_at_infinity: float
    slack: float

    def __post_init__(self) -> None:
        self.log_mass.setflags(write=False)
        self.index.setflags(write=False)
        if self.log_mass.size == 0 or np.isnan(self.log_mass).any():
            raise ValueError("a lattice PLD needs at least one point, and masses that are numbers")
        if not 0.0 <= self.mass_at_infinity <= 1.0:
            raise ValueError(f"the mass at infinity must be in [0, 1], got {self.mass_at_infinity!r}")
        if self.side == "lower" and not self.total_mass <= _MOST:
            raise ValueError(f"the masses of a lower bound sum to {self.total_mass!r}, above 1")

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """The smallest and the largest loss that carries mass (nats)."""
        present = self.losses[self.log_mass > -np.inf]
        return float(present.min(initial=0.0)), float(present.max(initial=0.0))

    def nodes(self, log_tail: float) -> Nodes:
        """The points that carry mass, whatever the tail: tilts and windows are chosen for a lattice as for a pair."""
        present = self.log_mass > -np.inf
        loss, log_mass = self.losses[present], self.log_mass[present]
        return Nodes(loss, log_mass, log_mass - loss)

    @cached_property
    def losses(self) -> Array:
        """The finite lattice points (nats), shape (n,)."""
        return np.asarray(self.offset + self.index * self.spacing)

    @property
    def size(self) -> int:
        """Number of finite points."""
        return int(self.log_mass.size)

    @cached_property
    def total_mass(self) -> float:
        """Sum of all masses, the one at infinity included."""
        with np.errstate(over="ignore"):  # masses of which nothing is known
            return math.fsum(np.exp(self.log_mass).tolist()) + self.mass_at_infinity

    @cached_property
    def excess(self) -> float:
        """Bound on how far the total mass exceeds 1: masses rounded up may sum to more.

        What counts is the sum of the masses as they are, and that is known: each exponential is off by ELEMENTARY of
        itself (or, below the normal range, by next to nothing), and `math.fsum` and the addition by one rounding each.
        """
        total = self.total_mass * (1.0 + 2.0 * ELEMENTARY) + self.size * TINY
        return max(total - 1.0, 0.0) + 2.0 * U

    def hockey_stick(self, epsilon: float) -> float:
        """The curve at ``a = e^epsilon``, slack not applied: for looking at one step, rounded to nearest."""
        loss = self.losses
        above = loss > epsilon
        terms = np.exp(self.log_mass[above]) * -np.expm1(epsilon - loss[above])
        return math.fsum(terms) + self.mass_at_infinity
