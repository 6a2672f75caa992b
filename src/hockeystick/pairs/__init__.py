"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

from hockeystick.pairs.base import CellMasses, LossQuantum, Nodes, Pair
from hockeystick.pairs.discrete import DiscretePair
from hockeystick.pairs.gaussian import GaussianPair
from hockeystick.pairs.laplace import LaplacePair
from hockeystick.pairs.reversed import ReversedPair
from hockeystick.pairs.subsampled import SubsampledPair

__all__ = [
    "CellMasses",
    "DiscretePair",
    "GaussianPair",
    "LaplacePair",
    "LossQuantum",
    "Nodes",
    "Pair",
    "ReversedPair",
    "SubsampledPair",
]
