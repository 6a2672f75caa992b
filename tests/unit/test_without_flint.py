"""The core needs numpy and scipy alone: without python-flint everything answers but ball arithmetic, which says so."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.errors import NoBallArithmeticError

ROOT = Path(__file__).resolve().parents[2]

BLOCKED = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
sys.modules["flint"] = None  # as where it is not installed
import hockeystick as hs
from hockeystick.app.cli import main
run = hs.Gaussian(1.0).poisson(0.01) * 2000
assert hs.account(run).epsilon(1e-5).width <= 1e-3
assert 0.7876 < hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10_000, rate=0.001).value < 0.7877
assert main(["report", {str(ROOT / "examples/receipt.toml")!r}, "--format", "json"]) == 0
"""


def test_the_core_depends_on_numpy_and_scipy_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [entry.split(">")[0] for entry in project["dependencies"]] == ["numpy", "scipy"]
    assert project["optional-dependencies"]["exact"][0].startswith("python-flint")


def test_runs_targets_and_receipts_need_no_ball_arithmetic() -> None:
    subprocess.run([sys.executable, "-c", BLOCKED], check=True, capture_output=True, timeout=120)


def test_the_exact_accountant_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(NoBallArithmeticError, match=r"pip install 'hockeystick\[exact\]'"):
        hs.account(hs.Gaussian(1.0), accountant=hs.accountants.Exact())
