"""The law of a loss in pieces, between soft cuts, each on a trapezoidal rule of its own; all pieces at once.

The rule of step eta in the base loss u stands for ``B(z) = int f(u) e^{(z - theta) l} du``, f the density of P tilted
by theta times what the cuts keep. All bounds below are absolute, and hold for every ``|Im z| <= s``. The nodes of all
pieces lie end to end in arrays of shape (N,); so do their *cells*, of which a piece has one more: from its lower end to
its first node, between nodes, and from the last one to its upper end.

Guarantee: `TiltedPieces.moment` and `TiltedPieces.log_error` bound what they say (`docs/derivations/rare-losses.md`,
section 3). Cost: a few exponentials a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.rare.losses import RISEN, WIDTH, RareLosses, kept, raised
from hockeystick.engines.rare.turning import CLEAR, NEAR, STEEPER, least_turn, most_turn
from hockeystick.laws.sampled_loss import sampled_loss_error
from hockeystick.numerics.columns import Array, Places
from hockeystick.numerics.rounding import U, log_sums
from hockeystick.transforms.strip import few_bits

_HEIGHTS = np.linspace(0.0, 1.0, 25)  # of the ends, over the half-width
_COARSE = 96  # points of an estimate
_TRIED = np.arange(0.0, 16.0, 0.2)  # beyond a cut
_STRIPS = np.geomspace(0.002, 1.5, 10)[:, None]  # half-widths tried
_WIDER = np.append(_STRIPS, np.geomspace(2.0, 60.0, 8)[:, None], axis=0)  # where cuts are wide
_BESIDE = 1.6  # widths from a cut to the end that it makes, at least: a cut above changes by less than 1 a nat there
_LEAST = 1.0 - 2e-9  # of a posterior that was rounded up


def growth(losses: RareLosses) -> float:
    """By how much ``ln |f|`` grows over the square of the distance from the line."""
    return (0.5 / losses.shift**2 + 1.0 / losses.width**2) * RISEN


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """Losses between the cuts ``below`` (-inf for none) and ``above``, on nodes ``first .. last`` times ``step``.

    Attributes
    ----------
    losses : RareLosses
        The law.
    below, above : ndarray, shape (P,)
        Cuts, in the base loss, at least 1.5 widths apart.
    step : ndarray, shape (P,)
        eta, of 12 bits.
    first, last : ndarray, shape (P,)
        Of the nodes: whole numbers.
    half_width : ndarray, shape (P,)
        Of the strip on which each rule is judged.
    """

    losses: RareLosses
    below: Array
    above: Array
    step: Array
    first: Array
    last: Array
    half_width: Array

    @classmethod
    def planned(
        cls,
        losses: RareLosses,
        below: Array,
        above: Array,
        *,
        exponent: float,
        frequency: float,
        log_accuracy: Array,
    ) -> Pieces:
        """Pieces whose rules err by about ``e^log_accuracy``, shape (P,), up to a frequency."""
        m, whole = losses.shift, np.isinf(below)
        # there the cut falls faster than the density rises
        steep = 0.75 * losses.width**2 * np.maximum(below / m**2 + 0.5, 0.0)
        inner = np.where(whole, above, below)
        end = inner - np.maximum(_reach(losses, inner, exponent, log_accuracy, -1.0), steep)
        bottom = -m * np.sqrt(np.maximum(-2.0 * log_accuracy, 8.0)) - 0.5 * m * m
        low = np.where(whole, np.minimum(bottom, above - _BESIDE * losses.width), end)
        high = above + _reach(losses, above, exponent, log_accuracy, 1.0)
        coarse = cls._on(losses, (below, above), (low, high), (high - low) / _COARSE, np.zeros_like(low))
        strips = _STRIPS if losses.width == WIDTH else _WIDER
        sizes = TiltedPieces(coarse, exponent).log_turned(frequency, strips)
        rising = growth(losses) * strips**2
        room = rising + sizes + math.log(2.0) - log_accuracy + 1.0
        q = np.minimum(1.25 * coarse.posterior_at_ends[1], 1.0)  # an upper end must not turn faster than steps resolve
        turned = rising + frequency * np.where(q <= 0.5, q, 1.0) * strips + 1.0
        steps = 2.0 * math.pi * strips / np.maximum(np.maximum(room, turned), 1.0)
        # up to two steps beyond, where its rule may end, such a piece keeps to one side of the zero of r
        clear = losses.posterior(low - 2.0 * steps) >= 1.0 - CLEAR
        clear |= losses.posterior(high + 2.0 * steps) <= CLEAR
        steps = np.where((strips <= NEAR) | clear, steps, 0.0)
        step = np.minimum(steps.max(axis=0), 0.25 * (high - low))
        return cls._on(losses, (below, above), (low, high), step, strips[np.argmax(steps, axis=0), 0])

    @classmethod
    def _on(
        cls,
        losses: RareLosses,
        cuts: tuple[Array, Array],
        ends: tuple[Array, Array],
        step: Array,
        half_width: Array,
    ) -> Pieces:
        step = few_bits(step)
        return cls(losses, *cuts, step, np.floor(ends[0] / step), np.ceil(ends[1] / step), half_width)

    @cached_property
    def sizes(self) -> Places:
        """How many nodes each has."""
        return (self.last - self.first + 1.0).astype(np.intp)

    @cached_property
    def _owner(self) -> Places:
        """The piece of each node."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def _outermost(self) -> tuple[Places, Places]:
        """The first node of each, and the last."""
        ends = np.cumsum(self.sizes)
        return ends - self.sizes, ends - 1

    @cached_property
    def outermost_cells(self) -> Places:
        """The first cell of each, and the last, shape (2, P)."""
        return np.asarray(np.array(self._outermost) + np.arange(self.sizes.size) + np.array([[0], [1]]))

    @cached_property
    def cell_owner(self) -> Places:
        """The piece of each cell."""
        return np.repeat(np.arange(self.sizes.size), self.sizes + 1)

    @cached_property
    def beside(self) -> tuple[Places, Places]:
        """The nodes to the left and to the right of each cell; at the ends of a piece the only one, twice."""
        right, (first, last) = np.arange(self.cell_owner.size) - self.cell_owner, self._outermost
        return np.maximum(right - 1, first[self.cell_owner]), np.minimum(right, last[self.cell_owner])

    def nodes_of(self, some: slice) -> slice:
        """Where the nodes of some pieces are."""
        first, last, _ = some.indices(self.sizes.size)
        return slice(int(self.sizes[:first].sum()), int(self.sizes[:last].sum()))

    @cached_property
    def nodes(self) -> Array:
        """Base losses, exact."""
        place = np.arange(self._owner.size) - self._outermost[0][self._owner]
        return self.step[self._owner] * (self.first[self._owner] + place)

    @cached_property
    def loss(self) -> Array:
        """``l`` at the nodes."""
        return self.losses.loss(self.nodes)

    @cached_property
    def loss_error(self) -> Array:
        """Bounds on the errors of the losses."""
        return sampled_loss_error(self.loss, self.nodes, self.losses.rate)

    @cached_property
    def log_density(self) -> Array:
        """``ln`` of the density of Q at the nodes."""
        return self.losses.log_density(self.nodes)

    @cached_property
    def ends(self) -> Array:
        """Half a step beyond the first and the last node, where pieces end, shape (2, P)."""
        return np.array([self.first - 0.5, self.last + 0.5]) * self.step

    @cached_property
    def posterior_at_ends(self) -> Array:
        """That of the record there, rounded up."""
        return np.minimum(self.losses.posterior(self.ends) * RISEN, 1.0)

    @cached_property
    def posterior(self) -> Array:
        """The same at the lower and at the upper end of each cell, shape (2, N + P)."""
        nodes = np.minimum(self.losses.posterior(self.nodes) * RISEN, 1.0)
        found = np.array([nodes[place] for place in self.beside])
        found[[[0], [1]], self.outermost_cells] = self.posterior_at_ends
        return found

    @cached_property
    def between(self) -> tuple[Array, Array]:
        """What both cuts keep, and a bound on its relative error."""
        above, below = ((self.nodes - cut[self._owner]) / self.losses.width for cut in (self.above, self.below))
        # the difference of two tails on the side where both are small, one at most a seventh of the other or so
        upper = above + below > 0.0
        nearer, other = np.where(upper, above, -below), np.where(upper, below, -above)
        x = np.maximum(nearer, 0.0)
        # with no cut below, what is taken from 1 is below 2e-5 where a node is 3 widths below the upper one
        alone = np.where(above < -3.0, 2.0, 40.0 * (1.0 + x * x))
        return kept(nearer) - kept(other), U * np.where(np.isinf(below), alone, 100.0 * (1.0 + x * x))

    @cached_property
    def lost(self) -> Array:
        """Upper bounds on the mass of P between the cuts that lies beyond the ends, shape (P,).

        Of each normal law either its tail times what the cut keeps at the end or, as a cut y widths off keeps at most
        ``e^{-y^2} / 2``, half of a tail of the product, which is a narrower normal law.
        """
        m, w, g = self.losses.shift, self.losses.width, self.losses.rate
        both = 2.0 * m * m + w * w
        outward = np.array([-1.0, 1.0])[:, None, None]
        mean, weight = np.array([[-0.5 * m * m], [0.5 * m * m]]), np.array([[1.0 - g], [g]])
        cut = np.array([self.below, self.above])[:, None]
        y, tail = outward * (self.ends[:, None] - cut) / w, outward * (self.ends[:, None] - mean)
        plain = kept(y) * kept(tail / (m * math.sqrt(2.0)))
        y, inside = np.maximum(y, 0.0), y < 0.0  # no cut, or an end on the wrong side of it
        share = 0.5 * w / math.sqrt(both) * raised(-np.square(np.where(inside, 0.0, cut - mean)) / both)
        product = share * kept((y * 2.0 * m * m + tail * w) / (m * math.sqrt(2.0 * both)))
        found = weight * np.where(inside, plain, np.minimum(plain, product))
        return np.asarray(found.sum(axis=(0, 1)) * RISEN)

    @cached_property
    def log_lengths(self) -> Array:
        """``ln`` of the lengths of the cells, rounded up."""
        lengths = self.step[self.cell_owner]
        lengths[self.outermost_cells] *= 0.5
        return np.asarray(np.log(lengths) + 1e-12)

    def log_sums(self, logs: Array) -> Array:
        """``ln sum exp`` over the cells of each piece, shape (..., P)."""
        starts = self.outermost_cells[0]
        peak = np.maximum.reduceat(logs, starts, axis=-1)
        peak = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            sums = np.add.reduceat(np.exp(logs - peak[..., self.cell_owner]), starts, axis=-1)
            return np.asarray(np.log(sums) + peak)


