"""The PRV accountant of Gopi, Lee and Wutschitz (2021): mean-preserving rounding with a concentration bound.

Every loss is rounded to the nearest point of a grid of spacing h whose mean is the loss's (`lattice/nearest.py`), and
the grid distributions are composed by FFT in a window [-L, L). The rounded distribution itself is neither above nor
below the true one. But the rounding errors of k steps are independent, of mean zero and each within an interval of
length h, so that by Hoeffding's inequality their sum exceeds t with probability at most ``eta = e^{-2 t^2 / (k
h^2)}`` on either side. With D the curve of the rounded composition,

    D(eps + t) - eta  <=  delta(eps)  <=  D(eps - t) + eta.

Hence h = t sqrt(2 / (k ln(1/eta))) for an epsilon error t and a delta error eta: about 1 / sqrt(k), where buckets
need 1 / k.

Guarantee: lower and upper are certified, since the means are enclosed, what leaves the grid and the window is bounded
and rounding is included. The bracket is never narrower than the two errors chosen, and an absolute error in delta
makes it useless for a delta below it. Cost: one FFT a distinct pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, from_sides
from hockeystick.engines.lattice.fourier import PeriodicComposition
from hockeystick.engines.lattice.nearest import nearest_points
from hockeystick.engines.lattice.plan import saddle_at_delta
from hockeystick.errors import PrecisionError, check_fields, check_positive
from hockeystick.numerics.fft import even_smooth_length
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.numerics.rounding import U, up
from hockeystick.transforms.cumulants import Cumulants

_METHOD = "PRV accountant (mean-preserving rounding)"
_NOTE = "rounding to the nearest point bounds neither side: the bracket holds by Hoeffding's inequality"
_LARGEST_WINDOW = 1 << 25
_WIDEST = 600.0  # nats, between points: e to the power of it is finite
_TILTS = np.exp(np.linspace(math.log(1e-10), math.log(1e4), 239))


@final
@dataclass(frozen=True)
class PRV(Accountant):
    """The PRV accountant: a bracket of chosen error in epsilon and in delta.

    Parameters
    ----------
    epsilon_error : float
        Distance in epsilon of either side from the rounded composition (nats), from 1e-15 to 1e100.
    delta_error : float
        Error in delta of either side, from 1e-300 to below 1: half is spent on the concentration bound, half on the
        tails. To answer for a delta it should be far below it; Gopi, Lee and Wutschitz take a thousandth.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> bound = PRV(0.01, 1e-9).directed(((GaussianPair(20.0), 400),)).epsilon(1e-5)
    >>> bound.contains(4.3771759), bound.width < 0.0201
    (True, True)
    """

    epsilon_error: float = 0.01
    delta_error: float = 1e-10

    def __post_init__(self) -> None:
        check_fields(self, epsilon_error=check_positive, delta_error=check_positive)
        if not 1e-15 <= self.epsilon_error <= 1e100:
            raise ValueError(f"epsilon_error must be between 1e-15 and 1e100, got {self.epsilon_error!r}")
        if not 1e-300 <= self.delta_error < 1.0:
            raise ValueError(f"delta_error must be at least 1e-300 and below 1, got {self.delta_error!r}")

    def directed(self, parts: Parts) -> DirectedCurve:
        return _PRVCurve(self, parts)


@final
class _PRVCurve(DirectedCurve):
    """One direction: one periodic composition, made when first asked."""

    def __init__(self, settings: PRV, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._steps = sum(count for _, count in parts)

    @cached_property
    def _composed(self) -> tuple[PeriodicComposition, float, float, float]:
        """The composition, t, the relative error of its masses, and the mass left out."""
        error, k = self._settings.delta_error, self._steps
        log_eta = math.log(0.5 * error)
        h = 0.98 * self._settings.epsilon_error * math.sqrt(-2.0 / (k * log_eta))
        if h > _WIDEST:
            raise PrecisionError(
                f"epsilon_error {self._settings.epsilon_error:g} makes points {h:.2g} nats apart: allow less"
            )
        log_outside = math.log(error / 16.0) - math.log(k) - 2.0
        ranges = [pair.loss_range(log_outside, log_outside) for pair, _ in self._parts]
        points = self._points(h, log_outside, max(high - low for low, high in ranges))  # before any of them is made
        lattices = [
            (nearest_points(pair, *ends, h), count) for (pair, count), ends in zip(self._parts, ranges, strict=True)
        ]
        span = h + 2.0 * max(lattice.pld.slack for lattice, _ in lattices)  # of one rounding error
        moved = span * math.sqrt(-0.5 * k * log_eta) * (1.0 + 1e-12)
        moved += math.fsum(count * lattice.mean_error for lattice, count in lattices) * (1.0 + 1e-12)
        composition = PeriodicComposition([(lattice.pld, count) for lattice, count in lattices], points)
        relative = math.fsum(count * lattice.mass_error for lattice, count in lattices)
        outside = math.fsum(count * lattice.mass_outside for lattice, count in lattices)
        return composition, up(moved + composition.slack, 8.0 * U), relative, outside

    def _points(self, spacing: float, log_outside: float, widest: float) -> int:
        """Points of the window; neither it nor the grid of a pair, at most ``widest`` nats, may be too long."""
        cumulants = Cumulants(self._parts, 2.0 * log_outside - 40.0)
        reach = 8.0 * spacing
        for sign in (1.0, -1.0):
            moments = np.array([cumulants.log_moment(sign * float(t)) for t in _TILTS])
            edge = (moments + 0.5 * _TILTS * spacing - math.log(self._settings.delta_error / 16.0)) / _TILTS
            reach = max(reach, float(edge.min()) + self._settings.epsilon_error)
        wanted = max(2.0 * reach, widest) / spacing
        points = even_smooth_length(2 * math.ceil(reach / spacing)) if wanted <= _LARGEST_WINDOW else math.inf
        if points > _LARGEST_WINDOW:
            more = 1.1 * wanted / _LARGEST_WINDOW  # the window grows a little with the error
            larger = f"allow an epsilon_error of {self._settings.epsilon_error * more:.3g}"
            raise PrecisionError(
                f"epsilon_error {self._settings.epsilon_error:g} over {self._steps} steps takes more than"
                f" {_LARGEST_WINDOW} grid points: {larger if spacing * more < _WIDEST else 'use more noise'},"
                " or accountants.Certified"
            )
        return int(points)

    def _sides(self, epsilon: float) -> tuple[float, float]:
        composition, moved, relative, outside = self._composed
        factor = math.exp(min(relative, 700.0)) * (1.0 + 4.0 * U)
        eta = 0.5 * self._settings.delta_error
        upper = composition.delta(epsilon - moved)[1] * factor + outside + eta
        lower = composition.delta(epsilon + moved)[0] / factor - eta - self._infinity_rounding
        return max(lower, 0.0), min(up(upper, 4.0 * U), 1.0)

    @cached_property
    def _infinity_rounding(self) -> float:
        """How far the mass at infinity, rounded up in the lattices, may be too large for the lower side."""
        return 32.0 * U * self._composed[0].infinity[1]

    def delta(self, epsilon: float) -> Bound:
        composition, _, _, outside = self._composed
        if math.isinf(epsilon):
            low, high = composition.infinity
            return Bound(max(low - self._infinity_rounding, 0.0), high, _METHOD)
        lower, upper = self._sides(epsilon)
        errors = {
            **composition.budget(),
            "concentration": 0.5 * self._settings.delta_error,
            "outside the grid": outside,
        }
        return from_sides(lower, upper, _METHOD, (_NOTE,), errors)

    def epsilon(self, delta: float) -> Bound:
        if delta >= 1.0:
            return Bound(0.0, 0.0, _METHOD)
        if delta <= self._settings.delta_error:
            note = f"delta {delta:g} is not above delta_error {self._settings.delta_error:g}: no upper bound"
            return Bound(0.0, math.inf, _METHOD, notes=(note,))
        _, saddle = saddle_at_delta(self._parts, delta)
        guess, step = max(saddle.epsilon, 0.0), 1e-4 * self._settings.epsilon_error
        lower, upper = (lambda at: self._sides(at)[0]), (lambda at: self._sides(at)[1])
        ends = crossings(lower, upper, delta, guess=guess, slope=saddle.theta, step=step)
        return from_sides(*ends, _METHOD, (_NOTE,))
