"""What the terms of the sum on a line are made of, whatever epsilon is: their size, and bounds on their errors.

Guarantee: bounds (`docs/derivations/contour.md`, section 7). Cost: two sums over the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.line_sum import LineSum
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.rule import Array, additions


@final
@dataclass(frozen=True, eq=False)
class LineTerms:
    """The terms of S at M nodes.

    A term ``e^{x + ia + is gap}`` whose x and a err by ``err`` together, and whose phase errs by psi besides, errs by
    at most ``expm1(err) + psi`` relative to itself, since ``|e^{i psi} - 1| <= psi``.

    Attributes
    ----------
    real, imaginary : ndarray, shape (..., M)
        ``e^x / (z (1 + z))``, halved at m = 0.
    argument : ndarray, shape (..., M)
        a.
    fixed : ndarray, shape (...)
        Bound on the sum of the errors of the terms, but for what the phase adds.
    turning : ndarray, shape (...)
        By how much an error of the gap may be multiplied.
    """

    real: Array
    imaginary: Array
    argument: Array
    fixed: Array
    turning: Array

    def rows(self, index: NDArray[np.intp] | int) -> LineTerms:
        """Those of one or some of several lines."""
        nodes = (self.real[index], self.imaginary[index], self.argument[index])
        return LineTerms(*nodes, self.fixed[index], self.turning[index])

    @classmethod
    def of(cls, total: LineSum, s: Array, theta: Array) -> LineTerms:
        real, imaginary = theta * (1.0 + theta) - s * s, s * (1.0 + 2.0 * theta)
        square = (theta * theta + s * s) * ((1.0 + theta) * (1.0 + theta) + s * s)
        half = np.where(s > 0.0, 1.0, 0.5)
        size = half / np.sqrt(square)
        modulus = np.exp(total.log_size)
        known = total.error < 1.0
        bound = np.exp(np.minimum(total.log_size_bound, 0.0)) * (1.0 + 1e-9)
        own = 2.0 * ELEMENTARY + 18.0 * U + U * (np.abs(total.log_size) + 2.0 * np.abs(total.argument))
        relative = np.expm1(np.minimum(total.error, 1.0)) + 1.01 * own
        error = size * np.where(known, modulus * relative, modulus + bound)
        turning = size * modulus * np.where(known, s, 0.0)
        summing = (additions(s.shape[-1]) + 8) * U * (size * modulus).sum(axis=-1)  # by `node_sum`
        return cls(
            real=modulus * (half * real / square),
            imaginary=modulus * (-half * imaginary / square),
            argument=total.argument,
            fixed=error.sum(axis=-1) + summing,
            turning=1.01 * turning.sum(axis=-1),
        )
