"""dp-accounting's own tests, run against our accountant: what does not pass, does not for a reason named here."""

from __future__ import annotations

import importlib
import re
import unittest
from collections import Counter

import pytest
from absl import logging
from dp_accounting import privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant

from hockeystick.integrations.dp_accounting import HockeystickAccountant

ADD_OR_REMOVE = privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE


class AsPld(HockeystickAccountant):
    def __init__(self, relation: object = ADD_OR_REMOVE, value_discretization_interval: float = 1e-4) -> None:
        super().__init__(relation, tolerance=value_discretization_interval)


class AsRdp(HockeystickAccountant):
    def __init__(self, orders: object = None, neighboring_relation: object = ADD_OR_REMOVE) -> None:
        super().__init__(neighboring_relation)


REASONS = {  # of a test that does not pass: the last line it fails with
    "looks at the Renyi divergences inside": r"has no attribute '_(rdp|orders)'|no logs of level WARNING",
    "not proved, and refused": r"Unsupported event: \w*(RepeatAndSelect|Truncated|ZC|Composed)|False is not true",
    "proved here, refused there": r"UnsupportedEventError not raised|True is not false",
    "refused in other words": r"does not match",
    "tighter than the value expected": r"81\.57466\d+ != 100\.0|2\.1557\d+e-07 != 1e-06",
}


def outcomes(module: str) -> Counter[str]:
    tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"dp_accounting.{module}"))
    result = unittest.TestResult()
    tests.run(result)
    failed = result.failures + result.errors
    found = Counter({"passed": result.testsRun - len(failed) - len(result.skipped)})
    for test, trace in failed:
        last = trace.strip().splitlines()[-1]
        reason = next((name for name, pattern in REASONS.items() if re.search(pattern, last)), None)
        assert reason is not None, f"{test.id()}: {last}"
        found[reason] += 1
    return found


@pytest.fixture(autouse=True)
def ours_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld_privacy_accountant, "PLDAccountant", AsPld)
    monkeypatch.setattr(rdp_privacy_accountant, "RdpAccountant", AsRdp)
    monkeypatch.setattr(logging, "warning", lambda *_: None)


@pytest.mark.parametrize(
    ("module", "least"),
    [
        ("pld.pld_privacy_accountant_test", 63),
        ("rdp.rdp_privacy_accountant_test", 76),
        ("mechanism_calibration_test", 41),
    ],
)
def test_what_does_not_pass_has_a_reason(module: str, least: int) -> None:
    found = outcomes(module)
    assert found["passed"] >= least, found
