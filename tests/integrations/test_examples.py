"""The how-tos run as they stand, and end where the run accounted at once ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hockeystick.app.report.verification import open_receipt, verify

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("script", "needs", "receipt"),
    [
        ("opacus_digits.py", ("opacus", "sklearn"), "opacus-receipt.html"),
        ("jax_digits.py", ("jax_privacy", "sklearn"), "jax-receipt.html"),
        ("flower_rounds.py", ("flwr", "sklearn"), "flower-receipt.html"),
    ],
)
def test_a_how_to_trains_resumes_and_writes_a_receipt_that_holds(
    script: str, needs: tuple[str, ...], receipt: str, tmp_path: Path
) -> None:
    for package in needs:
        pytest.importorskip(package)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    spent = re.search(r"spent ([\d.]+); accounted at once ([\d.]+)", run.stdout)
    assert spent is not None
    assert spent[1] == spent[2]
    written = (tmp_path / "out" / receipt).read_text()
    assert verify(open_receipt(written), shown=written).holds


@pytest.mark.parametrize("script", ["opacus_digits.py", "jax_digits.py", "flower_rounds.py"])
def test_the_line_that_switches_is_in_the_script(script: str) -> None:
    source = (EXAMPLES / script).read_text()
    (new,) = re.findall(r"^    \+(.*)$", source, flags=re.MULTILINE)
    assert source.count(new) == 2, "the diff's new line is a line of the script"
