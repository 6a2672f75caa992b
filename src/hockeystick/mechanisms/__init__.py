"""Mechanisms: one file each, building dominating pairs and nothing else."""

from hockeystick.mechanisms.approximate_dp import ApproximateDP
from hockeystick.mechanisms.arrays import compose_arrays
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.binomial import Binomial
from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.discrete_pair import DiscretePair
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.gaussian_dp import GaussianDP
from hockeystick.mechanisms.gaussian_mixture import GaussianMixture
from hockeystick.mechanisms.laplace import Laplace
from hockeystick.mechanisms.randomized_response import RandomizedResponse
from hockeystick.mechanisms.staircase import Staircase
from hockeystick.mechanisms.user_defined import UserDefined
from hockeystick.mechanisms.user_defined_curve import UserDefinedCurve

__all__ = [
    "ApproximateDP",
    "Binomial",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "Laplace",
    "Mechanism",
    "RandomizedResponse",
    "Staircase",
    "UserDefined",
    "UserDefinedCurve",
    "compose_arrays",
]
