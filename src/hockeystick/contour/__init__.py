"""Certified curves by contour integration: the engine that the contour and the certified accountant share."""

from hockeystick.contour.curve import ContourCurve

__all__ = ["ContourCurve"]
