"""Mechanisms: one file each, building dominating pairs and nothing else."""

from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.laplace import Laplace

__all__ = ["Gaussian", "Laplace", "Mechanism"]
