"""The moments accountant: Chernoff's bound on the privacy loss, with three kernels (004, section 3.2).

Guarantee: upper bounds, certified where the moments are bounded; the lower side is trivial. Elsewhere an estimate.
Cost: a one-dimensional search, the same for any number of steps. The mathematics is in `engines/moments/curve.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.accountants.base import Accountant, DirectedCurve, EngineCurve, Parts
from hockeystick.engines.moments.curve import Conversion, KernelCurve, QuadraticCurve
from hockeystick.errors import check_choice


@final
@dataclass(frozen=True)
class Moments(Accountant):
    """The moments accountant (Renyi DP).

    Parameters
    ----------
    conversion : {"tight", "classic", "quadratic"}
        From moments to delta: 004's equation 43, 40 or 46.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(1.0).poisson(0.01) * 2000
    >>> hs.account(run, accountant=Moments()).epsilon(delta=1e-5).upper
    2.866410...
    """

    conversion: Conversion = "tight"

    def __post_init__(self) -> None:
        check_choice("conversion", self.conversion, ("tight", "classic", "quadratic"))

    def directed(self, parts: Parts) -> DirectedCurve:
        quadratic = self.conversion == "quadratic"
        return EngineCurve(QuadraticCurve(parts) if quadratic else KernelCurve(parts, self.conversion))
