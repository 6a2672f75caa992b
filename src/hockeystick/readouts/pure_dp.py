"""The mu for which one step is Gaussian-DP: of Gaussian noise, and of every (epsilon, 0)-DP mechanism.

Guarantee: rounded up, and verified with the stated errors of the primitives. Cost: a few of them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import erf, erfcx, erfinv, ndtri_exp

from hockeystick.engines.ends import largest_loss
from hockeystick.errors import UnknownPairError, shown
from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import ELEMENTARY, ERF, ERFCX, U, down, up

_FAR = 1e150  # beyond it a square has no float
_LEAST = 2.0**-900  # below, no relative accuracy is needed


def mu_of_pure(epsilon: float) -> float:
    """The mu that every (epsilon, 0)-DP mechanism is Gaussian-DP with, rounded up.

    Its trade-off curve is that of randomised response or a higher one, which the curve of mu touches where
    ``Phi(mu / 2) = 1 / (1 + e^-epsilon)`` (`docs/derivations/filters.md`). With ``x = mu / sqrt(8)`` that is
    ``erf(x) = tanh(epsilon / 2)``, or ``erfc(x) / 2 = 1 / (1 + e^epsilon)``: the first accurate relative to a small
    epsilon, the second to a small tail. The root is moved up until the inequality is proved.

    Parameters
    ----------
    epsilon : float
        At least 0 (nats), finite.

    Examples
    --------
    >>> f"{mu_of_pure(1e-9):.6e}", f"{mu_of_pure(1.0):.6f}"
    ('1.253314e-09', '1.232035')
    """
    if epsilon == 0.0:
        return 0.0
    if epsilon > _FAR:  # erfc(x) <= e^{-x^2}, and at x^2 = epsilon that is at most 2 / (1 + e^epsilon)
        return up(math.sqrt(8.0) * math.sqrt(epsilon), 8.0 * U)
    bounded = max(epsilon, _LEAST)  # a larger epsilon has a larger mu
    if bounded <= 1.0:
        root = float(erfinv(math.tanh(0.5 * bounded)))
    else:
        root = -math.sqrt(0.5) * float(ndtri_exp(-(bounded + math.log1p(math.exp(-bounded)))))
    step = 4.0 * U
    while not _is_beyond(x := root * (1.0 + step), bounded):
        step *= 2.0
    return up(math.sqrt(8.0) * x, 4.0 * U)  # a root and a product


def _is_beyond(x: float, epsilon: float) -> bool:
    """Whether ``erf(x) >= tanh(epsilon / 2)``: proved."""
    if epsilon <= 1.0:
        tangent = -math.expm1(-epsilon) / (1.0 + math.exp(-epsilon))
        # ERF for erf, one ELEMENTARY each for expm1 and exp, one u each for the sum and the quotient
        return down(float(erf(x)), ERF) >= up(tangent, 2.0 * ELEMENTARY + 4.0 * U)
    log_scaled, log_rest = math.log(0.5 * float(erfcx(x))), math.log1p(math.exp(-epsilon))
    # ln erfc(x) / 2 = ln erfcx(x) / 2 - x^2; each logarithm, square and difference to one rounding
    error = ERFCX + 2.0 * ELEMENTARY * (1.0 + abs(log_scaled)) + 4.0 * U * (x * x + epsilon)
    return log_scaled - x * x + error <= -(epsilon + log_rest)


def squared_mu(pair: Pair) -> Fraction:
    """The square of a mu for which a pair is mu-GDP."""
    if pair.gaussian_mu is not None:
        return pair.gaussian_mu**2
    largest = max(largest_loss(((pair, 1),))[1], largest_loss(((pair.reversed(), 1),))[1], 0.0)
    if math.isinf(largest) or pair.mass_at_infinity > 0.0 or pair.reverse_mass_at_infinity > 0.0:
        raise UnknownPairError(
            f"no mu is known for which {shown(pair)} is mu-GDP: use Gaussian noise without sampling, GaussianDP, steps"
            " with bounded losses, or RenyiFilter"
        )
    return Fraction(mu_of_pure(largest)) ** 2
