"""Live accounting: epsilon after every step of a run, with its state saved and restored."""

from hockeystick.odometer.odometer import Odometer

__all__ = ["Odometer"]
