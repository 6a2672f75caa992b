"""Estimates of K and of the cumulants of tilted losses, from nodes without errors.

Symbols: ``K(theta) = ln E_P[e^{theta L}; L finite]``. Tilted by theta the loss has mean K', variance K'' and cumulants
K''', K''''; its absolute third central moment is ``E~|L - K'|^3`` (004, equation 73). For a composition every one of
them is the sum over its steps.

Nothing certified rests on this module: it chooses tilts, windows and steps, and makes published estimates. Cost: one
exponential for each node and tilt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Columns, across
from hockeystick.transforms.nodes import Nodes
from hockeystick.transforms.rule import Array, Numbers, Sketch, by_run

_AT_ONCE = 1 << 19  # nodes times tilts
_CACHED = 1 << 16  # the same of rules that share calls: their arrays stay in the processor's cache
_RESOLVED = 12.0  # how far (in ln) the outermost nodes must lie below the peak
_FARTHEST = 1e100  # epsilon: the square of a larger one may overflow, and no delta is above 0 there


class NodeSource(Protocol):
    """What a step must offer for tilts and windows to be chosen: a pair, a lattice, or some of the nodes of one."""

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """Smallest and largest finite loss (nats), infinite where unbounded."""

    def nodes(self, log_tail: float) -> Nodes:
        """Nodes that cover both distributions up to tails of about ``e^log_tail``."""


@final
@dataclass(frozen=True, eq=False)
class NodeBatch:
    """B distributions of n nodes each: losses (nats), ``ln`` of their weights under P, and how often each is composed.

    Arrays of shape (B, n), and (B,).
    """

    loss: Array
    log_p: Array
    counts: Array


Weighted = NodeBatch | Sketch


@final
@dataclass(frozen=True, eq=False)
class _Tilted:
    """A batch at k tilts: K, shape (k, B); weights up to a factor, shape (k, B, n); their sums, and the means."""

    log_moment: Array
    weight: Array
    total: Array
    mean: Array

    @classmethod
    def of(cls, loss: Array, log_p: Array, tilts: Array) -> _Tilted:
        logs = tilts[:, :, None] * loss
        logs += log_p
        peak = logs.max(axis=2, keepdims=True)
        logs -= peak
        weight = np.exp(logs, out=logs)
        total = weight.sum(axis=2)
        return cls(peak[:, :, 0] + np.log(total), weight, total, (weight * loss).sum(axis=2) / total)

    def moment(self, powers: Array) -> Array:
        """The tilted mean of numbers at the nodes, shape (k, B)."""
        return np.asarray((self.weight * powers).sum(axis=2) / self.total)


@final
@dataclass(frozen=True, eq=False)
class Scan(Columns):
    """Estimates of K, K' and K'' of a sum at the tilts, shape (k,), or of R sums, shape (k, R)."""

    tilts: Array
    value: Array
    mean: Array
    variance: Array

    def times(self, ratio: Array, gaussian_variance: Array) -> Scan:
        """The same of so many times as many steps beside the normal part, which stays."""
        value = 0.5 * gaussian_variance * self.tilts * (1.0 + self.tilts)
        mean = gaussian_variance * (self.tilts + 0.5)
        return Scan(
            self.tilts,
            ratio * (self.value - value) + value,
            ratio * (self.mean - mean) + mean,
            ratio * (self.variance - gaussian_variance) + gaussian_variance,
        )

    @cached_property
    def curvature(self) -> Array:
        """Second derivative of the whole exponent ``K - ln(z (1 + z))``."""
        return np.asarray(self.variance + 1.0 / np.square(self.tilts) + 1.0 / np.square(1.0 + self.tilts))

    def composed(self, steps: Numbers, gaussian_variance: Numbers) -> Scan:
        """Those of so many steps and a normal part, given those of one step."""
        return Scan(
            self.tilts,
            steps * self.value + 0.5 * gaussian_variance * self.tilts * (1.0 + self.tilts),
            steps * self.mean + gaussian_variance * (self.tilts + 0.5),
            steps * self.variance + gaussian_variance,
        )

    def __add__(self, other: Scan) -> Scan:
        """Those of the sum of both losses, at the same tilts."""
        return Scan(self.tilts, self.value + other.value, self.mean + other.mean, self.variance + other.variance)

    def saddle_excess(self, epsilon: float) -> Array:
        """``K'(theta) - epsilon - 1/theta - 1/(1 + theta)``, increasing in theta."""
        return self.mean - epsilon - 1.0 / self.tilts - 1.0 / (1.0 + self.tilts)

    def smooth_log_delta(self) -> tuple[Array, Array]:
        """Epsilon whose saddle point each tilt is, and the saddle-point estimate of ``ln delta`` there."""
        epsilon = self.mean - 1.0 / self.tilts - 1.0 / (1.0 + self.tilts)
        return epsilon, _smooth_log_delta(self.value, self.tilts, epsilon, self.curvature)

    def log_delta_at(self, epsilon: float) -> float:
        """The saddle-point estimate of ``ln delta`` at one epsilon: a step of Newton's from each of two tilts.

        Tilts have the shape (k,), and increase.
        """
        epsilon = min(epsilon, _FARTHEST)
        excess = self.saddle_excess(epsilon)
        place = min(max(int(np.searchsorted(excess, 0.0)), 1), excess.size - 1)
        near = slice(place - 1, place + 1)
        tilts, curvature = self.tilts[near], self.curvature[near]
        found = _smooth_log_delta(self.value[near], tilts, epsilon, curvature) - 0.5 * excess[near] ** 2 / curvature
        return float(np.interp(0.0, excess[near], found))


