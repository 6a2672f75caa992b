"""A broken assumption decides the headline, the badge, the first line of every output and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hockeystick.app.cli import main
from hockeystick.app.cli.status import Status
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.spec import read

SPEC = """\
[[steps]]
mechanism = "gaussian"
noise_multiplier = 1.0
sampling = { scheme = "poisson", rate = 0.01 }
count = 2000
[guarantee]
delta = 1e-5
[circumstances]
examples = 1000
"""
BROKEN = {
    "shuffled": 'batches = "shuffled"',
    "adaptive": 'adaptive = "yes"',
    "tuning": 'tuning = "not-counted"',
    "delta": "",  # with a delta of 1e-2
}


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    text = SPEC.replace("1e-5", "1e-2") if request.param == "delta" else SPEC
    path = tmp_path / "broken.toml"
    path.write_text(text + BROKEN[request.param], encoding="utf-8")
    return str(path)


def first_words(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == Status.NOT_CERTIFIED
    shown = capsys.readouterr().out
    assert shown.startswith("NOT CERTIFIED: an assumption of the accounting is broken\n  - ")
    assert ", certified" not in shown
    return shown


def test_every_command_says_it_first_and_in_its_status(
    capsys: pytest.CaptureFixture[str], broken: str, tmp_path: Path
) -> None:
    first_words(capsys, "account", broken)
    assert "if every assumption held" in first_words(capsys, "curve", broken)
    first_words(capsys, "compare", broken, "--accountants", "certified")
    made = str(tmp_path / "receipt.html")
    first_words(capsys, "report", broken, "-o", made)
    first_words(capsys, "verify", made)


def test_calibration_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SPEC + 'adaptive = "yes"', encoding="utf-8")
    target = ["--epsilon", "1", "--delta", "1e-5", "--precision", "1e-2"]
    first_words(capsys, "calibrate", str(path), *target, "--find", "noise_multiplier")


def test_json_says_it_first(capsys: pytest.CaptureFixture[str], broken: str, tmp_path: Path) -> None:
    made = str(tmp_path / "receipt.json")
    main(["report", broken, "-o", made])
    capsys.readouterr()
    for command in (["account", broken], ["curve", broken, "--delta", "1e-2"], ["verify", made]):
        assert main([*command, "--json"]) == Status.NOT_CERTIFIED
        document = json.loads(capsys.readouterr().out)
        assert next(iter(document)) == "broken_assumptions"
        assert document["broken_assumptions"]


def test_a_run_as_accounted_is_certified(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SPEC + 'batches = "poisson"\nadaptive = "no"\ntuning = "none"', encoding="utf-8")
    assert main(["account", str(path)]) == Status.OK
    assert capsys.readouterr().out.splitlines()[0].endswith("-differential privacy, certified")


@pytest.mark.parametrize("form", [page, markdown])
def test_no_receipt_of_it_bears_the_badge(form: object) -> None:
    made = receipt(read(SPEC + 'batches = "shuffled"\nadaptive = "yes"'))
    shown = form(made).split("<script", maxsplit=1)[0]  # type: ignore[operator]
    before_figure = shown.partition("epsilon = ")[0]
    assert "NOT CERTIFIED: 2 assumptions are broken" in before_figure
    assert "guarantee does not apply to this run" in before_figure
    assert ">certified<" not in shown
    assert "(certified)" not in shown
    assert made["results"][0]["statement"].startswith("NOT CERTIFIED")
    assert "The true epsilon is proved" not in shown
    assert "not certified, true only if every assumption held" in shown
