"""One answer of one method to one case, measured in a process of its own.

Whatever happens in that process is an `Outcome`: an answer, an error, a crash or a timeout. The parent stays small and
imports no numerics: on Linux a child's peak memory starts from what its parent had resident when it was forked.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.cases import Case
from benchmarks.methods import ADAPTERS, ROOT, Method

WORKER = ADAPTERS / "worker.py"
# Every method gets one core: threads that wait for each other on a busy machine would be timed otherwise.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PATIENCE = 6.0  # a busy machine may take so many times longer than the processor time used
SETUP_TIMEOUT = 180.0  # seconds, for importing a library and answering the warm-up case


@dataclass(frozen=True)
class Limits:
    """What one answer may use: seconds of processor time (`PATIENCE` times that on the clock), bytes of memory."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Outcome:
    """What one process said: epsilons in nats, seconds, MiB; ``error`` is None when there is an answer."""

    lower: float | None = None
    estimate: float | None = None
    upper: float | None = None
    seconds: float | None = None
    processor_seconds: float | None = None
    import_seconds: float | None = None
    import_mib: float | None = None
    peak_mib: float | None = None
    versions: tuple[tuple[str, str], ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """Plain values for a JSON file."""
        return {**asdict(self), "versions": dict(self.versions)}


def measure(case: Case, method: Method, limits: Limits) -> Outcome:
    """Ask ``method`` once, in a fresh process, and wait for the answer within ``limits``."""
    if not method.interpreter.exists():
        return Outcome(error="not installed (run `make bench`, which creates the environments)")
    with _start(method, limits) as process:
        try:
            return _converse(process, case, method, limits)
        finally:
            process.kill()


def _start(method: Method, limits: Limits) -> subprocess.Popen[str]:
    settings = {
        "BENCH_MEMORY_LIMIT": str(limits.memory),
        "BENCH_PROCESSOR_LIMIT": str(limits.seconds),
        "BENCH_OPTIONS": json.dumps(dict(method.options)),
    }
    return subprocess.Popen(
        [str(method.interpreter), "-W", "ignore", str(WORKER), str(method.adapter)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD, **settings},
    )


def _converse(process: subprocess.Popen[str], case: Case, method: Method, limits: Limits) -> Outcome:
    assert process.stdin is not None
    ready = _listen(process, SETUP_TIMEOUT)
    if "ready" not in ready:
        return Outcome(error=f"setup: {ready['error']}")
    steps = [[step.noise_multiplier, step.rate, step.count] for step in case.steps]
    request = {
        "steps": steps,
        "delta": case.delta,
        "question": case.question,
        "arguments": dict(case.arguments),
        "options": dict(method.options),
    }
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    reply = _listen(process, PATIENCE * limits.seconds)
    return Outcome(
        import_seconds=ready["import_seconds"],
        import_mib=ready["import_mib"],
        versions=tuple(sorted(ready["versions"].items())),
        **reply,
    )


def _listen(process: subprocess.Popen[str], timeout: float) -> dict[str, Any]:
    """The next message, or an error that says why there is none."""
    assert process.stdout is not None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(timeout, expire)
    timer.start()
    line = process.stdout.readline()
    timer.cancel()
    if line:
        message: dict[str, Any] = json.loads(line)
        return message
    if expired.is_set():
        return {"error": f"no answer within {timeout:g} s"}
    status = process.wait()
    if status == -signal.SIGXCPU:
        return {"error": "no answer within its processor time"}
    ended = f"killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return {"error": f"crashed: {ended}"}
