"""Compositions of Gaussian pairs alone: one Gaussian pair, known to within rounding.

Composing N(D_j, s_j^2) against N(0, s_j^2), each T_j times, is the Gaussian pair with ``mu^2 = sum_j T_j (D_j /
s_j)^2``: project on the direction of the means. delta grows with mu, so that mu rounded down and up brackets the
curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.numerics.rounding import U

__all__ = ["as_one_gaussian"]


def as_one_gaussian(parts: Sequence[tuple[Pair, int]]) -> tuple[GaussianPair, GaussianPair] | None:
    """Gaussian pairs of unit noise just below and just above the composition; None where another pair takes part.

    Examples
    --------
    >>> below, above = as_one_gaussian([(GaussianPair(2.0), 16)])
    >>> below.sensitivity < 2.0 < above.sensitivity
    True
    """
    squares = []
    for pair, count in parts:
        mu = pair.gaussian_mu
        if mu is None:
            return None
        squares.append(count * float(mu) * float(mu))
    total = math.sqrt(math.fsum(squares))
    # relative errors: one rounding for each shift, two for its square and count, half of all that under the root
    return GaussianPair(1.0, total * (1.0 - 8.0 * U)), GaussianPair(1.0, total * (1.0 + 8.0 * U))
