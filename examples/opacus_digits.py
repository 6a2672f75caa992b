"""Opacus on handwritten digits, accounted with certified epsilons: train, checkpoint, resume, write a receipt.

Switching is one line:

    -from opacus import PrivacyEngine
    +from hockeystick.integrations.opacus import PrivacyEngine

Run: ``pip install 'hockeystick[opacus]' scikit-learn``, then ``python examples/opacus_digits.py``. It writes to
``out/``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import hockeystick as hs
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.integrations.opacus import PrivacyEngine

EPOCHS, BATCH, TARGET, DELTA = 3, 64, 3.0, 1e-5
OUT = Path("out")


def data() -> TensorDataset:
    """The 1797 digits that come with scikit-learn."""
    images, labels = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))


def private(engine: PrivacyEngine, *, noise_multiplier: float | None = None) -> Any:
    """A model, optimizer and loader made private: with the noise for the target, or with a noise given."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    parts = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": DataLoader(data(), batch_size=BATCH),
        "max_grad_norm": 1.0,
    }
    if noise_multiplier is not None:
        return engine.make_private(**parts, noise_multiplier=noise_multiplier)
    return engine.make_private_with_epsilon(**parts, target_epsilon=TARGET, target_delta=DELTA, epochs=EPOCHS)


def train(parts: Any, engine: PrivacyEngine, epochs: int) -> None:
    """Train, and say epsilon after each epoch."""
    model, optimizer, loader = parts
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        images, labels = data().tensors
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).double().mean().item()
        bound = engine.accountant.bound(DELTA)
        print(f"{len(engine.accountant)} steps: accuracy {accuracy:.2f}, epsilon in {bound:.4f} at delta {DELTA:g}")


def first_epoch() -> None:
    """Train one epoch, and save."""
    OUT.mkdir(exist_ok=True)
    engine = PrivacyEngine()
    parts = private(engine)
    noise = parts[1].noise_multiplier
    print(f"noise multiplier {noise:.4f} meets epsilon {TARGET:g} after {EPOCHS} epochs")
    train(parts, engine, 1)
    engine.save_checkpoint(
        path=OUT / "digits.pt", module=parts[0], optimizer=parts[1], checkpoint_dict={"noise": noise}
    )


def other_epochs() -> None:
    """Resume, train the rest, and write the receipt."""
    resumed = PrivacyEngine()
    noise = torch.load(OUT / "digits.pt", weights_only=False)["noise"]
    parts = private(resumed, noise_multiplier=noise)
    resumed.load_checkpoint(path=OUT / "digits.pt", module=parts[0], optimizer=parts[1])
    train(parts, resumed, EPOCHS - 1)
    at_once = hs.account(resumed.accountant.composition).epsilon(DELTA).sides[1]
    print(f"spent {resumed.get_epsilon(DELTA):.5f}; accounted at once {at_once:.5f}")

    circumstances = hs.spec.Circumstances(examples=1797, batches="poisson", clipping_norm=1.0, tuning="none")
    run = hs.spec.of_run(
        resumed.accountant.composition, delta=DELTA, title="Digits, Opacus", circumstances=circumstances
    )
    (OUT / "opacus-receipt.html").write_text(page(receipt(run)), encoding="utf-8")
    print(f"receipt: {OUT / 'opacus-receipt.html'}")


if __name__ == "__main__":
    if sys.argv[1:] == ["resume"]:
        other_epochs()
    else:
        first_epoch()
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "resume"], check=True)  # noqa: S603 - itself, in a new process
