"""Mechanisms: one file each, building dominating pairs and nothing else."""

from hockeystick.mechanisms.above_threshold import AboveThreshold
from hockeystick.mechanisms.approximate_dp import ApproximateDP
from hockeystick.mechanisms.arrays import compose_arrays
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.best_of import BestOf, select_best
from hockeystick.mechanisms.binomial import Binomial
from hockeystick.mechanisms.concentrated_dp import RenyiDP, ZeroConcentratedDP
from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.discrete_pair import DiscretePair
from hockeystick.mechanisms.exponential import ExponentialMechanism
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.gaussian_dp import GaussianDP
from hockeystick.mechanisms.gaussian_mixture import GaussianMixture
from hockeystick.mechanisms.laplace import Laplace
from hockeystick.mechanisms.matrix import cyclic_matrix_mechanism, matrix_mechanism, strategy_sensitivity
from hockeystick.mechanisms.matrix_bins import binned_matrix_mechanism
from hockeystick.mechanisms.randomized_response import RandomizedResponse
from hockeystick.mechanisms.report_noisy_max import PermuteAndFlip, ReportNoisyMax
from hockeystick.mechanisms.shuffled_reports import ShuffledReports
from hockeystick.mechanisms.staircase import Staircase
from hockeystick.mechanisms.user_defined import UserDefined
from hockeystick.mechanisms.user_defined_curve import UserDefinedCurve

Geometric = DiscreteLaplace
"""The other name the field has for it. A second name of a class is an alias: it is read wherever the first one is."""

__all__ = [
    "AboveThreshold",
    "ApproximateDP",
    "BestOf",
    "Binomial",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "Geometric",
    "Laplace",
    "Mechanism",
    "PermuteAndFlip",
    "RandomizedResponse",
    "RenyiDP",
    "ReportNoisyMax",
    "ShuffledReports",
    "Staircase",
    "UserDefined",
    "UserDefinedCurve",
    "ZeroConcentratedDP",
    "binned_matrix_mechanism",
    "compose_arrays",
    "cyclic_matrix_mechanism",
    "matrix_mechanism",
    "select_best",
    "strategy_sensitivity",
]
