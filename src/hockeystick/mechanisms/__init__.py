"""Mechanisms: one file each, building dominating pairs and nothing else. Each is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.mechanisms.above_threshold import AboveThreshold
    from hockeystick.mechanisms.approximate_dp import ApproximateDP
    from hockeystick.mechanisms.arrays import compose_arrays
    from hockeystick.mechanisms.base import Mechanism
    from hockeystick.mechanisms.best_of import BestOf, select_best
    from hockeystick.mechanisms.binomial import Binomial
    from hockeystick.mechanisms.concentrated_dp import RenyiDP, ZeroConcentratedDP
    from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian
    from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace, Geometric
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

attach(
    __name__,
    {
        "hockeystick.mechanisms.above_threshold": ("AboveThreshold",),
        "hockeystick.mechanisms.approximate_dp": ("ApproximateDP",),
        "hockeystick.mechanisms.arrays": ("compose_arrays",),
        "hockeystick.mechanisms.base": ("Mechanism",),
        "hockeystick.mechanisms.best_of": (
            "BestOf",
            "select_best",
        ),
        "hockeystick.mechanisms.binomial": ("Binomial",),
        "hockeystick.mechanisms.concentrated_dp": (
            "RenyiDP",
            "ZeroConcentratedDP",
        ),
        "hockeystick.mechanisms.discrete_gaussian": ("DiscreteGaussian",),
        "hockeystick.mechanisms.discrete_laplace": (
            "DiscreteLaplace",
            "Geometric",
        ),
        "hockeystick.mechanisms.discrete_pair": ("DiscretePair",),
        "hockeystick.mechanisms.exponential": ("ExponentialMechanism",),
        "hockeystick.mechanisms.gaussian": ("Gaussian",),
        "hockeystick.mechanisms.gaussian_dp": ("GaussianDP",),
        "hockeystick.mechanisms.gaussian_mixture": ("GaussianMixture",),
        "hockeystick.mechanisms.laplace": ("Laplace",),
        "hockeystick.mechanisms.matrix": (
            "cyclic_matrix_mechanism",
            "matrix_mechanism",
            "strategy_sensitivity",
        ),
        "hockeystick.mechanisms.matrix_bins": ("binned_matrix_mechanism",),
        "hockeystick.mechanisms.randomized_response": ("RandomizedResponse",),
        "hockeystick.mechanisms.report_noisy_max": (
            "PermuteAndFlip",
            "ReportNoisyMax",
        ),
        "hockeystick.mechanisms.shuffled_reports": ("ShuffledReports",),
        "hockeystick.mechanisms.staircase": ("Staircase",),
        "hockeystick.mechanisms.user_defined": ("UserDefined",),
        "hockeystick.mechanisms.user_defined_curve": ("UserDefinedCurve",),
    },
)
