"""The accountant in jax-privacy itself: training analyses, calibration, execution plans."""

from __future__ import annotations

import dp_accounting
import pytest
from jax_privacy.accounting import analysis, calibrate
from jax_privacy.experimental import accounting, execution_plan

import hockeystick as hs
from hockeystick.integrations.dp_accounting import HockeystickAccountant
from hockeystick.integrations.jax_privacy import HockeystickAccountantConfig

SPECIAL = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


def test_a_training_analysis_gives_the_certified_upper_side() -> None:
    accountant = analysis.DpsgdTrainingAccountant(HockeystickAccountantConfig())
    params = analysis.DpParams(noise_multipliers=1.0, num_samples=50_000, delta=1e-5, batch_size=500)
    assert accountant.compute_epsilon(0, params) == 0.0
    whole = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000).epsilon(1e-5)
    assert accountant.compute_epsilon(2000, params) == whole.upper


def test_noise_is_calibrated_to_end_below_the_target() -> None:
    accountant = analysis.DpsgdTrainingAccountant(HockeystickAccountantConfig())
    noise = calibrate.calibrate_noise_multiplier(
        target_epsilon=1.0,
        accountant=accountant,
        batch_sizes=10,
        num_updates=1000,
        num_samples=1000,
        target_delta=1e-6,
        tol=1e-4,
    )
    proved = hs.account(hs.Gaussian(noise).poisson(0.01) * 1000).epsilon(1e-6)
    assert 1.0 - 1e-2 < proved.lower <= proved.upper <= 1.0


def test_an_execution_plan_takes_the_accountant_for_its_calibration() -> None:
    plan = execution_plan.BandMFExecutionPlanConfig(
        iterations=12,
        strategy=[1.0, 0.5, 0.25],
        epsilon=2.0,
        delta=1e-6,
        sampling_prob=0.1,
        accountant=HockeystickAccountant(SPECIAL),
    ).plan
    run = hs.from_dp_event(plan.dp_event, "zero-out")
    ((step, count),) = run.steps
    assert (count, step.rate) == (4, 0.1)
    proved = hs.account(run, "zero-out").epsilon(1e-6)
    assert 2.0 - 1e-3 < proved.lower <= proved.upper <= 2.0


ADD_REMOVE, REPLACE = (
    dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    dp_accounting.NeighboringRelation.REPLACE_ONE,
)
EVENTS = [
    (accounting.dpsgd_event(1.0, 100, sampling_prob=0.1), ADD_REMOVE, hs.Gaussian(1.0).poisson(0.1) * 100),
    (
        accounting.amplified_bandmf_event(1.0, 100, num_bands=4, sampling_prob=0.1),
        ADD_REMOVE,
        hs.Gaussian(1.0).poisson(0.1) * 25,
    ),
    (
        accounting.truncated_dpsgd_event(1.0, 100, sampling_prob=0.1, num_examples=1000, truncated_batch_size=120),
        ADD_REMOVE,
        hs.Gaussian(1.0).poisson(0.1, population=1000, largest_batch=120) * 100,
    ),
    (
        accounting.fixed_dpsgd_event(1.0, 100, dataset_size=1000, batch_size=10, replace=False),
        REPLACE,
        hs.Gaussian(1.0).without_replacement(batch_size=10, population=1000) * 100,
    ),
]


@pytest.mark.parametrize(("event", "relation", "meant"), EVENTS)
def test_its_events_are_read(event: dp_accounting.DpEvent, relation: object, meant: hs.Composition) -> None:
    assert HockeystickAccountant(relation).compose(event).composition == meant
