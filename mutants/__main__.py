"""``python -m mutants``: break the code in every way the catalogue names, and see whether the tests notice.

Each change is made alone, in a copy of the tree, and the tests named beside it are run there. Before that the same
tests must pass on the code as it is. The status is 0 when every change was noticed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from mutants.catalogue import ROOM, Change, harmless, load
from mutants.source import CannotApplyError, Sources
from mutants.trial import Copy, Trial

TREE = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names."""
    options = _options(arguments)
    every = load(options.catalogue)
    chosen = _chosen(every, options)
    if options.list:
        for change in chosen:
            print(f"{change.name}: {change.where}: {change.old}  ->  {change.new}\n    {change.claim}")
        return 0
    problems = stale(Sources(TREE / "src"), (*every, *harmless(options.catalogue)))
    for problem in problems:
        print(f"no longer applies: {problem}", file=sys.stderr)
    if not chosen:
        print("no change is called that; `python -m mutants --list` shows the names", file=sys.stderr)
        return 2
    if problems:
        return 1
    return _tried(chosen, options.workers)


def _tried(chosen: Sequence[Change], workers: int) -> int:
    start = time.monotonic()
    with ExitStack() as stack:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for _ in range(min(workers, len(chosen))):
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-"))
            copies.put(Copy(TREE, Path(place)))
        broken = _broken_before(chosen, copies, workers)
        if broken:
            print(f"these tests must pass on the code as it is, and do not:\n{broken}", file=sys.stderr)
            return 1
        trials = list(_trials(chosen, copies, workers))
    noticed = sum(trial.verdict == "noticed" for trial in trials)
    print(f"{noticed} of {len(trials)} changes noticed ({noticed / len(trials):.0%}), {time.monotonic() - start:.0f} s")
    for trial in trials:
        if trial.verdict != "noticed":
            print(f"{trial.verdict}: {trial.change.name} ({trial.change.claim})", file=sys.stderr)
    return 0 if noticed == len(trials) else 1


def _broken_before(chosen: Sequence[Change], copies: SimpleQueue[Copy], workers: int) -> str:
    """What the tests say on unchanged code, when any of them fails; the tests are shared out among the copies."""
    tests = sorted({test for change in chosen for test in change.tests})
    shares = [share for share in (tests[k::workers] for k in range(workers)) if share]

    def run(share: list[str]) -> str:
        copy = copies.get()
        try:
            done = copy.tested(share, first=False)
        finally:
            copies.put(copy)
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]

    with ThreadPoolExecutor(workers) as pool:
        return "\n".join(filter(None, pool.map(run, shares)))


def _trials(chosen: Sequence[Change], copies: SimpleQueue[Copy], workers: int) -> Iterator[Trial]:
    def one(change: Change) -> Trial:
        copy = copies.get()
        try:
            return copy.trial(change)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(workers) as pool:
        for trial in pool.map(one, chosen):
            print(f"{trial.verdict:8} {trial.change.name:44} {trial.seconds:6.1f} s  {trial.by}", flush=True)
            yield trial


def stale(sources: Sources, changes: Sequence[Change]) -> list[str]:
    """What is wrong with the changes that do not fit the code."""
    found = []
    for change in changes:
        try:
            sources.place(change)
        except CannotApplyError as error:
            found.append(str(error))
    return found


def _chosen(every: Sequence[Change], options: argparse.Namespace) -> list[Change]:
    chosen = [c for c in every if not options.only or any(c.name.startswith(only) for only in options.only)]
    if not options.sample:
        return chosen
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    if options.seed is None:
        print(f"a sample of {options.sample} with --seed {seed}")
    return random.Random(seed).sample(chosen, min(options.sample, len(chosen)))  # noqa: S311 (it hides nothing)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names of changes, or how they begin")
    parser.add_argument("--list", action="store_true", help="show the changes and do nothing")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N of them, drawn at random")
    parser.add_argument("--seed", type=int, default=None, help="draw the same sample again")
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree that are tested at once (2)")
    parser.add_argument("--catalogue", type=Path, default=ROOM, help="another catalogue (a directory)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
