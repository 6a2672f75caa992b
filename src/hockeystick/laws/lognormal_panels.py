"""The transform of a lognormal likelihood ratio up to a largest value: psi(z) = E[e^{z(V - 1)}; V <= b], Z ~ N(0, 1).

Symbols: ``V = e^{mZ - m^2/2 - l}`` is the likelihood ratio of a Gaussian step over e^l; ``b = V(x_top)``. With N the
normal density, ``psi(z) = int_{-inf}^{x_top} N(x) e^{z (V(x) - 1)} dx`` is integrated by Gauss-Legendre rules of n = 24
nodes on panels from x_top downwards, narrow where V is large; V - 1 is accurate relative to itself, however little of
it there is. On the ellipse of parameter rho about a panel of centre c and half-width d, of semi-axes A and B, with
``m B < pi / 2``,

    |N e^{z(V - 1)}| <= N(least |x|) e^{B^2/2} e^{r + |Im z| V sin(mB)},    V = V(c + A),

r the largest of ``Re z (V cos(m v) - 1)``; the rule errs by at most ``(64/15) d M rho^{-2n} / (1 - rho^{-2})``
(Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3). Below the last panel the exponent lies below
its tangent.

*Decay.* Turned by an angle a, the path at ``Im x = +-a/m`` and its return to x_top give for s <= |Im z|

    |psi| <= e^{a^2/2m^2} E[e^{(Re z cos a - s sin a) V - Re z}; V <= b] + N(x_top) e^{Re z (b - 1)} / l,
    l = b m (s sin a + min(Re z, 0) (1 - cos a)) / a - a / 2m,

which falls with s: `LognormalPanels.beyond`. For Re z < 0 the sign of the sine turns.

Guarantee: every value comes with a bound on its error, rounding included. Proof: docs/derivations/random-allocation.md,
section 6. Cost: one sine and cosine for each node and frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.gauss_legendre import NODE_ERROR, WEIGHT_ERROR, gauss_legendre
from hockeystick.numerics.products import product
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, TRIGONOMETRIC, U, gamma

_WIDEST = 0.6  # half-width of a panel, in standard deviations
_TURN = 7.0  # how much z W may change over half a panel
_MOST_PANELS = 1 << 11
_RHO = np.array([1.6, 2.2, 3.0, 4.0, 5.5, 8.0, 12.0])
_ANGLES = np.concatenate((np.geomspace(1e-3, 1.0, 24), [1.15, 1.3, 1.45, 1.55]))
_MOST_TURN = 8.0  # times m, that a path is turned by, about
_LOG_SQRT_2PI = 0.9189385332046727


@final
@dataclass(frozen=True, eq=False)
class Transform:
    """``psi(z) / (psi(Re z) e^{i centre Im z}) - 1`` along a line, where nothing cancels; arrays of shape (n,).

    Attributes
    ----------
    log_scale : float
        ``ln psi`` at the real point.
    log_scale_error : float
        Bound on its absolute error.
    centre : float
        Any number near the tilted mean of V - 1.
    value : ndarray of complex
        What the first line says.
    error : ndarray
        Bounds on the absolute errors of ``value``.
    """

    log_scale: float
    log_scale_error: float
    centre: float
    value: Complex
    error: Array


@final
@dataclass(frozen=True)
class LognormalPanels:
    """Panels for arguments of real and imaginary part of at most ``largest`` together.

    Parameters
    ----------
    shift : float
        m, within u of itself.
    loss : float
        l.
    low, top : float
        Where the panels end: low at most -1; b = V(top).
    largest : float
        The largest ``|Re z| + |Im z|`` that the panels are made for; others are served less accurately.
    """

    shift: float
    loss: float
    low: float
    top: float
    largest: float

    @cached_property
    def _panels(self) -> tuple[Array, Array]:
        """Right ends and half-widths, from the top down; each left end is the next right end, exactly."""
        ends, m = [self.top], self.shift
        while ends[-1] > self.low:
            steep = self.largest * m * math.exp(min(m * ends[-1] - self._offset, 600.0))
            ends.append(ends[-1] - 2.0 * min(_WIDEST, 1.0 / m, _TURN / max(steep, 1e-300)))
            if len(ends) > _MOST_PANELS:
                raise PrecisionError("the transform oscillates too much for the panels it may have")
        edges = np.array(ends)
        return 0.5 * (edges[:-1] + edges[1:]), 0.5 * (edges[:-1] - edges[1:])

    @cached_property
    def _offset(self) -> float:
        """``m x - ln V``."""
        return 0.5 * self.shift**2 + self.loss

    @cached_property
    def _nodes(self) -> tuple[Array, Array, Array, Array]:
        """V - 1, ``ln`` of the weights, the absolute errors of both, shape (panels, 24)."""
        centre, half = (each[:, None] for each in self._panels)
        nodes, weights = gauss_legendre()
        x = centre + half * nodes
        off = 4.0 * U * (np.abs(x) + np.abs(centre) + half) + half * NODE_ERROR
        excess, own = self._excess(x, off)
        log_weight = np.log(half * weights) - 0.5 * x * x - _LOG_SQRT_2PI
        error = np.abs(x) * off + ELEMENTARY * (1.0 + np.abs(np.log(half * weights))) + WEIGHT_ERROR
        return excess, log_weight, own, 1.01 * (error + U * (8.0 + 3.0 * x * x + 2.0 * np.abs(log_weight)))

    def _excess(self, x: Array, off: Array) -> tuple[Array, Array]:
        """V - 1 at places that are known to within ``off``, and bounds on its absolute errors."""
        m = self.shift
        excess = np.expm1(m * x - self._offset)
        exponent = m * off + U * (4.0 * np.abs(m * x) + 3.0 * m * m + 4.0 * abs(self.loss))
        return excess, 1.01 * ((excess + 1.0) * np.expm1(exponent) + (ELEMENTARY + 3.0 * U) * np.abs(excess))

    @cached_property
    def _top_excess(self) -> tuple[float, float]:
        """Bounds on b - 1."""
        excess, off = (float(each[0]) for each in self._excess(np.array([self.top]), np.zeros(1)))
        return excess - off, excess + off

    @property
    def top_excess(self) -> float:
        """At least b - 1."""
        return self._top_excess[1]

    def _terms(self, real: float, lead: float = 0.0) -> tuple[Array, Array, Array]:
        """What the nodes add at a real argument, and the parts of the errors that are constant and grow with |z|."""
        excess, log_weight, own, error = self._nodes
        exponent = log_weight + (real * excess + lead)
        off = error + ELEMENTARY + U * (4.0 * (np.abs(real * excess) + abs(lead)) + np.abs(exponent))
        whole = off + abs(real) * own
        with np.errstate(over="ignore", under="ignore"):
            term = np.exp(np.where((whole > 0.01) & (exponent + whole > -745.0), math.inf, exponent))
            return term, term * off + SUBNORMAL, term * own

    def at(self, real: float, lead: float = 0.0) -> tuple[float, float]:
        """psi at a real argument, times ``e^lead``, and a bound on its absolute error."""
        term, constant, growing = self._terms(real, lead)
        rounding = gamma(64.0 + term.shape[0])
        with np.errstate(over="ignore"):
            value = float(term.sum(axis=1).sum())
            error = float(constant.sum()) + abs(real) * float(growing.sum()) + rounding * value
        return value, 1.01 * error + self._left_out(real, 0.0, lead)

    def line(self, theta: float, step: float, count: int, *, mirrored: bool) -> Transform:
        """psi at ``+-(theta + i k step)``, k from 0 to count - 1, the minus where ``mirrored``; step of few bits."""
        sign = -1.0 if mirrored else 1.0
        excess, own = self._nodes[0], self._nodes[2]
        term, constant, growing = self._terms(sign * theta)
        with np.errstate(over="ignore"):
            scale = float(term.sum(axis=1).sum())
        if not 1e-290 < scale < math.inf:
            raise PrecisionError("the transform is outside the range of float64 there")
        term, constant, growing = term / scale, constant / scale, growing / scale
        centre = float((term * excess).sum())
        off, frequencies = excess - centre, step * np.arange(count)
        value = _turned(term, off, step, count)
        rounding = gamma(1.5 * (64.0 + term.shape[0])) + 8.0 * TRIGONOMETRIC + 8.0 * U
        rest = self._left_out(sign * theta, float(frequencies[-1])) / scale
        # a mass that is off changes the scale as well; of the value, e^{is(V - 1 - centre)} - 1 times as much
        shared = float(constant.sum()) + theta * float(growing.sum()) + rounding
        most = constant + theta * growing + term * (shared + rest)
        away = float((term * np.abs(off)).sum())
        error = np.minimum(2.0 * float(most.sum()), frequencies * float((most * np.abs(off)).sum()))
        error += frequencies * (float((term * own).sum()) + 6.0 * U * away)
        error += rounding * np.minimum(8.0, 4.0 * frequencies * away) + 2.0 * rest
        scale_error = 1.01 * (shared + rest) + ELEMENTARY * abs(math.log(scale))
        return Transform(math.log(scale), scale_error, centre, np.conj(value) if mirrored else value, 1.02 * error)

    def _left_out(self, real: float, frequency: float, lead: float = 0.0) -> float:
        """Bound on what quadrature errs by and on what lies below the last panel."""
        m = self.shift
        centre, half = (each[:, None] for each in self._panels)
        wide, high = 0.5 * (_RHO + 1.0 / _RHO) * half, 0.5 * (_RHO - 1.0 / _RHO) * half
        angle = m * high * (1.0 + 1e-9)
        nearest = np.maximum(np.abs(centre) - wide, 0.0)
        versed, sine = 2.0 * np.sin(0.5 * angle) ** 2, np.sin(np.minimum(angle, 1.57))
        with np.errstate(over="ignore"):
            (most, above), (least, under) = (
                self._excess(centre + side * wide, 4.0 * U * (np.abs(centre) + wide)) for side in (1.0, -1.0)
            )
            end = most + above if real > 0.0 else (least - under) * np.cos(np.minimum(angle, 1.57)) - versed
            turned = frequency * (most + above + 1.0) * sine
            growth = lead + real * end + turned
            growth += 16.0 * U * (abs(lead) + abs(real) * (np.abs(most) + np.abs(least) + versed) + turned)
        log_error = growth + 0.5 * (high * high - nearest * nearest) - 48.0 * np.log(_RHO) - np.log1p(-(_RHO**-2.0))
        log_error = np.where(angle < 1.57, log_error + np.log(half), np.inf).min(axis=1)
        last = float(centre[-1, 0] - half[-1, 0])
        excess, off = (float(each[0]) for each in self._excess(np.array([last]), np.array([4.0 * U * abs(last)])))
        # the tangent of the exponent: it rises downwards where the argument is negative, by no more than V does
        steady = -last + min(real, 0.0) * m * (excess + off + 1.0) >= 1.0
        tail = excess + off if real > 0.0 else excess - off if steady else -1.0
        below = lead + real * tail + 16.0 * U * (abs(lead) + abs(real * tail)) - 0.5 * last * last
        # (64 / 15) / sqrt(2 pi) < 1.71, with room for the rounding of exponents of up to 1e5
        with np.errstate(over="ignore"):
            return 1.72 * float(np.exp(log_error).sum()) + 0.41 * float(np.exp(below)) + 1e-300

    def beyond(self, theta: float, frequency: float, *, mirrored: bool) -> float:
        """At least ``|psi(+-(theta + i s))|`` for every s from ``frequency`` on."""
        m, sign, (least, most) = self.shift, -1.0 if mirrored else 1.0, self._top_excess
        edge = max(sign * theta * least, sign * theta * most)
        edge += 1e-9 * abs(edge) - 0.5 * self.top**2 - _LOG_SQRT_2PI
        angle = turning_angles(m)
        versed = 2.0 * np.sin(0.5 * angle) ** 2  # 1 - cos
        kept, turned = sign * theta * np.cos(angle), frequency * np.sin(angle)
        back = (least + 1.0) * m / angle
        rise, turn = back * turned, 0.5 * angle / m - back * min(sign, 0.0) * theta * versed
        fall = rise - turn - 1e-12 * (rise + turn)
        grown = 0.5 * (angle / m) ** 2 * (1.0 + 1e-12)
        lead = grown - sign * theta * versed - turned
        # of both arguments: what is multiplied by V - 1 and what is not
        lead += 8.0 * U * (theta + turned) * max(most, 1.0) + 1e-12 * (theta * versed + turned)
        good = np.flatnonzero((fall > 0.0) & (grown <= 700.0))
        if edge > 700.0 or good.size == 0:
            return math.inf
        found = self._rough(kept[good] - turned[good], lead[good]) + math.exp(edge) / fall[good]
        at = good[found.argmin()]  # any of them will do
        value, error = self.at(float(kept[at] - turned[at]), float(lead[at]))
        return (value + error + math.exp(edge) / float(fall[at])) * (1.0 + 1e-9)

    def _rough(self, real: Array, lead: Array) -> Array:
        """About psi at real arguments, each times its ``e^lead``."""
        excess, log_weight = (each.ravel() for each in self._nodes[:2])
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(log_weight + np.multiply.outer(real, excess) + lead[:, None]).sum(axis=1))


def turning_angles(shift: float) -> Array:
    """By which a path may be turned: with little of it the density gains too much."""
    return _ANGLES * min(_MOST_TURN * shift, 1.0)


def _turned(term: Array, off: Array, step: float, count: int) -> Complex:
    """``sum term (e^{i k step off} - 1)`` for k from 0 to count - 1.

    With k = q B + r the exponential is a product, and ``ab - 1 = (a - 1)(b - 1) + (a - 1) + (b - 1)``: sums over a
    panel are products of matrices, and small where they ought to be.
    """
    inner = math.isqrt(count - 1) + 1
    fine, coarse = step * np.arange(inner), step * inner * np.arange(inner)
    value = np.zeros((inner, inner), dtype=np.complex128)
    for mass, at in zip(term, off, strict=True):
        left, right = _less_one(np.multiply.outer(coarse, at)), _less_one(np.multiply.outer(at, fine))
        left *= mass
        value += product(left, right) + left.sum(axis=1)[:, None] + mass @ right
    return value.ravel()[:count]


def _less_one(angle: Array) -> Complex:
    """``e^{i angle} - 1``, accurate relative to itself."""
    half = np.sin(0.5 * angle)
    return np.asarray(-2.0 * half * half + 1j * np.sin(angle))
