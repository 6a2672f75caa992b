"""OpenDP: privacy profiles from certified curves, and curves from what its measures say.

OpenDP takes no accountants from outside; what it takes is a privacy profile, delta as a function of epsilon.

Guarantee: a profile is never below the certified upper side; a curve never below what the measure's distance implies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from opendp.measures import new_privacy_profile
from opendp.mod import Measure, Measurement, PrivacyProfile

from hockeystick.account import account
from hockeystick.accountants.renyi import RenyiCurve
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import UnknownPairError, check_finite
from hockeystick.mechanisms import ApproximateDP

_ORDERS = 1.0 + np.geomspace(1e-4, 1e8, 2401)  # neighbours differ by 1.2 %: the best order is missed by next to nothing
_MOST_RHO = 1e279  # of which all divergences are floats, and what is made of them


def privacy_profile(curve: PrivacyCurve) -> PrivacyProfile:
    """The curve as a privacy profile of OpenDP, with the upper side of delta.

    Needs OpenDP's features "contrib" and "honest-but-curious", as every profile that a user states.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> profile = privacy_profile(hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000))
    >>> f"{profile.epsilon(1e-5):.4f}"
    '2.5838'
    """
    if not isinstance(curve, PrivacyCurve):
        raise TypeError(f"curve must be a PrivacyCurve, as hockeystick.account makes it, got {curve!r}")
    return new_privacy_profile(lambda epsilon: _delta(curve, float(epsilon)))


def _delta(curve: PrivacyCurve, epsilon: float) -> float:
    """The upper side of delta, raised until the upper side of epsilon there is no more than ``epsilon``.

    OpenDP finds an epsilon by bisecting the profile. Both sides are certified on their own, so the delta of an epsilon
    a hair below ``curve.epsilon(delta).upper`` can be proved already; raised, it is not (up to the width of a bracket).
    """
    delta = float(curve.delta(epsilon).sides[1])
    for power in range(-50, 1):
        if float(curve.epsilon(min(delta, 1.0)).sides[1]) <= epsilon:
            return min(delta, 1.0)
        delta = max(delta * (1.0 + 2.0**power), math.ulp(0.0))
    return 1.0


def curve_of(measure: Measure, distance: Any) -> PrivacyCurve | RenyiCurve:
    """The curve that a distance in a privacy measure of OpenDP implies: its ``epsilon(delta)`` and ``delta(epsilon)``.

    Parameters
    ----------
    measure : Measure
        Pure, approximate, or zero-concentrated; the relation is that of the measurement.
    distance : float or (float, float)
        Epsilon; epsilon and delta; or rho.

    Raises
    ------
    UnknownPairError
        For other measures.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> f"{float(curve_of(dp.zero_concentrated_divergence(), 0.125).epsilon(1e-6)):.3f}"
    '2.419'
    """
    if not isinstance(measure, Measure):
        raise TypeError(f"measure must be a Measure, as OpenDP makes it, got {measure!r}")
    match str(measure.type):
        case "MaxDivergence":
            return account(ApproximateDP(distance))
        case "Approximate<MaxDivergence>":
            if not isinstance(distance, tuple | list) or len(distance) != 2:
                raise TypeError(f"distance must be epsilon and delta in this measure, got {distance!r}")
            epsilon, delta = distance
            return account(ApproximateDP(epsilon, delta))
        case "ZeroConcentratedDivergence":
            rho = check_finite("distance", distance)
            if not 0.0 <= rho <= _MOST_RHO:
                raise ValueError(f"distance must be at least 0 and at most {_MOST_RHO:g}, got {distance!r}")
            return RenyiCurve(_ORDERS, np.nextafter(rho * _ORDERS, math.inf))
        case other:
            raise UnknownPairError(
                f"no curve is proved for the measure {other}; known are MaxDivergence, Approximate<MaxDivergence> and"
                " ZeroConcentratedDivergence"
            )


def curve_of_measurement(measurement: Measurement, distance: Any = 1) -> PrivacyCurve | RenyiCurve:
    """`curve_of` what a measurement guarantees for inputs at a distance."""
    return curve_of(measurement.output_measure, measurement.map(distance))
