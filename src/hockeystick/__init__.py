"""Certified numerical privacy accounting: how private a composition of mechanisms is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick import accountants, audit, dpsgd, filters, ledger
    from hockeystick._version import __version__
    from hockeystick.account import account
    from hockeystick.accountants import renyi
    from hockeystick.app import plots, spec
    from hockeystick.bound import Bound, Estimate
    from hockeystick.calibrate import Calibration, UnreachableTargetError, calibrate
    from hockeystick.composition import Composition, Step, compose
    from hockeystick.curve import PrivacyCurve
    from hockeystick.errors import ContradictionError, HockeystickError, PrecisionError, UnknownPairError
    from hockeystick.integrations.dp_events import UnprovedEventError, from_dp_event, to_dp_event
    from hockeystick.laws.run_count import NegativeBinomialCount, PoissonCount
    from hockeystick.mechanisms import (
        AboveThreshold,
        ApproximateDP,
        Binomial,
        DiscreteGaussian,
        DiscreteLaplace,
        DiscretePair,
        ExponentialMechanism,
        Gaussian,
        GaussianDP,
        GaussianMixture,
        Geometric,
        Laplace,
        PermuteAndFlip,
        RandomizedResponse,
        RenyiDP,
        ReportNoisyMax,
        ShuffledReports,
        Staircase,
        UserDefined,
        UserDefinedCurve,
        ZeroConcentratedDP,
        compose_arrays,
        cyclic_matrix_mechanism,
        matrix_mechanism,
        select_best,
        strategy_sensitivity,
    )
    from hockeystick.odometer import Odometer
    from hockeystick.readouts.trade_off import TradeOff
    from hockeystick.state import StateError
    from hockeystick.sweep import Sweep, sweep

__all__ = [
    "AboveThreshold",
    "ApproximateDP",
    "Binomial",
    "Bound",
    "Calibration",
    "Composition",
    "ContradictionError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Estimate",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "Geometric",
    "HockeystickError",
    "Laplace",
    "NegativeBinomialCount",
    "Odometer",
    "PermuteAndFlip",
    "PoissonCount",
    "PrecisionError",
    "PrivacyCurve",
    "RandomizedResponse",
    "RenyiDP",
    "ReportNoisyMax",
    "ShuffledReports",
    "Staircase",
    "StateError",
    "Step",
    "Sweep",
    "TradeOff",
    "UnknownPairError",
    "UnprovedEventError",
    "UnreachableTargetError",
    "UserDefined",
    "UserDefinedCurve",
    "ZeroConcentratedDP",
    "__version__",
    "account",
    "accountants",
    "audit",
    "binned_matrix_mechanism",
    "calibrate",
    "compose",
    "compose_arrays",
    "cyclic_matrix_mechanism",
    "dpsgd",
    "filters",
    "from_dp_event",
    "ledger",
    "matrix_mechanism",
    "plots",
    "renyi",
    "select_best",
    "spec",
    "strategy_sensitivity",
    "sweep",
    "to_dp_event",
]

attach(
    __name__,
    {
        "hockeystick.accountants": (
            "accountants",
            "renyi",
        ),
        "hockeystick._version": ("__version__",),
        "hockeystick.audit": ("audit",),
        "hockeystick.dpsgd": ("dpsgd",),
        "hockeystick.filters": ("filters",),
        "hockeystick.ledger": ("ledger",),
        "hockeystick.app.plots": ("plots",),
        "hockeystick.app.spec": ("spec",),
        "hockeystick.account": ("account",),
        "hockeystick.bound": (
            "Bound",
            "Estimate",
        ),
        "hockeystick.calibrate": (
            "Calibration",
            "UnreachableTargetError",
            "calibrate",
        ),
        "hockeystick.composition": (
            "Composition",
            "Step",
            "compose",
        ),
        "hockeystick.curve": ("PrivacyCurve",),
        "hockeystick.errors": (
            "ContradictionError",
            "HockeystickError",
            "PrecisionError",
            "UnknownPairError",
        ),
        "hockeystick.laws.run_count": (
            "NegativeBinomialCount",
            "PoissonCount",
        ),
        "hockeystick.mechanisms": (
            "ApproximateDP",
            "ShuffledReports",
            "select_best",
            "ReportNoisyMax",
            "PermuteAndFlip",
            "ExponentialMechanism",
            "ZeroConcentratedDP",
            "RenyiDP",
            "AboveThreshold",
            "Binomial",
            "DiscreteGaussian",
            "DiscreteLaplace",
            "DiscretePair",
            "Gaussian",
            "GaussianDP",
            "GaussianMixture",
            "Geometric",
            "Laplace",
            "RandomizedResponse",
            "Staircase",
            "UserDefined",
            "UserDefinedCurve",
            "binned_matrix_mechanism",
            "compose_arrays",
            "cyclic_matrix_mechanism",
            "matrix_mechanism",
            "strategy_sensitivity",
        ),
        "hockeystick.integrations.dp_events": (
            "UnprovedEventError",
            "from_dp_event",
            "to_dp_event",
        ),
        "hockeystick.odometer": ("Odometer",),
        "hockeystick.readouts.trade_off": ("TradeOff",),
        "hockeystick.state": ("StateError",),
        "hockeystick.sweep": (
            "Sweep",
            "sweep",
        ),
    },
)
