"""Certified curves of few rare large losses: the engine between the contour and lattices."""

from hockeystick.engines.rare.curve import RareCurve, deltas, epsilons

__all__ = ["RareCurve", "deltas", "epsilons"]
