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
    from hockeystick.mechanisms import (
        ApproximateDP,
        Binomial,
        DiscreteGaussian,
        DiscreteLaplace,
        DiscretePair,
        Gaussian,
        GaussianDP,
        GaussianMixture,
        Geometric,
        Laplace,
        RandomizedResponse,
        Staircase,
        UserDefined,
        compose_arrays,
        cyclic_matrix_mechanism,
        matrix_mechanism,
        strategy_sensitivity,
    )
    from hockeystick.odometer import Odometer
    from hockeystick.readouts.trade_off import TradeOff
    from hockeystick.state import StateError
    from hockeystick.sweep import Sweep, sweep

__all__ = [
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
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "Geometric",
    "HockeystickError",
    "Laplace",
    "Odometer",
    "PrecisionError",
    "PrivacyCurve",
    "RandomizedResponse",
    "Staircase",
    "StateError",
    "Step",
    "Sweep",
    "TradeOff",
    "UnknownPairError",
    "UnreachableTargetError",
    "UserDefined",
    "__version__",
    "account",
    "accountants",
    "audit",
    "calibrate",
    "compose",
    "compose_arrays",
    "cyclic_matrix_mechanism",
    "dpsgd",
    "filters",
    "ledger",
    "matrix_mechanism",
    "plots",
    "renyi",
    "spec",
    "strategy_sensitivity",
    "sweep",
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
        "hockeystick.mechanisms": (
            "ApproximateDP",
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
            "compose_arrays",
            "cyclic_matrix_mechanism",
            "matrix_mechanism",
            "strategy_sensitivity",
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
