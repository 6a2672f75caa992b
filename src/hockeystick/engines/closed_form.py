"""Curves with a closed form: one step, and compositions of Gaussian pairs alone.

One step is read off the tails of its pair (`laws/one_step.py`). Composing N(D_j, s_j^2) against N(0, s_j^2), each T_j
times, is the Gaussian pair with ``mu^2 = sum_j T_j (D_j / s_j)^2``: project on the direction of the means. delta grows
with mu, so that mu rounded down and up brackets the curve.

Guarantee: lower and upper are certified. Cost: two or three evaluations of the tails for delta, a search for epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import final

from hockeystick.bound import Bound, from_sides
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.rounding import U

__all__ = ["ClosedForm", "as_one_gaussian", "closed_form"]


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


@final
class ClosedForm:
    """A curve whose delta has a closed form: of one step, or of Gaussians."""

    def __init__(self, below: Pair, above: Pair, method: str) -> None:
        self._below, self._above, self._method = below, above, method

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = self._side(0, epsilon), self._side(1, epsilon)
        return from_sides(lower, upper, self._method, errors={"rounding": upper - lower})

    def _side(self, side: int, epsilon: float) -> float:
        return one_step_delta(self._above if side else self._below, epsilon)[side]

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        log_delta = math.log(max(delta, 1e-320))
        curve = self._above.curve
        guess = self._above.loss_range(log_delta, log_delta)[1] if curve is None else curve.guess(delta)
        guess = max(guess, 0.0)
        step = (1e-12 if curve is None else 1e-8) * max(1.0, guess)
        near, far = self._side(1, guess), self._side(1, guess * (1.0 + 1e-3) + 1e-3)
        slope = math.log(near / far) / (1e-3 * guess + 1e-3) if near > far > 0.0 else 1.0
        lower, upper = (
            one_sided_root(partial(self._side, side), delta, guess=guess, slope=slope, step=step, above=side == 1)
            for side in (0, 1)
        )
        return from_sides(lower, upper, self._method, errors={"rounding": upper - lower})


def closed_form(parts: Sequence[tuple[Pair, int]]) -> ClosedForm | None:
    """The closed form that serves this composition, if one does."""
    if len(parts) == 1 and parts[0][1] == 1:
        return ClosedForm(parts[0][0], parts[0][0], "closed form of one step")
    gaussians = as_one_gaussian(parts)
    return ClosedForm(*gaussians, "closed form of Gaussians") if gaussians else None
