"""Pairs that show nothing through any window: what is known of them is known otherwise, and they say how."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import NoReturn

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair


class WithoutWindows(Pair):
    """Losses without ends, and a refusal with its reason for every window."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """What is known instead, and what to do."""

    infimum = Extreme(-math.inf)
    supremum = Extreme(math.inf)

    def cells(self, losses: Array) -> CellMasses:
        self._refuse()

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        self._refuse()

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        self._refuse()

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        self._refuse()

    def subsampled(self, rate: float | Fraction) -> Pair:
        return self if rate == 1 else self._refuse()

    def joined(self, rate: float | Fraction) -> Pair:
        return self if rate == 1 else self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnknownPairError(f"{self!r}: {self.reason}")
