"""The data loaders of the how-to draw what the accounting assumes of them, and loaders that do not are noticed.

Every test makes at most 70 comparisons, each with false-alarm probability 1e-7, on fixed seeds.
"""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy  # its `stats`, slow to import, where it is first used

HOME = Path(__file__).resolve().parents[2]
LOADERS = runpy.run_path(str(HOME / "examples" / "samplers.py"))
N, STEPS, RATE, SIZE, LARGEST = 60, 4000, 0.1, 6, 7
T, ROUNDS = 10, 400  # steps in a round
FALSE_ALARM = 1e-7

Taken = np.ndarray[Any, np.dtype[np.bool_]]


def taken(batches: Iterator[Any]) -> Taken:
    """A row a step: which records take part; a record twice in a batch is an error of its own."""
    rows = []
    for batch in batches:
        times = np.bincount(batch, minlength=N)
        assert times.max() <= 1
        rows.append(times == 1)
    return np.array(rows)


def holds(observed: Any, expected: Any) -> bool:
    """Pearson's test of counts against what is expected of them, both sides in full."""
    return bool(scipy.stats.chisquare(np.ravel(observed), np.ravel(expected)).pvalue > FALSE_ALARM)


def proportion(count: int, trials: int, chance: float) -> bool:
    return bool(scipy.stats.binomtest(count, trials, chance).pvalue > FALSE_ALARM)


def each_step_draws_each_record_alone(rows: Taken, rate: float) -> list[bool]:
    """Poisson: rates, batch sizes, neighbours in a batch and steps in a row."""
    sizes = rows.sum(axis=1)
    law = scipy.stats.binom(N, rate).pmf(np.arange(N + 1))
    middle = slice(2, 12)  # sizes of which many are expected; the others as one
    seen = np.bincount(sizes, minlength=N + 1)
    observed = [*seen[middle], len(rows) - seen[middle].sum()]
    expected = [*law[middle], 1.0 - law[middle].sum()]
    pairs, again = rows[:, :-1] & rows[:, 1:], rows[:-1] & rows[1:]
    return [
        proportion(int(rows.sum()), rows.size, rate),
        min(scipy.stats.binomtest(int(count), len(rows), rate).pvalue for count in rows.sum(axis=0)) > FALSE_ALARM,
        holds(observed, np.array(expected) * len(rows)),
        proportion(int(pairs[:, ::2].sum()), pairs[:, ::2].size, rate * rate),
        proportion(int(again[::2].sum()), again[::2].size, rate * rate),
    ]


def places(rows: Taken) -> np.ndarray[Any, Any] | None:
    """A row a round: the step of each record; None where one takes part never or twice."""
    rounds = rows.reshape(-1, T, N)
    return None if (rounds.sum(axis=1) != 1).any() else rounds.argmax(axis=1)


def independent(one: Any, other: Any) -> bool:
    """Of two lists of steps: every pair of steps is as frequent as any other."""
    table = np.zeros((T, T))
    np.add.at(table, (np.ravel(one), np.ravel(other)), 1)
    return holds(table, np.full((T, T), table.sum() / T**2))


def every_round_places_each_record_alone(rows: Taken) -> list[bool]:
    place = places(rows)
    if place is None:
        return [False]
    return [
        holds(np.bincount(place.ravel(), minlength=T), np.full(T, place.size / T)),
        independent(place[:, :-1:2], place[:, 1::2]),  # of two records
        independent(place[:-1:2], place[1::2]),  # of two rounds
        _sizes_vary(rows),
    ]


def _sizes_vary(rows: Taken) -> bool:
    """Batches have the variance of independent places: N (1/T)(1 - 1/T), to within some standard errors."""
    sizes = rows.reshape(-1, T, N).sum(axis=2)[:, 0].astype(float)
    squares = ((sizes - N / T) ** 2).mean() / (N / T * (1 - 1 / T))
    return bool(abs(squares - 1.0) < 6.0 * np.sqrt(2.2 / len(sizes)))


def bins_stay(rows: Taken) -> list[bool]:
    place = places(rows)
    return [place is not None and bool((place == place[0]).all())]


def every_set_is_as_likely(rows: Taken) -> list[bool]:
    share = SIZE / N
    pairs, again = rows[:, :-1] & rows[:, 1:], rows[:-1] & rows[1:]
    return [
        bool((rows.sum(axis=1) == SIZE).all()),
        min(scipy.stats.binomtest(int(count), len(rows), share).pvalue for count in rows.sum(axis=0)) > FALSE_ALARM,
        proportion(int(pairs[:, 0].sum()), len(rows), share * (SIZE - 1) / (N - 1)),
        proportion(int(again[::2, 0].sum()), len(again[::2]), share * share),
    ]


