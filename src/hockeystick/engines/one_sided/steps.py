"""The steps that one-sided lines serve: atoms, and losses with the density of Laplace noise between two ends.

The loss of a Laplace step, at most m, has atoms of mass 1/2 at m and of ``e^{-m} / 2`` at -m, and between them the
density ``e^{(l - m) / 2} / 4``. Its transform is thus

    E e^{zL} = e^{zm} / 2 (1 + 1 / (2z + 1)) + e^{-(1 + z) m} / 2 (1 - 1 / (2z + 1)),

two atoms whose weights depend on z, for every m in the same way. That of an exponential mechanism has the density
alone, over ``1 - e^{-m}`` in place of 2.

Guarantee: moments are bounds (sections 3 and 6 of `docs/derivations/one-sided-lines.md`). Cost: an exponential for each
atom and tilt.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.engines.enumeration.outcomes import table
from hockeystick.engines.one_sided.tilted import TiltedStep, log_share, log_sinhc
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Pair
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

OPPOSITE: Final = 17
"""Tilts from -1 to 0."""

TILTS: Final = np.concatenate(
    (np.linspace(-1.0, 0.0, OPPOSITE), 2.0 ** np.arange(-12.0, 23.0, 0.0625), 2.0 ** np.arange(23.0, 43.0, 0.25))
)
"""What is looked at: a twentieth from one to the next, as much as matters where losses spread 20 times as far."""

NOTHING: Final = -1e300
"""For the logarithm of 0, which no product makes a NaN of."""

SLACK: Final = 1e-9
"""Of a logarithm, for the roundings of its sums."""

_LARGEST = 1e6  # nats of a step of Laplace noise: more than such lines tell apart
_LEAST = 1e-6  # nats of one without atoms: what is left of two terms that nearly cancel


class LineStep(ABC):
    """What one-sided lines ask of a step: its losses before a cut are small, and all others large."""

    @property
    def dropped(self) -> float:
        """Bound on the mass that is left out on purpose."""
        return 0.0

    @abstractmethod
    def cut(self, threshold: float) -> int:
        """How many atoms are small where losses above a threshold (nats) are large."""

    @abstractmethod
    def log_moments(self, cut: int) -> tuple[Array, Array]:
        """``ln`` of the moments of the small losses at `TILTS`, and of the large ones, at least."""

    @abstractmethod
    def masses(self, cut: int) -> Sequence[tuple[float, float]]:
        """The masses of the small losses and of any large ones, and bounds on their errors."""

    @abstractmethod
    def tilted(self, count: int, cut: int, theta: float, most: int) -> TiltedStep:
        """So many such steps; at most ``most`` large losses are asked for."""


@final
@dataclass(frozen=True, eq=False)
class AtomStep(LineStep):
    """A step of atoms."""

    atoms: AtomTable

    @property
    def dropped(self) -> float:
        return self.atoms.dropped

    def cut(self, threshold: float) -> int:
        return int(np.searchsorted(self.atoms.loss, threshold, side="right"))

    def log_moments(self, cut: int) -> tuple[Array, Array]:
        atoms, rounded = self.atoms, 16.0 * U  # a few are used
        logs = np.multiply.outer(TILTS, atoms.loss)
        logs += np.multiply.outer(np.abs(TILTS), atoms.loss_error + rounded * np.abs(atoms.loss))
        logs += atoms.log_p + atoms.error + rounded * np.abs(atoms.log_p) + SLACK
        return _log_sum(logs[:, :cut]), _log_sum(logs[:, cut:])

    def masses(self, cut: int) -> Sequence[tuple[float, float]]:
        atoms = self.atoms
        p = np.exp(atoms.log_p)
        # p (e^error - 1), also where p underflows
        doubts = np.exp(np.minimum(atoms.log_p + atoms.error, 700.0)) * -np.expm1(-atoms.error)
        kinds = (slice(cut), slice(cut, None))[: 1 + (cut < atoms.size)]
        rounded = U * (atoms.size + 8.0)
        return [(mass := float(p[kind].sum()), float(doubts[kind].sum()) + rounded * mass) for kind in kinds]

    def tilted(self, count: int, cut: int, theta: float, most: int) -> TiltedStep:
        return TiltedStep.of(self.atoms, count, cut, theta, most)


@final
@dataclass(frozen=True, eq=False)
class LaplaceStep(LineStep):
    """A step of Laplace noise, or of its density alone, all of whose losses are small.

    Parameters
    ----------
    loss : LaplaceLoss
        The loss, whose largest value m is above 1e-6 where it has no atoms.
    """

    loss: LaplaceLoss

    @cached_property
    def _shift(self) -> float:
        return float(self.loss.largest)

    def cut(self, threshold: float) -> int:
        return 2

    def log_moments(self, cut: int) -> tuple[Array, Array]:
        return self._log_moments

    @cached_property
    def _log_moments(self) -> tuple[Array, Array]:
        m = self._shift
        x = np.abs(TILTS + 0.5) * m
        between = math.log(m) - 0.5 * m + log_sinhc(x)
        atoms = (TILTS * m, -(1.0 + TILTS) * m) if self.loss.has_atoms else ()
        logs = np.stack((*atoms, between), axis=1) - log_share(self.loss)
        sizes = (1.0 + np.abs(TILTS)) * m + abs(math.log(m))
        return _log_sum(logs) + (SLACK + 16.0 * U * sizes), _log_sum(logs[:, :0])

    def masses(self, cut: int) -> Sequence[tuple[float, float]]:
        return [(1.0, 0.0)]

    def tilted(self, count: int, cut: int, theta: float, most: int) -> TiltedStep:
        return TiltedStep.of_laplace(self.loss, count, theta)


def step_of(pair: Pair, log_drop: float) -> LineStep | None:
    """A step, which may leave out ``e^log_drop`` of its mass; None where its atoms are unknown, or too many."""
    loss = pair.laplace_loss
    if loss is not None:
        return LaplaceStep(loss) if loss.largest <= _LARGEST and (loss.has_atoms or loss.largest >= _LEAST) else None
    atoms = table(pair, log_drop)
    return None if atoms is None else AtomStep(atoms)


def _log_sum(logs: Array) -> Array:
    """``ln sum exp`` over the last axis."""
    if logs.shape[-1] == 0:
        return np.full(logs.shape[:-1], NOTHING)
    peak = logs.max(axis=-1)
    return np.asarray(peak + np.log(np.exp(logs - peak[..., None]).sum(axis=-1)))
