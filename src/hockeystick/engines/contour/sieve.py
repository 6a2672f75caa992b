"""Which frequencies of a long line matter: whole blocks of them are bounded from their ends, and forgotten.

Between two frequencies D apart, ``phi(s) = E e^{isY}`` of a law, Y the tilted loss about its centre, lies within

    sum_j w_j min(D^2 y_j^2 / 8, 2)

of the chord between its values there: the error of linear interpolation, or twice the largest size, of each term. So
``|phi|`` is at most the larger of its sizes at the ends plus that. The first blocks are about as long as one over the
deviation of one loss, some sqrt T times as long as nodes lie apart; those whose bound is not small enough are cut into
pieces, down to eight nodes. Atoms of little weight are left out of the first blocks, and their weight added
(`docs/derivations/contour.md`, section 11).

Guarantee: ``left_out`` bounds what all nodes that are not kept add. Cost: one complex product for each of the heavier
atoms and each block.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.contour.line_part import LinePart, Sieved
from hockeystick.engines.contour.line_sum import LineSum, line_sum, line_sum_at
from hockeystick.numerics.columns import Indices
from hockeystick.numerics.products import SMALL
from hockeystick.numerics.rounding import U
from hockeystick.transforms.rule import Array

_TURN = 1.5  # radians by which a typical loss turns along the first blocks
_CUT = 8  # pieces of a block, and nodes of the last pieces
_FEW = 10.0  # steps of which each frequency matters: the fewer they are, the shorter are the first blocks
_SHORT = 2.0  # times the last pieces: first blocks that are shorter are not worth bounding
_WHOLE = 4.0  # times the products allowed, where all nodes are summed at once: these are so much faster
_ROUNDING = 1e-15  # weight of the atoms that a line is thought to be laid without
_LOGARITHM = 128  # products that take as long as the logarithm of one sum
_LIGHT = 0.03  # weight of the atoms left out of the first blocks
_LIGHTER = 1.0  # the same of later ones, where that is less, times the number of steps
_TOGETHER = 1 << 18  # entries of the largest table held at once
_SHARE = -3.0  # ln of the part of the error planned for that blocks may take


class TooManyBlocksError(Exception):
    """Too many blocks may matter."""


def sieve_work(parts: Sequence[LinePart], step: float) -> float:
    """Products that the first blocks take, or all nodes if these are summed at once, for each unit of frequency."""
    blocks = sum(_Atoms.heavy(part, _LIGHT).weight.size for part in parts) / _block_length(parts)
    if _block_length(parts) >= _SHORT * _CUT * step:
        return blocks
    atoms = sum(_Atoms.heavy(part, _ROUNDING).weight.size for part in parts)
    return min(blocks, (atoms + _LOGARITHM) / (_WHOLE * step))


def _block_length(parts: Sequence[LinePart]) -> float:
    """The length of the first blocks, in frequency."""
    steps = math.fsum(float(part.counts.sum()) for part in parts)
    variance = math.fsum(float(part.counts @ part.tilted.spread) for part in parts) / max(steps, 1.0)
    return _TURN * math.exp(-_FEW / steps) / math.sqrt(max(variance, 1e-300))


def sieve(
    parts: Sequence[LinePart],
    theta: float,
    step: float,
    nodes: int,
    *,
    variance: float,
    log_error: float,
    most: float = math.inf,
) -> Sieved:
    """The nodes among ``0 .. nodes - 1`` that matter.

    Parameters
    ----------
    parts : sequence of LinePart
        The laws without a normal part.
    theta, step : float
        The tilt, and the distance of nodes, of few bits.
    variance : float
        Of the normal part: ``phi`` has one more factor ``e^{-variance s^2 / 2}``.
    log_error : float
        ``ln`` of about what blocks may add to S.
    most : float
        Products that a pass over blocks may take after the first.

    Raises
    ------
    TooManyBlocksError
        Where it would take more.
    """
    found = _Sieve(parts, theta, step, variance, log_error + _SHARE - math.log(nodes))
    atoms = sum(part.tilted.weight.size for part in parts)
    block = _block_length(parts) / (_CUT * step)
    if block < _SHORT and nodes * (atoms + _LOGARITHM) <= _WHOLE * most:
        return found.of_all(nodes)
    length = _CUT * 2 ** max(round(math.log2(min(block, nodes))), 0)  # of atoms at one loss blocks may be any length
    together = max(math.isqrt(nodes // length), 1)  # blocks that share a row of the first tables
    starts = np.arange(0, nodes, length * together, dtype=np.int64)
    starts, left_out = found.pieces([_Atoms.heavy(part, _LIGHT) for part in parts], starts, together, length)
    heavy = [_Atoms.heavy(part, min(_LIGHTER / float(part.counts.sum()), _LIGHT)) for part in parts]
    several = sum(some.weight.size for some in heavy)
    while length > _CUT:
        cut = min(_CUT, length // _CUT)
        length //= cut
        starts = starts[starts < nodes]
        _check(starts.size * cut * several, most)
        starts, lost = found.pieces(heavy, starts, cut, length)
        left_out += lost
    starts = starts[starts < nodes]
    _check(starts.size * _CUT * atoms, most)
    return found.nodes(starts, nodes, left_out)


def _check(products: int, most: float) -> None:
    if products > most:
        raise TooManyBlocksError(f"{products} products")


@final
@dataclass(frozen=True, eq=False)
class _Atoms:
    """Some atoms of a batch of tilted rules.

    Attributes
    ----------
    weight, offset : ndarray, shape (B, k)
        As in `TiltedRule`.
    light : ndarray, shape (B,)
        Bounds on the weight of the other atoms and on the errors of the weights, and quadrature errors.
    """

    part: LinePart
    weight: Array
    offset: Array
    light: Array

    @classmethod
    def heavy(cls, part: LinePart, rest: float) -> _Atoms:
        """The heaviest, all but ``rest`` of the weight in every rule."""
        tilted = part.tilted
        order = np.argsort(-tilted.weight, axis=1, kind="stable")
        left = 1.0 - np.cumsum(np.take_along_axis(tilted.weight, order, axis=1), axis=1)
        kept, others = np.split(order, [1 + int((left > rest).sum(axis=1).max())], axis=1)
        light = np.take_along_axis(tilted.weight, others, axis=1).sum(axis=1) * (1.0 + 1e-9)
        offset = np.broadcast_to(tilted.offset, tilted.weight.shape)
        weight, offset = (np.take_along_axis(rows, kept, axis=1) for rows in (tilted.weight, offset))
        return cls(part, weight, offset, light + tilted.weight_error + part.quadrature)

    def log_sizes(self, near: Array, far: Array) -> Array:
        """Bounds on ``sum T ln |phi|`` from each of the frequencies ``far + near`` to the next, (far, near - 1)."""
        width = float(near[1])
        bend = (self.weight * np.minimum((width * self.offset) ** 2 / 8.0, 2.0)).sum(axis=1) * (1.0 + 1e-9)
        # the phases are a rounding of s y off, and losses what the slope error holds; a product of sines and cosines,
        # and the sum over k terms, are off by (40 + k) u of the weights at most
        rounding = (self.weight.shape[1] + 40.0) * U + self.part.tilted.slope_error * float(far.max() + near[-1])
        size = self._sizes(near, far)
        size = np.maximum(size[..., 1:], size[..., :-1]) * (1.0 + 1e-9)
        size = size + (bend + self.light + rounding)[:, None, None]
        counts = np.asarray(self.part.counts, dtype=np.float64)[:, None, None]
        return np.asarray((counts * np.log(np.minimum(size, 1.0))).sum(axis=0))

    def _sizes(self, near: Array, far: Array) -> Array:
        """``|sum w e^{isy}|`` at ``far + near``, shape (B, far, near)."""
        group = max(1, SMALL // (self.weight.shape[1] * near.size))
        padded = np.concatenate((far, np.zeros(-far.size % group)))
        left = self.weight[:, None] * np.exp(1j * padded[None, :, None] * self.offset[:, None])
        right = np.exp(1j * near[None, :, None] * self.offset[:, None]).transpose(0, 2, 1)
        rules, _, atoms = left.shape
        product = np.matmul(left.reshape(rules, -1, group, atoms), right[:, None])
        return np.asarray(np.abs(product.reshape(rules, padded.size, near.size)[:, : far.size]))


@final
@dataclass(frozen=True, eq=False)
class _Sieve:
    parts: Sequence[LinePart]
    theta: float
    step: float
    variance: float
    log_share: float  # ln of what one node may add

    def pieces(self, atoms: Sequence[_Atoms], starts: Indices, cut: int, length: int) -> tuple[Indices, float]:
        """Where the pieces that matter start, ``length`` nodes long, ``cut`` to a block, and what the others add."""
        entries = max(some.weight.size for some in atoms) + max(some.weight.shape[0] for some in atoms) * (cut + 1)
        together = max(1, _TOGETHER // entries)
        near = np.arange(cut + 1.0) * (self.step * length)
        kept, left_out = [np.empty(0, dtype=np.int64)], 0.0
        for first in range(0, starts.size, together):
            begins = starts[first : first + together, None] + length * np.arange(cut)
            s = begins.astype(np.float64) * self.step
            sizes = functools.reduce(operator.add, (some.log_sizes(near, s[:, 0]) for some in atoms))
            logs = self._terms(sizes, s, length)
            matters = logs > self.log_share + math.log(length)
            kept.append(begins[matters])
            left_out += float(np.exp(logs[~matters]).sum())
        return np.concatenate(kept), left_out * (1.0 + 1e-6)

    def nodes(self, starts: Indices, nodes: int, left_out: float) -> Sieved:
        """The nodes that matter of pieces, and the last one, where the line ends."""
        starts = np.union1d(starts, (nodes - 1) // _CUT * _CUT)
        index = (starts[:, None] + np.arange(_CUT)).ravel()
        near, far = np.arange(float(_CUT)) * self.step, starts.astype(np.float64) * self.step
        sums = (line_sum_at(part.tilted, part.counts, near, far, part.quadrature) for part in self.parts)
        return self._kept(functools.reduce(operator.add, sums), index, nodes, left_out)

    def of_all(self, nodes: int) -> Sieved:
        """The same where no block is so long that bounding it is worth its while."""
        sums = (line_sum(part.tilted, part.counts, self.step, nodes, part.quadrature) for part in self.parts)
        return self._kept(functools.reduce(operator.add, sums), np.arange(nodes), nodes, 0.0)

    def _kept(self, total: LineSum, index: Indices, nodes: int, left_out: float) -> Sieved:
        s = index.astype(np.float64) * self.step
        logs = self._terms(np.minimum(total.log_size_bound, 0.0), s, 1)
        kept = (index < nodes) & ((logs > self.log_share) | (index == nodes - 1))
        left_out += float(np.exp(logs[~kept]).sum()) * (1.0 + 1e-6)
        return Sieved(s[kept], total.at(kept), left_out)

    def _terms(self, log_size: Array, s: Array, length: int) -> Array:
        """``ln`` of what ``length`` nodes from s on add to S at most, given bounds on ``ln prod |phi|^T``.

        The kernel is at most ``1 / s^2`` and ``1 / theta^2``, and S is h / pi times the sum.
        """
        kernel = np.log(np.maximum(s * s, self.theta * self.theta))
        normal = 0.5 * self.variance * s * s
        doubt = 1e-9 * (np.abs(log_size) + np.abs(kernel) + normal + 1.0)
        return np.asarray(log_size - normal - kernel + math.log(self.step * length / math.pi) + doubt)
