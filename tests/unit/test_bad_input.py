"""Bad input gets a clear error: what was given, what is allowed, what to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs

RUN = hs.Gaussian(1.0).poisson(0.01) * 10
NO_NOISE = hs.Gaussian(1e-4).poisson(0.3) * 5
NO_NOISE_ON_A_GROUP = hs.GaussianMixture.poisson_group(1e-7, rate=0.3, size=3) * 3
LATTICE = hs.accountants.Lattice(0.01)
FAR_APART = hs.DiscretePair((0.5, 0.5), (1e-300, 1.0 - 1e-300)) + hs.RandomizedResponse(0.50001) * 2**62
NEVER = hs.DiscretePair((1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: hs.Gaussian(math.nan), ValueError, "NaN"),
        (lambda: hs.Gaussian(-1.0), ValueError, "-1.0"),
        (lambda: hs.Gaussian(0.0), ValueError, "above 0"),
        (lambda: hs.Gaussian("1"), TypeError, "'1'"),
        (lambda: hs.Gaussian(math.inf), ValueError, "finite"),
        (lambda: hs.Gaussian(True), TypeError, "True"),
        (lambda: hs.Laplace(-2.0), ValueError, "-2.0"),
        (lambda: hs.Gaussian(1.0).poisson(0.0), ValueError, r"\(0, 1\]"),
        (lambda: hs.Gaussian(1.0).poisson(1.5), ValueError, "1.5"),
        (lambda: hs.Gaussian(1.0).poisson(math.nan), ValueError, "NaN"),
        (lambda: hs.Gaussian(1.0) * 0, ValueError, "at least 1"),
        (lambda: hs.Gaussian(1.0) * 2.5, TypeError, "must be an integer of at least 1, got 2.5"),
        (lambda: hs.Gaussian(1.0) * -3, ValueError, "-3"),
        (lambda: hs.account(RUN, "neighbours"), ValueError, "add-remove"),
        (lambda: hs.account(RUN, 3), TypeError, "add-remove"),
        (lambda: hs.account(RUN, tolerance=0.0), ValueError, "tolerance"),
        (lambda: hs.account("run"), TypeError, "composition"),
        (lambda: hs.account(RUN, accountant="certified"), TypeError, "accountant"),
        (lambda: hs.account(RUN).epsilon(-0.1), ValueError, r"\[0, 1\]"),
        (lambda: hs.account(RUN).epsilon(1.5), ValueError, "1.5"),
        (lambda: hs.account(RUN).epsilon(math.nan), ValueError, "NaN"),
        (lambda: hs.account(RUN).epsilon([0.1, math.nan]), ValueError, "NaN"),
        (lambda: hs.account(RUN).epsilon("1e-5"), TypeError, "delta"),
        (lambda: hs.account(RUN).delta(-1.0), ValueError, "at least 0"),
        (lambda: hs.account(RUN).delta(math.nan), ValueError, "NaN"),
        (lambda: hs.compose([]), ValueError, "at least one"),
        (lambda: hs.compose(hs.Gaussian(1.0)), TypeError, "list"),
        (lambda: hs.account(hs.GaussianDP(1.0).poisson(0.1), "substitute"), hs.UnknownPairError, "add-remove"),
        (lambda: hs.Gaussian(float), TypeError, "noise_multiplier must be a real number"),
        (lambda: hs.Gaussian(np.array("1")), TypeError, "noise_multiplier must be a real number"),
        (lambda: hs.Gaussian(np.array(True)), TypeError, "noise_multiplier must be a real number"),
        (lambda: hs.Gaussian(np.complex128(1.0)), TypeError, "noise_multiplier must be a real number"),
        (lambda: hs.Gaussian(np.str_("1")), TypeError, "noise_multiplier must be a real number"),
        (lambda: hs.Gaussian(1.0) * np.float16(0.5), TypeError, "integer of at least 1, got"),
        (lambda: hs.Gaussian(1.0) * 10**400, ValueError, r"at most 10\^100"),
        (lambda: hs.AboveThreshold(1.0, 1.0, positives=10**400), ValueError, r"at most 10\^100"),
        (lambda: hs.AboveThreshold(1e-320, 1e-320), ValueError, "threshold_scale and query_scale must leave"),
        (lambda: hs.DiscreteGaussian(1.0, sensitivity=10**400), ValueError, r"at most 10\^100"),
        (lambda: hs.DiscreteLaplace(1.0, sensitivity=2**31), ValueError, "at most 10,000,000"),
        (lambda: hs.DiscreteLaplace(2.2e-308), ValueError, "sensitivity over noise"),
        (lambda: hs.DiscreteGaussian(5e-324), ValueError, "sensitivity over noise"),
        (lambda: hs.GaussianMixture(1.0, (0.0, 1e155), probabilities=(0.5, 0.5)), ValueError, "over noise"),
        (lambda: hs.GaussianMixture(1e-160, (0.0, 1.0), probabilities=(0.5, 0.5)), ValueError, "over noise"),
        (lambda: hs.ZeroConcentratedDP(1.7e308), ValueError, "rho must be at most 1e279"),
        (lambda: hs.ApproximateDP(1.7e308), ValueError, "at most 1e"),
        (lambda: hs.RenyiDP((2.0,), (1.7e308,)), ValueError, "at most 1e"),
        (lambda: hs.DiscretePair((10**400, 0.5), (0.5, 0.5)), ValueError, "every entry of p"),
        (lambda: hs.DiscretePair((Fraction(10**400), 0.5), (0.5, 0.5)), ValueError, "probabilities"),
        (lambda: hs.UserDefinedCurve(lambda _: (0.0, 1.0), infinite=[0.5]), TypeError, "infinite must be"),  # type: ignore[arg-type]
        (lambda: hs.GaussianMixture.poisson_group(1.0, rate=0.1, size=2**40), ValueError, "at most 1,000"),
        (lambda: hs.account(RUN).epsilon(np.ma.array([1e-5, 0.1], mask=[False, True])), ValueError, "masked values"),
        (lambda: hs.accountants.Lattice(spacing=5e-324), ValueError, "spacing must be between"),
        (lambda: hs.account(RUN, accountant=hs.accountants.Lattice(1e-12)).delta(1.0), hs.PrecisionError, "larger"),
        (lambda: hs.accountants.Fourier(1e-320, 10.0), ValueError, "spacing must be between"),
        (lambda: hs.accountants.Fourier(1e308, 10.0), ValueError, "spacing must be between"),
        (lambda: hs.accountants.Fourier(1e-100, 1e100), ValueError, "grid points; at most"),
        (lambda: hs.accountants.PRV(1e-320), ValueError, "epsilon_error must be between"),
        (lambda: hs.accountants.PRV(1e308), ValueError, "epsilon_error must be between"),
        (lambda: hs.account(RUN, accountant=hs.accountants.PRV(1e-12)).delta(1.0), hs.PrecisionError, "grid points"),
        (lambda: hs.account(RUN, accountant=hs.accountants.PRV(1e5)).delta(1.0), hs.PrecisionError, "nats apart"),
        (
            lambda: hs.account(NO_NOISE, accountant=hs.accountants.PRV()).delta(1.0),
            hs.PrecisionError,
            "allow an epsilon_error of [0-9]+, or accountants.Certified",
        ),
        (
            lambda: hs.account(hs.Gaussian(1e-20) * 5, accountant=hs.accountants.PRV()).delta(1.0),
            hs.PrecisionError,
            "grid points: use more noise, or accountants.Certified",
        ),
        (lambda: hs.account(FAR_APART, accountant=hs.accountants.PRV()).delta(1.0), hs.PrecisionError, "grid points"),
        (lambda: hs.account(NO_NOISE_ON_A_GROUP, accountant=LATTICE).delta(1.0), hs.PrecisionError, "use more noise"),
        (lambda: hs.account(NEVER, accountant=hs.accountants.PRV()).delta(1.0), hs.PrecisionError, "no loss"),
        (lambda: hs.accountants.MonteCarlo(1000, progress=True), TypeError, "progress must be a function"),  # type: ignore[arg-type]
        (lambda: hs.accountants.Exact(digits=2**40), ValueError, "at most 10,000"),
        (lambda: hs.compose(0.5), TypeError, "steps must be a sequence, got 0.5"),  # type: ignore[arg-type]
        (lambda: hs.compose({hs.Gaussian(1.0): 2000}), TypeError, r"steps must be a sequence, got \{Gaussian"),
        (lambda: hs.compose([(hs.Gaussian(1.0), 2, 3)]), TypeError, "pairs of a step and a count"),  # type: ignore[list-item]
        (lambda: hs.Composition(((hs.Gaussian(1.0),),)), TypeError, "pairs of a step and a count"),  # type: ignore[arg-type]
        (lambda: hs.Composition(hs.Gaussian(1.0)), TypeError, "steps must be a sequence, got Gaussian"),  # type: ignore[arg-type]
        (lambda: hs.GaussianMixture(1.0, {0.0, 1.0}, probabilities=(0.1, 0.9)), TypeError, "must be a sequence"),  # type: ignore[arg-type]
        (lambda: hs.RenyiDP(0.5, (1.0,)), TypeError, "orders must be a sequence, got 0.5"),  # type: ignore[arg-type]
        (lambda: hs.ShuffledReports(0.5, 3), TypeError, "rows must be a sequence, got 0.5"),  # type: ignore[arg-type]
        (lambda: hs.GaussianMixture(1.0, 0.5, probabilities=(1.0,)), TypeError, "sensitivities must be a sequence"),  # type: ignore[arg-type]
        (lambda: hs.account(RUN).group_epsilon([0.5], size=2), TypeError, r"delta must be .* got \[0.5\]"),  # type: ignore[arg-type]
        (lambda: hs.renyi(RUN, 10**400), TypeError, "orders must be"),
        (lambda: hs.renyi(RUN, 1.7e308), ValueError, r"at most 1e\+150"),
        (lambda: hs.renyi(hs.Gaussian(1e-140), 1e30), hs.PrecisionError, "ask lower orders"),
        (lambda: hs.renyi(hs.Gaussian(1e-140) * 10**30, 2.0), hs.PrecisionError, "ask lower orders"),
        (lambda: hs.filters.RenyiFilter(1.0, 1e-5, orders=2.0), TypeError, "orders must be a sequence, got 2.0"),  # type: ignore[arg-type]
        (lambda: hs.account(hs.Gaussian(1.0).random_allocation(steps=2**50)), hs.UnknownPairError, "1.09951e"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_extreme_answers_are_defined() -> None:
    curve = hs.account(RUN)
    assert curve.epsilon(1.0).upper == 0.0
    assert curve.delta(math.inf).upper == 0.0
    assert curve.epsilon(0.0).lower == math.inf
    assert curve.delta(np.array([0.0, math.inf])).upper[1] == 0.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-13, 744.0])
def test_epsilons_next_to_nothing_and_far_out_are_answered(epsilon: float) -> None:
    """Where few steps rarely draw the record: without a warning, which is an error here."""
    curve = hs.account(RUN)
    bound, whole = curve.delta(epsilon), curve.delta(0.0)
    assert 0.0 <= bound.lower <= bound.upper  # type: ignore[operator]
    assert bound.lower <= whole.upper  # type: ignore[operator]
    assert epsilon > 1.0 or bound.upper > 0.999 * whole.lower  # type: ignore[operator]


@pytest.mark.parametrize("prior", [5e-324, 0.5])
def test_the_bayes_risk_of_a_few_sampled_steps_is_read_where_epsilon_is_next_to_nothing(prior: float) -> None:
    risk = hs.account(RUN).bayes_risk(prior)
    assert 0.98 * prior <= risk.upper <= prior  # type: ignore[union-attr]


def test_a_tolerance_that_asks_for_nothing_is_answered() -> None:
    curve = hs.account(RUN, accountant=hs.accountants.Contour(1e20))
    assert curve.delta(1.0).lower <= hs.account(RUN).delta(1.0).upper


@pytest.mark.parametrize("noise", [0.02, 1e-20])
@pytest.mark.parametrize("mechanism", [hs.Gaussian, hs.Laplace])
def test_rounds_of_next_to_no_noise_are_refused_as_such(mechanism: Callable[[float], hs.Step], noise: float) -> None:
    step = mechanism(0.05 * noise).random_allocation(steps=4)  # type: ignore[attr-defined]
    with pytest.raises(hs.PrecisionError, match="hides next to nothing"):
        hs.account(step).delta(1.0)


def test_rounds_beyond_any_lattice_are_refused_before_memory_is_asked_for() -> None:
    with pytest.raises(hs.PrecisionError, match="lattice of more than"):
        hs.account(hs.Gaussian(1.0).random_allocation(steps=2**33)).delta(1e-3)


def test_a_largest_batch_far_from_the_expected_one_is_refused_before_anything_is_summed() -> None:
    step = hs.RandomizedResponse(0.75).poisson(0.1, largest_batch=3, population=2**53)
    with pytest.raises(hs.PrecisionError, match="too far from the expected one"):
        hs.account(step, "remove")
