"""Certified numerical privacy accounting: how private a composition of mechanisms is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick import accountants, audit, dpsgd, filters, ledger
    from hockeystick.account import account
    from hockeystick.accountants import renyi
    from hockeystick.app import plots, spec
    from hockeystick.bound import Bound, Estimate
    from hockeystick.calibrate import Calibration, UnreachableTargetError, calibrate
    from hockeystick.composition import Composition, Step, compose
    from hockeystick.curve import PrivacyCurve
    from hockeystick.errors import ContradictionError, HockeystickError, PrecisionError, UnknownPairError
    from hockeystick.integrations.dp_events import UnprovedEventError, from_dp_event, to_dp_event
    from hockeystick.mechanisms import (
        ApproximateDP,
        Binomial,
        DiscreteGaussian,
        DiscreteLaplace,
        DiscretePair,
        Gaussian,
        GaussianDP,
        GaussianMixture,
        Laplace,
        RandomizedResponse,
        Staircase,
        UserDefined,
        compose_arrays,
    )
    from hockeystick.odometer import Odometer, OdometerStateError
    from hockeystick.readouts.trade_off import TradeOff

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
    "HockeystickError",
    "Laplace",
    "Odometer",
    "OdometerStateError",
    "PrecisionError",
    "PrivacyCurve",
    "RandomizedResponse",
    "Staircase",
    "Step",
    "TradeOff",
    "UnknownPairError",
    "UnprovedEventError",
    "UnreachableTargetError",
    "UserDefined",
    "account",
    "accountants",
    "audit",
    "calibrate",
    "compose",
    "compose_arrays",
    "dpsgd",
    "filters",
    "from_dp_event",
    "ledger",
    "plots",
    "renyi",
    "spec",
    "to_dp_event",
]

attach(
    __name__,
    {
        "hockeystick.accountants": (
            "accountants",
            "renyi",
        ),
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
            "Laplace",
            "RandomizedResponse",
            "Staircase",
            "UserDefined",
            "compose_arrays",
        ),
        "hockeystick.integrations.dp_events": (
            "UnprovedEventError",
            "from_dp_event",
            "to_dp_event",
        ),
        "hockeystick.odometer": (
            "Odometer",
            "OdometerStateError",
        ),
        "hockeystick.readouts.trade_off": ("TradeOff",),
    },
)
