"""The Gaussian limit: the composed loss taken as normal, or the composition as one Gaussian mechanism.

Two variants, both the limit of very many steps of very small loss:

- ``"gaussian-dp"``: mu-Gaussian DP with ``mu^2 = sum_j T_j chi^2(P_j || Q_j)``, ``chi^2 = e^{K(1)} - 1``; for the
  subsampled Gaussian ``mu = g sqrt(T (e^{1/s^2} - 1))`` (Bu et al. 2020; 002, appendix A.3). A loss N(mu^2/2, mu^2).
- ``"normal-loss"``: a loss N(K'(0), K''(0)), its own mean and variance (004, equation 97).

Guarantee: an estimate, which can under-report, and does at small delta: a normal tail is too thin. The stated error
is the Berry-Esseen distance ``0.56 P_0 / K''(0)^{3/2}`` (004, equation 88, whose exponent is misprinted), not
certified here; for epsilon it is nan. Cost: constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Estimate
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.errors import check_choice
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.tilted_normal import tilted_normal

_NOTE = "a limit, not a bound: it can under-report"
_BERRY_ESSEEN = 0.56  # for sums of independent terms (Shevtsova 2010)


@final
@dataclass(frozen=True)
class GaussianLimit(Accountant):
    """Accounting by the central limit theorem.

    Parameters
    ----------
    variant : {"gaussian-dp", "normal-loss"}
        What is taken to be Gaussian: the composed mechanism or the composed loss.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(0.65).poisson(0.01) * 2000
    >>> limit = hs.account(run, accountant=GaussianLimit()).epsilon(delta=1e-5)
    >>> bool(limit.value < hs.account(run).epsilon(delta=1e-5).lower)  # it under-reports
    True
    """

    variant: Literal["gaussian-dp", "normal-loss"] = "gaussian-dp"

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, ("gaussian-dp", "normal-loss"))

    def directed(self, parts: Parts) -> DirectedCurve:
        return _LimitCurve(self.variant, parts)


@final
class _LimitCurve(DirectedCurve):
    def __init__(self, variant: str, parts: Parts) -> None:
        self._variant = variant
        self._window = CumulantWindow(parts)
        self._infinity = composed_infinity(parts)[1]
        self._method = "central limit theorem" if variant == "normal-loss" else "Gaussian DP limit"
        self._parts = parts

    @cached_property
    def mu(self) -> float:
        """The parameter of Gaussian DP; infinite where chi-square is."""
        if self._infinity > 0.0:
            return math.inf
        moments = self._window.each(1.0).log_moment.tolist()
        squares = [
            count * math.expm1(min(max(moment, 0.0), 700.0))
            for (_, count), moment in zip(self._parts, moments, strict=True)
        ]
        return math.sqrt(math.fsum(squares))

    @cached_property
    def _mean_and_deviation(self) -> tuple[float, float]:
        if self._variant == "gaussian-dp":
            return 0.5 * self.mu * self.mu, self.mu
        at_zero = self._window.at(0.0)
        return at_zero.mean, math.sqrt(at_zero.variance)

    @cached_property
    def _distance(self) -> float:
        """Berry and Esseen's bound on the distance from a normal distribution, evaluated by quadrature."""
        at_zero = self._window.checked(0.0)
        if at_zero.variance <= 0.0:
            return 1.0
        return min(_BERRY_ESSEEN * (at_zero.absolute_third / at_zero.variance) / math.sqrt(at_zero.variance), 1.0)

    def _log_delta(self, epsilon: float) -> float:
        """``ln delta`` of the finite losses."""
        mean, deviation = self._mean_and_deviation
        if math.isinf(deviation):
            return 0.0
        if deviation == 0.0:
            return math.log(-math.expm1(epsilon - mean)) if mean > epsilon else -math.inf
        return min(tilted_normal(0.0, (mean - epsilon) / deviation, deviation).log, 0.0)

    def delta(self, epsilon: float) -> Estimate:
        finite = math.exp(self._log_delta(epsilon)) if math.isfinite(epsilon) else 0.0
        value = self._infinity + (1.0 - self._infinity) * finite
        return Estimate(value, self._distance, self._method, (_NOTE,))

    def epsilon(self, delta: float) -> Estimate:
        return Estimate(self._epsilon(delta), math.nan, self._method, (_NOTE,))

    def _epsilon(self, delta: float) -> float:
        mean, deviation = self._mean_and_deviation
        share = (delta - self._infinity) / (1.0 - self._infinity) if self._infinity < 1.0 else 0.0
        if share <= 0.0:
            return math.inf if deviation > 0.0 or delta < self._infinity else max(mean, 0.0)
        target = math.log(min(share, 1.0))
        if self._log_delta(0.0) <= target:
            return 0.0
        if math.isinf(deviation):
            return math.inf
        reach = mean + deviation * (math.sqrt(-2.0 * target) + 1.0)  # a normal tail is below e^{-x^2/2}
        return increasing_root(lambda eps: target - self._log_delta(eps), 0.0, reach, 1e-12 * (1.0 + reach))
