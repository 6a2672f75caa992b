"""Flower with client-level privacy, accounted with certified epsilons: rounds, checkpoint, resume, a receipt.

Switching is one line:

    -accountant = RdpAccountant(CONFIG)
    +accountant = HockeystickAccountant(CONFIG)

Sixty-four clients hold shares of the digits that come with scikit-learn. Each fits a linear model to its share; the
server's strategy clips their updates, adds noise, and stops where a further round would exceed the budget. Clients
run in the process of the server, so that none has to be started: the strategy is the one a ``ServerApp`` runs.

Run: ``pip install 'hockeystick[flower]' scikit-learn``, then ``python examples/flower_rounds.py``. It writes to
``out/``.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid, NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import hockeystick as hs
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.integrations.flower import HockeystickAccountant

CLIENTS, NOISE, ROUNDS, DELTA = 64, 3.0, 6, 1e-3
OUT = Path("out")

Array = NDArray[np.float64]


class Clients(Grid):  # type: ignore[misc] # untyped where Flower is not installed
    """All clients in this process, each with a share of the digits: what a server's grid is to a strategy."""

    def __init__(self) -> None:
        images, labels = load_digits(return_X_y=True)
        used = len(images) // CLIENTS * CLIENTS  # shares of one size, so that all clients weigh the same
        self.shares = list(zip(np.split(images[:used] / 16, CLIENTS), np.split(labels[:used], CLIENTS), strict=True))

    def get_node_ids(self) -> list[int]:
        return list(range(1, CLIENTS + 1))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return [self.reply(message) for message in messages]

    def reply(self, message: Message) -> Message:
        """A client's answer to a round: the model fitted to its share."""
        images, labels = self.shares[message.metadata.dst_node_id - 1]
        weights = fitted(message.content["arrays"].to_numpy_ndarrays()[0], images, labels)
        metrics = MetricRecord({"num-examples": len(labels)})
        return Message(RecordDict({"arrays": ArrayRecord([weights]), "metrics": metrics}), reply_to=message)

    def accuracy(self, weights: Array) -> float:
        """Of the model on all digits."""
        return float(np.mean([np.mean(np.argmax(x @ weights, axis=1) == y) for x, y in self.shares]))

    def unused(self, *args: Any, **kwargs: Any) -> Any:
        """What a server talks to its clients by, and a strategy does not."""
        raise NotImplementedError

    set_run = create_message = push_messages = pull_messages = unused
    run = property(unused)


def fitted(weights: Array, images: Array, labels: NDArray[np.int64]) -> Array:
    """A linear model after thirty steps down the gradient of the cross-entropy."""
    wanted = np.eye(10)[labels]
    for _ in range(30):
        scores = np.exp(images @ weights - np.max(images @ weights, axis=1, keepdims=True))
        chances = scores / scores.sum(axis=1, keepdims=True)
        weights = weights - 0.5 * images.T @ (chances - wanted) / len(labels)
    return weights


def strategy(accountant: HockeystickAccountant) -> DifferentialPrivacyServerSideFixedClipping:
    """Flower's averaging with clipped updates and noise, told what each round costs."""
    averaging = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS, min_train_nodes=CLIENTS)
    return DifferentialPrivacyServerSideFixedClipping(
        averaging, noise_multiplier=NOISE, clipping_norm=1.0, num_sampled_clients=CLIENTS, accountant=accountant
    )


def rounds(accountant: HockeystickAccountant, weights: Array, count: int) -> Array:
    """So many rounds, epsilon after each."""
    clients, server = Clients(), strategy(accountant)
    for _ in range(count):
        found = server.start(clients, ArrayRecord([weights]), num_rounds=1)
        server = strategy(accountant)  # a strategy counts rounds from one; what was spent is with the accountant
        weights = found.arrays.to_numpy_ndarrays()[0]
        spent = accountant.get_privacy_spent()
        print(
            f"round {spent.num_releases}: accuracy {clients.accuracy(weights):.2f},"
            f" epsilon {spent.epsilon:.4f} at delta {spent.delta:g}"
        )
    return weights


CONFIG = PrivacyConfig(
    DELTA, CLIENTS, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION, max_epsilon=3.0
)


def first_half() -> None:
    """Half of the rounds, and a saved state."""
    OUT.mkdir(exist_ok=True)
    accountant = HockeystickAccountant(CONFIG)
    weights = rounds(accountant, np.zeros((64, 10)), ROUNDS // 2)
    state = {"accountant": accountant.state_dict(), "weights": weights.tolist()}
    (OUT / "flower.json").write_text(json.dumps(state), encoding="utf-8")


def second_half() -> None:
    """The other rounds, and the receipt."""
    saved = json.loads((OUT / "flower.json").read_text(encoding="utf-8"))
    resumed = HockeystickAccountant(CONFIG)
    resumed.load_state_dict(saved["accountant"])
    rounds(resumed, np.array(saved["weights"]), ROUNDS - ROUNDS // 2)
    run = hs.Gaussian(NOISE) * ROUNDS
    print(f"spent {resumed.get_epsilon(DELTA):.5f}; accounted at once {hs.account(run).epsilon(DELTA).sides[1]:.5f}")

    made = hs.spec.of_run(resumed.composition, delta=DELTA, unit="client", title="Digits, Flower")
    (OUT / "flower-receipt.html").write_text(page(receipt(made)), encoding="utf-8")
    print(f"receipt: {OUT / 'flower-receipt.html'}")


if __name__ == "__main__":
    logging.getLogger("flwr").setLevel(logging.WARNING)
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1  # a server has them from where it runs
    if sys.argv[1:] == ["resume"]:
        second_half()
    else:
        first_half()
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "resume"], check=True)  # noqa: S603 - itself, in a new process
