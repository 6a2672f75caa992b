"""Certified curves of few rare large losses: the engine between the contour and lattices."""

from hockeystick.engines.rare.curve import RareCurve, deltas, epsilons
from hockeystick.engines.rare.losses import MOST_DRAWN

__all__ = ["MOST_DRAWN", "RareCurve", "deltas", "epsilons"]
