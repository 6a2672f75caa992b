"""The exact truth: composition curves in ball arithmetic, to as many digits as asked for.

Shares no numerical code with the rest of the library: it knows of the pairs only their parameters, and everything
from there on is its own. Imports python-flint, so the core imports this room only when it is used.

A pair whose file registers its own shape (``staircase``) is known because that file is imported here.
"""

from hockeystick.exact.enclosure import Enclosure
from hockeystick.exact.evaluate import curve_of, exact_delta, exact_epsilon, exact_infinite_mass
from hockeystick.exact.exponent import Log
from hockeystick.exact.staircase import StaircaseSource

__all__ = ["Enclosure", "Log", "StaircaseSource", "curve_of", "exact_delta", "exact_epsilon", "exact_infinite_mass"]
