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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics.residuals import TRIGONOMETRIC, sine_residual
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, Numbers, chunk, node_sum

_COLUMNS = ("log_size", "argument", "error", "log_size_bound")
_TABLE = 1 << 18  # entries of the largest table held at once
_SMALL = (
    200_000  # multiplications of one matrix product: below the size at which linear algebra libraries start threads
)


@final
@dataclass(frozen=True, eq=False)
class LineSum:
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

    @classmethod
    def stacked(cls, sums: Sequence[LineSum]) -> LineSum:
        """Several sums at as many frequencies each, with a leading axis."""
        return cls(*(np.array([getattr(one, name) for one in sums]) for name in _COLUMNS))

    def rows(self, index: NDArray[np.intp] | int) -> LineSum:
        """One or some of several sums."""
        return LineSum(self.log_size[index], self.argument[index], self.error[index], self.log_size_bound[index])

    def part(self, row: int, nodes: int) -> LineSum:
        """One of several sums, at the first so many frequencies."""
        return LineSum(*(getattr(self, name)[row, :nodes] for name in _COLUMNS))

    def at(self, chosen: NDArray[np.bool_]) -> LineSum:
        """The same at some of the frequencies."""
        return LineSum(self.log_size[chosen], self.argument[chosen], self.error[chosen], self.log_size_bound[chosen])

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
    first: int = 0,
    rows: NDArray[np.intp] | None = None,
) -> LineSum:
    """The sum over a batch at ``m * step``, m from ``first`` on; ``quadrature`` bounds the errors of phi, shape (B).

    With steps of shape (R,) every run has its own. Runs that differ in their counts alone share rules: then ``rows``,
    increasing, are those of the runs, and counts are theirs.
    """
    steps = np.reshape(step, (-1, 1))
    length = math.isqrt(nodes)
    needed = -(-nodes // length)
    group = min(needed, max(1, _SMALL // (2 * chunk(tilted.offset.shape[1]) * length)))
    blocks = -(-needed // group) * group
    most = max(1, _TABLE // ((3 * tilted.offset.shape[1] + length) * (length + blocks)))
    found = []
    near, far = steps * np.arange(float(length)), steps * (first + length * np.arange(float(blocks)))
    s = steps * (first + np.arange(float(nodes)))
    for start in range(0, quadrature.size, most):
        part = slice(start, start + most)
        own = part if steps.size > 1 else slice(None)
        bend, residual = _deviation(tilted.weight[part], tilted.offset[part], (near[own], far[own]), group)
        logs = _logarithms(tilted, part, s[own], quadrature[part], bend[:, :nodes], residual[:, :nodes])
        if rows is None:
            found.append(_composed(logs, counts[part], len(s[own])))
        else:
            runs = slice(*np.searchsorted(rows, (start, start + most)))
            found.append(_composed(logs.rows(rows[runs] - start), counts[runs], rows[runs].size))
    if not found:
        raise ValueError("line_sum needs at least one rule")
    if rows is None and steps.size == 1:
        whole = functools.reduce(operator.add, found)
        return whole if np.ndim(step) else whole.rows(0)
    if len(found) == 1:
        return found[0]
    return LineSum(*(np.concatenate([getattr(one, name) for one in found]) for name in _COLUMNS))


def line_sum_at(tilted: TiltedRule, counts: Array, near: Array, far: Array, quadrature: Array) -> LineSum:
    """The sum over a batch at the frequencies ``far + near``, exact sums, of shape (far, near) made flat."""
    most = max(1, _TABLE // (3 * tilted.offset.size))
    found = []
    for first in range(0, far.size, most):
        s = (far[first : first + most, None] + near).ravel()
        bend, residual = _scattered(tilted, near, far[first : first + most])
        logs = _logarithms(tilted, slice(None), s[None], quadrature, bend, residual)
        found.append(_composed(logs, counts, 1).rows(0))
    return LineSum(*(np.concatenate([getattr(part, name) for part in found]) for name in _COLUMNS))


def _scattered(tilted: TiltedRule, near: Array, far: Array) -> tuple[Array, Array]:
    """`_deviation` for any number of blocks."""
    group = min(far.size, max(1, _SMALL // (2 * chunk(tilted.offset.shape[1]) * near.size)))
    blocks = -(-far.size // group) * group
    padded = np.concatenate((far, np.zeros(blocks - far.size)))
    bend, residual = _deviation(tilted.weight, tilted.offset, (near[None], padded[None]), group)
    return bend[:, : far.size * near.size], residual[:, : far.size * near.size]


def _deviation(weight: Array, offset: Array, frequencies: tuple[Array, Array], group: int) -> tuple[Array, Array]:
    """``sum_j w_j (1 - cos x_j)`` and ``sum_j w_j (x_j - sin x_j)`` at all frequencies, shape (b, blocks * rows).

    Frequencies have the shape (R, ...).
    """
    near, far = (part[:, :, None] for part in frequencies)
    rows, blocks = near.shape[1], far.shape[1]
    size = weight.shape[0]
    w, wy = weight[:, None], (weight * offset)[:, None]
    bends, sines, residuals = _turns(np.concatenate((near, far), axis=1) * offset[:, None])
    bend, residual = bends[:, :rows], residuals[:, :rows]
    far_bend, far_sine, far_residual = bends[:, rows:], sines[:, rows:], residuals[:, rows:]
    cosine, sine = w - w * far_bend, w * far_sine  # w e^{i x_b}
    slope = near.transpose(0, 2, 1)
    # what needs no product: sum_j w (1 - cos x_b) + s_r sum_j w y sin x_b, and likewise for x - sin x
    total = np.stack(
        [
            node_sum(w * fixed)[:, :, None] + slope * node_sum(wy * drift)[:, :, None]
            for fixed, drift in ((far_bend, far_sine), (far_residual, far_bend))
        ]
    )
    length = chunk(weight.shape[1])  # chunks keep the bound on the rounding of the sums small
    for first in range(0, weight.shape[1], length):
        part = slice(first, first + length)
        right = np.concatenate((bend[:, :, part], residual[:, :, part]), axis=2).transpose(0, 2, 1)
        for k, left in enumerate(((cosine, -sine), (sine, cosine))):
            stacked = np.concatenate([table[:, :, part] for table in left], axis=2)
            product = np.matmul(stacked.reshape(size, blocks // group, group, -1), right[:, None])
            total[k] += product.reshape(size, blocks, rows)
    flat = total.reshape(2, size, blocks * rows)
    return flat[0], flat[1]


def _turns(x: Array) -> tuple[Array, Array, Array]:
    """``1 - cos x``, ``sin x`` and ``x - sin x``."""
    half, sine = np.sin(0.5 * x), np.sin(x)
    return 2.0 * half * half, sine, sine_residual(x, sine)


def _logarithms(tilted: TiltedRule, part: slice, s: Array, quadrature: Array, bend: Array, residual: Array) -> LineSum:
    """``ln(1 - bend + i (s drift - residual))`` of every rule with its errors; s of shape (R, M)."""
    real, imaginary = -bend, s * tilted.drift[part, None] - residual
    error = np.minimum(tilted.bend_error[part, None] * s, tilted.slope_error[part, None]) * s
    error = error + tilted.drift_error[part, None] * s + quadrature[:, None]
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
    column = counts[:, None]

    def summed(terms: Array) -> Array:
        return terms if len(terms) == runs else terms.sum(axis=0, keepdims=True)

    rounding = 2.0 * (counts.size // runs + 2) * U * summed(column * (np.abs(logs.log_size) + np.abs(logs.argument)))
    return LineSum(
        summed(column * logs.log_size),
        summed(column * logs.argument),
        1.01 * summed(column * logs.error) + rounding,
        summed(column * logs.log_size_bound) * (1.0 - 1e-9),
    )
