"""The Opacus accountant in Opacus itself: training, checkpoints, targets, refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opacus
import pytest
import torch
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.schedulers import ExponentialGradClip, ExponentialNoise
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import hockeystick as hs
from hockeystick.integrations.opacus import HockeystickAccountant, PrivacyEngine, noise_multiplier_for

DELTA, RATE = 1e-5, 1 / 29  # 1797 digits in batches of 64
DRAWN = 578525 / 2**24  # the first multiple of 2^-24 above: what torch's float32 numbers make of the rate
RESUMED = """
import sys
sys.path.insert(0, sys.argv[2])
from test_opacus import train
print(repr(train(epochs=2, resume=sys.argv[1])))
"""


def parts() -> dict[str, Any]:
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
    model = torch.nn.Linear(64, 10)
    return {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": DataLoader(data, batch_size=64, shuffle=True),
        "max_grad_norm": 1.0,
    }


def train(*, epochs: int, resume: str | None = None, save: Path | None = None, noise: float = 1.0) -> float:
    engine = opacus.PrivacyEngine(accountant="hockeystick")
    model, optimizer, loader = engine.make_private(**parts(), noise_multiplier=noise)
    if resume is not None:
        engine.load_checkpoint(path=resume, module=model, optimizer=optimizer)
    run_epochs(model, optimizer, loader, epochs)
    if save is not None:
        engine.save_checkpoint(path=save, module=model, optimizer=optimizer)
    return float(engine.get_epsilon(DELTA))


def run_epochs(model: Any, optimizer: Any, loader: Any, epochs: int, after: Callable[[], None] = lambda: None) -> None:
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        after()


def whole(noise: float, steps: int) -> hs.Bound:
    return hs.account(hs.Gaussian(noise).poisson(DRAWN) * steps).epsilon(DELTA)


def test_a_run_resumed_in_another_process_costs_what_the_whole_run_costs(tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint.pt"
    first = train(epochs=1, save=saved)
    second = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RESUMED, str(saved), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert first == whole(1.0, 29).upper
    assert float(second.stdout.splitlines()[-1]) == whole(1.0, 87).upper


@pytest.mark.parametrize("engine", [PrivacyEngine, opacus.PrivacyEngine])
def test_a_target_is_met_at_the_end_of_training_and_closely(engine: type) -> None:
    ours = engine is PrivacyEngine
    made = engine() if ours else engine(accountant="hockeystick")
    closely = {} if ours else {"epsilon_tolerance": 1e-4}
    model, optimizer, loader = made.make_private_with_epsilon(
        **parts(), target_epsilon=3.0, target_delta=DELTA, epochs=3, **closely
    )
    run_epochs(model, optimizer, loader, 3)
    assert 3.0 - 1e-3 <= made.get_epsilon(DELTA) <= 3.0
    assert made.get_epsilon(DELTA) == whole(optimizer.noise_multiplier, 87).upper


def test_what_was_spent_before_counts_towards_the_target() -> None:
    made = PrivacyEngine()
    made.accountant.history = [(1.0, RATE, 10)]
    model, optimizer, loader = made.make_private_with_epsilon(
        **parts(), target_epsilon=3.0, target_delta=DELTA, epochs=1
    )
    run_epochs(model, optimizer, loader, 1)
    assert 3.0 - 1e-3 <= made.get_epsilon(DELTA) <= 3.0


def test_a_noise_schedule_is_accounted_step_by_step() -> None:
    engine = opacus.PrivacyEngine(accountant="hockeystick")
    model, optimizer, loader = engine.make_private(**parts(), noise_multiplier=1.0)
    schedule = ExponentialNoise(optimizer, gamma=0.9)
    run_epochs(model, optimizer, loader, 2, schedule.step)
    first, second = (noise for noise, _, _ in engine.accountant.history)
    assert first > second
    run = hs.Gaussian(first).poisson(DRAWN) * 29 + hs.Gaussian(second).poisson(DRAWN) * 29
    assert engine.get_epsilon(DELTA) == hs.account(run).epsilon(DELTA).upper
    assert len(engine.accountant) == 58


def test_the_noise_for_a_target_is_found_by_opacus_and_directly() -> None:
    theirs = get_noise_multiplier(
        target_epsilon=3.0, target_delta=DELTA, sample_rate=RATE, epochs=3, accountant="hockeystick"
    )
    ours = noise_multiplier_for(target_epsilon=3.0, target_delta=DELTA, sample_rate=RATE, epochs=3)
    assert ours.unsafe < ours.value <= theirs
    assert theirs - ours.value < 0.01
    assert whole(ours.value, 87).upper <= 3.0 < whole(ours.unsafe, 87).lower


def test_steps_of_an_epoch_that_float64_makes_a_hair_short_are_all_counted() -> None:
    batches = next(n for n in range(2, 1000) if int(3 / (1 / n)) < 3 * n)  # where Opacus calibrates for a step too few
    found = noise_multiplier_for(target_epsilon=1.0, target_delta=DELTA, sample_rate=1 / batches, epochs=3)
    assert found.curve.composition.total_steps == 3 * batches


def test_loaders_that_do_not_sample_are_refused() -> None:
    for engine in (opacus.PrivacyEngine(accountant="hockeystick"), PrivacyEngine()):
        with pytest.raises(ValueError, match="Poisson"):
            engine.make_private(**parts(), noise_multiplier=1.0, poisson_sampling=False)


def test_loaders_that_sample_otherwise_than_opacus_says_are_refused() -> None:
    data = TensorDataset(torch.zeros(100, 64), torch.zeros(100, dtype=torch.int64))
    sampler = UniformWithReplacementSampler(num_samples=100, sample_rate=0.3, steps=10)
    own = {"data_loader": DataLoader(data, batch_sampler=sampler), "noise_multiplier": 1.0}
    with pytest.raises(ValueError, match=r"at the rate 0\.3, but Opacus tells its accountants 0\.1"):
        PrivacyEngine().make_private(**parts() | own, poisson_sampling=False)
    with pytest.raises(ValueError, match="rand_on_empty=True is not proved"):
        PrivacyEngine().make_private(**parts() | own, rand_on_empty=True)
    assert PrivacyEngine().make_private(**parts() | own)[2].batch_sampler.sample_rate == 0.1


def test_a_rate_is_the_probability_that_torch_draws_a_record_with() -> None:
    accountant = HockeystickAccountant()
    accountant.history = [(1.0, 1e-7, 100), (1.0, 0.5, 1), (1.0, 1e-30, 1), (1.0, 1.0, 1)]
    rates = [step.rate for step, _ in accountant.composition.steps]
    assert rates == [2 / 2**24, 0.5, 1 / 2**24, 1.0]


@pytest.mark.parametrize("way", [{"grad_sample_mode": "ghost"}, {"clipping": "per_layer", "max_grad_norm": [0.6, 0.8]}])
def test_noise_for_a_smaller_norm_than_gradients_are_clipped_to_is_refused(way: dict[str, Any]) -> None:
    engine = PrivacyEngine()
    made = engine.make_private(**parts() | way, noise_multiplier=1.0, criterion=torch.nn.CrossEntropyLoss())
    model, optimizer, loss = made[0], made[1], made[2] if len(made) == 4 else torch.nn.CrossEntropyLoss()
    schedule = ExponentialGradClip(optimizer, gamma=0.5)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(torch.ones(3, 64)), torch.zeros(3, dtype=torch.int64)).backward()
        optimizer.step()

    step()
    schedule.step()
    with pytest.raises(ValueError, match=r"the noise is for max_grad_norm 0\.5, but gradients are clipped to 1"):
        step()
    assert engine.accountant.history == [(1.0, RATE, 1)]


def test_a_target_is_met_where_float64_leaves_the_loader_a_batch_too_few() -> None:
    made, data = PrivacyEngine(), TensorDataset(torch.zeros(93, 64), torch.zeros(93, dtype=torch.int64))
    given = parts() | {"data_loader": DataLoader(data)}
    model, optimizer, loader = made.make_private_with_epsilon(**given, target_epsilon=3.0, target_delta=DELTA, epochs=1)
    run_epochs(model, optimizer, loader, 1)
    assert made.accountant.history[0][1:] == (1 / 92, 92)
    assert 3.0 - 1e-3 <= made.get_epsilon(DELTA) <= 3.0


def test_clipping_norms_that_follow_the_data_are_refused() -> None:
    engine = opacus.PrivacyEngine(accountant="hockeystick")
    quantile = {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "unclipped_num_std": 0.6}
    model, optimizer, loader = engine.make_private(
        **parts(), noise_multiplier=1.0, clipping="adaptive", max_clipbound=10.0, min_clipbound=0.1, **quantile
    )
    with pytest.raises(ValueError, match="adaptive clipping"):
        run_epochs(model, optimizer, loader, 1)
    assert engine.accountant.history == []
    ghost = PrivacyEngineAdaptiveClipping(accountant="hockeystick")
    loss = torch.nn.CrossEntropyLoss()
    model, optimizer, criterion, loader = ghost.make_private(
        **parts(), noise_multiplier=1.0, grad_sample_mode="ghost", criterion=loss
    )
    images, labels = next(iter(loader))
    criterion(model(images), labels).backward()
    with pytest.raises(ValueError, match="adaptive clipping"):
        optimizer.step()
    assert ghost.accountant.history == []


def test_batches_accumulated_for_one_step_are_a_binomial_mixture() -> None:
    accountant = HockeystickAccountant()

    class Accumulated:
        noise_multiplier, accumulated_iterations = 1.0, 4

    hook = accountant.get_optimizer_hook_fn(RATE)
    for _ in range(10):
        hook(Accumulated())
    mixture = hs.GaussianMixture.poisson_group(1.0, rate=DRAWN, size=4) * 10
    assert accountant.history == [(1.0, RATE, 10, 4)]
    assert accountant.get_epsilon(DELTA) == hs.account(mixture).epsilon(DELTA).upper
    pooled = hs.account(hs.Gaussian(1.0).poisson(4 * DRAWN) * 10).epsilon(DELTA).lower
    assert accountant.bound(DELTA).lower > pooled, "one sample of four times the rate would say too little"


def test_no_noise_is_no_privacy_and_no_steps_cost_nothing() -> None:
    accountant = create_accountant("hockeystick")
    assert accountant.get_epsilon(DELTA) == 0.0
    accountant.step(noise_multiplier=0.0, sample_rate=RATE)
    assert accountant.get_epsilon(DELTA) == float("inf")


@pytest.mark.parametrize("bad", [{"noise_multiplier": -1.0}, {"noise_multiplier": float("nan")}, {"sample_rate": 1.5}])
def test_a_step_that_is_none_is_refused_and_not_recorded(bad: dict[str, float]) -> None:
    accountant = HockeystickAccountant()
    with pytest.raises(ValueError, match=next(iter(bad))):
        accountant.step(**{"noise_multiplier": 1.0, "sample_rate": RATE} | bad)
    assert accountant.history == []


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"history": []},
        {"history": [], "mechanism": "rdp"},
        {"history": [(1.0, 0.1)], "mechanism": "hockeystick"},
        {"history": [(1.0, 0.1, 0)], "mechanism": "hockeystick"},
        {"history": [(1.0, 0.1, 1, 2.5)], "mechanism": "hockeystick"},
    ],
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(state: Any) -> None:
    accountant = HockeystickAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=RATE)
    with pytest.raises(ValueError, match="state"):
        accountant.load_state_dict(state)
    assert accountant.history == [(1.0, RATE, 1)]
