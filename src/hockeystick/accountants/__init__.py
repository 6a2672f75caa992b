"""Accountants: one file each, seeing pairs and never mechanisms."""

from hockeystick.accountants.base import Accountant, DirectedCurve
from hockeystick.accountants.certified import Certified

__all__ = ["Accountant", "Certified", "DirectedCurve"]
