"""The Laplace pair, plain, reversed or subsampled: M(z) by Gauss-Legendre quadrature between its atoms.

In units of the scale, ``Q0 = Lap(0, 1)``, ``P0 = Lap(m, 1)`` and, between 0 and m, the likelihood ratio e^{2y - m}. For
``P = (1-a) Q0 + a P0``, ``Q = (1-b) Q0 + b P0`` and ``r_c(w) = 1 - c + c e^w``,

    M(z) = f_z(-m) / 2 + f_z(m) e^{-m} / 2 + integral_0^m f_z(2y - m) e^{-y} / 2 dy,   f_z = r_a^{1+z} r_b^{-z}:

an atom at either end and a density. On a panel the rule with n nodes errs by at most
``(64/15) B rho^{-2n} / (1 - rho^{-2})`` times the half-length, B a bound on the integrand's modulus over the Bernstein
ellipse of rho. Proof: docs/derivations/exact.md, section 5. For a plain pair M is elementary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

from flint import acb, arb

from hockeystick.exact.balls import LOW_BITS, ball, precision, working_bits
from hockeystick.exact.layers import Layers, rectangles
from hockeystick.exact.transform import POWERS, Decay, Line, Sketch, Transform, turned

_CELLS = 200
_SKETCH_NODES = 24
_RHOS = (2.0, 3.0, 5.0, 9.0, 17.0, 33.0)


@lru_cache(maxsize=64)
def _legendre(nodes: int, bits: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    with precision(bits):
        return tuple(arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes))


@final
@dataclass(frozen=True)
class LaplaceTransform(Transform):
    """``M(z)`` for a shift m in units of the scale and blends a, b of (P0, Q0)."""

    m: Fraction
    a: Fraction
    b: Fraction

    def reversed(self) -> LaplaceTransform:
        """(Q, P)."""
        return LaplaceTransform(self.m, self.b, self.a)

    def subsampled(self, rate: Fraction) -> LaplaceTransform:
        """((1 - rate) Q + rate P, Q)."""
        return LaplaceTransform(self.m, (1 - rate) * self.b + rate * self.a, self.b)

    @property
    def is_plain(self) -> bool:
        """Whether neither side is mixed."""
        return {self.a, self.b} == {Fraction(0), Fraction(1)}

    def _ratio_log(self, share: Fraction, w: acb) -> acb:
        """``ln(1 - c + c e^w)``."""
        if share in {0, 1}:
            return w if share == 1 else acb(0)
        return (ball(1 - share) + ball(share) * w.exp()).log()

    def _logs(self, w: acb) -> tuple[acb, acb]:
        """``ln r_a`` and the loss at base loss w."""
        g = self._ratio_log(self.a, w)
        return g, g - self._ratio_log(self.b, w)

    def loss_limit(self) -> arb:
        """The larger of the two atoms' losses."""
        (one, _), (other, _) = self.atoms()
        return one.max(other)

    def atoms(self) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
        """``(loss, mass)`` of the atoms at the likelihood ratios e^{-m} and e^m."""
        m, half = ball(self.m), arb(1) / 2
        (down, low), (up, high) = self._logs(acb(-m)), self._logs(acb(m))
        return (low.real, down.real.exp() * half), (high.real, (up.real - m).exp() * half)

    # ------------------------------------------------------------------------------------------------------- estimates

    @cached_property
    def _sketch_points(self) -> list[tuple[float, float]]:
        """``(ln weight under P, loss)`` of atoms and nodes in floats."""
        with precision(LOW_BITS):
            panels = max(1, math.ceil(float(self.m) / 4.0))
            nodes = self._nodes(Fraction(0), panels, _SKETCH_NODES)
            return [(float(weight.log()), float(loss)) for weight, loss in nodes]

    def sketch(self, theta: float) -> Sketch:
        """Estimates at one tilt."""
        return Sketch.of([(log + theta * loss, loss) for log, loss in self._sketch_points])

    # ------------------------------------------------------------------------------------------------------ enclosures

    def _nodes(self, theta: Fraction, panels: int, count: int) -> list[tuple[arb, arb]]:
        """Weight in ``M(theta)`` and loss of the atoms, and of so many nodes on each of some panels of equal length."""
        tilt, m = ball(theta), ball(self.m)
        result = []
        for w, log_mass in ((-m, -arb(2).log()), (m, -arb(2).log() - m)):
            g, loss = (value.real for value in self._logs(acb(w)))
            result.append(((g + tilt * loss + log_mass).exp(), loss))
        half = m / (2 * panels)
        for panel in range(panels):
            for node, weight in _legendre(count, working_bits()):
                y = half * (2 * panel + 1 + node)
                g, loss = (value.real for value in self._logs(acb(2 * y - m)))
                result.append(((g + tilt * loss - y).exp() * weight * half / 2, loss))
        return result

    def _modulus(self, theta: Fraction, reach: Fraction, centre: arb, half: arb, rho: float) -> arb | None:
        """Bound on the integrand over a Bernstein ellipse; None where a branch point may be inside."""
        wide, high = half * (arb(rho) + 1 / arb(rho)) / 2, half * (arb(rho) - 1 / arb(rho)) / 2
        if not 2 * high < 3:
            return None
        y = acb(centre + arb(0, wide.upper()), arb(0, high.upper()))
        g, loss = self._logs(2 * y - ball(self.m))
        bound = (g.real + ball(theta) * loss.real - y.real + ball(reach) * abs(loss.imag)).exp().abs_upper() / 2
        return bound if bound.is_finite() else None

    def _rule(self, theta: Fraction, reach: Fraction) -> tuple[tuple[int, int], arb]:
        """``(panels, nodes)`` and a bound on the error, about an ulp of the working precision."""
        target = working_bits() * math.log(2.0)
        best: tuple[float, tuple[int, int], arb] | None = None
        panels = 1
        while best is None or panels <= 4 * best[1][0]:
            with precision(LOW_BITS):
                half = ball(self.m / (2 * panels))
                for rho in _RHOS:
                    total = arb(0)
                    for panel in range(panels):
                        modulus = self._modulus(theta, reach, half * (2 * panel + 1), half, rho)
                        total = arb.pos_inf() if modulus is None else total + modulus * half
                        if not total.is_finite():
                            break
                    if total.is_finite():
                        growth = max(0.0, float(total.log()) - self.sketch(float(theta)).log_moment)
                        count = max(2, math.ceil((target + growth + 2.0) / (2.0 * math.log(rho))))
                        error = arb(64) / 15 * total * arb(rho) ** (-2 * count) / (1 - arb(rho) ** -2)
                        cost = float(count * panels) + 0.02 * count * count
                        if best is None or cost < best[0]:
                            best = cost, (panels, count), error.upper()
            panels *= 2
        return best[1], best[2]

    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)`` at the points of a line."""
        if self.is_plain:
            return [self._elementary(z) for z in line.points()]
        rule, error = self._rule(line.theta, line.reach)
        blur = acb(arb(0, error), arb(0, error))
        with precision(working_bits() + POWERS):
            weights, losses = zip(*self._nodes(line.theta, *rule), strict=True)
            sums = turned(weights, [acb(0, loss) for loss in losses], line)
        return [acb(sum(weights, arb(0)) + arb(0, error)), *(one + blur for one in sums)]

    def _elementary(self, z: acb) -> acb:
        """``e^{-m/2} (cosh(zeta m) + sinh(zeta m) / (2 zeta))``, ``zeta = z + 1/2``, for a plain pair."""
        zeta, m = z + arb(1) / 2, ball(self.m)
        sinh, cosh = (zeta * m).sinh_cosh()
        return (cosh + sinh / (2 * zeta)) * (-m / 2).exp()

    def decay(self, theta: Fraction) -> Decay:
        """Rectangles under the density between the atoms."""
        with precision(LOW_BITS):
            log_moment, tilt, m = self.log_moment(theta), ball(theta), ball(self.m)
            width = m / _CELLS
            losses = [self._logs(acb(2 * width * k - m))[1].real for k in range(_CELLS + 1)]
            edges = [float(loss) for loss in losses]
            error = max(float((abs(loss) * 2.0**-52 + loss.rad()).upper()) for loss in losses)
            heights = []
            for k in range(_CELLS):
                y = (width * k).union(width * (k + 1))
                w = 2 * y - m
                g, loss = (value.real for value in self._logs(acb(w)))
                speed = 2 * abs(self._speed(self.a, w) - self._speed(self.b, w))
                height = (g + tilt * loss - y - log_moment).exp() / (2 * speed)
                heights.append(max(0.0, float(height.lower())) * (1.0 - 2.0**-50) if speed > 0 else 0.0)
        return Layers.of(rectangles(edges, heights), error)

    def _speed(self, share: Fraction, w: arb) -> arb:
        """``c e^w / (1 - c + c e^w)``, written to be tight on wide balls."""
        if share == 0:
            return arb(0)
        return 1 / (1 + ball((1 - share) / share) * (-w).exp())