@final
@dataclass(frozen=True, eq=False)
class TiltedPieces:
    """Pieces tilted to an exponent ``1 + theta``."""

    pieces: Pieces
    exponent: float

    @cached_property
    def log_weight(self) -> Array:
        """``ln`` of the density of Q times ``e^{exponent l}``, without the cuts."""
        return self.pieces.log_density + self.exponent * self.pieces.loss

    @cached_property
    def weights(self) -> Array:
        """The weights of the rules."""
        pieces = self.pieces
        return np.repeat(pieces.step, pieces.sizes) * np.exp(self.log_weight) * pieces.between[0]

    @cached_property
    def relative_error(self) -> Array:
        """Bounds on those of the weights."""
        pieces = self.pieces
        m, l = pieces.losses.shift, np.abs(pieces.loss)
        t = np.abs(pieces.nodes / m + 0.5 * m) * (np.abs(pieces.nodes) / m + m)
        own = U * (8.0 * t + 4.0 * self.exponent * l + 24.0 + 2.0 * abs(math.log(m)))
        return np.asarray(1.01 * (own + self.exponent * pieces.loss_error + pieces.between[1]))

    @cached_property
    def moment(self) -> Array:
        """Upper bounds on the integrals, shape (P,)."""
        totals = np.add.reduceat(self.weights, np.cumsum(self.pieces.sizes) - self.pieces.sizes)
        return np.asarray(totals * RISEN + raised(self.log_error(0.0)))

    @cached_property
    def cells(self) -> Array:
        """``ln`` of upper bounds of f in each cell.

        Between nodes f lies above its chord, in the logarithm, by at most an eighth of its bend times the square.
        """
        pieces, m = self.pieces, self.pieces.losses.shift
        with np.errstate(divide="ignore"):  # where both cuts round to nothing
            logs = self.log_weight + np.log(pieces.between[0])
        bend = (1.0 / m**2 + 2.0 / pieces.losses.width**2) * np.square(pieces.step) / 8.0 * RISEN
        left, right = (logs[place] for place in pieces.beside)
        cells = np.maximum(left, right) + bend[pieces.cell_owner]
        low, high = (np.array([pieces.first, pieces.last]) * pieces.step) / (m * m) + 0.5
        falls = np.maximum(low, 0.0) + 1.0  # towards the lower end: the cut above changes by less than 1 there
        rises = np.maximum(self.exponent * pieces.posterior_at_ends[1] - high, 0.0)
        rises = rises + 1e-9 * (self.exponent + np.abs(high))
        first, last = pieces.outermost_cells
        cells[first] = left[first] + 0.5 * pieces.step * falls
        cells[last] = right[last] + 0.5 * pieces.step * rises
        return np.asarray(cells + 1e-9 * (1.0 + np.abs(np.maximum(cells, -1e9))))

    def log_turned(self, frequency: float, half_widths: Array) -> Array:
        """``ln`` of bounds on the integrals of ``f e^{s A}``, A the argument of r at some heights."""
        logs = self.cells + self.pieces.log_lengths
        if frequency > 0.0 or (half_widths > NEAR).any():
            least, most = self.pieces.posterior
            turn = most_turn(least * _LEAST, most, half_widths)
            known = np.isfinite(turn)
            logs = logs + np.where(known, frequency * RISEN * np.where(known, turn, 0.0), np.inf)
        return self.pieces.log_sums(logs) + 1e-9

    def log_faded(self, frequency: float, half_width: float) -> Array:
        """``ln`` of bounds on the transforms at a frequency and beyond, from the line moved up by ``half_width``."""
        pieces, s = self.pieces, frequency * (1.0 - 1e-9)
        rising = growth(pieces.losses)
        turns = s * least_turn(pieces.posterior[0] * _LEAST, np.array(half_width))
        line = pieces.log_sums(self.cells + pieces.log_lengths - turns) + rising * half_width**2
        heights = half_width * _HEIGHTS
        up = rising * np.square(heights[1:]) + np.log(np.diff(heights))
        turned = s * least_turn(pieces.posterior_at_ends[..., None] * _LEAST, heights[:-1])
        sides = log_sums(self.cells[pieces.outermost_cells][..., None] + up - turned)
        found = np.logaddexp(line, np.logaddexp(*sides))
        return np.asarray(found + 1e-8 * (1.0 + np.abs(found)))

    def log_error(self, frequency: float) -> Array:
        """``ln`` of bounds on the errors of the rules up to a frequency, shape (P,)."""
        pieces = self.pieces
        b, rising = pieces.half_width, growth(pieces.losses)
        turn = 2.0 * math.pi / pieces.step * (1.0 - 1e-9)
        line = self.log_turned(frequency, b[pieces.cell_owner]) + rising * b * b
        line = line - (turn * b + np.log(-np.expm1(-turn * b)))
        q = pieces.posterior[1][pieces.outermost_cells]
        falls = turn - rising * b - frequency * RISEN * np.where(q <= 0.5, q, 1.0) * np.where(b > NEAR, STEEPER, 1.0)
        # int_0^b e^{-fall y} dy
        heights = np.where(falls > 0.0, -np.log(np.maximum(falls, 1e-9)), np.log(b) - falls * b)
        sides = self.cells[pieces.outermost_cells] + heights
        found = math.log(2.0) + np.logaddexp(np.logaddexp(*sides), line)
        return np.asarray(found + 1e-8 * (1.0 + np.abs(found)))


def _reach(losses: RareLosses, cut: Array, exponent: float, log_accuracy: Array, sign: float) -> Array:
    """How far to go on beyond cuts (nats)."""
    place = cut[:, None] + sign * _TRIED * losses.width
    logs = losses.log_density(place) + exponent * losses.loss(place) - np.square(_TRIED)
    enough = logs <= log_accuracy[:, None]
    found = np.where(enough.any(axis=1), np.argmax(enough, axis=1), np.argmin(logs, axis=1))
    return np.asarray(np.maximum(_TRIED[found], _BESIDE) * losses.width)
