"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

# what every law can make of itself
from hockeystick.laws.joined import JoinedPair as JoinedPair
from hockeystick.laws.reversed import ReversedPair as ReversedPair
from hockeystick.laws.subsampled import SubsampledPair as SubsampledPair
from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.laws.base import CellMasses as CellMasses
    from hockeystick.laws.base import LossQuantum as LossQuantum
    from hockeystick.laws.base import Nodes as Nodes
    from hockeystick.laws.base import Pair as Pair
    from hockeystick.laws.binomial import BinomialPair as BinomialPair
    from hockeystick.laws.bounded_range import BoundedRangePair as BoundedRangePair
    from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair as DiscreteGaussianPair
    from hockeystick.laws.discrete_laplace import DiscreteLaplacePair as DiscreteLaplacePair
    from hockeystick.laws.gaussian import GaussianPair as GaussianPair
    from hockeystick.laws.known_by_moments import ConcentratedPair as ConcentratedPair
    from hockeystick.laws.known_by_moments import RenyiPair as RenyiPair
    from hockeystick.laws.labelled import LabelledPair as LabelledPair
    from hockeystick.laws.laplace import LaplacePair as LaplacePair
    from hockeystick.laws.mixture import GaussianMixturePair as GaussianMixturePair
    from hockeystick.laws.selected import SelectedPair as SelectedPair
    from hockeystick.laws.staircase import StaircasePair as StaircasePair
    from hockeystick.laws.stated import ContinuousPair as ContinuousPair
    from hockeystick.laws.vectors import DiscretePair as DiscretePair
    from hockeystick.laws.worst_case import WorstCasePair as WorstCasePair

# every other law is loaded where it is first made: each command and answer needs few of them
attach(
    __name__,
    {
        "hockeystick.laws.base": "CellMasses LossQuantum Nodes Pair",
        "hockeystick.laws.binomial": "BinomialPair",
        "hockeystick.laws.bounded_range": "BoundedRangePair",
        "hockeystick.laws.discrete_gaussian": "DiscreteGaussianPair",
        "hockeystick.laws.discrete_laplace": "DiscreteLaplacePair",
        "hockeystick.laws.gaussian": "GaussianPair",
        "hockeystick.laws.joined": "JoinedPair",
        "hockeystick.laws.known_by_moments": "ConcentratedPair RenyiPair",
        "hockeystick.laws.labelled": "LabelledPair",
        "hockeystick.laws.laplace": "LaplacePair",
        "hockeystick.laws.mixture": "GaussianMixturePair",
        "hockeystick.laws.reversed": "ReversedPair",
        "hockeystick.laws.selected": "SelectedPair",
        "hockeystick.laws.staircase": "StaircasePair",
        "hockeystick.laws.stated": "ContinuousPair",
        "hockeystick.laws.subsampled": "SubsampledPair",
        "hockeystick.laws.vectors": "DiscretePair",
        "hockeystick.laws.worst_case": "WorstCasePair",
    },
)
