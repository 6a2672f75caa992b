"""Certified numerical privacy accounting: how private is this composition of mechanisms?"""

from hockeystick import accountants, dpsgd, filters
from hockeystick.account import account
from hockeystick.accountants import renyi
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate import Calibration, UnreachableTargetError, calibrate
from hockeystick.composition import Composition, Step, compose
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import HockeystickError, PrecisionError, UnknownPairError
from hockeystick.mechanisms import (
    ApproximateDP,
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscretePair,
    Gaussian,
    GaussianDP,
    GaussianMixture,
    Laplace,
    RandomizedResponse,
    UserDefined,
)
from hockeystick.odometer import Odometer, OdometerStateError
from hockeystick.tradeoff import TradeOff

__all__ = [
    "ApproximateDP",
    "Binomial",
    "Bound",
    "Calibration",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Estimate",
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "HockeystickError",
    "Laplace",
    "Odometer",
    "OdometerStateError",
    "PrecisionError",
    "PrivacyCurve",
    "RandomizedResponse",
    "Step",
    "TradeOff",
    "UnknownPairError",
    "UnreachableTargetError",
    "UserDefined",
    "account",
    "accountants",
    "calibrate",
    "compose",
    "dpsgd",
    "filters",
    "renyi",
]
