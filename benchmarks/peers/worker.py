"""One measurement in one fresh process: JSON lines in, JSON lines out, standard library only.

Run as ``python worker.py path/to/with_something.py``, by any interpreter. The protocol:

1. the worker imports the adapter, answers a small warm-up case by the same method, and writes ``{"ready": true, ...}``
   with the seconds the import took, the versions found and the peak memory so far;
2. it reads one case, ``{"steps": [[noise_multiplier, rate, count], ...], "delta": d, "options": {...}}``, and where the
   question is not the plain one, ``"question"``, the adapter's function for it, and its ``"arguments"``;
3. it answers it once and writes lower, estimate and upper epsilon (null where the library has none), wall-clock and
   processor seconds, and the peak memory of the process in MiB.

Whatever a library prints goes to standard error. The first answer after the warm-up is timed: lazy imports are paid,
nothing is cached for the case at hand.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import resource
import sys
import time
import traceback
from pathlib import Path

WARM_UP = {"steps": [[2.0, 0.5, 3]], "delta": 1e-3}
MEBIBYTE = 2**20


def peak_mebibytes() -> float:
    """Largest resident size of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MEBIBYTE if sys.platform == "darwin" else peak / 1024


def limit_memory() -> None:
    """Cap what this process may allocate, so that a greedy method ends in a row instead of a frozen machine."""
    limit = int(os.environ.get("BENCH_MEMORY_LIMIT", "0"))
    if limit and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def limit_processor() -> None:
    """End this process by SIGXCPU once it has used that much more processor time; waiting for a turn does not count."""
    seconds = float(os.environ.get("BENCH_PROCESSOR_LIMIT", "0"))
    if seconds:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def load(path):
    """The adapter module at ``path``."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_number(value):
    """A plain float, or None; arrays of one and NumPy scalars included."""
    return None if value is None else float(value)


def answer(adapter, case):
    """Lower, estimate and upper epsilon of one case, with what it cost."""
    wall, processor = time.perf_counter(), time.process_time()
    ask = getattr(adapter, case.get("question", "epsilon"))
    found = ask(case["steps"], case["delta"], **case.get("arguments", {}), **case.get("options", {}))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    numbers = {key: as_number(found.get(key)) for key in ("lower", "estimate", "upper")}
    return {**numbers, "seconds": wall, "processor_seconds": processor, "peak_mib": peak_mebibytes()}


def main() -> None:
    """Serve one case."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message) -> None:
        print(json.dumps(message), file=replies, flush=True)

    limit_memory()
    try:
        start = time.perf_counter()
        adapter = load(sys.argv[1])
        imported = time.perf_counter() - start
        method = {
            key: value for key, value in json.loads(os.environ.get("BENCH_OPTIONS", "{}")).items() if key == "method"
        }
        answer(adapter, {**WARM_UP, "options": method, "steps": getattr(adapter, "WARM_UP", WARM_UP["steps"])})
        reply(
            {"ready": True, "import_seconds": imported, "import_mib": peak_mebibytes(), "versions": adapter.versions()}
        )
        case = json.loads(sys.stdin.readline())
        limit_processor()
        reply(answer(adapter, case))
    except MemoryError:
        reply({"error": "out of memory"})
    except Exception as problem:  # noqa: BLE001 - whatever a library raises is a row of the table
        traceback.print_exc()
        reply({"error": f"{type(problem).__name__}: {problem}"})


if __name__ == "__main__":
    main()
