"""Random runs of every mechanism, scheme and relation against ball arithmetic, both questions, with no slack.

``python -m tests.truth.test_every_mechanism 0 100`` runs these blocks of fifty runs and prints what held each
mechanism, sampler and relation: `tests.proofs` says what the words mean.
"""

from __future__ import annotations

import math
import signal
import sys
from collections import Counter

import numpy as np
import pytest

from hockeystick import mechanisms
from hockeystick.errors import PrecisionError, UnknownPairError
from tests.proofs import CHECKER, DATASETS, EXACT, NOTHING, REFUSED, ViolationError, compare
from tests.random_runs import MAKERS, draw

RUNS = 50  # of a block
UNANSWERED = "unanswered"  # by us: a refusal in words
GIVEN_UP = "given up"  # a run on which all together took too long, where blocks are run by hand
KINDS = (EXACT, CHECKER, DATASETS, NOTHING, REFUSED, UNANSWERED, GIVEN_UP)
SECONDS = 15.0  # of CPU, a run

Table = Counter[tuple[str, str, str, str]]
"""Questions by mechanism, sampler, relation, and what held the answer."""


def test_every_mechanism_is_drawn() -> None:
    known = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)}
    of_their_own = {  # known by bounds that the caller states, or composed of what is drawn: tests of their own
        "BestOf",
        "CorrelatedNoise",
        "Geometric",  # another name of DiscreteLaplace
        "RenyiDP",
        "UserDefinedCurve",
    }
    assert known - set(MAKERS) == {"Mechanism", "UserDefined"} | of_their_own


def check(rng: np.random.Generator, table: Table) -> None:
    """One run, both questions."""
    drawn = draw(rng)
    where = drawn.mechanism, drawn.sampler, drawn.adjacency
    delta, part = float(10.0 ** -rng.uniform(0.5, 60.0)), float(rng.uniform(0.2, 1.1))
    checker = drawn.mechanism == "DiscreteGaussian" or bool(rng.random() < 0.2)  # elsewhere ball arithmetic serves
    try:
        epsilon, held = compare(drawn.run, drawn.adjacency, "epsilon", delta, checker=checker)
        table[*where, held] += 1
        there = part * (epsilon if math.isfinite(epsilon) else 10.0)
        _, held = compare(drawn.run, drawn.adjacency, "delta", there, checker=checker)
        table[*where, held] += 1
    except (PrecisionError, UnknownPairError):
        table[*where, UNANSWERED] += 1


def block(number: int, seed: int = 8, runs: int = RUNS) -> Table:
    table: Table = Counter()
    for run in range(runs):
        check(np.random.default_rng([seed, number, run]), table)
    return table


def proved(table: Table) -> int:
    """Questions of which both sides were compared with a truth."""
    return sum(count for (*_, held), count in table.items() if held in {EXACT, CHECKER})


@pytest.mark.parametrize("number", range(3))
def test_random_runs_contain_the_exact_value(number: int) -> None:
    table = block(number, seed=20, runs=4)
    assert proved(table) >= 4, table


@pytest.mark.torture
@pytest.mark.parametrize("number", range(100))
def test_five_thousand_random_runs_contain_the_exact_value(number: int) -> None:
    table = block(number)
    assert proved(table) >= RUNS, table


def _rows(table: Table, columns: tuple[int, ...]) -> list[str]:
    merged: dict[tuple[str, ...], Counter[str]] = {}
    for key, count in table.items():
        merged.setdefault(tuple(key[i] for i in columns), Counter())[key[3]] += count
    return [
        "".join(f"{part:22}" for part in key) + "".join(f"{own[kind]:11}" for kind in KINDS)
        for key, own in sorted(merged.items())
    ]


def report(table: Table) -> str:
    """The table, by mechanism and sampler and relation, by mechanism and by sampler."""
    head = "".join(f"{kind:>11}" for kind in KINDS)
    parts = [f"questions{'':57}{head}", *_rows(table, (0, 1, 2)), ""]
    parts += [f"{'by mechanism':22}{head}", *_rows(table, (0,)), "", f"{'by sampler':22}{head}", *_rows(table, (1,))]
    return "\n".join(parts)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _patient(rng: np.random.Generator, table: Table) -> None:
    """One run, given up where it takes too long."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        check(rng, table)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def main(first: int, last: int) -> None:
    """Run blocks, go on after a violation or a crash, and print them all."""
    total: Table = Counter()
    violations = crashes = 0
    for number in range(first, last):
        for run in range(RUNS):
            seed = [8, number, run]
            try:
                _patient(np.random.default_rng(seed), total)
            except (TimeoutError, SystemError):  # the second where it was in the middle of ball arithmetic
                drawn = draw(np.random.default_rng(seed))
                total[drawn.mechanism, drawn.sampler, drawn.adjacency, GIVEN_UP] += 1
            except Exception as found:  # noqa: BLE001 - crashes are counted, too
                violations += isinstance(found, ViolationError)
                crashes += not isinstance(found, ViolationError)
                say(f"seed {seed}: {type(found).__name__}: {found}")
        say(f"block {number}: {sum(total.values())} questions, {violations} violations, {crashes} crashes")
    say(report(total))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
