"""Mechanisms: one file each, building dominating pairs and nothing else. Each is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.mechanisms.above_threshold import AboveThreshold as AboveThreshold
    from hockeystick.mechanisms.approximate_dp import ApproximateDP as ApproximateDP
    from hockeystick.mechanisms.arrays import compose_arrays as compose_arrays
    from hockeystick.mechanisms.base import Mechanism as Mechanism
    from hockeystick.mechanisms.best_of import BestOf as BestOf
    from hockeystick.mechanisms.best_of import select_best as select_best
    from hockeystick.mechanisms.binomial import Binomial as Binomial
    from hockeystick.mechanisms.concentrated_dp import RenyiDP as RenyiDP
    from hockeystick.mechanisms.concentrated_dp import ZeroConcentratedDP as ZeroConcentratedDP
    from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from hockeystick.mechanisms.discrete_laplace import Geometric as Geometric
    from hockeystick.mechanisms.discrete_pair import DiscretePair as DiscretePair
    from hockeystick.mechanisms.exponential import ExponentialMechanism as ExponentialMechanism
    from hockeystick.mechanisms.gaussian import Gaussian as Gaussian
    from hockeystick.mechanisms.gaussian_dp import GaussianDP as GaussianDP
    from hockeystick.mechanisms.gaussian_mixture import GaussianMixture as GaussianMixture
    from hockeystick.mechanisms.laplace import Laplace as Laplace
    from hockeystick.mechanisms.matrix import CorrelatedNoise as CorrelatedNoise
    from hockeystick.mechanisms.matrix import cyclic_matrix_mechanism as cyclic_matrix_mechanism
    from hockeystick.mechanisms.matrix import matrix_mechanism as matrix_mechanism
    from hockeystick.mechanisms.matrix import strategy_sensitivity as strategy_sensitivity
    from hockeystick.mechanisms.matrix_bins import binned_matrix_mechanism as binned_matrix_mechanism
    from hockeystick.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from hockeystick.mechanisms.report_noisy_max import PermuteAndFlip as PermuteAndFlip
    from hockeystick.mechanisms.report_noisy_max import ReportNoisyMax as ReportNoisyMax
    from hockeystick.mechanisms.shuffled_reports import ShuffledReports as ShuffledReports
    from hockeystick.mechanisms.staircase import Staircase as Staircase
    from hockeystick.mechanisms.user_defined import UserDefined as UserDefined
    from hockeystick.mechanisms.user_defined_curve import UserDefinedCurve as UserDefinedCurve

attach(
    __name__,
    {
        "hockeystick.mechanisms.above_threshold": "AboveThreshold",
        "hockeystick.mechanisms.approximate_dp": "ApproximateDP",
        "hockeystick.mechanisms.arrays": "compose_arrays",
        "hockeystick.mechanisms.base": "Mechanism",
        "hockeystick.mechanisms.best_of": "BestOf select_best",
        "hockeystick.mechanisms.binomial": "Binomial",
        "hockeystick.mechanisms.concentrated_dp": "RenyiDP ZeroConcentratedDP",
        "hockeystick.mechanisms.discrete_gaussian": "DiscreteGaussian",
        "hockeystick.mechanisms.discrete_laplace": "DiscreteLaplace Geometric",
        "hockeystick.mechanisms.discrete_pair": "DiscretePair",
        "hockeystick.mechanisms.exponential": "ExponentialMechanism",
        "hockeystick.mechanisms.gaussian": "Gaussian",
        "hockeystick.mechanisms.gaussian_dp": "GaussianDP",
        "hockeystick.mechanisms.gaussian_mixture": "GaussianMixture",
        "hockeystick.mechanisms.laplace": "Laplace",
        "hockeystick.mechanisms.matrix": (
            "CorrelatedNoise cyclic_matrix_mechanism matrix_mechanism strategy_sensitivity"
        ),
        "hockeystick.mechanisms.matrix_bins": "binned_matrix_mechanism",
        "hockeystick.mechanisms.randomized_response": "RandomizedResponse",
        "hockeystick.mechanisms.report_noisy_max": "PermuteAndFlip ReportNoisyMax",
        "hockeystick.mechanisms.shuffled_reports": "ShuffledReports",
        "hockeystick.mechanisms.staircase": "Staircase",
        "hockeystick.mechanisms.user_defined": "UserDefined",
        "hockeystick.mechanisms.user_defined_curve": "UserDefinedCurve",
    },
)
