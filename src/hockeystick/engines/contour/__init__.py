"""Certified curves by contour integration: the engine that the contour and the certified accountant share."""

from hockeystick.engines.contour.curve import ContourCurve as ContourCurve
