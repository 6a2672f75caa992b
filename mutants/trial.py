"""A copy of the tree, and the tests run in it with one change made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from mutants.catalogue import Change
from mutants.source import Sources

__all__ = ["LONGEST", "Copy", "Trial", "Verdict"]

Verdict = Literal["noticed", "survived", "invalid"]

LONGEST = 900.0
"""Seconds after which the tests of a change are given up: the change is then invalid, since nothing was asserted."""

_TOP = ("src", "tests", "conftest.py", "pyproject.toml", "benchmarks", "examples", "reproduce", "mutants", "docs")
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
_FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
_NOTICED, _PASSED = 1, 0


@final
@dataclass(frozen=True)
class Trial:
    """What became of a change: the verdict, the first test that failed (or what went wrong), the seconds it took."""

    change: Change
    verdict: Verdict
    by: str
    seconds: float


@final
class Copy:
    """A copy of the tree, to change and to test.

    No bytecode is written while testing, and what was compiled before is checked by content, not by time: a change made
    within the second, or of the same length, is always seen. ``PYTHONPATH`` puts the copy in front of the installed
    package, for the processes that tests start, too.

    Parameters
    ----------
    tree
        The directory that holds ``src`` and ``tests``.
    place
        An empty directory for the copy.
    """

    def __init__(self, tree: Path, place: Path) -> None:
        self._place = place
        ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
        for name in (*_TOP, *_PAGES):
            source = tree / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=ignore)
            elif source.exists():
                shutil.copy2(source, place / name)
        self._sources = Sources(place / "src")
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "HYPOTHESIS_"))},
            **threads,
            "PYTHONPATH": str(place / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._run("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        found = self._run("-c", "import hockeystick; print(hockeystick.__file__)").stdout.strip()
        if not Path(found).resolve().is_relative_to(place.resolve()):
            raise RuntimeError(f"the copy at {place} would test {found}")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self._place,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )

    def tested(self, tests: Sequence[str], *, first: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `tests` here; with `first`, up to the first that fails."""
        return self._run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", *["-x"] * first, *tests)

    def trial(self, change: Change) -> Trial:
        """Make `change`, run its tests, and take it back."""
        start = time.monotonic()
        made = self._sources.changed(change)
        before = made.path.read_text(encoding="utf-8")
        made.path.write_text(made.text, encoding="utf-8")
        try:
            verdict, by = _verdict(self.tested(change.tests))
        except subprocess.TimeoutExpired:
            verdict, by = "invalid", f"no answer in {LONGEST:g} seconds"
        finally:
            made.path.write_text(before, encoding="utf-8")
        return Trial(change, verdict, by, time.monotonic() - start)


def _verdict(run: subprocess.CompletedProcess[str]) -> tuple[Verdict, str]:
    """Only a test that fails has noticed; code that does not run, or tests that are not found, say nothing."""
    failed = _FAILED.search(run.stdout)
    by = failed.group(1) if failed else ""
    if run.returncode == _PASSED:
        return "survived", ""
    if run.returncode != _NOTICED or failed is None:
        return "invalid", (run.stdout + run.stderr).strip()[-600:]
    if "NameError: " in run.stdout:
        return "invalid", f"{by}: the change names what is not there"
    return "noticed", by
