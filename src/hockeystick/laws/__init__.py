"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.laws.base import CellMasses, LossQuantum, Nodes, Pair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.laws.binomial import BinomialPair
    from hockeystick.laws.bounded_range import BoundedRangePair
    from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
    from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
    from hockeystick.laws.gaussian import GaussianPair
    from hockeystick.laws.known_by_moments import ConcentratedPair, RenyiPair
    from hockeystick.laws.labelled import LabelledPair
    from hockeystick.laws.laplace import LaplacePair
    from hockeystick.laws.mixture import GaussianMixturePair
    from hockeystick.laws.selected import SelectedPair
    from hockeystick.laws.staircase import StaircasePair
    from hockeystick.laws.stated import ContinuousPair
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

# every other law is loaded where it is first made: each command and answer needs few of them
attach(
    __name__,
    {
        "hockeystick.laws.binomial": ("BinomialPair",),
        "hockeystick.laws.bounded_range": ("BoundedRangePair",),
        "hockeystick.laws.discrete_gaussian": ("DiscreteGaussianPair",),
        "hockeystick.laws.discrete_laplace": ("DiscreteLaplacePair",),
        "hockeystick.laws.gaussian": ("GaussianPair",),
        "hockeystick.laws.known_by_moments": (
            "ConcentratedPair",
            "RenyiPair",
        ),
        "hockeystick.laws.labelled": ("LabelledPair",),
        "hockeystick.laws.laplace": ("LaplacePair",),
        "hockeystick.laws.mixture": ("GaussianMixturePair",),
        "hockeystick.laws.selected": ("SelectedPair",),
        "hockeystick.laws.staircase": ("StaircasePair",),
        "hockeystick.laws.stated": ("ContinuousPair",),
        "hockeystick.laws.vectors": ("DiscretePair",),
        "hockeystick.laws.worst_case": ("WorstCasePair",),
    },
)
