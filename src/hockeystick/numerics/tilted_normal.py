"""The tilted hockey-stick expectation of a normal variable.

Symbols: Z normal with deviation sigma and mean ``eps + gamma sigma``; theta the tilt, at least 0;
``alpha = sigma theta - gamma``, ``beta = sigma (theta + 1) - gamma``; ``Q(z) = P(N > z)``, ``q(z) = sqrt(2 pi)
e^{z^2/2} Q(z)``. Then

    S = E[e^{-theta (Z - eps)} (1 - e^{-(Z - eps)})_+] = e^{-gamma^2/2} (q(alpha) - q(beta)) / sqrt(2 pi)

(004, Proposition 6; `docs/derivations/saddle-point.md`). theta = 0 is the curve of a normal privacy loss itself.

Guarantee: ``error`` bounds the rounding, for the arguments as given. Cost: constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from hockeystick.numerics.error_functions import erf, erfcx
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, U

_SQRT_HALF = math.sqrt(0.5)


@final
@dataclass(frozen=True)
class TiltedNormal:
    """``S = e^log_scale (value +- error)``: value is of order one or less wherever S is not tiny.

    Attributes
    ----------
    log_scale : float
        An exact number: its rounding is in ``error``.
    value, error : float
        S in units of the scale, and a bound on its rounding error.
    """

    log_scale: float
    value: float
    error: float

    @property
    def log(self) -> float:
        """``ln S``, an estimate; ``-inf`` where rounding leaves nothing."""
        return self.log_scale + math.log(self.value) if self.value > 0.0 else -math.inf


def tilted_normal(theta: float, gamma: float, sigma: float) -> TiltedNormal:
    """The expectation S.

    Parameters
    ----------
    theta : float
        The tilt, at least 0.
    gamma : float
        Distance of the mean above epsilon, in deviations.
    sigma : float
        The deviation (nats), above 0.

    Examples
    --------
    >>> s = tilted_normal(0.0, -0.5, 1.0)  # the Gaussian mechanism of noise 1 at epsilon 1
    >>> math.exp(s.log)
    0.126936737...
    """
    alpha = sigma * theta - gamma
    log_scale = -0.5 * gamma * gamma if alpha >= 0.0 else 0.0
    high, high_error = _term(sigma * theta, gamma, log_scale)
    low, low_error = _term(sigma * (theta + 1.0), gamma, log_scale)
    value = high - low
    error = 1.01 * (high * high_error + low * low_error) + U * abs(value)
    return TiltedNormal(log_scale, value, error + 2.0 * U * gamma * gamma * abs(value))


def _term(reach: float, gamma: float, log_scale: float) -> tuple[float, float]:
    """``e^{(z^2 - gamma^2)/2} Q(z) e^{-log_scale}``, z = reach - gamma, and a bound on its relative error."""
    z = reach - gamma
    off = 4.0 * U * (abs(reach) + abs(gamma))  # error of z; d ln q / dz lies in [-1, 0] for z >= 0
    if z >= 0.0:
        value = 0.5 * float(erfcx(z * _SQRT_HALF))
        relative = ERFCX + off + 4.0 * U
        if log_scale == 0.0:
            value *= math.exp(-0.5 * gamma * gamma)
            relative += ELEMENTARY + 2.0 * U * gamma * gamma
        return value, relative
    exponent = 0.5 * reach * (reach - 2.0 * gamma)
    value = math.exp(exponent) * 0.5 * (1.0 + float(erf(-z * _SQRT_HALF)))
    # exp: ELEMENTARY; erf: half of ERF, as it is at most half of the sum; the sum and two products: 3 u
    relative = 2.0 * ELEMENTARY + off + 6.0 * U + 4.0 * U * abs(reach) * (abs(reach) + 2.0 * abs(gamma))
    return value, relative
