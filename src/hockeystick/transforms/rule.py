"""Rules for a privacy loss, many at once: losses and weights under Q, with every error that they carry.

A rule stands for the transform ``M(z) = E_P[e^{zL}; L < inf]`` of a loss L through

    M_f(z) = sum_j q_j e^{(1+z) l_j},        |M(z) - M_f(z)| <= quadrature error * M(Re z),

exact for a discrete loss, a trapezoidal rule for an analytic density. ``a = 1 + Re z`` is called the *exponent*. A
batch holds B rules of n nodes: arrays of shape (B, n), numbers of shape (B,). They belong to one run, or to B runs, a
rule each: numbers of R runs have R for their last axis, R = 1 or B, and broadcast against those of rules.

Guarantee: the errors stored are bounds; see `docs/derivations/contour.md`, sections 3 and 7. Cost: none beyond the
arrays.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from hockeystick.numerics.columns import Array as Array
from hockeystick.numerics.residuals import exponential_residual
from hockeystick.numerics.rounding import U
from hockeystick.transforms.node_sums import additions as additions
from hockeystick.transforms.node_sums import by_run as by_run
from hockeystick.transforms.node_sums import chunk as chunk
from hockeystick.transforms.node_sums import few_bits_up as few_bits_up
from hockeystick.transforms.node_sums import node_sum as node_sum
from hockeystick.transforms.sketch import Cells as Cells
from hockeystick.transforms.sketch import Numbers as Numbers
from hockeystick.transforms.sketch import Rows as Rows
from hockeystick.transforms.sketch import Sketch as Sketch

OVERFLOW: Final = 600.0
"""Exponent of a weighted node that is not exceeded."""

_LARGE = 30.0  # exponents from which e^x is taken together with the weight, so that neither overflows


class Quadrature(ABC):
    """The error of a rule relative to the transform it stands for."""

    @abstractmethod
    def error(self, exponents: Array) -> Array:
        """Bound on ``|M - M_f| / M`` at real exponents, shape (K,) or (K, R), shape (K, B)."""

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """Bound on ``|M(z) - M_f(z)| / M(Re z)`` for every ``|Im z| <= frequency``, given `error`, shape (B,).

        Of a sum without some of its terms that `error` itself: none is larger than on the real axis.
        """
        return error


@final
@dataclass(frozen=True)
class NoQuadrature(Quadrature):
    """A finite sum: no error."""

    size: int

    def error(self, exponents: Array) -> Array:
        """Zero."""
        return np.zeros((len(exponents), self.size))


@final
@dataclass(frozen=True, eq=False)
class Grown:
    """``q (e^x - 1)`` for weights q, and a bound on its error."""

    value: Array
    error: Array


@final
@dataclass(frozen=True, eq=False)
class LossRule:
    """A batch of rules.

    Attributes
    ----------
    loss, loss_error : ndarray, shape (B, n)
        Losses (nats) and bounds on their absolute errors; one row of each where the rules share their losses.
    log_weight, weight_error : ndarray, shape (B, n)
        ``ln q_j`` and bounds on their absolute errors.
    missing_p, missing_q : ndarray, shape (B,)
        One minus the mass of P and of Q at the finite losses, to 32 u relative.
    counts : ndarray, shape (B,)
        How often each pair is composed: whole numbers below 2^53.
    quadrature : Quadrature
        The error of the rules.
    cells : Cells or None
        For the decay of the transform; None where nothing is known.
    dropped : ndarray, shape (B,)
        Bounds on the mass, under P and under Q, that the rule leaves out on purpose.
    """

    loss: Array
    loss_error: Array
    log_weight: Array
    weight_error: Array
    missing_p: Array
    missing_q: Array
    counts: Array
    quadrature: Quadrature
    cells: Cells | None
    dropped: Array

    @classmethod
    def of_pair(cls, *nodes: Array, count: float, quadrature: Quadrature, cells: Cells | None = None) -> LossRule:
        """The rule of one pair that misses no mass: losses and weights with their errors, each of shape (n,)."""
        loss, loss_error, log_weight, weight_error = (part[None] for part in nodes)
        none = np.zeros(1)
        counts = np.array([count])
        return cls(loss, loss_error, log_weight, weight_error, none, none, counts, quadrature, cells, none)

    @property
    def size(self) -> int:
        """B, the number of rules."""
        return int(self.log_weight.shape[0])

    @property
    def nodes(self) -> int:
        """n, the number of nodes of each."""
        return int(self.loss.shape[1])

    @property
    def sketch(self) -> Sketch:
        """The same without errors."""
        loss = np.broadcast_to(self.loss, self.log_weight.shape)
        return Sketch(loss, self.log_weight, self.counts, self.cells, self.dropped)

    @cached_property
    def room(self) -> Array:
        """The largest exponent that a node may carry."""
        return OVERFLOW - self.log_weight - np.maximum(self.loss, 0.0)

    @cached_property
    def weight(self) -> Array:
        """``q_j``."""
        return np.exp(self.log_weight)

    @cached_property
    def log_weight_p(self) -> Array:
        """``ln p_j = ln q_j + l_j``, one rounding off."""
        return self.log_weight + self.loss

    @cached_property
    def weight_p(self) -> Array:
        """``p_j``."""
        return np.exp(self.log_weight_p)

    @cached_property
    def exponent_doubts(self) -> tuple[Array, Array]:
        """What ``a l + ln q`` may be off by, its errors and its roundings: what is fixed, and what grows with a."""
        fixed = 2.0 * U * np.abs(self.log_weight) + self.weight_error
        return fixed, 3.0 * U * np.abs(self.loss) + self.loss_error

    def largest_doubt(self, exponents: Array) -> Array:
        """At most what ``a l + ln q`` of any node may be off by, at exponents (K, R), shape (K, B)."""
        fixed, grown = self._largest_doubts
        return np.asarray(fixed + np.abs(exponents) * grown)

    @cached_property
    def _largest_doubts(self) -> tuple[Array, Array]:
        fixed, grown = self.exponent_doubts
        return fixed.max(axis=1), grown.max(axis=1)

    @cached_property
    def gain(self) -> Grown:
        """``p_j - q_j``."""
        return self.grown(self.loss, np.zeros(()))

    @cached_property
    def residual(self) -> Grown:
        """``p_j - q_j - q_j l_j``."""
        loss, q = self.loss, self.weight
        inner = np.minimum(loss, _LARGE)
        value = np.where(loss < _LARGE, q * exponential_residual(inner), self.gain.value - q * loss)
        size = np.abs(loss)
        scale = np.maximum(self.weight_p, q)
        error = U * scale * (40.0 * np.minimum(loss * loss, size) + np.where(loss < _LARGE, 0.0, self._reach(loss)))
        return Grown(value, error)

    def _reach(self, x: Array) -> Array:
        """Size of the exponents that are rounded where the weight, q or p, is taken into the exponential."""
        size = np.abs(self.log_weight_p)  # rounded itself: it counts twice
        return 2.0 * np.abs(x) + np.maximum(np.abs(self.log_weight), size) + size + 16.0

    def grown_by(self, exponents: Array) -> Grown:
        """``q (e^{al} - 1)`` at exponents a of at most a half, ``q (e^{al} - e^l)`` at others, a `column`."""
        lean = leaning(exponents)
        return self.grown(np.minimum((exponents - lean) * self.loss, self.room), lean)

    def grown(self, x: Array, lean: Array) -> Grown:
        """``w_j (e^{x_j} - 1)``, w = p where ``lean`` is 1 and q where it is 0.

        Parameters
        ----------
        x : ndarray, shape (..., B, n)
            Each carrying one rounding, with ``ln w + x`` below 700.
        lean : ndarray, broadcast to the same shape
            Ones and zeros.
        """
        leaning = lean > 0.5
        scale: Array | float = 10.0
        if leaning.all():
            w, log_w = self.weight_p, self.log_weight_p
        elif leaning.any():
            w = np.where(leaning, self.weight_p, self.weight)
            log_w = np.where(leaning, self.log_weight_p, self.log_weight)
        else:
            w, log_w = self.weight, self.log_weight
        if w is not self.weight:
            scale = 10.0 + lean * np.abs(log_w)
        large = x >= _LARGE
        is_large = bool(large.any())
        value = w * np.expm1(np.minimum(x, _LARGE) if is_large else x)
        error = U * (scale * np.abs(value) + 2.0 * np.abs(x) * (value + w))
        if is_large:
            together = np.exp(np.where(large, log_w + x, -np.inf))
            value = np.where(large, together - w, value)
            error = np.where(large, U * (together + w) * self._reach(x), error)
        return Grown(value, error)


def leaning(exponents: Array) -> Array:
    """1 at exponents from which on p makes a smaller coefficient than q, 0 at others."""
    return (exponents > 0.5).astype(np.float64)


def reversed_nodes(
    loss: Array, loss_error: Array, log_weight: Array, weight_error: Array
) -> tuple[Array, Array, Array, Array]:
    """Losses and weights of the reversed pair, with their errors, from those of the pair."""
    log_p = log_weight + loss
    return -loss, loss_error, log_p, weight_error + loss_error + U * np.abs(log_p)


@final
@dataclass(frozen=True)
class Window:
    """What a rule must serve: exponents a = 1 + theta, a largest frequency, and ``ln`` of the accuracy wanted of M.

    For R runs exponents have the shape (K, R), and the other numbers (R,) where they differ.

    ``cells`` is the number of cells between nodes, where a bound on the decay is wanted; 0 otherwise. ``log_drop`` is
    ``ln`` of the mass that each step may leave out where its loss is largest, lest it swamp large tilts. ``longest`` is
    the number of nodes beyond which the rule of a subsampled Gaussian is not worth having.
    """

    exponents: tuple[float, ...] | Array
    frequency: Numbers
    log_accuracy: Numbers
    cells: int = 0
    log_drop: Numbers = -math.inf
    longest: Numbers = 1 << 14

    @classmethod
    def of(cls, exponents: Array, frequency: Array, log_accuracy: Array, cells: int = 0) -> Window:
        """Of R runs, exponents of shape (K, R) and numbers of shape (R,); of one run without that axis."""
        if exponents.shape[1] > 1:
            return cls(exponents, frequency, log_accuracy, cells)
        return cls(tuple(exponents[:, 0].tolist()), float(frequency[0]), float(log_accuracy[0]), cells)

    def up_to(self, nodes: Array) -> Window:
        """The same with rules of at most so many nodes, shape (R,), if these are fewer."""
        least = np.minimum(nodes, self.longest)
        return replace(self, longest=least if least.size > 1 else float(least[0]))

    def at(self, rows: Rows) -> Window:
        """For some of R runs."""
        several = {name: getattr(self, name) for name in ("frequency", "log_accuracy", "log_drop", "longest")}
        picked: dict[str, Any] = {n: value[rows] for n, value in several.items() if isinstance(value, np.ndarray)}
        return replace(self, exponents=np.ascontiguousarray(self.powers[:, rows]), **picked)

    @cached_property
    def powers(self) -> Array:
        """The exponents, shape (K, R)."""
        return np.asarray(self.exponents).reshape(len(self.exponents), -1)


class RuleSource(ABC):
    """Like parts of a composition, for which one batch of rules is built at a time."""

    @property
    @abstractmethod
    def steps(self) -> float:
        """Number of steps."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """About the largest privacy parameter (sensitivity over noise): tilts are tried on the scale of its inverse."""

    @property
    def is_atomic(self) -> bool:
        """Whether the losses are discrete."""
        return False

    @property
    def leaves_out(self) -> bool:
        """Whether a rule may leave out mass on purpose."""
        return False

    @property
    def kind(self) -> str | None:
        """Sums of one source of one kind can be asked together (`laws.loss_sum.LikeSums`); None where they cannot."""
        return None

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]] | None:
        """The losses of each pair to within `transforms.lattice.PRECISE`, and its count; None where not known."""
        return None

    @abstractmethod
    def rule(self, window: Window) -> LossRule | None:
        """The rules that serve the window; None where they would be too long."""

    def sketch(self, window: Window) -> Sketch | None:
        """The same without errors, where that is cheaper."""
        rule = self.rule(window)
        return None if rule is None else rule.sketch
