"""The cumulants window: estimates of K and of the tilted cumulants of a pair and of a composition, at any tilt.

What `hockeystick.transforms.cumulants` says on nodes chosen for the tilt, as far out and as fine as it needs. In closed
form for the Gaussian pair, ``K(theta) = theta (theta + 1) m^2 / 2``; otherwise by the pairs' quadrature nodes, which
converge geometrically for analytic densities (`quadratures.py`).

Guarantee: estimates. The error stated is the change when every step is halved, halved again until it is small; the
absolute third moment has a kink and converges slower, so its error stands apart. Certified bounds are in
`hockeystick.engines.moments.log_moment`. Cost: one exponential a node and tilt, whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import mul
from typing import final

import numpy as np

from hockeystick.engines.moments.quadratures import COVERED, Quadratures
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.roots import increasing_root
from hockeystick.transforms.cumulants import StepCumulants, TiltedCumulants

_FINEST = 64
_ACCURATE = 1e-11
_SMALLEST_TILT, _LARGEST_TILT = 2.0**-60, 2.0**40
_TILT_TOLERANCE = 1e-8  # relative; bounds hold at any tilt, and are flat at the best
_CUMULANTS = ("log_moment", "mean", "variance", "third", "fourth")
_TOTALS = (*_CUMULANTS, "absolute_third")
_ROOT_8_OVER_PI = math.sqrt(8.0 / math.pi)  # E|N|^3 of a standard normal


def _gaussian(m: float, theta: float) -> tuple[float, ...]:
    """Cumulants of the Gaussian pair with shift m, normal at every tilt, in the order of `StepCumulants`."""
    third = _ROOT_8_OVER_PI * m * m * m  # a power raises where a product is infinite
    return 0.5 * m * m * theta * (theta + 1.0), m * m * (theta + 0.5), m * m, 0.0, 0.0, third


@final
class CumulantWindow:
    """A composition seen through its cumulants.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        The composition, one direction.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair, SubsampledPair
    >>> window = CumulantWindow([(SubsampledPair(GaussianPair(1.0), 0.01), 2000)])
    >>> window.checked(1.0).mean
    0.524209767...
    """

    def __init__(self, parts: Sequence[tuple[Pair, int]]) -> None:
        self._counts = [float(count) for _, count in parts]
        mus = [pair.gaussian_mu for pair, _ in parts]
        self._normal = [float(mu) for mu in mus if mu is not None]
        self._others = Quadratures([pair for (pair, _), mu in zip(parts, mus, strict=True) if mu is None])
        self._places = np.argsort(np.argsort([mu is None for mu in mus], kind="stable"))

    def each(self, theta: float, *, refine: int = 1) -> StepCumulants:
        """Cumulants of one step of each of B parts at one tilt, shape (B,)."""
        others = self._others.cumulants(theta, refine)
        if not self._normal:
            return others
        normal = StepCumulants(*np.array([_gaussian(mu, theta) for mu in self._normal]).T)
        return StepCumulants.joined([normal, others]).at(self._places)

    def at(self, theta: float, *, refine: int = 1) -> TiltedCumulants:
        """Cumulants at one tilt of at least 0, errors not looked at."""
        steps = self.each(theta, refine=refine)
        columns = (getattr(steps, name).tolist() for name in _TOTALS)  # floats: what is beyond all is infinite
        return TiltedCumulants(theta, *(math.fsum(map(mul, self._counts, column)) for column in columns))

    def checked(self, theta: float) -> TiltedCumulants:
        """Cumulants at one tilt with their estimated errors, refined until these are near rounding."""
        refine, coarse, before, absolute_error = 1, self.at(theta), math.inf, math.inf
        while True:
            refine *= 2
            try:
                fine = self.at(theta, refine=refine)
            except PrecisionError:
                if refine == 2:
                    raise
                return replace(coarse, error=before)
            error, absolute_error = _difference(coarse, fine)
            settled = error <= _ACCURATE or error > 0.25 * before  # what is left is rounding
            if (settled and absolute_error <= 1e-3) or refine >= _FINEST:
                return replace(fine, error=error)
            coarse, before = fine, error

    def tilt_where(self, excess: Callable[[TiltedCumulants], float], *, tolerance: float = _TILT_TOLERANCE) -> float:
        """The tilt above 0 where an increasing function of the cumulants is zero.

        To a relative ``tolerance``. The end of the range tried, ``2^-60`` or ``2^40``, where there is none: the loss is
        bounded, or epsilon small.
        """
        low = high = 1.0
        if excess(self.at(1.0)) > 0.0:
            while low > _SMALLEST_TILT and excess(self.at(low)) > 0.0:
                low, high = low / 8.0, low
        else:
            while high < _LARGEST_TILT and excess(self.at(high)) <= 0.0:
                low, high = high, high * 8.0
        return math.exp(
            increasing_root(lambda x: excess(self.at(math.exp(x))), math.log(low), math.log(high), tolerance)
        )


def _difference(coarse: TiltedCumulants, fine: TiltedCumulants) -> tuple[float, float]:
    """Largest difference of two rules in units of each cumulant's scale, and that of the absolute third moment."""
    deviation, variance = math.sqrt(fine.variance), fine.variance
    scales = (
        max(abs(fine.log_moment), fine.theta * fine.theta * variance, 1e-300),
        max(deviation, 1e-300),
        max(variance, 1e-300),
        max(deviation * variance, 1e-300),
        max(variance * variance, 1e-300),
    )
    changes = [abs(getattr(coarse, name) - getattr(fine, name)) for name in _CUMULANTS]
    error = max(change / scale for change, scale in zip(changes, scales, strict=True))
    absolute = abs(coarse.absolute_third - fine.absolute_third) / max(fine.absolute_third, 1e-300)
    return error, absolute


def covering_losses(pair: Pair, theta: float, *, refine: int) -> Array:
    """Increasing losses (nats) that divide finely where the tilted loss has its mass."""
    ((batch, _),) = Quadratures([pair]).tilted(theta, refine)
    loss = batch.loss[0]
    exponents = batch.log_p[0] + theta * loss
    inside = np.flatnonzero(exponents > exponents.max() - 3.0 * COVERED)
    return np.unique(loss[inside[0] : inside[-1] + 1])  # a valley between two peaks included
