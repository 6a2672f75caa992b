"""A piece of the law of a loss, between two soft cuts, on a trapezoidal rule of its own.

The rule of step eta in the base loss u stands for ``B(z) = int f(u) e^{(z - theta) l} du``, f the density of P tilted
by theta times what the cuts keep. All bounds below are absolute, and hold for every ``|Im z| <= s``.

Guarantee: `moment` and `log_error` bound what they say (`docs/derivations/rare-losses.md`, section 3). Cost: a few
exponentials a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.rare.losses import RISEN, WIDTH, Array, RareLosses, kept, raised
from hockeystick.laws.gaussian_strip import record_argument
from hockeystick.laws.sampled_loss import sampled_loss_error
from hockeystick.numerics.rounding import U, log_sums
from hockeystick.transforms.strip import few_bits

_HEIGHTS = np.linspace(0.0, 1.0, 25)  # of the ends, over the half-width
_COARSE = 96  # points of an estimate
_TRIED = WIDTH * np.arange(0.0, 16.0, 0.2)  # beyond a cut
_STRIPS = np.geomspace(0.002, 1.5, 16)  # half-widths tried, below pi / 2


def growth(shift: float) -> float:
    """By how much ``ln |f|`` grows over the square of the distance from the line."""
    return (0.5 / shift**2 + 1.0 / WIDTH**2) * RISEN


@final
@dataclass(frozen=True, eq=False)
class Piece:
    """Losses between the cuts ``below`` (-inf for none) and ``above``, on nodes ``first .. last`` times ``step``.

    Attributes
    ----------
    losses : RareLosses
        The law.
    below, above : float
        Cuts, in the base loss, at least 1.5 widths apart.
    step : float
        eta, of 12 bits.
    first, last : int
        Of the nodes.
    half_width : float
        Of the strip on which the rule is judged.
    """

    losses: RareLosses
    below: float
    above: float
    step: float
    first: int
    last: int
    half_width: float
    _known: dict[float, Array] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def planned(
        cls, losses: RareLosses, below: float, above: float, *, exponent: float, frequency: float, log_accuracy: float
    ) -> Piece:
        """A piece whose rule errs by about ``e^log_accuracy`` up to a frequency."""
        m = losses.shift
        if math.isinf(below):
            low = -m * math.sqrt(max(-2.0 * log_accuracy, 8.0)) - 0.5 * m * m
        else:
            steep = 0.75 * WIDTH**2 * max(below / m**2 + 0.5, 0.0)  # there the cut falls faster than the density rises
            low = below - max(_reach(losses, below, exponent, log_accuracy, -1.0), steep)
        high = above + _reach(losses, above, exponent, log_accuracy, 1.0)
        coarse = cls._on(losses, (below, above), (low, high), (high - low) / _COARSE, 0.0)
        sizes = coarse.log_turned(exponent, frequency, _STRIPS)
        room = growth(m) * _STRIPS**2 + sizes + math.log(2.0) - log_accuracy + 1.0
        q = min(1.25 * coarse.posterior[-1], 1.0)  # and the upper end must not turn faster than the step resolves
        turned = growth(m) * _STRIPS**2 + frequency * (q if q <= 0.5 else 1.0) * _STRIPS + 1.0
        steps = 2.0 * math.pi * _STRIPS / np.maximum(np.maximum(room, turned), 1.0)
        best = int(np.argmax(steps))
        step = min(float(steps[best]), 0.25 * (high - low))
        return cls._on(losses, (below, above), (low, high), step, float(_STRIPS[best]))

    @classmethod
    def _on(
        cls, losses: RareLosses, cuts: tuple[float, float], ends: tuple[float, float], step: float, half_width: float
    ) -> Piece:
        step = float(few_bits(np.array(step)))
        return cls(losses, *cuts, step, math.floor(ends[0] / step), math.ceil(ends[1] / step), half_width)

    @cached_property
    def nodes(self) -> Array:
        """Base losses, exact."""
        return self.step * np.arange(float(self.first), float(self.last + 1))

    @cached_property
    def loss(self) -> Array:
        """``l`` at the nodes."""
        return self.losses.loss(self.nodes)

    @cached_property
    def loss_error(self) -> Array:
        """Bounds on the errors of the losses."""
        return sampled_loss_error(self.loss, self.nodes, self.losses.rate)

    @cached_property
    def posterior(self) -> Array:
        """That of the record at the lower end, at the nodes and at the upper end, rounded up."""
        low, high = self._ends
        every = np.concatenate(([low], self.nodes, [high]))
        return np.minimum(self.losses.posterior(every) * RISEN, 1.0)

    @cached_property
    def _between(self) -> tuple[Array, Array]:
        """What both cuts keep, and a bound on its relative error."""
        above = (self.nodes - self.above) / WIDTH
        if math.isinf(self.below):
            own = 40.0 * (1.0 + np.square(np.maximum(above, 0.0)))
            return kept(above), np.where(above < -3.0, 2.0, own) * U  # there what is taken from 1 is below 2e-5
        below = (self.nodes - self.below) / WIDTH
        # the difference of two tails on the side where both are small, one at most a seventh of the other or so
        upper = above + below > 0.0
        value = np.where(upper, kept(above) - kept(below), kept(-below) - kept(-above))
        x = np.maximum(np.where(upper, above, -below), 0.0)
        return value, 100.0 * U * (1.0 + x * x)

    def log_weight(self, exponent: float) -> Array:
        """``ln`` of the density of Q times ``e^{exponent l}``, without the cuts."""
        return self.losses.log_density(self.nodes) + exponent * self.loss

    def weights(self, exponent: float) -> Array:
        """The weights of the rule."""
        return self.step * np.exp(self.log_weight(exponent)) * self._between[0]

    def relative_error(self, exponent: float) -> Array:
        """Bounds on those of the weights."""
        m, l = self.losses.shift, np.abs(self.loss)
        t = np.abs(self.nodes) / m + m
        own = U * (8.0 * t * t + 4.0 * exponent * l + 24.0 + 2.0 * abs(math.log(m))) + exponent * self.loss_error
        return np.asarray(1.01 * (own + self._between[1]))

    def moment(self, exponent: float) -> float:
        """Upper bound on the integral at an exponent ``1 + theta``."""
        total = float(self.weights(exponent).sum()) * RISEN
        return total + raised(self.log_error(exponent, 0.0))

    @cached_property
    def lost(self) -> float:
        """Upper bound on the mass of P between the cuts that lies beyond the ends."""
        m, g = self.losses.shift, self.losses.rate
        low, high = self._ends
        place = high / m + 0.5 * m
        x = np.array([(high - self.above) / WIDTH, place / math.sqrt(2.0), (place - m) / math.sqrt(2.0)])
        cut, q, shifted = kept(x).tolist()
        beyond = cut * ((1.0 - g) * q + g * shifted)
        if math.isinf(self.below):  # P is below Q in the lower tail
            return float(beyond + kept(np.array(-(low / m + 0.5 * m) / math.sqrt(2.0)))) * RISEN
        y, ends = (self.below - low) / WIDTH, np.array([low])
        fall = (2.0 * y / WIDTH - max(low / (m * m) + 0.5, 0.0)) * (1.0 - 1e-9)
        if fall <= 0.0:
            return 1.0
        log = float(self.losses.log_density(ends)[0] + self.losses.loss(ends)[0]) - y * y
        return float(beyond + 0.5 * raised(log) / fall) * RISEN

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Half a step beyond the first and the last node: there the piece ends."""
        return (self.first - 0.5) * self.step, (self.last + 0.5) * self.step

    def _cells(self, exponent: float) -> Array:
        """``ln`` of upper bounds of f from the lower end to the first node, between nodes, and to the upper end.

        Between nodes f lies above its chord, in the logarithm, by at most an eighth of its bend times the square.
        """
        if exponent not in self._known:
            self._known[exponent] = self._cells_at(exponent)
        return self._known[exponent]

    def _cells_at(self, exponent: float) -> Array:
        with np.errstate(divide="ignore"):  # where both cuts round to nothing
            logs = self.log_weight(exponent) + np.log(self._between[0])
        m = self.losses.shift
        bend = (1.0 / m**2 + 2.0 / WIDTH**2) * self.step**2 / 8.0 * RISEN
        low, high = self.nodes[[0, -1]] / (m * m) + 0.5
        falls = max(float(low), 0.0) + 1.0  # towards the lower end: the cut above changes by less than 1 there
        rises = max(exponent * float(self.posterior[-1]) - float(high), 0.0) + 1e-9 * (exponent + abs(float(high)))
        half = 0.5 * self.step
        cells = np.concatenate(
            (logs[:1] + half * falls, np.maximum(logs[1:], logs[:-1]) + bend, logs[-1:] + half * rises)
        )
        return cells + 1e-9 * (1.0 + np.abs(np.maximum(cells, -1e9)))

    def log_turned(self, exponent: float, frequency: float, half_widths: Array) -> Array:
        """``ln`` of bounds on the integral of ``f e^{s A}``, A the argument of r at a height; one for each height."""
        turns = frequency * RISEN * record_argument(self.posterior[1:], half_widths[:, None])
        return log_sums(self._cells(exponent) + self._log_lengths + turns) + 1e-9

    @cached_property
    def _log_lengths(self) -> Array:
        lengths = np.full(self.last - self.first + 2, self.step)
        lengths[[0, -1]] *= 0.5
        return np.asarray(np.log(lengths) + 1e-12)

    def log_faded(self, exponent: float, frequency: float, half_width: float) -> float:
        """``ln`` of a bound on the transform at a frequency and beyond, from the line moved up by ``half_width``."""
        s, cells = frequency * (1.0 - 1e-9), self._cells(exponent)
        q = self.posterior * (1.0 - 2e-9)
        turns = s * record_argument(q[:-1], np.array(half_width))
        line = float(log_sums(cells + self._log_lengths - turns)) + growth(self.losses.shift) * half_width**2
        heights = half_width * _HEIGHTS
        up = growth(self.losses.shift) * np.square(heights[1:]) + np.log(np.diff(heights))
        sides = cells[[0, -1], None] + up - s * record_argument(q[[0, -1], None], heights[:-1])
        found = float(np.logaddexp(line, log_sums(sides.ravel())))
        return found + 1e-8 * (1.0 + abs(found))

    def log_error(self, exponent: float, frequency: float) -> float:
        """``ln`` of a bound on the error of the rule up to a frequency."""
        b, rising = self.half_width, growth(self.losses.shift)
        turn = 2.0 * math.pi / self.step * (1.0 - 1e-9)
        line = float(self.log_turned(exponent, frequency, np.array([b]))[0]) + rising * b * b
        line -= turn * b + math.log(-math.expm1(-turn * b))
        q = self.posterior[[1, -1]]
        falls = turn - rising * b - frequency * RISEN * np.where(q <= 0.5, q, 1.0)
        # int_0^b e^{-fall y} dy
        heights = np.where(falls > 0.0, -np.log(np.maximum(falls, 1e-9)), math.log(b) - falls * b)
        logs = np.append(self._cells(exponent)[[0, -1]] + heights, line)
        found = math.log(2.0) + float(log_sums(logs))
        return found + 1e-8 * (1.0 + abs(found))


def _reach(losses: RareLosses, cut: float, exponent: float, log_accuracy: float, sign: float) -> float:
    """How far to go on beyond a cut (nats)."""
    place = cut + sign * _TRIED
    logs = losses.log_density(place) + exponent * losses.loss(place) - np.square(_TRIED / WIDTH)
    enough = np.flatnonzero(logs <= log_accuracy)
    return float(_TRIED[max(int(enough[0]) if enough.size else int(np.argmin(logs)), 8)])
