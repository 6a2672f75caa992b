"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

from hockeystick.laws.base import CellMasses, LossQuantum, Nodes, Pair
from hockeystick.laws.binomial import BinomialPair
from hockeystick.laws.bounded_range import BoundedRangePair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.known_by_moments import ConcentratedPair, RenyiPair
from hockeystick.laws.labelled import LabelledPair
from hockeystick.laws.laplace import LaplacePair
from hockeystick.laws.mixture import GaussianMixturePair
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.selected import SelectedPair
from hockeystick.laws.staircase import StaircasePair
from hockeystick.laws.stated import ContinuousPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.laws.worst_case import WorstCasePair

__all__ = [
    "BinomialPair",
    "BoundedRangePair",
    "CellMasses",
    "ConcentratedPair",
    "ContinuousPair",
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "DiscretePair",
    "GaussianMixturePair",
    "GaussianPair",
    "JoinedPair",
    "LabelledPair",
    "LaplacePair",
    "LossQuantum",
    "Nodes",
    "Pair",
    "RenyiPair",
    "ReversedPair",
    "SelectedPair",
    "StaircasePair",
    "SubsampledPair",
    "WorstCasePair",
]
