"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

from hockeystick.pairs.base import CellMasses, LossQuantum, Nodes, Pair
from hockeystick.pairs.binomial import BinomialPair
from hockeystick.pairs.continuous import ContinuousPair
from hockeystick.pairs.discrete import DiscretePair
from hockeystick.pairs.discrete_gaussian import DiscreteGaussianPair
from hockeystick.pairs.discrete_laplace import DiscreteLaplacePair
from hockeystick.pairs.gaussian import GaussianPair
from hockeystick.pairs.joined import JoinedPair
from hockeystick.pairs.laplace import LaplacePair
from hockeystick.pairs.mixture import GaussianMixturePair
from hockeystick.pairs.reversed import ReversedPair
from hockeystick.pairs.subsampled import SubsampledPair
from hockeystick.pairs.worst_case import WorstCasePair

__all__ = [
    "BinomialPair",
    "CellMasses",
    "ContinuousPair",
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "DiscretePair",
    "GaussianMixturePair",
    "GaussianPair",
    "JoinedPair",
    "LaplacePair",
    "LossQuantum",
    "Nodes",
    "Pair",
    "ReversedPair",
    "SubsampledPair",
    "WorstCasePair",
]
