"""A mechanism of which nothing is known but its concentration or Renyi divergences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import check_fields, check_sequence, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import shown_by_gaussian
from hockeystick.laws.known_by_moments import ConcentratedPair, RenyiPair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rounding import ELEMENTARY, U, down


@final
@dataclass(frozen=True)
class ZeroConcentratedDP(Mechanism):
    """Any mechanism that is rho-zCDP under the neighbouring relation it is accounted for.

    Its Renyi divergence of every order alpha is at most alpha rho (Bun and Steinke 2016). It composes with other steps
    by moments: the upper bound is Canonne, Kamath and Steinke's. The lower bound is that of Gaussian noise, which is
    such a mechanism.

    Parameters
    ----------
    rho : float
        Above 0, at most 1e279.

    Examples
    --------
    >>> ZeroConcentratedDP(0.5).pair("remove")
    ConcentratedPair(rho=0.5)
    """

    adds_noise = False
    origin = "rho-zCDP: the upper bound holds for every such mechanism, the lower bound is that of Gaussian noise"

    rho: float

    def __post_init__(self) -> None:
        set_fields(self, rho=ConcentratedPair(self.rho).rho)

    def pair(self, direction: Direction) -> Pair:
        return ConcentratedPair(self.rho)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return shown_by_gaussian(down(math.sqrt(2.0 * self.rho), ELEMENTARY + 2.0 * U))


@final
@dataclass(frozen=True)
class RenyiDP(Mechanism):
    """Any mechanism whose Renyi divergences at some orders are bounded, under the relation it is accounted for.

    It composes with other steps by moments, which between two orders lie below their chord. Nothing is known below.

    Parameters
    ----------
    orders : tuple of float
        alpha, increasing, above 1.
    epsilons : tuple of float
        Bounds of the divergences at these orders (nats), at least 0.

    Examples
    --------
    >>> RenyiDP((2.0, 8.0), (0.1, 0.5)).pair("remove")
    RenyiPair(orders=(2.0, 8.0), epsilons=(0.1, 0.5))
    """

    adds_noise = False
    origin = "Renyi DP: the upper bound holds for every such mechanism, and no lower bound is computed"

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        check_fields(self, orders=check_sequence, epsilons=check_sequence)
        pair = RenyiPair(self.orders, self.epsilons)
        set_fields(self, orders=pair.orders, epsilons=pair.epsilons)

    def pair(self, direction: Direction) -> Pair:
        return RenyiPair(self.orders, self.epsilons)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return ()
