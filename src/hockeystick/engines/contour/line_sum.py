"""``ln phi(s)`` of tilted rules at many equally spaced frequencies, by two small tables and one matrix product.

The frequencies ``s = (b R + r) h``, r = 0 .. R - 1, split as ``s = s_b + s_r``; with ``x_b = s_b y``, ``x_r = s_r y``

    e^{ix} - 1 - ix = (e^{ix_b} - 1 - ix_b) + e^{ix_b} (e^{ix_r} - 1 - ix_r) + i x_r (e^{ix_b} - 1),

so only the rows ``x_b`` and the rows ``x_r`` need sines and cosines, and the weighted sum over nodes is a matrix
product. Every bracket is of second order and is computed without cancellation; so the error of phi - 1 is a small
multiple of u s^2 sum_j w_j y_j^2, that of ``T ln phi`` a small multiple of u however large the count T is (for the s
that matter).

Guarantee: bounds on the errors of ``ln |phi|`` and of its argument (`docs/derivations/contour.md`, sections 6 and 7).
Cost: about 60 nanoseconds for each of ``2 sqrt(M) n`` table entries, half a nanosecond for each of the ``M n``
products.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.columns import Columns, Places, column
from hockeystick.numerics.products import SMALL
from hockeystick.numerics.residuals import sine_residual
from hockeystick.numerics.rounding import ELEMENTARY, TRIGONOMETRIC, U
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, Numbers, chunk

_TABLE = 1 << 18  # entries of the largest table held at once
_BATCH = 1 << 17  # of those of several rules: larger ones are given back to the system, and their pages asked for again
_PIECE = 1024  # nodes whose tables are made at a time: they stay in the cache of a processor


@final
@dataclass(frozen=True, eq=False)
class LineSum(Columns):
    """``sum_k T_k ln phi_k(m h)`` for m = 0 .. M - 1, each phi_k about its centre; shape (M,), of R runs (R, M).

    Attributes
    ----------
    log_size, argument : ndarray
        Real and imaginary part.
    error : ndarray
        Bound on the error of the sum as a complex number; infinite where some phi is lost in its error.
    log_size_bound : ndarray
        Upper bound on the true real part, finite even there.
    """

    log_size: Array
    argument: Array
    error: Array
    log_size_bound: Array

    def __add__(self, other: LineSum) -> LineSum:
        return LineSum(
            self.log_size + other.log_size,
            self.argument + other.argument,
            self.error + other.error + 2.0 * U * (np.abs(self.log_size) + np.abs(self.argument)),
            self.log_size_bound + other.log_size_bound,
        )


def line_sum(
    tilted: TiltedRule,
    counts: Array,
    step: Numbers,
    nodes: int,
    quadrature: Array,
    *,
    rows: Places | None = None,
    most: int | None = None,
) -> LineSum:
    """The sum over a batch at ``m * step``, m from 0 on; ``quadrature`` bounds the errors of phi, shape (B).

    With steps of shape (R,) every run has its own. Runs that differ in their counts alone share rules: then ``rows``,
    increasing, are those of the runs, and counts are theirs. Only the first ``most`` are summed, the same to the bit.
    """
    steps = column(step)
    length = math.isqrt(nodes)
    group = min(-(-nodes // length), max(1, SMALL // (chunk(tilted.offset.shape[1]) * length)))
    nodes = nodes if most is None else most
    blocks = -(-nodes // (length * group)) * group
    together = max(1, _BATCH // ((3 * tilted.offset.shape[1] + length) * (length + blocks)))
    found = []
    near, far = steps * np.arange(float(length))[None], steps * (length * np.arange(float(blocks)))[None]
    s = steps * np.arange(float(nodes))[None]
    alike = _deviation_of_one_row(tilted, steps, nodes, length) if len(tilted.offset) < quadrature.size else None
    for start in range(0, quadrature.size, together):
        part = slice(start, start + together)
        own = part if steps.size > 1 else slice(None)
        if alike is None:
            bend, residual = _deviation(tilted.weight[part], tilted.offset[part], (near[own], far[own]), group)
        else:
            bend, residual = alike[0][part], alike[1][part]
        logs = _logarithms(tilted, part, s[own], quadrature[part], bend[:, :nodes], residual[:, :nodes])
        if rows is None:
            found.append(_composed(logs, counts[part], len(s[own])))
        else:
            runs = slice(*rows.searchsorted((start, start + together)))
            found.append(_composed(logs.at(rows[runs] - start), counts[runs], rows[runs].size))
    if not found:
        raise ValueError("line_sum needs at least one rule")
    if rows is None and steps.size == 1:
        whole = functools.reduce(operator.add, found)
        return whole if np.ndim(step) else whole.at(0)
    return LineSum.joined(found)


def line_sum_at(tilted: TiltedRule, counts: Array, near: Array, far: Array, quadrature: Array) -> LineSum:
    """The sum over a batch at the frequencies ``far + near``, exact sums, of shape (far, near) made flat."""
    most = max(1, _TABLE // (3 * tilted.offset.size))
    found = []
    for first in range(0, far.size, most):
        s = (far[first : first + most, None] + near).ravel()
        bend, residual = _scattered(tilted, near, far[first : first + most])
        logs = _logarithms(tilted, slice(None), s[None], quadrature, bend, residual)
        found.append(_composed(logs, counts, 1).at(0))
    return LineSum.joined(found)


def _scattered(tilted: TiltedRule, near: Array, far: Array) -> tuple[Array, Array]:
    """`_deviation` for any number of blocks."""
    group = min(far.size, max(1, SMALL // (chunk(tilted.offset.shape[1]) * near.size)))
    blocks = -(-far.size // group) * group
    padded = np.concatenate((far, np.zeros(blocks - far.size)))
    bend, residual = _deviation(tilted.weight, tilted.offset, (near[None], padded[None]), group)
    return bend[:, : far.size * near.size], residual[:, : far.size * near.size]


def _deviation(weight: Array, offset: Array, frequencies: tuple[Array, Array], group: int) -> tuple[Array, Array]:
    """``sum_j w_j (1 - cos x_j)`` and ``sum_j w_j (x_j - sin x_j)`` at all frequencies, shape (b, blocks * rows).

    Frequencies have the shape (R, ...).
    """
    near, far = frequencies
    every = np.concatenate((near, far), axis=1)[:, :, None]
    rows, blocks, (size, nodes) = near.shape[1], far.shape[1], weight.shape
    length = chunk(nodes)  # chunks keep the bound on the rounding of the sums small
    pieces = range(0, nodes, length * max(_PIECE // length, 1))
    total, sums = np.zeros((size, blocks // group, 2 * group, 2 * rows)), []
    for first in pieces:
        part = slice(first, first + pieces.step)
        left, right, terms = _tables(weight[:, part], offset[:, part], every, rows)
        left = left.reshape(size, blocks // group, 2 * group, -1)
        starts = range(0, left.shape[-1], length)
        for start in starts:
            own = slice(start, start + length)
            total += np.matmul(left[..., own], right[:, None, own])
        sums.append(np.add.reduceat(terms, starts, axis=-1))
    fixed = (sums[0] if len(sums) == 1 else np.concatenate(sums, axis=-1)).sum(axis=-1)[..., None]
    even, odd = total.reshape(size, blocks, 2, 2, rows).transpose(2, 0, 1, 3, 4)  # those of cos x_b, and of sin x_b
    slope = near[:, None]
    bend = (even[:, :, 0] - odd[:, :, 1]) + (fixed[0] + slope * fixed[1])
    residual = (odd[:, :, 0] + even[:, :, 1]) + (fixed[2] + slope * fixed[3])
    return bend.reshape(size, -1), residual.reshape(size, -1)


def _deviation_of_one_row(tilted: TiltedRule, step: Array, nodes: int, most: int) -> tuple[Array, Array]:
    """The same of rules that share their losses, at the first ``nodes`` multiples of a step, in blocks of ``most``.

    What is summed is found once, as ``1 - cos x = (1 - cos x_b) + cos x_b (1 - cos x_r) + sin x_b sin x_r``, and so on.
    """
    rules, size = tilted.weight.shape
    length = chunk(size)
    rows = max(min(most, 4 * SMALL // (rules * length)), 1)
    blocks = -(-nodes // rows)
    near, far = step * np.arange(float(rows))[:, None], step * (rows * np.arange(float(blocks)))[:, None]
    together = max(1, _TABLE // (rows * length))
    bend, residual = np.zeros((2, blocks, rules, rows))
    for first in range(0, size, length):
        own = slice(first, first + length)
        y = tilted.offset[:, own]
        weight, x = tilted.weight[:, own], (near * y).T
        near_bend, near_sine, near_residual = _turns(x)
        for start in range(0, blocks, together):
            part = slice(start, start + together)
            far_bend, far_sine, far_residual = (one[:, :, None] for one in _turns(far[part] * y))
            far_cosine = 1.0 - far_bend
            bend[part] += weight @ (far_bend + far_cosine * near_bend + far_sine * near_sine)
            found = far_residual + far_sine * near_bend + far_cosine * near_residual + far_bend * x
            residual[part] += weight @ found
    return (
        bend.transpose(1, 0, 2).reshape(rules, -1)[:, :nodes],
        residual.transpose(1, 0, 2).reshape(rules, -1)[:, :nodes],
    )


def _tables(weight: Array, offset: Array, every: Array, rows: int) -> tuple[Array, Array, Array]:
    """What the sums of some of the nodes are made of, the first ``rows`` frequencies being s_r and the others s_b.

    ``w e^{i x_b}``, shape (b, blocks, 2, n); ``1 - cos x_r`` and ``x_r - sin x_r``, shape (b, n, 2 rows); and, shape
    (4, b, blocks, n), what needs no product: ``w (1 - cos x_b)``, ``w y sin x_b``, times s_r; and so for x - sin x.
    """
    w, y = weight[:, None], offset[:, None]
    bend, sine, residual = _turns(every * y)
    terms = np.empty((4, len(w), every.shape[1] - rows, w.shape[2]))
    for table, place in ((bend, 0), (sine, 1), (residual, 2)):
        np.multiply(w, table[:, rows:], out=terms[place])
    left = np.empty((*terms.shape[1:3], 2, w.shape[2]))
    np.subtract(w, terms[0], out=left[:, :, 0])
    left[:, :, 1] = terms[1]
    np.multiply(terms[0], y, out=terms[3])
    terms[1] *= y
    return left, np.concatenate((bend[:, :rows], residual[:, :rows]), axis=1).transpose(0, 2, 1), terms


def _turns(x: Array) -> tuple[Array, Array, Array]:
    """``1 - cos x``, ``sin x`` and ``x - sin x``."""
    half, sine = np.sin(0.5 * x), np.sin(x)
    return 2.0 * half * half, sine, sine_residual(x, sine)


def _logarithms(tilted: TiltedRule, part: slice, s: Array, quadrature: Array, bend: Array, residual: Array) -> LineSum:
    """``ln(1 - bend + i (s drift - residual))`` of every rule with its errors; s of shape (R, M)."""
    real, imaginary = -bend, s * column(tilted.drift[part]) - residual
    error = np.minimum(column(tilted.bend_error[part]) * s, column(tilted.slope_error[part])) * s
    error = error + column(tilted.drift_error[part]) * s + column(quadrature)
    error = error + 4.0 * U * (np.abs(real) + np.abs(imaginary)) * (s > 0.0)
    square = imaginary * imaginary
    near_one = real > -0.25
    inner = np.where(near_one, 2.0 * real + real * real + square, 0.0)
    outer = np.where(near_one, 1.0, (1.0 + real) * (1.0 + real) + square)
    with np.errstate(divide="ignore"):
        log_size = 0.5 * np.where(near_one, np.log1p(inner), np.log(np.maximum(outer, 1e-300)))
    argument = np.arctan2(imaginary, 1.0 + real)
    size = np.exp(log_size)
    lost = size <= 2.0 * error
    own = 1.1 * error / np.where(lost, 1.0, size - error) + 8.0 * U * np.minimum(
        1.0, np.abs(real) + square
    ) / np.maximum(size, 1e-300)
    own = own + (2.0 * ELEMENTARY + TRIGONOMETRIC) * (np.abs(log_size) + np.abs(argument))
    own = np.where(lost, np.inf, own)
    bound = np.log(np.minimum(size * (1.0 + 1e-9) + error, 1.0))
    return LineSum(log_size, argument, own, bound)


def _composed(logs: LineSum, counts: Array, runs: int) -> LineSum:
    """``sum T ln phi`` over the rules of each run, given those of one step."""
    steps = column(counts)

    def summed(terms: Array) -> Array:
        return terms if len(terms) == runs else terms.sum(axis=0, keepdims=True)

    rounding = 2.0 * (counts.size // runs + 2) * U * summed(steps * (np.abs(logs.log_size) + np.abs(logs.argument)))
    return LineSum(
        summed(steps * logs.log_size),
        summed(steps * logs.argument),
        1.01 * summed(steps * logs.error) + rounding,
        summed(steps * logs.log_size_bound) * (1.0 - 1e-9),
    )
