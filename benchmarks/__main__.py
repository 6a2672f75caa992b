"""``python -m benchmarks``: every method on every case, interleaved, with a table and a JSON file. See ``--help``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.cases import CASES, Case
from benchmarks.measure import Limits, Outcome, measure
from benchmarks.methods import HERE, METHODS, OURS, Method, methods_for
from benchmarks.report import findings, table, write_json
from benchmarks.summary import Comparison, Row

RESULTS = HERE / "results" / "latest.json"
GIBIBYTE = 2**30


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0 unless our own bracket misses the truth somewhere."""
    options = parser().parse_args(arguments)
    limits = Limits(seconds=options.timeout, memory=int(options.memory * GIBIBYTE))
    comparisons = []
    for case in CASES:
        if options.only and case.name not in options.only:
            continue
        comparison = compare(case, options.methods, options.runs, options.budget, limits)
        comparisons.append(comparison)
        print(table(comparison), end="\n\n", flush=True)
    print(findings(comparisons))
    write_json(comparisons, RESULTS)
    say(f"written to {RESULTS.relative_to(HERE.parent)}")
    ours = [(row, comparison) for comparison in comparisons for row in comparison.rows if row.key.startswith(OURS)]
    return int(any(not holds(row, comparison) for row, comparison in ours))


def holds(row: Row, comparison: Comparison) -> bool:
    """Whether our row is a bracket that contains the truth."""
    return row.verdict(comparison.case.truth) == "contains the truth"


def compare(case: Case, only: Sequence[str], runs: int, budget: float, limits: Limits) -> Comparison:
    """All methods on one case, round after round; each round starts with another method, so that drift hits all alike.

    A method that failed is not asked again; one that has used its ``budget`` of seconds, imports included, neither.
    """
    methods = {key: method for key, method in methods_for(case).items() if key == OURS or not only or key in only}
    outcomes: dict[str, list[Outcome]] = {key: [] for key in methods}
    spent = dict.fromkeys(methods, 0.0)
    for turn in range(runs):
        for key, method in rotated(methods, turn):
            if outcomes[key] and (spent[key] >= budget or outcomes[key][-1].error):
                continue
            start = time.monotonic()
            outcomes[key].append(measure(case, method, limits))
            spent[key] += time.monotonic() - start
            say(f"{case.name}, round {turn + 1} of {runs}: {method.label}, {spent[key]:.1f} s spent")
    return Comparison(case, tuple(Row(key, method, tuple(outcomes[key])) for key, method in methods.items()))


def rotated(methods: dict[str, Method], turn: int) -> list[tuple[str, Method]]:
    """The methods, starting with another one each turn."""
    items = list(methods.items())
    start = turn % len(items)
    return items[start:] + items[:start]


def say(message: str) -> None:
    """Progress, apart from the report on standard output."""
    print(message, file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Command line."""
    result = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names, keys = [case.name for case in CASES], list(METHODS)
    add = result.add_argument
    add("--only", nargs="+", default=[], choices=names, metavar="CASE", help=f"some of: {', '.join(names)}")
    add("--methods", nargs="+", default=[], choices=keys, metavar="METHOD", help=f"some of: {', '.join(keys)}")
    add("--runs", type=int, default=5, help="rounds, over which medians are taken (default 5)")
    add("--timeout", type=float, default=60.0, help="seconds of processor time one answer may take (default 60)")
    add("--budget", type=float, default=20.0, help="seconds after which a method is not repeated (default 20)")
    add("--memory", type=float, default=8.0, help="GiB one process may allocate, on Linux (default 8)")
    return result


if __name__ == "__main__":
    sys.exit(main())
