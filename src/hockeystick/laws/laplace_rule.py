"""Rules for the transform of Laplace pairs, Poisson-subsampled or not, both directions.

In the base loss u in [-m, m] (m = sensitivity / scale), Q has atoms of mass 1/2 at -m and e^{-m}/2 at m and between
them the density ``e^{-(u+m)/2} / 4``; the loss is ``ln r(u)``, r(u) = 1 - g + g e^u. The pair of all losses of bounded
range is what lies between the atoms, divided by its mass ``(1 - e^{-m}) / 2``. The density is integrated by
Gauss-Legendre rules of `ORDER` nodes on equal panels of half-width w. On the ellipse of parameter rho about a panel
the integrand of M(z) is at most its value at the centre times ``e^{(1/2 + |e|) w A + (|Im z| + ...) w B}`` with the
semi-axes A, B of the ellipse and e the power of r, so that the rules together err, relative to M(Re z), by at most

    (32 / 15) e^{lambda w (1 + A) + |Im z| w B} sec(w B / 2)^{(-e)+} / (rho^{2n} (1 - rho^{-2})),   lambda = 1/2 + |e|

for every rho with w B < pi (Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3).

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np

from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.gauss_legendre import NODE_ERROR, ORDER, WEIGHT_ERROR, gauss_legendre
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.rule import Array, Cells, LossRule, Quadrature, Window, reversed_nodes
from hockeystick.transforms.summand import Order, SampledSummand, Summand

Support = Literal["whole", "between the atoms"]
"""All of a Laplace pair, or its losses given that they lie between the atoms."""

_MOST_PANELS = 1 << 12


@final
@dataclass(frozen=True, eq=False)
class _Panels(Quadrature):
    """The error of the Gauss-Legendre rules together."""

    half_width: float  # of a panel, in u, rounded up
    entire: bool  # r = e^u has no zero
    order: Order

    def error(self, exponents: Array) -> Array:
        """The bound of the module header at the best of a few rho, shape (K, 1)."""
        return self._error(exponents, 0.0)

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """The same bound at one exponent."""
        return np.asarray(self._error(np.array([exponent]), frequency)[0])

    def _error(self, exponents: Array, frequency: float) -> Array:
        own = (exponents if self.order == "forward" else 1.0 - exponents)[:, None]
        rho, w = _RHO, self.half_width
        wide, high = 0.5 * (rho + 1.0 / rho), 0.5 * (rho - 1.0 / rho)
        angle = np.minimum(w * high, 3.1)
        log_error = (0.5 + np.abs(own)) * w * (1.0 + wide) + frequency * w * high - 2.0 * ORDER * np.log(rho)
        log_error = log_error - np.log1p(-(rho**-2.0))
        if not self.entire:
            secant = np.maximum(-own, 0.0) * -np.log(np.cos(0.5 * angle))
            log_error = np.where(w * high < 3.1, log_error + secant, np.inf)
        smallest = log_error.min(axis=1, keepdims=True)
        return np.asarray(2.14 * np.exp(np.minimum(smallest + 1e-9 * (1.0 + np.abs(smallest)), 300.0)))


_RHO = np.array([1.3, 1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 8.0, 11.0, 15.0, 20.0, 28.0, 40.0])


@final
@dataclass(frozen=True)
class LaplaceSummand(SampledSummand):
    """A Laplace pair of this shift (sensitivity over noise, one rounding off), sampled or not.

    Attributes
    ----------
    shift : float
        m, one rounding off.
    support : {"whole", "between the atoms"}
        What there is of the pair.
    """

    shift: float
    support: Support = "whole"

    @property
    def scale(self) -> float:
        """The shift."""
        return self.shift

    def joined(self, rate: Fraction) -> Summand:
        """Panels on both sides of loss 0, of a whole pair that is not sampled."""
        if self.rate < 1.0 or self.support != "whole":
            return super().joined(rate)
        from hockeystick.laws.joined_rule import JoinedLaplaceSummand  # loaded where batches are of a fixed size

        return JoinedLaplaceSummand(self.shift, float(rate))

    def rule(self, window: Window, count: float) -> LossRule | None:
        """A rule that serves the window; None where it would need too many panels."""
        exponents = np.array([0.0, 1.0, *window.exponents])
        own = exponents if self.order == "forward" else 1.0 - exponents
        fastest = 0.5 + float(np.abs(own).max()) + window.frequency
        accuracy = max(window.log_accuracy, -60.0)
        panels = math.ceil(self.shift / min(1.0, 3.0 * (-16.0 / accuracy) ** 0.5 * 2.0 / fastest))
        if panels > _MOST_PANELS:
            return None
        u, log_q, u_error, weight_error = self._nodes(panels)
        loss = sampled_losses(u, self.rate)
        loss_error = sampled_loss_error(loss, u, self.rate, u_error) if self.rate < 1.0 else u_error
        nodes = loss, loss_error, log_q, weight_error
        return LossRule.of_pair(
            *(reversed_nodes(*nodes) if self.order == "reversed" else nodes),
            count=count,
            quadrature=_Panels(self.shift / panels * (1.0 + 1e-12), self.rate == 1.0, self.order),
            cells=self._cells(window.cells) if window.cells else None,
        )

    def _nodes(self, panels: int) -> tuple[Array, Array, Array, Array]:
        """Base losses and ``ln`` of their masses under Q, with errors: any atoms, then the panels."""
        m = self.shift
        nodes, weights = gauss_legendre()
        half = m / panels
        centres = half * (2.0 * np.arange(panels) + 1.0 - panels)
        inside = (centres[:, None] + half * nodes).ravel()
        log_inside = np.log(np.tile(0.25 * half * weights, panels)) - 0.5 * (inside + m) - self._log_between
        if self.support == "whole":
            u = np.concatenate(((-m, m), inside))
            log_q = np.concatenate(((-math.log(2.0), -m - math.log(2.0)), log_inside))
        else:
            u, log_q = inside, log_inside
        u_error = U * (4.0 * np.abs(u) + 4.0 * m) + half * NODE_ERROR
        error = 0.5 * u_error + U * (4.0 * m + 8.0) + ELEMENTARY * (1.0 + np.abs(log_q)) + WEIGHT_ERROR
        return u, log_q, u_error, error + 4.0 * ELEMENTARY * abs(self._log_between)

    @property
    def _log_between(self) -> float:
        """``ln`` of the mass of what there is: 0, or that between the atoms, to 3 `ELEMENTARY` of its size."""
        # above 1/2 in size: the roundings of what the logarithm is taken of are within that, too
        return 0.0 if self.support == "whole" else math.log(-0.5 * math.expm1(-self.shift))

    def _cells(self, between: int) -> Cells:
        """The density of the loss in cells of u; the atoms add nothing."""
        m, g = self.shift, self.rate
        count = 64 * between
        edges = m * np.linspace(-1.0, 1.0, count + 1)
        loss = sampled_losses(edges, self.rate)
        log_density = -0.5 * (edges + m) - math.log(4.0) - self._log_between
        log_slope = math.log(g) + edges - loss if g < 1.0 else np.zeros_like(edges)  # ln(dl / du), increasing in u
        cells = Cells(
            loss=loss[None],
            log_density=log_density[None],
            log_slope=log_slope[None, 1:],
            curvature=np.zeros(1),
            curvature_p=np.array([0.25 if g < 1.0 else 0.0]),
            curvature_q=np.zeros(1),
            square=np.array([(2.0 * m / count) ** 2]),
        )
        return cells if self.order == "forward" else cells.reversed()
