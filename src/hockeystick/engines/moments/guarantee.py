"""Upper bounds of the curve of a composition in which some steps are known best by their moments.

With K the sum of what is proved of every step (`log_moment_bounds`) and for every theta > 0 (CKS: Canonne, Kamath and
Steinke 2020; 004, equation 43)

    delta(eps) <= delta_inf + e^{K(theta) - theta eps} theta^theta / (1 + theta)^{1 + theta}.

Renyi divergences add up under adaptive composition, whatever is released between: a dominating pair's own bound is one
for every step that it dominates.

Guarantee: upper bounds, certified at whatever theta the search ends; the lower side is trivial. Cost: about a hundred
values of K an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np

from hockeystick.engines.moments.curve import MomentsCurve, log_tight_kernel
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.laws.base import Array, Parts
from hockeystick.numerics.rounding import U, up

_FIRST = 2.0 ** np.arange(-8.0, 13.0)
_FURTHER = 2.0 ** np.arange(13.0, 41.0)  # where only guarantees are asked, which cost nothing
_FINER = 9
_MOST = 1e290  # an epsilon whose product with every theta is finite
_ROUNDS = 6


@final
class GuaranteeCurve(MomentsCurve):
    """The upper side by moments, tilted as each question wants it.

    Examples
    --------
    >>> from hockeystick.laws import ConcentratedPair
    >>> round(GuaranteeCurve(((ConcentratedPair(0.02), 4),)).epsilon(1e-6).upper, 3)
    1.897
    """

    method = "moments"
    is_certified = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        told = all(pair.is_known_by_moments_alone for pair, _ in parts)
        self._thetas = np.concatenate((_FIRST, _FURTHER)) if told else _FIRST

    def _log_delta(self, epsilon: float) -> float:
        epsilon = min(epsilon, _MOST)  # delta falls: what holds here holds beyond

        def log_bound(theta: Array, k: Array) -> Array:
            kernel = log_tight_kernel(theta)
            return k - theta * epsilon + kernel + 8.0 * U * (np.abs(k) + np.abs(theta * epsilon) + np.abs(kernel))

        return self._least(log_bound)

    def _epsilon(self, log_delta: float) -> float:
        def bound(theta: Array, k: Array) -> Array:
            kernel = log_tight_kernel(theta)
            return (k + kernel - log_delta + 8.0 * U * (np.abs(k) + np.abs(kernel) + abs(log_delta))) / theta

        return max(up(self._least(bound), 2.0 * U), 0.0)

    def _least(self, bound: Callable[[Array, Array], Array]) -> float:
        """The least of a bound over theta: at powers of two, then ever closer around the best."""
        thetas, best, ratio = self._thetas, math.inf, 2.0
        for _ in range(_ROUNDS + 1):
            # 26 bits: one plus theta is a float64
            mantissa, exponent = np.frexp(thetas)
            thetas = np.unique(np.ldexp(np.round(mantissa * 2.0**26), exponent - 26))
            values = bound(thetas, log_moment_bounds(self.parts, 1.0 + thetas).upper)
            index = int(np.argmin(values))
            best = min(best, float(values[index]))
            thetas = thetas[index] * ratio ** np.linspace(-1.0, 1.0, _FINER)
            ratio **= 2.0 / (_FINER - 1)
        return best
