"""The transform of a lognormal likelihood ratio up to a largest value: psi(z) = E[e^{zW}; W <= b], Z ~ N(0, 1).

Symbols: ``W = e^{mZ - m^2/2}`` is the likelihood ratio of a Gaussian step, mean 1; ``b = W(x_top)``. With N the normal
density, ``psi(z) = int_{-inf}^{x_top} N(x) e^{z W(x)} dx`` is integrated by Gauss-Legendre rules of n = 24 nodes on
panels from x_top downwards, narrow where W is large. On the ellipse of parameter rho about a panel of centre c and
half-width d, of semi-axes A and B, with ``m B < pi / 2``,

    |N e^{zW}| <= N(least |x|) e^{B^2/2} e^{r + |Im z| W sin(mB)},    W = W(c + A),

r the largest of ``Re z W cos(m v)``; the rule errs by at most ``(64/15) d M rho^{-2n} / (1 - rho^{-2})`` (Trefethen,
Approximation Theory and Approximation Practice, Theorem 19.3). Below the last panel lies ``N(x) / |x|``.

*Decay.* Turned by an angle a, the path at ``Im x = +-a/m`` and its return to x_top give for s <= |Im z|

    |psi| <= e^{a^2/2m^2} psi(Re z cos a - s sin a) + N(x_top) e^{max(Re z, 0) b} / l,    l = 2 s b m / pi - a / 2m,

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
from hockeystick.laws.laplace_rule import NODE_ERROR, WEIGHT_ERROR, gauss_legendre
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.products import product
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, TRIGONOMETRIC, U, gamma

_WIDEST = 0.6  # half-width of a panel, in standard deviations
_TURN = 7.0  # how much z W may change over half a panel
_MOST_PANELS = 1 << 11
_RHO = np.array([1.6, 2.2, 3.0, 4.0, 5.5, 8.0, 12.0])
_ANGLES = np.concatenate((np.geomspace(1e-3, 1.0, 24), [1.15, 1.3, 1.45, 1.55]))
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
        Any number near the tilted mean of W.
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
    low, top : float
        Where the panels end: low at most -1; b = W(top).
    largest : float
        The largest ``|Re z| + |Im z|`` that the panels are made for; others are served less accurately.
    """

    shift: float
    low: float
    top: float
    largest: float

    @cached_property
    def _panels(self) -> tuple[Array, Array]:
        """Right ends and half-widths, from the top down; each left end is the next right end, exactly."""
        ends, m = [self.top], self.shift
        while ends[-1] > self.low:
            steep = self.largest * m * math.exp(min(m * ends[-1] - 0.5 * m * m, 600.0))
            ends.append(ends[-1] - 2.0 * min(_WIDEST, 1.0 / m, _TURN / max(steep, 1e-300)))
            if len(ends) > _MOST_PANELS:
                raise PrecisionError("the transform oscillates too much for the panels it may have")
        edges = np.array(ends)
        return 0.5 * (edges[:-1] + edges[1:]), 0.5 * (edges[:-1] - edges[1:])

    @cached_property
    def _nodes(self) -> tuple[Array, Array, Array, Array]:
        """W, ``ln`` of the weights, the errors of both (relative; absolute), shape (panels, 24)."""
        m = self.shift
        centre, half = (each[:, None] for each in self._panels)
        nodes, weights = gauss_legendre()
        x = centre + half * nodes
        off = 4.0 * U * (np.abs(x) + np.abs(centre) + half) + half * NODE_ERROR
        ratio = np.exp(m * x - 0.5 * m * m)
        own = m * off + U * (4.0 * np.abs(m * x) + 3.0 * m * m) + ELEMENTARY + 3.0 * U
        log_weight = np.log(half * weights) - 0.5 * x * x - _LOG_SQRT_2PI
        error = np.abs(x) * off + ELEMENTARY * (1.0 + np.abs(np.log(half * weights))) + WEIGHT_ERROR
        return ratio, log_weight, 1.01 * own, 1.01 * (error + U * (8.0 + 3.0 * x * x + 2.0 * np.abs(log_weight)))

    @property
    def top_ratio(self) -> float:
        """b, to within `ratio_error`."""
        return math.exp(self.shift * self.top - 0.5 * self.shift**2)

    @property
    def ratio_error(self) -> float:
        """Relative."""
        return U * (4.0 * abs(self.shift * self.top) + 3.0 * self.shift**2) + 2.0 * ELEMENTARY

    def _terms(self, real: float) -> tuple[Array, Array, Array]:
        """What the nodes add at a real argument, and the parts of the errors that are constant and grow with |z|."""
        ratio, log_weight, own, error = self._nodes
        exponent = log_weight + real * ratio
        with np.errstate(over="ignore", under="ignore"):
            term = np.exp(exponent)
            constant = term * (error + ELEMENTARY + U * (4.0 * abs(real) * ratio + np.abs(exponent))) + SUBNORMAL
            return term, constant, term * ratio * own

    def at(self, real: float) -> tuple[float, float]:
        """psi at a real argument, and a bound on its absolute error."""
        term, constant, growing = self._terms(real)
        rounding = gamma(64.0 + term.shape[0])
        with np.errstate(over="ignore"):
            value = float(term.sum(axis=1).sum())
            error = float(constant.sum()) + abs(real) * float(growing.sum()) + rounding * value
        return value, 1.01 * error + self._left_out(real, 0.0)

    def line(self, theta: float, step: float, count: int, *, mirrored: bool) -> Transform:
        """psi at ``+-(theta + i k step)``, k from 0 to count - 1, the minus where ``mirrored``; step of few bits."""
        sign = -1.0 if mirrored else 1.0
        ratio, own = self._nodes[0], self._nodes[2]
        term, constant, growing = self._terms(sign * theta)
        with np.errstate(over="ignore"):
            scale = float(term.sum(axis=1).sum())
        if not 1e-290 < scale < math.inf:
            raise PrecisionError("the transform is outside the range of float64 there")
        term, constant, growing = term / scale, constant / scale, growing / scale
        centre = float((term * ratio).sum())
        off, frequencies = ratio - centre, step * np.arange(count)
        value = _turned(term, off, step, count)
        rounding = gamma(1.5 * (64.0 + term.shape[0])) + 8.0 * TRIGONOMETRIC + 8.0 * U
        rest = self._left_out(sign * theta, float(frequencies[-1])) / scale
        # a mass that is off changes the scale as well; of the value, e^{is(W - centre)} - 1 times as much
        shared = float(constant.sum()) + theta * float(growing.sum()) + rounding
        most = constant + theta * growing + term * (shared + rest)
        away = float((term * np.abs(off)).sum())
        error = np.minimum(2.0 * float(most.sum()), frequencies * float((most * np.abs(off)).sum()))
        error += frequencies * (float((term * ratio * own).sum()) + 6.0 * U * away)
        error += rounding * np.minimum(8.0, 4.0 * frequencies * away) + 2.0 * rest
        scale_error = 1.01 * (shared + rest) + ELEMENTARY * abs(math.log(scale))
        return Transform(math.log(scale), scale_error, centre, np.conj(value) if mirrored else value, 1.02 * error)

    def _left_out(self, real: float, frequency: float) -> float:
        """Bound on what quadrature errs by and on what lies below the last panel."""
        m = self.shift
        centre, half = (each[:, None] for each in self._panels)
        wide, high = 0.5 * (_RHO + 1.0 / _RHO) * half, 0.5 * (_RHO - 1.0 / _RHO) * half
        angle = m * high * (1.0 + 1e-9)
        nearest = np.maximum(np.abs(centre) - wide, 0.0)
        with np.errstate(over="ignore"):
            most = np.exp(m * (centre + wide) - 0.5 * m * m)
            least = np.exp(m * (centre - wide) - 0.5 * m * m)
            growth = real * (most if real > 0.0 else least * np.cos(np.minimum(angle, 1.57)))
            growth = growth + frequency * most * np.sin(np.minimum(angle, 1.57))
        log_error = growth + 0.5 * (high * high - nearest * nearest) - 48.0 * np.log(_RHO) - np.log1p(-(_RHO**-2.0))
        log_error = np.where(angle < 1.57, log_error + np.log(half), np.inf).min(axis=1)
        last = float(centre[-1, 0] - half[-1, 0])
        below = max(real, 0.0) * math.exp(m * last - 0.5 * m * m) - 0.5 * last * last
        # (64 / 15) / sqrt(2 pi) < 1.71, with room for the rounding of exponents of up to 1e5
        with np.errstate(over="ignore"):
            return 1.72 * float(np.exp(log_error).sum()) + 0.41 * float(np.exp(below)) + 1e-300

    def beyond(self, theta: float, frequency: float, *, mirrored: bool) -> float:
        """At least ``|psi(+-(theta + i s))|`` for every s from ``frequency`` on."""
        best, m = math.inf, self.shift
        edge = -0.5 * self.top**2 - _LOG_SQRT_2PI + (0.0 if mirrored else theta * self.top_ratio * (1.0 + 1e-9))
        for angle in _ANGLES.tolist():
            rise, turn = 2.0 * frequency * self.top_ratio * m / math.pi, 0.5 * angle / m
            fall = rise - turn - 1e-12 * (rise + turn)
            grown = 0.5 * (angle / m) ** 2 * (1.0 + 1e-12)
            if not fall > 0.0 or max(grown, edge) > 700.0:
                continue
            turned = frequency * math.sin(angle) * (1.0 - 1e-12)
            real = -theta * math.cos(angle) - turned if mirrored else theta * math.cos(angle) * (1.0 + 1e-12) - turned
            real += 1e-12 * abs(real) if mirrored else 0.0
            value, error = self.at(real)
            found = math.exp(grown) * (value + error) + math.exp(edge) / fall
            best = min(best, found * (1.0 + 1e-9))
        return best


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
