"""Certified numerical privacy accounting: how private is this composition of mechanisms?"""

from hockeystick import accountants
from hockeystick.account import account
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition, Step, compose
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import HockeystickError, PrecisionError, UnknownPairError
from hockeystick.mechanisms import Gaussian, Laplace

__all__ = [
    "Bound",
    "Composition",
    "Estimate",
    "Gaussian",
    "HockeystickError",
    "Laplace",
    "PrecisionError",
    "PrivacyCurve",
    "Step",
    "UnknownPairError",
    "account",
    "accountants",
    "compose",
]
