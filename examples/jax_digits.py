"""jax-privacy on handwritten digits, accounted with certified epsilons: train, checkpoint, resume, write a receipt.

Switching is one line:

    -ACCOUNTANT = dp_accounting.pld.PLDAccountant()
    +ACCOUNTANT = HockeystickAccountant()

Run: ``pip install 'hockeystick[jax-privacy]' scikit-learn``, then ``python examples/jax_digits.py``. It writes to
``out/``.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, clipping
from jax_privacy.experimental import accounting
from sklearn.datasets import load_digits

import hockeystick as hs
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.integrations.dp_accounting import HockeystickAccountant

ACCOUNTANT = HockeystickAccountant()  # was: dp_accounting.pld.PLDAccountant()

EPOCHS, BATCHES, RATE, TARGET, DELTA = 3, 28, 1 / 28, 3.0, 1e-5
WIDTH = 128  # batches are padded to a multiple of this
OUT = Path("out")

Params = dict[str, Any]


def noise_for_target() -> float:
    """The noise multiplier with which the whole run meets the target, found by dp-accounting's own search."""
    return float(
        dp_accounting.calibrate_dp_mechanism(
            lambda: copy.deepcopy(ACCOUNTANT), lambda noise: event(noise, EPOCHS), TARGET, DELTA
        )
    )


def event(noise: float, epochs: int) -> dp_accounting.DpEvent:
    """What so many epochs release, in jax-privacy's words."""
    return accounting.dpsgd_event(noise, epochs * BATCHES, sampling_prob=RATE)


def spent(noise: float, epochs: int) -> float:
    """Epsilon after so many epochs."""
    return float(copy.deepcopy(ACCOUNTANT).compose(event(noise, epochs)).get_epsilon(DELTA))


def loss(params: Params, images: Any, labels: Any) -> Any:
    """Cross-entropy of a linear model, of a batch of any size."""
    logits = images @ params["weights"] + params["bias"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(labels.shape[0]), labels])


GRADIENT = jax.jit(clipping.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2)))


def epoch(params: Params, noise: float, seed: int) -> Params:
    """One epoch: Poisson samples, clipped gradients summed, noise, a step."""
    images, labels = load_digits(return_X_y=True)
    sampler = batch_selection.CyclicPoissonSampling(
        sampling_prob=RATE, iterations=BATCHES, partition_type=batch_selection.PartitionType.INDEPENDENT
    )
    rng = np.random.default_rng(seed)  # a real run draws its samples and noise from a secure generator
    for chosen in sampler.batch_iterator(len(images), rng=rng):
        padded = batch_selection.pad_to_multiple_of(chosen, WIDTH)  # one shape, compiled once; -1 stands for no example
        gradient = GRADIENT(params, images[padded] / 16, labels[padded], is_padding_example=padded == -1)
        noisy = jax.tree.map(lambda leaf: leaf + noise * rng.standard_normal(leaf.shape), gradient)
        params = jax.tree.map(lambda leaf, step: leaf - 0.5 * step / (RATE * 1797), params, noisy)
    accuracy = float(jnp.mean(jnp.argmax(images / 16 @ params["weights"] + params["bias"], axis=1) == labels))
    print(f"accuracy {accuracy:.2f}", end="; ")
    return params


def first_epoch() -> None:
    """Train one epoch, and save."""
    OUT.mkdir(exist_ok=True)
    noise = noise_for_target()
    print(f"noise multiplier {noise:.4f} meets epsilon {TARGET:g} after {EPOCHS} epochs")
    params: Params = {"weights": jnp.zeros((64, 10)), "bias": jnp.zeros(10)}
    params = epoch(params, noise, seed=0)
    print(f"after epoch 1: epsilon {spent(noise, 1):.4f} at delta {DELTA:g}")

    state = {"epochs": 1, "noise": noise, "params": {name: np.asarray(leaf).tolist() for name, leaf in params.items()}}
    (OUT / "digits.json").write_text(json.dumps(state), encoding="utf-8")


def other_epochs() -> None:
    """Resume, train the rest, and write the receipt."""
    saved = json.loads((OUT / "digits.json").read_text(encoding="utf-8"))
    params: Params = {name: jnp.asarray(leaf) for name, leaf in saved["params"].items()}
    noise = saved["noise"]
    for done in range(saved["epochs"] + 1, EPOCHS + 1):
        params = epoch(params, noise, seed=done)
        print(f"after epoch {done}: epsilon {spent(noise, done):.4f} at delta {DELTA:g}")

    run = hs.from_dp_event(event(noise, EPOCHS))
    print(f"spent {spent(noise, EPOCHS):.5f}; accounted at once {hs.account(run).epsilon(DELTA).sides[1]:.5f}")
    circumstances = hs.spec.Circumstances(examples=1797, batches="poisson", clipping_norm=1.0, tuning="none")
    made = hs.spec.of_run(run, delta=DELTA, title="Digits, jax-privacy", circumstances=circumstances)
    (OUT / "jax-receipt.html").write_text(page(receipt(made)), encoding="utf-8")
    print(f"receipt: {OUT / 'jax-receipt.html'}")


if __name__ == "__main__":
    if sys.argv[1:] == ["resume"]:
        other_epochs()
    else:
        first_epoch()
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "resume"], check=True)  # noqa: S603 - itself, in a new process