def scan(batches: Sequence[Weighted], gaussian_variance: Numbers, tilts: Array) -> Scan:
    """K, K' and K'' of a sum at every tilt; ``gaussian_variance`` is that of its normal part.

    Of R sums: tilts of shape (k, R), variances of shape (R,), and batches of a row for each.
    """
    each = tilts.reshape(len(tilts), -1)
    runs = each.shape[1]
    columns: list[tuple[Array, ...]] = []
    for batch in batches:
        moments = _tilted_moments(batch, each)
        counts = across(batch.counts)
        columns.append(tuple(by_run(moment * counts, runs) for moment in moments))
    if np.ndim(gaussian_variance) or gaussian_variance or not columns:
        spread = np.zeros_like(each) + gaussian_variance
        columns.insert(0, (0.5 * gaussian_variance * each * (1.0 + each), gaussian_variance * (each + 0.5), spread))
    value, mean, variance = columns[0]
    for more in columns[1:]:
        value, mean, variance = value + more[0], mean + more[1], variance + more[2]
    if tilts.ndim == 2:
        return Scan(tilts, value, mean, variance)
    return Scan(tilts, *(column.reshape(tilts.shape) for column in (value, mean, variance)))


def _tilted_moments(batch: Weighted, tilts: Array) -> tuple[Array, Array, Array]:
    """K of each rule, its mean and its variance, shape (k, B): of a few rules at a time."""
    loss, log_p = batch.loss, batch.log_p
    rules, nodes = loss.shape
    most = max(_CACHED // (len(tilts) * nodes), 1)
    if rules <= most:
        return _moments_of(loss, log_p, tilts)
    found = []
    for first in range(0, rules, most):
        part = slice(first, first + most)
        found.append(_moments_of(loss[part], log_p[part], tilts[:, part] if tilts.shape[1] > 1 else tilts))
    log_moment, mean, variance = (np.concatenate(one, axis=1) for one in zip(*found, strict=True))
    return log_moment, mean, variance


def _moments_of(loss: Array, log_p: Array, tilts: Array) -> tuple[Array, Array, Array]:
    tilted = _Tilted.of(loss, log_p, tilts)
    spread = loss - tilted.mean[:, :, None]
    return tilted.log_moment, tilted.mean, tilted.moment(np.square(spread, out=spread))


def smooth_log_delta(value: Array, tilts: Array, epsilon: Array | float, variance: Array) -> Array:
    """``K - theta eps - ln(theta (1 + theta)) - ln(2 pi F'') / 2``, F'' the curvature of the whole exponent.

    004's saddle-point approximation of order 0 (equation 60).
    """
    curvature = variance + 1.0 / np.square(tilts) + 1.0 / np.square(1.0 + tilts)
    return _smooth_log_delta(value, tilts, epsilon, curvature)


def _smooth_log_delta(value: Array, tilts: Array, epsilon: Array | float, curvature: Array) -> Array:
    with np.errstate(over="ignore"):  # an epsilon that nothing reaches
        tilted = tilts * epsilon
    return value - tilted - np.log(tilts * (1.0 + tilts)) - 0.5 * np.log(2.0 * math.pi * curvature)


@final
@dataclass(frozen=True)
class TiltedCumulants:
    """What the loss does when tilted by theta (estimates).

    Attributes
    ----------
    theta : float
        The tilt.
    log_moment : float
        K(theta) (nats).
    mean, variance, third, fourth : float
        The first four derivatives of K at theta: cumulants of the tilted loss (nats, nats^2, ...).
    absolute_third : float
        Sum over steps of the tilted absolute third central moments (nats^3).
    error : float
        Estimated error of the first five, each relative to its own scale: |K| and ``theta^2 K''`` for K, the deviation
        for the mean, powers of it for the others; ``nan`` where it was not asked for.
    """

    theta: float
    log_moment: float
    mean: float
    variance: float
    third: float
    fourth: float
    absolute_third: float
    error: float = math.nan


@final
@dataclass(frozen=True, eq=False)
class StepCumulants(Columns):
    """What the losses of B steps do at one tilt, as in `TiltedCumulants`; arrays of shape (B,)."""

    log_moment: Array
    mean: Array
    variance: Array
    third: Array
    fourth: Array
    absolute_third: Array


def tilted_cumulants(loss: Array, log_p: Array, theta: float) -> tuple[StepCumulants, Array]:
    """All cumulants of B steps at one tilt, from n nodes each, shape (B, n).

    And the larger of the tilted weights of the first and the last node, in units of the largest weight, shape (B,).
    """
    tilted = _Tilted.of(loss, log_p, np.array([[theta]]))
    deviation = loss - tilted.mean[:, :, None]
    square = deviation * deviation
    second = tilted.moment(square)
    moments = (
        tilted.log_moment,
        tilted.mean,
        second,
        tilted.moment(square * deviation),
        tilted.moment(square * square) - 3.0 * second * second,
        tilted.moment(square * np.abs(deviation)),
    )
    ends = np.maximum(tilted.weight[0, :, 0], tilted.weight[0, :, -1])
    return StepCumulants(*(moment[0] for moment in moments)), ends


@final
class Cumulants:
    """K and its first two derivatives for a composition, on nodes that reach as far as is asked for.

    Parameters
    ----------
    parts : sequence of (NodeSource, int)
        The composition, one direction.
    log_tail : float
        The nodes cover tails of about ``e^log_tail``.
    """

    def __init__(self, parts: Sequence[tuple[NodeSource, int]], log_tail: float) -> None:
        self.log_tail = log_tail
        groups: dict[int, list[tuple[NodeSource, Nodes, int]]] = {}
        for source, count in parts:
            nodes = source.nodes(log_tail)
            if nodes.loss.size == 0:
                raise PrecisionError(f"{source!r} hides nothing: no loss is finite, nor is epsilon; use more noise")
            groups.setdefault(nodes.loss.size, []).append((source, nodes, count))
        self._batches = [
            NodeBatch(
                np.array([nodes.loss for _, nodes, _ in group]),
                np.array([nodes.log_p for _, nodes, _ in group]),
                np.array([float(count) for _, _, count in group]),
            )
            for group in groups.values()
        ]
        self._ends = [np.nonzero([_outermost(*one[:2]) for one in group]) for group in groups.values()]

    def __call__(self, theta: float) -> tuple[float, float, float]:
        """K(theta), K'(theta), K''(theta)."""
        found = self.at(np.array([theta]))
        return float(found.value[0]), float(found.mean[0]), float(found.variance[0])

    def at(self, tilts: Array) -> Scan:
        """The same at several tilts, shape (k,)."""
        return Scan.joined([scan(self._batches, 0.0, part) for part in self._pieces(tilts)])

    def log_moment(self, theta: float) -> float:
        """K(theta) alone; ``inf`` where the nodes do not reach far enough to tell."""
        return float(self.log_moments(np.array([theta]))[0])

    def log_moments(self, tilts: Array) -> Array:
        """The same at several tilts, shape (k,)."""
        return np.concatenate([self._log_moments(part) for part in self._pieces(tilts)])

    def _log_moments(self, tilts: Array) -> Array:
        value, lost = np.zeros_like(tilts), np.zeros(tilts.size, dtype=np.bool_)
        for batch, (steps, nodes) in zip(self._batches, self._ends, strict=True):
            exponents = tilts[:, None, None] * batch.loss
            exponents += batch.log_p
            peak = exponents.max(axis=2, keepdims=True)
            lost |= (exponents[:, steps, nodes] > peak[:, steps, 0] - _RESOLVED).any(axis=1)
            exponents -= peak
            logs = peak[:, :, 0] + np.log(np.exp(exponents, out=exponents).sum(axis=2))
            value = value + (logs * batch.counts).sum(axis=1)
        return np.where(lost, np.inf, value)

    def _pieces(self, tilts: Array) -> list[Array]:
        """Tilts a few at a time, so that arrays stay small."""
        most = max(_AT_ONCE // max(batch.loss.size for batch in self._batches), 1) if self._batches else tilts.size
        return [tilts[first : first + most] for first in range(0, tilts.size, most)]


def _outermost(source: NodeSource, nodes: Nodes) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The first and the last node, where there are losses beyond."""
    low, high = source.loss_bounds
    loss = nodes.loss
    return np.asarray(((loss == loss.min()) & math.isinf(low)) | ((loss == loss.max()) & math.isinf(high)))
