"""What the terms of the sum on a line are made of, whatever epsilon is: their size, and bounds on their errors.

Guarantee: bounds (`docs/derivations/contour.md`, section 7). Cost: two sums over the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.contour.line_sum import LineSum
from hockeystick.numerics.columns import Columns
from hockeystick.numerics.rounding import TRIGONOMETRIC, U
from hockeystick.transforms.rule import Array, additions


@final
@dataclass(frozen=True, eq=False)
class LineTerms(Columns):
    """The terms of S at M nodes.

    A term ``e^{x + ia + is gap} / (z (1 + z))`` whose x and a err by ``err`` together, and whose phase errs by psi
    besides, errs by at most ``expm1(err) + psi`` relative to itself, since ``|e^{i psi} - 1| <= psi``. Its real part is
    its size times one cosine.

    Attributes
    ----------
    size : ndarray, shape (..., M)
        ``e^x / |z (1 + z)|``, halved at m = 0.
    argument : ndarray, shape (..., M)
        a less the argument of ``z (1 + z)``.
    fixed : ndarray, shape (...)
        Bound on the sum of the errors of the terms, but for what the phase adds.
    turning : ndarray, shape (...)
        By how much an error of the gap may be multiplied.
    """

    size: Array
    argument: Array
    fixed: Array
    turning: Array

    @classmethod
    def of(cls, total: LineSum, s: Array, theta: Array) -> LineTerms:
        above = 1.0 + theta
        square = s * s
        kernel = np.arctan2(s * (above + theta), theta * above - square)
        size = np.where(s > 0.0, 1.0, 0.5) / np.sqrt((theta * theta + square) * (above * above + square))
        modulus = np.exp(np.minimum(total.log_size, 1.0))  # at most one, but for its error
        term = size * modulus
        argument = total.argument - kernel
        known = total.error < 1.0
        bound = np.exp(np.minimum(total.log_size_bound, 0.0)) * (1.0 + 1e-9)
        own = 24.0 * U + TRIGONOMETRIC * kernel + U * (np.abs(total.log_size) + 2.0 * np.abs(argument))
        relative = np.expm1(np.minimum(total.error, 1.0)) + 1.01 * own
        error = np.where(known, term * relative, size * (modulus + bound))
        turning = np.where(known, term * s, 0.0)
        summing = (additions(s.shape[-1]) + 8) * U * term.sum(axis=-1)  # by `node_sum`
        return cls(term, argument, fixed=error.sum(axis=-1) + summing, turning=1.01 * turning.sum(axis=-1))
