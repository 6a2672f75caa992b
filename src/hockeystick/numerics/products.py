"""Products of matrices so small that no linear algebra library starts threads for them.

Threads gain nothing there, and where the processors are busy each product waits for all of them, hundreds of times as
long as it takes.

Guarantee: an entry is one sum of products, in any order.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hockeystick.numerics.columns import Complex

SMALL: Final = 50_000
"""Complex products of one matrix product, or four real ones each."""


def product(left: Complex, right: Complex) -> Complex:
    """``left @ right`` of complex matrices, a few rows at a time."""
    most = max(SMALL // max(right.size, 1), 1)
    found = np.empty((left.shape[0], right.shape[1]), dtype=np.complex128)
    for first in range(0, left.shape[0], most):
        np.matmul(left[first : first + most], right, out=found[first : first + most])
    return found
