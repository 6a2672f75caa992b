"""Data loaders that draw what each sampling scheme assumes; run as a script it draws the picture of the how-to.

Each yields the indices of one step's records. docs/how-to/choose-a-sampler.md quotes them;
tests/unit/test_loaders.py tests each against the assumption it must meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hockeystick as hs

Batches = Iterator[Any]
RECORDS, BATCH, STEPS, DELTA = 50_000, 500, 2000, 1e-5
PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "samplers.png"


def poisson(rng: np.random.Generator, records: int, rate: float, steps: int) -> Batches:
    """Every record joins each batch by itself, with the same probability."""
    for _ in range(steps):
        yield np.flatnonzero(rng.random(records) < rate)


def cut_poisson(rng: np.random.Generator, records: int, rate: float, largest: int, steps: int) -> Batches:
    """The same, a surplus dropped at random."""
    for drawn in poisson(rng, records, rate, steps):
        yield drawn if len(drawn) <= largest else rng.choice(drawn, largest, replace=False)


def random_allocation(rng: np.random.Generator, records: int, round_steps: int, rounds: int) -> Batches:
    """Every record is in one batch of each round, chosen anew."""
    for _ in range(rounds):
        place = rng.integers(round_steps, size=records)  # anew in each round, each record by itself
        for step in range(round_steps):
            yield np.flatnonzero(place == step)


def fixed_bins(rng: np.random.Generator, records: int, bins: int, epochs: int) -> Batches:
    """Every record is in one batch of each epoch, chosen once."""
    place = rng.integers(bins, size=records)  # once, each record by itself
    for _ in range(epochs):
        for step in range(bins):
            yield np.flatnonzero(place == step)


def fixed_size(rng: np.random.Generator, records: int, size: int, steps: int) -> Batches:
    """Every set of that size is as likely, at each step."""
    for _ in range(steps):
        yield rng.choice(records, size, replace=False)


def shuffled(rng: np.random.Generator, records: int, size: int, epochs: int) -> Batches:
    """A fresh order for each epoch, cut into batches of one size."""
    for _ in range(epochs):
        yield from rng.permutation(records).reshape(-1, size)  # a fresh order in each epoch


def plans(noise: float) -> dict[str, tuple[hs.Composition, str]]:
    """The same training under every sampler, each with the relation it is accounted under."""
    sizes = {"batch_size": BATCH, "population": RECORDS}

    def run(sampling: str, **more: int) -> hs.Composition:
        return hs.dpsgd.run(noise, STEPS, sampling=sampling, **sizes, **more)

    return {
        "Poisson": (run("poisson"), "add-remove"),
        "Poisson cut to 550": (run("cut-batches", largest_batch=550), "add-remove"),
        "random allocation": (run("random-allocation"), "add-remove"),
        "fixed bins": (run("balls-in-bins"), "add-remove"),
        "fixed size": (run("without-replacement"), "add-remove"),
        "shuffled": (run("shuffled"), "zero-out"),
    }


def draw(noises: list[float], path: Path) -> None:
    """Epsilon against noise for every plan: a band from the lower to the upper side, the upper one as its line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for number, name in enumerate(plans(1.0)):
        bounds = []
        for noise in noises:
            run, adjacency = plans(noise)[name]
            bounds.append(hs.account(run, adjacency, tolerance=1e-2).epsilon(DELTA).sides)
        low, high = np.array(bounds).T
        colour = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#777777")[number]
        axes.fill_between(noises, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(noises, high, color=colour, marker="os^DvP"[number], markersize=4, label=name)
    axes.set(xscale="log", yscale="log", xlabel="noise multiplier", ylabel=f"ε at δ = {DELTA:g}")
    axes.set_xticks(noises, [f"{noise:g}" for noise in noises])
    axes.minorticks_off()
    axes.set_title("the same 20 epochs of 100 steps, six samplers", loc="left")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    draw([0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0], PICTURE)
    print(PICTURE)
