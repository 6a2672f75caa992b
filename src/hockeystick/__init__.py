"""Certified numerical privacy accounting: how private a composition of mechanisms is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick import accountants as accountants
    from hockeystick import audit as audit
    from hockeystick import dpsgd as dpsgd
    from hockeystick import filters as filters
    from hockeystick import ledger as ledger
    from hockeystick._version import __version__ as __version__
    from hockeystick.account import account as account
    from hockeystick.accountants import renyi as renyi
    from hockeystick.app import plots as plots
    from hockeystick.app import spec as spec
    from hockeystick.bound import Bound as Bound
    from hockeystick.bound import Estimate as Estimate
    from hockeystick.calibrate import Calibration as Calibration
    from hockeystick.calibrate import UnreachableTargetError as UnreachableTargetError
    from hockeystick.calibrate import calibrate as calibrate
    from hockeystick.composition import Composition as Composition
    from hockeystick.composition import Step as Step
    from hockeystick.composition import compose as compose
    from hockeystick.curve import PrivacyCurve as PrivacyCurve
    from hockeystick.errors import ContradictionError as ContradictionError
    from hockeystick.errors import HockeystickError as HockeystickError
    from hockeystick.errors import PrecisionError as PrecisionError
    from hockeystick.errors import UnknownPairError as UnknownPairError
    from hockeystick.integrations.dp_events import UnprovedEventError as UnprovedEventError
    from hockeystick.integrations.dp_events import from_dp_event as from_dp_event
    from hockeystick.integrations.dp_events import to_dp_event as to_dp_event
    from hockeystick.laws.run_count import NegativeBinomialCount as NegativeBinomialCount
    from hockeystick.laws.run_count import PoissonCount as PoissonCount
    from hockeystick.mechanisms import AboveThreshold as AboveThreshold
    from hockeystick.mechanisms import ApproximateDP as ApproximateDP
    from hockeystick.mechanisms import Binomial as Binomial
    from hockeystick.mechanisms import DiscreteGaussian as DiscreteGaussian
    from hockeystick.mechanisms import DiscreteLaplace as DiscreteLaplace
    from hockeystick.mechanisms import DiscretePair as DiscretePair
    from hockeystick.mechanisms import ExponentialMechanism as ExponentialMechanism
    from hockeystick.mechanisms import Gaussian as Gaussian
    from hockeystick.mechanisms import GaussianDP as GaussianDP
    from hockeystick.mechanisms import GaussianMixture as GaussianMixture
    from hockeystick.mechanisms import Geometric as Geometric
    from hockeystick.mechanisms import Laplace as Laplace
    from hockeystick.mechanisms import PermuteAndFlip as PermuteAndFlip
    from hockeystick.mechanisms import RandomizedResponse as RandomizedResponse
    from hockeystick.mechanisms import RenyiDP as RenyiDP
    from hockeystick.mechanisms import ReportNoisyMax as ReportNoisyMax
    from hockeystick.mechanisms import ShuffledReports as ShuffledReports
    from hockeystick.mechanisms import Staircase as Staircase
    from hockeystick.mechanisms import UserDefined as UserDefined
    from hockeystick.mechanisms import UserDefinedCurve as UserDefinedCurve
    from hockeystick.mechanisms import ZeroConcentratedDP as ZeroConcentratedDP
    from hockeystick.mechanisms import binned_matrix_mechanism as binned_matrix_mechanism
    from hockeystick.mechanisms import compose_arrays as compose_arrays
    from hockeystick.mechanisms import cyclic_matrix_mechanism as cyclic_matrix_mechanism
    from hockeystick.mechanisms import matrix_mechanism as matrix_mechanism
    from hockeystick.mechanisms import select_best as select_best
    from hockeystick.mechanisms import strategy_sensitivity as strategy_sensitivity
    from hockeystick.odometer import Odometer as Odometer
    from hockeystick.readouts.trade_off import TradeOff as TradeOff
    from hockeystick.state import StateError as StateError
    from hockeystick.sweep import Sweep as Sweep
    from hockeystick.sweep import sweep as sweep

attach(
    __name__,
    {
        "hockeystick.accountants": "accountants renyi",
        "hockeystick._version": "__version__",
        "hockeystick.audit": "audit",
        "hockeystick.dpsgd": "dpsgd",
        "hockeystick.filters": "filters",
        "hockeystick.ledger": "ledger",
        "hockeystick.app.plots": "plots",
        "hockeystick.app.spec": "spec",
        "hockeystick.account": "account",
        "hockeystick.bound": "Bound Estimate",
        "hockeystick.calibrate": "Calibration UnreachableTargetError calibrate",
        "hockeystick.composition": "Composition Step compose",
        "hockeystick.curve": "PrivacyCurve",
        "hockeystick.errors": "ContradictionError HockeystickError PrecisionError UnknownPairError",
        "hockeystick.laws.run_count": "NegativeBinomialCount PoissonCount",
        "hockeystick.mechanisms": (
            "AboveThreshold ApproximateDP Binomial DiscreteGaussian DiscreteLaplace DiscretePair "
            "ExponentialMechanism Gaussian GaussianDP GaussianMixture Geometric Laplace PermuteAndFlip "
            "RandomizedResponse RenyiDP ReportNoisyMax ShuffledReports Staircase UserDefined UserDefinedCurve "
            "ZeroConcentratedDP binned_matrix_mechanism compose_arrays cyclic_matrix_mechanism "
            "matrix_mechanism select_best strategy_sensitivity"
        ),
        "hockeystick.integrations.dp_events": "UnprovedEventError from_dp_event to_dp_event",
        "hockeystick.odometer": "Odometer",
        "hockeystick.readouts.trade_off": "TradeOff",
        "hockeystick.state": "StateError",
        "hockeystick.sweep": "Sweep sweep",
    },
)
