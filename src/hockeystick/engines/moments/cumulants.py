"""The cumulants window: estimates of K and of the tilted cumulants of a pair and of a composition, at any tilt.

What `hockeystick.transforms.cumulants` says on nodes chosen for the tilt, as far out and as fine as it needs. In closed
form for the Gaussian pair, ``K(theta) = theta (theta + 1) m^2 / 2``; otherwise by the pairs' quadrature nodes, which
converge geometrically for analytic densities.

Guarantee: estimates. The error stated is the change when every step is halved, halved again until it is small; the
absolute third moment has a kink and converges slower, so its error stands apart. Certified bounds are in
`hockeystick.engines.moments.log_moment`. Cost: one exponential a node and tilt, whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError, shown
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.roots import increasing_root
from hockeystick.transforms.cumulants import TiltedCumulants, tilted_cumulants
from hockeystick.transforms.nodes import Nodes

_FIRST_TAIL = -80.0  # ln of the tails that the first nodes cover
_COVERED = 42.0  # nats by which the integrand must have fallen at the ends of the nodes
_DEEPER, _DEPTHS = 1.3, 70  # ratio and number of the tail masses looked at for a second peak
_MOST_NODES = 1 << 21
_FINEST = 64
_ACCURATE = 1e-11
_SMALL = 0.1  # moments nearer to one than this are summed as their difference from one
_SMALLEST_TILT, _LARGEST_TILT = 2.0**-60, 2.0**40
_TILT_TOLERANCE = 1e-8  # relative; bounds hold at any tilt, and are flat at the best
_CUMULANTS = ("log_moment", "mean", "variance", "third", "fourth")
_ROOT_8_OVER_PI = math.sqrt(8.0 / math.pi)  # E|N|^3 of a standard normal


@final
class _Quadrature:
    """The nodes of one pair, as far out and as fine as a tilt needs."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._rules: dict[tuple[float, int], tuple[Array, Array]] = {}

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        """``ln`` of tail masses of P, ever deeper up to the largest loss, and the losses that they begin at."""
        logs: Array = _FIRST_TAIL * _DEEPER ** np.arange(_DEPTHS, dtype=np.float64)
        losses = np.array([self.pair.loss_range(-1.0, float(log), "P")[1] for log in logs])
        depths = max(int(np.argmax(losses == losses[-1])), 1) + 1
        return logs[:depths], losses[:depths]

    def _needed(self, theta: float) -> float:
        """``ln`` of the tail that the nodes must cover at this tilt.

        Rare large losses (a record that takes part with a small probability) give the tilted density a second peak far
        out, which the nodes around the first do not see.
        """
        logs, losses = self._tails
        exponents = logs[:-1] + theta * losses[1:]  # at least the largest between two depths
        deepest = int(
            np.flatnonzero(exponents >= max(float((logs + theta * losses).max()), 0.0) - _COVERED).max(initial=-1)
        )
        wanted = float(logs[deepest + 1])
        return _FIRST_TAIL * 4.0 ** max(math.ceil(math.log(wanted / _FIRST_TAIL, 4.0) - 1e-9), 0)

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """How many nodes cover the first tail, and one four times as deep."""
        shallow, deep = (self.pair.nodes(tail).loss.size for tail in (_FIRST_TAIL, 4.0 * _FIRST_TAIL))
        return shallow, deep

    @property
    def _endless(self) -> bool:
        """Whether deeper tails need more nodes."""
        return self._sizes[0] != self._sizes[1]

    def _rule(self, log_tail: float, refine: int) -> tuple[Array, Array]:
        key = (log_tail, refine)
        if key not in self._rules:
            nodes = self.pair.nodes(log_tail, refine=refine)
            self._rules[key] = (nodes.loss, nodes.log_p)
        return self._rules[key]

    def exponents(self, theta: float, refine: int) -> tuple[Array, Array, Array]:
        """Losses, ``ln`` of their weights, and the exponents ``ln p + theta l``."""
        log_tail = self._needed(theta) if self._endless else _FIRST_TAIL
        ends = None
        while True:
            finer = 1 if self.pair.is_discrete else refine  # atoms stay as they are
            if self._sizes[1] * finer * math.sqrt(max(log_tail / _FIRST_TAIL, 1.0)) > _MOST_NODES:
                raise PrecisionError(
                    f"a tilt of {theta:.3g} needs more than {_MOST_NODES} quadrature nodes for {shown(self.pair)}"
                )
            loss, log_p = self._rule(log_tail, refine)
            exponents = log_p + theta * loss
            covered = max(exponents[0], exponents[-1]) < exponents.max() - _COVERED
            if covered or not self._endless or ends == (loss[0], loss[-1]):  # no deeper tail goes further out
                return loss, log_p, exponents
            ends = (loss[0], loss[-1])
            log_tail *= 4.0  # twice as far for a Gaussian tail

    def log_moment(self, theta: float, log_p: Array, loss: Array, exponents: Array) -> float:
        """K, without cancellation where it is small."""
        peak = float(exponents.max())
        value = peak + math.log(float(np.exp(exponents - peak).sum()))
        if abs(value) > _SMALL or abs(theta) * float(np.abs(loss).max()) > 600.0:
            return value
        weights = np.exp(log_p)
        # a rule for a density has mass one up to its error, which is better not added; atoms have the mass they have
        missing = 1.0 - math.fsum(weights) if self.pair.is_discrete else self.pair.mass_at_infinity
        return math.log1p(float(weights @ np.expm1(theta * loss)) - missing)

    def at(self, theta: float, refine: int) -> TiltedCumulants:
        """Cumulants of one step."""
        if self.pair.gaussian_mu is not None:
            return _gaussian(float(self.pair.gaussian_mu), theta)
        loss, log_p, exponents = self.exponents(theta, refine)
        found = tilted_cumulants(Nodes(loss, log_p, log_p), theta)
        return replace(found, log_moment=self.log_moment(theta, log_p, loss, exponents))


@lru_cache(maxsize=32)
def _quadrature_of(pair: Pair) -> _Quadrature:
    """The rules of a pair, kept: they depend on nothing else."""
    if pair.mass_at_infinity >= 1.0:
        raise PrecisionError(f"{shown(pair)} hides nothing: no loss is finite, and neither is epsilon; use more noise")
    return _Quadrature(pair)


def _gaussian(m: float, theta: float) -> TiltedCumulants:
    """The Gaussian pair with shift m: normal at every tilt."""
    return TiltedCumulants(
        theta=theta,
        log_moment=0.5 * m * m * theta * (theta + 1.0),
        mean=m * m * (theta + 0.5),
        variance=m * m,
        third=0.0,
        fourth=0.0,
        absolute_third=_ROOT_8_OVER_PI * m * m * m,  # a power raises where a product is infinite
    )


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
        self._parts = [(_quadrature_of(pair), float(count)) for pair, count in parts]

    def at(self, theta: float, *, refine: int = 1) -> TiltedCumulants:
        """Cumulants at one tilt of at least 0, errors not looked at."""
        steps = [(quadrature.at(theta, refine), count) for quadrature, count in self._parts]
        names = (*_CUMULANTS, "absolute_third")
        total = {name: math.fsum(count * getattr(step, name) for step, count in steps) for name in names}
        return TiltedCumulants(theta, **total)

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
    loss, _, exponents = _quadrature_of(pair).exponents(theta, refine)
    inside = np.flatnonzero(exponents > exponents.max() - 3.0 * _COVERED)
    return np.unique(loss[inside[0] : inside[-1] + 1])  # a valley between two peaks included
