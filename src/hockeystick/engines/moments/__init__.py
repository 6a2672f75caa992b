"""Bounds on the curve by the moments of the privacy loss."""
