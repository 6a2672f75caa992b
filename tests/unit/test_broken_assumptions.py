"""A broken assumption decides the headline, the badge, the first line of every output and the exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hockeystick.app import plots
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.latex import latex
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


HELD = ", if every assumption held: "


@pytest.mark.parametrize("kind", BROKEN)
def test_no_part_of_a_receipt_claims_what_is_not_certified(kind: str) -> None:
    """A screenshot of any part, a sentence pasted into a paper, a record: none of them is a certificate."""
    made = receipt(read((SPEC.replace("1e-5", "1e-2") if kind == "delta" else SPEC) + BROKEN[kind]))
    shown = page(made)
    for caption in re.findall("<figcaption>(.*?)</figcaption>", shown):
        assert HELD in caption
    for text in (shown, markdown(made)):
        assert "(proved, the sides" not in text
    sentence = latex(made)
    assert "the bound is certified" not in sentence
    assert sentence.splitlines()[1].startswith("NOT CERTIFIED: an assumption of the accounting is broken. ")
    record = deployment_record(made)
    assert "# not certified, true only if every assumption held" in record
    assert 'privacy_parameters_details: "NOT CERTIFIED' in record


def test_pictures_say_it_in_themselves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    titles: list[str | None] = []
    canvas = plots.canvas

    def titled(title: str | None, *rest: Any, **more: Any) -> Any:
        titles.append(title)
        return canvas(title, *rest, **more)

    monkeypatch.setattr(plots, "canvas", titled)
    (tmp_path / "broken.toml").write_text(SPEC + BROKEN["shuffled"], encoding="utf-8")
    drawn = tmp_path / "a.svg"
    first_words(capsys, "curve", str(tmp_path / "broken.toml"), "--plot", str(drawn))
    assert re.search(r"<text [^>]*>NOT CERTIFIED: an assumption of the accounting is broken</text>", drawn.read_text())
    first_words(capsys, "curve", str(tmp_path / "broken.toml"), "--plot", str(tmp_path / "a.png"))
    run = "dpsgd --noise-multiplier 1 --batch-size 10 --population 1000 --steps 100 --delta 0.01 --by-epoch --plot"
    first_words(capsys, *run.split(), str(tmp_path / "b.png"))
    assert len(titles) == 2
    assert all(title is not None and title.startswith("NOT CERTIFIED") for title in titles)


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
