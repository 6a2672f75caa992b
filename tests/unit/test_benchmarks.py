"""The benchmark harness: every way a method can end is a row, and a verdict is never kinder than the numbers."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from benchmarks.cases import CASES, Case, Step, Truth
from benchmarks.measure import Limits, Outcome, measure
from benchmarks.methods import EVERYWHERE, METHODS, OURS, Method, methods_for
from benchmarks.report import aligned, findings, table
from benchmarks.summary import Comparison, Row
from benchmarks.truth import gaussian_epsilon

CASE = Case("coin", (Step(1.0, 0.5, 3),), 1e-5, Truth(2.0, 1e-9), "a case for tests")
LIMITS = Limits(seconds=2.0, memory=2 * 2**30)
QUICK = Method("quick", Path("quick.py"), Path(sys.executable))


def adapter(folder: Path, body: str) -> Method:
    """A method whose adapter answers the warm-up case and then runs ``body``."""
    path = folder / "with_something.py"
    lines = [
        "import os, sys, time",
        "def epsilon(steps, delta):",
        "    if delta == 1e-3: return {'upper': 1.0}",
        f"    {body}",
        "def versions(): return {'something': '1.0'}",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return Method("something", path, Path(sys.executable))


def test_an_answer_is_measured(tmp_path: Path) -> None:
    body = "print('noise on standard output'); time.sleep(0.05); return {'lower': 1.5, 'upper': 2.5}"
    outcome = measure(CASE, adapter(tmp_path, body), LIMITS)
    assert (outcome.lower, outcome.estimate, outcome.upper, outcome.error) == (1.5, None, 2.5, None)
    assert outcome.seconds is not None
    assert outcome.seconds >= 0.05
    assert outcome.peak_mib is not None
    assert outcome.peak_mib > 1.0
    assert dict(outcome.versions) == {"something": "1.0"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no such rate')", "ValueError: no such rate"),
        ("raise MemoryError", "out of memory"),
        ("os._exit(3)", "crashed: ended with status 3"),
        ("os.abort()", "crashed: killed by SIGABRT"),
        ("while True: pass", "no answer within its processor time"),
    ],
)
def test_every_failure_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str) -> None:
    monkeypatch.setattr("benchmarks.measure.PATIENCE", 60.0)
    outcome = measure(CASE, adapter(tmp_path, body), Limits(seconds=0.5, memory=2 * 2**30))
    assert outcome.error == message
    assert outcome.upper is None


def test_waiting_for_ever_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.PATIENCE", 1.0)
    outcome = measure(CASE, adapter(tmp_path, "time.sleep(60)"), Limits(seconds=0.5, memory=2 * 2**30))
    assert outcome.error == "no answer within 0.5 s"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set on Linux only")
def test_memory_is_limited(tmp_path: Path) -> None:
    outcome = measure(CASE, adapter(tmp_path, "return {'upper': len(bytearray(2**30))}"), Limits(10.0, 2**29))
    assert outcome.error == "out of memory"


def test_a_peer_that_is_not_installed_is_an_outcome(tmp_path: Path) -> None:
    missing = Method("missing", tmp_path / "with_something.py", tmp_path / "python")
    assert str(measure(CASE, missing, LIMITS).error).startswith("not installed")


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(lower=1.9, upper=2.1), "contains the truth"),
        (Outcome(upper=2.0), "upper bound holds"),
        (Outcome(upper=2.0 - 5e-10), "upper bound holds"),  # within what is known of the truth
        (Outcome(upper=2.0 - 2e-9), "UNDER-REPORTS by 2e-09"),
        (Outcome(lower=1.9, upper=1.95), "UNDER-REPORTS by 0.05"),
        (Outcome(lower=2.05, upper=2.1), "lower end above the truth by 0.05"),
        (Outcome(estimate=2.1), "estimate, no bound"),
        (Outcome(estimate=1.5), "UNDER-REPORTS by 0.5"),
        (Outcome(upper=math.nan), "not a number"),
        (Outcome(upper=math.inf), "no finite answer"),
        (Outcome(error="out of memory"), "out of memory"),
    ],
)
def test_verdict(outcome: Outcome, verdict: str) -> None:
    assert Row("quick", QUICK, (outcome,)).verdict(CASE.truth) == verdict


def test_findings_name_faster_peers_and_numbers_below_the_truth() -> None:
    ours = Row(OURS, METHODS[OURS], (Outcome(lower=1.9, upper=2.1, seconds=1.0),))
    fast = Row("fast", QUICK, (Outcome(upper=2.5, seconds=0.9), Outcome(upper=2.5, seconds=0.3)))
    wrong = Row("wrong", QUICK, (Outcome(upper=1.9, seconds=2.0),))
    text = findings([Comparison(CASE, (ours, fast, wrong))])
    assert "coin: quick takes 0.6 of our time, +0.5 from the truth" in text
    assert "coin: quick UNDER-REPORTS by 0.1" in text
    assert text.count("coin:") == 2
    assert findings([Comparison(CASE, (ours,))]).count("nowhere") == 2


def test_table_shows_failures() -> None:
    ours = Row(OURS, METHODS[OURS], (Outcome(error="no answer within 60 s"),))
    peer = Row("peer", QUICK, (Outcome(upper=2.1, seconds=0.02, peak_mib=100.0),))
    lines = table(Comparison(CASE, (ours, peer))).splitlines()
    assert "no answer within 60 s" in lines[-2]
    assert "20 ms" in lines[-1]
    assert "true epsilon 2 " in lines[2]


def test_columns_line_up() -> None:
    lines = aligned([("a", "b", "c"), ("long text", "1", "x")]).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_cases_are_distinct_and_ask_known_methods() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert set(EVERYWHERE) <= set(METHODS)
    for case in CASES:
        assert set(case.also) <= set(METHODS)
        assert next(iter(methods_for(case))) == OURS
        known = 1e-2 if case.name == "tuned" else 1e-3  # the best of many runs has no tighter truth than our bracket
        assert case.truth.radius < known * case.truth.value


def test_closed_form_of_gaussians_meets_its_own_curve() -> None:
    # delta(epsilon) by the error function in double precision, good to 1e-9 relative at this delta
    epsilon = gaussian_epsilon(2.0, 9, 1e-6)
    mu = 1.5
    first = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    second = math.exp(epsilon) * 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    assert math.isclose(first - second, 1e-6, rel_tol=1e-9, abs_tol=0.0)


def test_truth_from_digits_knows_its_last_place() -> None:
    assert Truth.from_digits("0.0369") == Truth(0.0369, 5e-5)


def test_a_time_too_short_for_the_clock_gives_no_ratio() -> None:
    rows = [Row("x", QUICK, (Outcome(upper=2.0, seconds=own, processor_seconds=own),)) for own in (0.0, 1.0)]
    comparison = Comparison(CASE, tuple(rows))
    assert comparison.ratio(rows[1]) is comparison.processor_ratio(rows[1]) is None
    assert "| - |" in table(comparison).replace("  ", "")
