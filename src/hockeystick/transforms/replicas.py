"""Losses that are a normal density on a lattice, taken for normal ones: what their transforms' replicas may add.

By Poisson summation the tilted transform of such a loss, of variance v and spacing ``2 pi / P``, is that of the normal
loss and its replicas at the multiples of P (`docs/derivations/contour.md`, section 13):

    |phi(s)| = c sum_j e^{-v (s - j P)^2 / 2},        c = 1 to within e^{-v P^2 / 2}.

On the real axis nothing is seen of them. A run of losses of different spacings has replicas only where those of all of
them meet; what the nodes of a line add there is bounded by walking along the replicas of one of them, the *leader*.

Guarantee: `Replicas.bound` is an upper bound. Cost: one exponential for each replica looked at and each loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from hockeystick.numerics.columns import Array

_DEEP = 90.0  # nats by which the leader's own replica has fallen at the ends of its window
_DEVIATIONS = 8.0  # of the loss: deltas of 1e-15
_REACH = 14.0  # over the deviation: where lines end
_MOST_REPLICAS = 1 << 16
_MOST_TERMS = 1 << 20
_OFF = 4e-15  # of a frequency: far above the roundings of periods and of their multiples


@final
@dataclass(frozen=True)
class LatticeNormal:
    """A normal density on a lattice.

    Attributes
    ----------
    variance : float
        v (nats^2), to 4 u relative.
    period : float
        P (1 / nats), to 8 u relative; ``sqrt(v) P`` is at least 25.
    """

    variance: float
    period: float

    @property
    def turns(self) -> float:
        """``v P^2``."""
        return self.variance * self.period * self.period

    @property
    def log_between(self) -> float:
        """Upper bound on ``ln |phi|`` farther than P / 4 from every multiple of P."""
        return 0.7 - self.turns / 32.0

    def log_size(self, frequency: Array, window: float = 0.0) -> Array:
        """Upper bound on ``ln |phi|``, up to 1e-60, at all frequencies at most ``window`` from the ones given."""
        off = np.abs(frequency - np.rint(frequency / self.period) * self.period)
        distance = np.maximum(off - window - _OFF * frequency, 0.0)
        return np.maximum(-0.5 * self.variance * distance * distance * (1.0 - 1e-9), self.log_between)


@final
@dataclass(frozen=True)
class Replicas:
    """What replicas may add to the sum of a line.

    Attributes
    ----------
    steps : float
        Number of losses.
    nearest : float
        The smallest period.
    fewest_turns : float
        The smallest ``v P^2``.
    width : float
        The integral of a replica of the leader.
    met : float
        The sum over replicas of the leader of what other losses leave of them, and of the kernel ``1 / pi s^2``.
    between : float
        Upper bound on ``prod |phi|^T`` from a quarter of the smallest period on, outside the leader's replicas.
    """

    steps: float
    nearest: float
    fewest_turns: float
    width: float
    met: float
    between: float

    @classmethod
    def of(cls, losses: Sequence[tuple[LatticeNormal, float]], normal_variance: float, most: int) -> Self:
        """Those of losses, each with its count, beside a normal part; ``most`` replicas are looked at one by one."""
        leader, count = max(losses, key=lambda one: one[0].variance * one[1] * one[0].period ** 4)
        own, nearest = leader.variance * count, min(loss.period for loss, _ in losses)
        window = min(math.sqrt(2.0 * _DEEP / own), 0.25 * leader.period)
        at = leader.period * np.arange(1.0, most + 1.0)
        log_left = -0.5 * normal_variance * (at - window) ** 2
        for loss, times in _strongest([one for one in losses if one[0] is not leader], most):
            log_left = log_left + times * loss.log_size(at, window)
        met = float((np.exp(log_left) / (at - window) ** 2).sum())
        # sum_{j > J} (j - 1/4)^-2 <= 1 / (J - 1/4)
        far = math.exp(-0.5 * normal_variance * float(at[-1]) ** 2) / (leader.period**2 * (most - 0.25))
        quarter = 0.25 * nearest
        log_between = max(-0.5 * own * min(window, quarter) ** 2, count * leader.log_between)
        return cls(
            steps=math.fsum(times for _, times in losses),
            nearest=nearest,
            fewest_turns=min(loss.turns for loss, _ in losses),
            width=math.sqrt(2.0 * math.pi / own),
            met=(met + far) / math.pi * (1.0 + 1e-6),
            between=math.exp((log_between - 0.5 * normal_variance * quarter * quarter) * (1.0 - 1e-9)),
        )

    @classmethod
    def negligible(
        cls, losses: Sequence[tuple[LatticeNormal, float]], normal_variance: float, share: float
    ) -> Self | None:
        """The same, if they are about that share of a delta of 1e-15 or less; None where they are more."""
        if not losses:
            return None
        variance = math.fsum(loss.variance * count for loss, count in losses) + normal_variance
        tilt = _DEVIATIONS / math.sqrt(variance)
        reach = _REACH / math.sqrt(variance)
        # S is about 1 / (tilt (1 + tilt) sqrt(2 pi variance)) there
        allowed = share / (tilt * (1.0 + tilt) * math.sqrt(2.0 * math.pi * variance))
        if reach > 0.25 * min(loss.period for loss, _ in losses):
            return None
        for most in (64, 1024, _MOST_REPLICAS):
            found = cls.of(losses, normal_variance, most)
            if found.bound(tilt, 0.0, reach) <= allowed:
                return found
        return None

    def bound(self, tilt: float, step: float, edge: float) -> float:
        """Bound on what taking the losses for normal ones leaves out of S, on a line whose last node is ``edge``."""
        if not 0.0 < edge <= 0.25 * self.nearest:
            return math.inf
        up_to_edge = 3.0 * self.steps * math.exp(-0.28 * self.fewest_turns) / (2.0 * tilt)
        return (self.met * (self.width + step) + self.between / (math.pi * edge) + up_to_edge) * (1.0 + 1e-9)


def _strongest(losses: Sequence[tuple[LatticeNormal, float]], most: int) -> Sequence[tuple[LatticeNormal, float]]:
    """The losses of most variance, so many that the work is bounded: leaving some out only weakens the bound."""
    ordered = sorted(losses, key=lambda one: -one[0].variance * one[1])
    return ordered[: _MOST_TERMS // most]
