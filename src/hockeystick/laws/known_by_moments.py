"""Steps of which nothing is known but a bound of their Renyi divergences, or of their concentration.

The divergences ``D_alpha = K(alpha - 1) / (alpha - 1)`` add up under adaptive composition. So these steps compose as
what they are, by their moments (`engines/moments/guarantee.py`), and no window shows anything: there is no one pair
that dominates every such step and composes without loss.

Guarantee: `moment_guarantee` is an upper bound, rounding included.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_finite, check_positive, set_fields
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.without_windows import WithoutWindows
from hockeystick.numerics.rounding import U


class _KnownByMoments(WithoutWindows):
    """What the two share."""

    is_known_by_moments_alone = True
    reason = (
        "only its Renyi divergences are known, which compose by themselves and say nothing about a sample: use it"
        " unsampled, with the certified accountant"
    )

    @abstractmethod
    def moment_guarantee(self, orders: Array) -> Array:
        """Upper bounds of K; infinite where nothing is known."""

    def reversed(self) -> Pair:
        return self  # the guarantee is for both orders of the datasets


@final
@dataclass(frozen=True)
class ConcentratedPair(_KnownByMoments):
    """Any pair with ``D_alpha <= alpha rho`` for every alpha above 1.

    Examples
    --------
    >>> float(ConcentratedPair(0.5).moment_guarantee(np.array([3.0]))[0])
    3.00000000000000...
    """

    rho: float

    def __post_init__(self) -> None:
        check_fields(self, rho=check_positive)
        if self.rho > 1e279:
            raise ValueError(f"rho must be at most 1e279, got {self.rho!r}")

    def moment_guarantee(self, orders: Array) -> Array:
        return (orders - 1.0) * orders * self.rho * (1.0 + 5.0 * U)  # four roundings, but up to 2^53 three


@final
@dataclass(frozen=True)
class RenyiPair(_KnownByMoments):
    """Any pair with ``D_alpha <= epsilon`` at finitely many orders alpha.

    Between orders K is below its chord, since it is convex in alpha, and 0 at alpha = 1; beyond the last nothing is
    known.

    Examples
    --------
    >>> float(RenyiPair((2.0, 4.0), (0.5, 1.0)).moment_guarantee(np.array([3.0]))[0])
    1.75000000000000...
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        orders = tuple(check_finite("orders", order) for order in self.orders)
        epsilons = tuple(check_finite("epsilons", epsilon) for epsilon in self.epsilons)
        if not orders or len(orders) != len(epsilons):
            raise ValueError(f"orders and epsilons must have one length, got {len(orders)} and {len(epsilons)}")
        if orders[0] <= 1.0 or any(b <= a for a, b in pairwise(orders)):
            raise ValueError(f"orders must be increasing and above 1, got {orders!r}")
        if min(epsilons) < 0.0:
            raise ValueError(f"epsilons must be at least 0, got {epsilons!r}")
        if not orders[-1] * max(epsilons) <= 1e300:
            raise ValueError(f"orders times epsilons must be at most 1e300, got {orders!r} and {epsilons!r}")
        set_fields(self, orders=orders, epsilons=epsilons)

    def moment_guarantee(self, orders: Array) -> Array:
        known = np.array([1.0, *self.orders])
        k = np.array([0.0, *((a - 1.0) * e for a, e in zip(self.orders, self.epsilons, strict=True))])
        right = np.minimum(np.searchsorted(known, orders), known.size - 1)
        left = right - 1
        share = (orders - known[left]) / (known[right] - known[left])
        chord = (1.0 - share) * k[left] + share * k[right]
        # all terms are of one sign; 1 - share is off by what the share is, relative to 1
        off = 8.0 * U * (k[left] + k[right])
        return np.where(orders <= known[-1], chord + off, math.inf)