def every_epoch_has_a_fresh_order(rows: Taken) -> list[bool]:
    place = places(rows)
    even = bool((rows.sum(axis=1) == SIZE).all())
    return [False] if place is None or not even else [True, independent(place[:-1:2, 0], place[1::2, 0])]


def surplus_is_dropped_at_random(rows: Taken) -> list[bool]:
    sizes = rows.sum(axis=1)
    full = rows[sizes == LARGEST]
    each = len(full) * LARGEST / N
    return [
        int(sizes.max()) == LARGEST,
        proportion(len(full), len(rows), float(scipy.stats.binom(N, RATE).sf(LARGEST - 1))),
        holds(full.sum(axis=0), np.full(N, each)),
    ]


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def runs_of_bins(load: Callable[..., Iterator[Any]]) -> Taken:
    """Many short runs, one after the other: bins are fresh in each."""
    return np.concatenate([taken(load(generator(seed), N, T, 1)) for seed in range(ROUNDS)])


RIGHT: dict[str, Callable[[], list[bool]]] = {
    "poisson": lambda: each_step_draws_each_record_alone(taken(LOADERS["poisson"](generator(1), N, RATE, STEPS)), RATE),
    "cut_poisson": lambda: surplus_is_dropped_at_random(
        taken(LOADERS["cut_poisson"](generator(2), N, RATE, LARGEST, STEPS))
    ),
    "random_allocation": lambda: every_round_places_each_record_alone(
        taken(LOADERS["random_allocation"](generator(3), N, T, ROUNDS))
    ),
    "fixed_bins": lambda: [
        *bins_stay(taken(LOADERS["fixed_bins"](generator(4), N, T, 20))),
        *every_round_places_each_record_alone(runs_of_bins(LOADERS["fixed_bins"])),
    ],
    "fixed_size": lambda: every_set_is_as_likely(taken(LOADERS["fixed_size"](generator(5), N, SIZE, STEPS))),
    "shuffled": lambda: every_epoch_has_a_fresh_order(taken(LOADERS["shuffled"](generator(6), N, SIZE, ROUNDS))),
}


@pytest.mark.parametrize("loader", RIGHT)
def test_loaders_draw_what_is_assumed_of_them(loader: str) -> None:
    assert all(RIGHT[loader]())


def in_order(records: int, size: int, epochs: int) -> Iterator[Any]:
    for _ in range(epochs):
        yield from generator(7).permutation(records).reshape(-1, size)  # the same order in each epoch


def first_kept(seed: int) -> Iterator[Any]:
    for drawn in LOADERS["poisson"](generator(seed), N, RATE, STEPS):
        yield drawn[:LARGEST]


WRONG: dict[str, Callable[[], list[bool]]] = {
    "shuffled batches are no Poisson samples": lambda: each_step_draws_each_record_alone(
        taken(LOADERS["shuffled"](generator(8), N, SIZE, ROUNDS)), RATE
    ),
    "cut samples are no Poisson samples": lambda: each_step_draws_each_record_alone(
        taken(LOADERS["cut_poisson"](generator(8), N, RATE, LARGEST, STEPS)), RATE
    ),
    "batches of one size are no Poisson samples": lambda: each_step_draws_each_record_alone(
        taken(LOADERS["fixed_size"](generator(8), N, SIZE, STEPS)), RATE
    ),
    "the first records of a sample are no random part": lambda: surplus_is_dropped_at_random(taken(first_kept(8))),
    "fixed bins are no fresh rounds": lambda: every_round_places_each_record_alone(
        taken(LOADERS["fixed_bins"](generator(8), N, T, ROUNDS))
    ),
    "shuffled batches are no random allocation": lambda: every_round_places_each_record_alone(
        taken(LOADERS["shuffled"](generator(8), N, SIZE, ROUNDS))
    ),
    "fresh rounds are no fixed bins": lambda: bins_stay(taken(LOADERS["random_allocation"](generator(8), N, T, 20))),
    "shuffled batches are not drawn afresh at every step": lambda: every_set_is_as_likely(
        taken(LOADERS["shuffled"](generator(8), N, SIZE, ROUNDS))
    ),
    "the same order again is no fresh one": lambda: every_epoch_has_a_fresh_order(taken(in_order(N, SIZE, ROUNDS))),
}


@pytest.mark.parametrize("claim", WRONG)
def test_loaders_that_draw_otherwise_are_noticed(claim: str) -> None:
    assert not all(WRONG[claim]())


def test_the_how_to_quotes_the_loaders_as_they_are() -> None:
    page = (HOME / "docs" / "how-to" / "choose-a-sampler.md").read_text(encoding="utf-8")
    for name in RIGHT:
        code = inspect.getsource(LOADERS[name])
        assert code in page
        assert len(code.splitlines()) <= 10
