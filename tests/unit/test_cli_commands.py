"""The commands around a specification file, tried as a new user would: right, wrong, missing, broken off."""

from __future__ import annotations

import io
import itertools
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.cli import compare, main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.cli.program import parser
from hockeystick.app.cli.schema import EXAMPLE
from hockeystick.app.spec.model import Specification
from hockeystick.progress import Progress

SPEC = """\
[[steps]]
mechanism = "gaussian"
noise_multiplier = 2.0
[guarantee]
delta = 1e-5
"""
TRUE_EPSILON = 1.993091404415  # one Gaussian release with noise 2 at delta 1e-5, in closed form
COMMANDS = ["dpsgd", "calibrate", "account", "compare", "curve", "sweep", "report", "verify", "schema", "completion"]
BASH = shutil.which("bash") or "/bin/bash"
PROGRAM = [sys.executable, "-m", "hockeystick"]


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == Status.OK
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: Status = Status.BAD_INPUT) -> str:
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return printed.err


def test_no_argument_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys)
    for said in (*COMMANDS, "example", "exit status", "130"):
        assert said in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--version").startswith("hockeystick 0.")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as done:
        main([command, "--help"])
    assert done.value.code == Status.OK
    assert f"hockeystick {command}" in capsys.readouterr().out.partition("example")[2]


def test_every_command_that_prints_answers_has_json() -> None:
    choices = next(a for a in parser()._actions if a.dest == "command").choices
    assert isinstance(choices, dict)
    assert {name for name, one in choices.items() if "--json" not in one.format_help()} == {
        "completion",
        "explore",
        "ledger",
    }  # the actions of a ledger have it
    assert set(COMMANDS) <= set(choices)


def test_account_contains_the_closed_form(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    (result,) = json.loads(told(capsys, "account", spec, "--json"))["results"]
    assert result["lower"] <= TRUE_EPSILON + 1e-12
    assert result["upper"] >= TRUE_EPSILON - 1e-12
    assert result["width"] < 1e-6
    assert "certified" in told(capsys, "account", spec)


def test_options_stand_in_place_of_the_file(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    options = ["--delta", "1e-3,1e-4", "--adjacency", "remove", "--accountant", "certified:tolerance=1e-2", "--json"]
    document = json.loads(told(capsys, "account", spec, *options))
    assert [result["at"]["delta"] for result in document["results"]] == [1e-3, 1e-4]
    assert document["specification"]["guarantee"]["adjacency"] == "remove"
    assert document["specification"]["accountant"] == {"method": "certified", "tolerance": 0.01}


def test_the_example_specification_is_accounted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert told(capsys, "schema", "--example") == EXAMPLE
    assert hs.spec.from_document(json.loads(told(capsys, "schema", "--example", "--json"))) == hs.spec.read(EXAMPLE)
    (tmp_path / "e.toml").write_text(EXAMPLE, encoding="utf-8")
    shown = told(capsys, "account", str(tmp_path / "e.toml"))
    assert "CIFAR-10" in shown
    assert "2.5839" in shown


def test_specification_from_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SPEC))
    assert "1.9931" in told(capsys, "account", "-")


@pytest.mark.parametrize("command", ["account", "compare", "curve", "report"])
def test_a_missing_file_is_one_line(capsys: pytest.CaptureFixture[str], command: str) -> None:
    error = refused(capsys, command, "nowhere.toml")
    assert error == "hockeystick: error: cannot read nowhere.toml: No such file or directory\n"


@pytest.mark.parametrize("command", ["account", "compare", "curve", "report"])
def test_each_problem_of_a_file_is_one_line(capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(SPEC.replace("2.0", "-2").replace("1e-5", "3"), encoding="utf-8")
    lines = refused(capsys, command, str(path)).splitlines()
    assert [line.removeprefix(str(path)).split(" ")[0] for line in lines] == [":3:", ":5:"]


@pytest.mark.parametrize("command", ["account", "report"])
def test_a_specification_without_a_level_says_what_to_write(
    capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SPEC.replace("delta = 1e-5", ""), encoding="utf-8")
    assert "give --delta" in refused(capsys, command, str(tmp_path / "s.toml"))
    assert "1.9931" in told(capsys, command, str(tmp_path / "s.toml"), "--delta", "1e-5")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["account"], "SPEC"),
        (["acount"], "must be one of"),
        (["account", "{spec}", "--delta", "1e-5,x"], "--delta must be a number"),
        (["account", "{spec}", "--accountant", "magic"], "unknown method 'magic'"),
        (["account", "{spec}", "--accountant", "certified:tolerence=1"], "did you mean 'tolerance'"),
        (["account", "{spec}", "--detla", "1e-5"], "unknown option --detla; did you mean --delta?"),
        (["account", "{spec}", "spec.toml"], "account: error: unrecognized arguments: spec.toml"),
        (["ledger", "verify", "census", "-o"], "ledger verify: error: unrecognized arguments: -o"),
        (["account", "{spec}", "--accountant", "gaussian-limit", "--tolerance", "1"], "takes none"),
        (["compare", "{spec}", "--samplings", "magic"], "--samplings must be one of"),
        (["compare", "{spec}", "--accountants", ","], "--accountants: unknown method ''"),
        (["compare", "{spec}", "--samplings", "cut-batches:largest_batch=1e3"], "must be an integer, in digits"),
        (["compare", "{spec}", "--adjacencies", "both"], "--adjacencies must be one of"),
        (["curve", "{spec}", "--plot", "curve.doc"], "must end in"),
        (["report", "{spec}", "-o", "report.doc"], "must end in"),
        (["report", "{spec}", "-o", "/nonexistent/report.html"], "cannot write"),
        (["verify", "{spec}"], "not a receipt"),
        (["verify", "nowhere.json"], "cannot read nowhere.json"),
        (["completion", "tcsh"], "must be one of"),
    ],
)
def test_wrong_arguments_are_one_line(
    capsys: pytest.CaptureFixture[str], spec: str, arguments: list[str], said: str
) -> None:
    error = refused(capsys, *(argument.replace("{spec}", spec) for argument in arguments))
    assert said in error
    assert error.count("\n") == 1


def test_compare_tells_every_combination(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    arguments = ["compare", spec, "--adjacencies", "add-remove,substitute", "--accountants", "automatic,gaussian-limit"]
    rows = json.loads(told(capsys, *arguments, "--json"))["rows"]
    assert [(row["adjacency"], row["accountant"]) for row in rows] == [
        (relation, accountant)
        for relation in ("add-remove", "substitute")
        for accountant in ("automatic", "gaussian-limit")
    ]
    assert rows[0]["result"]["upper"] < rows[2]["result"]["lower"], "substitution doubles the sensitivity"
    shown = told(capsys, *arguments)
    assert shown.count("certified") == 2
    assert shown.count("estimate") == 2


@pytest.mark.parametrize("relations", ["add-remove", "add-remove,substitute"])
def test_compare_shows_rows_as_they_come_on_a_terminal(
    relations: str, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    screen, seen = Terminal(), []
    monkeypatch.setattr(sys, "stdout", screen)
    line = compare._line

    def asked(name: str, one: Specification, quantity: str, level: float) -> dict[str, Any]:
        seen.append(screen.getvalue())
        return line(name, one, quantity, level)

    monkeypatch.setattr(compare, "_line", asked)
    methods = ["automatic", "gaussian-limit", "prv:epsilon_error=1e-15"]
    assert main(["compare", spec, "--adjacencies", relations, "--accountants", ",".join(methods)]) == Status.OK
    whole = screen.getvalue()
    assert whole.startswith("epsilon at delta 1e-5")
    for before, after, (relation, method) in zip(
        seen, [*seen[1:], whole], itertools.product(relations.split(","), methods), strict=True
    ):
        (row,) = (text for text in after.removeprefix(before).splitlines() if text.startswith(method[:3]))
        assert relation in after
        assert ("no answer (below)" in row) == (method == methods[-1])
    assert "- " in whole.rpartition("no answer (below)")[2]  # why
    assert whole.count("accountant  ") == len(relations.split(","))


def test_lines_that_stay_find_the_one_that_shows_wiped() -> None:
    stream = Terminal()
    with Progress("working", stream=stream, delay=0.0) as progress:
        progress.doing("still working")
        time.sleep(0.2)
        with progress.aside():
            time.sleep(0.3)
            assert stream.getvalue().endswith("\r\x1b[K")
    assert "still working" in stream.getvalue()


def test_compare_simulates_only_where_told_to(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    named = {row["accountant"] for row in json.loads(told(capsys, "compare", spec, "--json"))["rows"]}
    assert {"automatic", "contour", "exact", "moments", "saddle-point"} <= named
    assert "monte-carlo" not in named
    arguments = ["compare", spec, "--accountants", "monte-carlo:samples=1000", "--json"]
    assert json.loads(told(capsys, *arguments))["rows"][0]["accountant"] == "monte-carlo(samples=1000)"


def test_compare_samplings_keep_the_rate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        SPEC.replace("2.0", "2.0\nsampling = {scheme = 'poisson', batch_size = 10, population = 100}\ncount = 5"),
        encoding="utf-8",
    )
    arguments = [
        "compare",
        str(tmp_path / "s.toml"),
        "--samplings",
        "none,poisson",
        "--accountants",
        "automatic",
        "--json",
    ]
    none, poisson = json.loads(told(capsys, *arguments))["rows"]
    assert (none["sampling"], poisson["sampling"]) == ("none", "poisson")
    assert poisson["result"]["upper"] < none["result"]["lower"]


def test_curve_decreases_and_is_drawn(capsys: pytest.CaptureFixture[str], spec: str, tmp_path: Path) -> None:
    picture = tmp_path / "c.svg"
    points = json.loads(told(capsys, "curve", spec, "--json", "--plot", str(picture)))["points"]
    assert points[-1]["delta"] == 1e-30
    epsilons = [point["upper"] for point in points]
    assert epsilons == sorted(epsilons)
    assert picture.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(("name", "magic"), [("c.png", b"\x89PNG"), ("c.pdf", b"%PDF")])
def test_curve_is_drawn_by_matplotlib_too(
    capsys: pytest.CaptureFixture[str], spec: str, tmp_path: Path, name: str, magic: bytes
) -> None:
    told(capsys, "curve", spec, "--delta", "1e-2,1e-5,1e-9", "--plot", str(tmp_path / name))
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_a_curve_of_estimates_says_so(capsys: pytest.CaptureFixture[str], spec: str, tmp_path: Path) -> None:
    picture = tmp_path / "c.svg"
    arguments = ["curve", spec, "--accountant", "gaussian-limit", "--delta", "1e-3,1e-5", "--plot", str(picture)]
    shown = told(capsys, *arguments)
    assert shown.count("about") == 3
    assert "certified" not in shown
    assert "estimated: not proved" in picture.read_text(encoding="utf-8")


def test_report_and_verify(capsys: pytest.CaptureFixture[str], spec: str, tmp_path: Path) -> None:
    outputs = [str(tmp_path / name) for name in ("r.html", "r.json", "r.md")]
    shown = told(capsys, "report", spec, "-o", outputs[0], "-o", outputs[1], "-o", outputs[2])
    assert "epsilon = 1.9931" in shown
    for output in outputs[:2]:
        assert "holds" in told(capsys, "verify", output)
    assert Path(outputs[2]).read_text(encoding="utf-8").startswith("# ")
    path = Path(outputs[1])
    path.write_text(path.read_text(encoding="utf-8").replace("1.993", "1.992", 1), encoding="utf-8")
    assert main(["verify", outputs[1]]) == Status.REFUTED
    told_of = capsys.readouterr().out
    assert re.match(r".*r\.json does NOT hold: .*\S", told_of.splitlines()[0])
    assert main(["verify", outputs[1], "--json"]) == Status.REFUTED
    assert json.loads(capsys.readouterr().out)["holds"] is False


@pytest.mark.parametrize("form", ["html", "json"])
def test_a_receipt_is_not_taken_for_a_specification(
    capsys: pytest.CaptureFixture[str], spec: str, tmp_path: Path, form: str
) -> None:
    path = tmp_path / f"receipt.{form}"
    told(capsys, "report", spec, "-o", str(path))
    error = refused(capsys, "account", str(path))
    assert "is a receipt, not a specification" in error
    assert error.count("\n") == 1


def test_report_prints_the_form_asked_for(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    assert told(capsys, "report", spec).startswith("# ")
    assert told(capsys, "report", spec, "--format", "html").startswith("<!DOCTYPE html>")
    assert json.loads(told(capsys, "report", spec, "--json"))["receipt"] == 2


def test_a_case_without_a_theorem_has_its_own_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = SPEC.replace('"gaussian"', '"gaussian-dp"').replace(
        "noise_multiplier = 2.0", "mu = 2\nsampling = {scheme = 'poisson', rate = 0.1}"
    )
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    error = refused(capsys, "account", str(tmp_path / "s.toml"), "--adjacency", "substitute", status=Status.NO_ANSWER)
    assert "no dominating pair" in error
    rows = json.loads(told(capsys, "compare", str(tmp_path / "s.toml"), "--adjacencies", "substitute", "--json"))[
        "rows"
    ]
    assert all(row["result"] is None and row["reason"] for row in rows)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_values(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    script = told(capsys, "completion", shell)
    for word in (*COMMANDS, "adjacency", "add-remove", "substitute"):
        assert word in script


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    script = told(capsys, "completion", "bash")
    ask = "COMP_WORDS=(hockeystick {}); COMP_CWORD={}; _hockeystick; echo ${{COMPREPLY[@]}}"
    asked = {("'ver'", 1): "verify", ("dpsgd --adjacency 'sub'", 3): "substitute", ("curve x --pl", 3): "--plot"}
    asked |= {
        ("ledger spend --wh", 3): "--why",
        ("ledger add-dataset --period 'y'", 4): "year",
        ("dpsgd --po", 2): "--population",
    }
    for (words, place), expected in asked.items():
        run = subprocess.run(
            [BASH, "-c", script + ask.format(words, place)], capture_output=True, text=True, check=True, timeout=20
        )
        assert run.stdout.strip() == expected


def test_progress_is_silent_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress("working", stream=stream, delay=0.0):
        time.sleep(0.05)
    assert stream.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook(io.StringIO):
    """What a notebook's kernel puts in place of stderr: it says that it is no terminal."""

    __module__ = "ipykernel.iostream"


def test_progress_in_a_notebook_uses_no_codes_of_terminals() -> None:
    stream = Notebook()
    with Progress("working", stream=stream, delay=0.0):
        time.sleep(0.05)
    assert "working" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().endswith(" \r")


def test_work_needs_nothing_to_show_progress_on(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stderr in (None, object(), closed):  # as in a program without a window, where it was replaced, or closed
        monkeypatch.setattr(sys, "stderr", stderr)
        assert hs.account(hs.Gaussian(1.0)).epsilon(0.5).certified


def test_work_inside_other_work_shows_no_line_of_its_own() -> None:
    outer, inner, after = Terminal(), Terminal(), Terminal()
    with Progress("whole", stream=outer, delay=0.0), Progress("part", stream=inner, delay=0.0):
        time.sleep(0.05)
    with Progress("next", stream=after, delay=0.0):
        time.sleep(0.05)
    assert "whole" in outer.getvalue()
    assert inner.getvalue() == ""
    assert "next" in after.getvalue()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: hs.account(hs.Gaussian(1.0)).epsilon(1e-5), "accounting"),
        (lambda: hs.account(hs.Gaussian(1.0)).delta([0.5, 1.0]), "accounting"),
        (lambda: hs.calibrate(hs.Gaussian, epsilon=1.0, delta=1e-5), "calibrating"),
        (lambda: hs.dpsgd.noise_multipliers_for(epsilon=1.0, delta=1e-5, steps=9, rates=[0.1]), "calibrating"),
    ],
)
def test_long_work_in_python_shows_its_progress(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], said: str
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(Progress, "_seen", lambda progress: begun.append(progress.line()) or False)
    work()
    assert f" {said} " in begun[0]


def test_progress_on_a_terminal_counts_and_wipes_its_line() -> None:
    stream = Terminal()
    with Progress("working", stream=stream, delay=0.0) as progress:
        assert list(progress.each([1, 2])) == [1, 2]
        time.sleep(0.3)
    assert "working" in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_progress_stays_on_one_line_of_a_narrow_terminal() -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 10))
    with os.fdopen(slave, "w") as stream:
        with Progress("work of a long name", stream=stream, delay=0.0):
            time.sleep(0.05)
        shown = os.read(master, 4096).decode().split("\r\x1b[K")
    os.close(master)
    assert "| work of" in shown
    assert all(len(line) < 10 for line in shown)


def test_quick_work_shows_no_progress() -> None:
    stream = Terminal()
    with Progress("working", stream=stream, delay=5.0):
        pass
    assert stream.getvalue() == ""


def test_an_interrupt_leaves_no_traceback(tmp_path: Path) -> None:
    """A run of minutes, interrupted at the keyboard of a pseudo-terminal once its progress shows."""
    steps = "".join(f'[[steps]]\nmechanism = "laplace"\nscale = {2 + k / 7}\ncount = {k + 1}\n' for k in range(2000))
    spec = tmp_path / "long.toml"
    spec.write_text(steps + "[guarantee]\ndelta = 1e-7\n[accountant]\ntolerance = 1e-9\n", encoding="utf-8")
    master, slave = pty.openpty()
    run = subprocess.Popen([*PROGRAM, "account", str(spec)], stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    shown = ""
    while "accounting" not in shown:
        shown += os.read(master, 4096).decode()
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == Status.INTERRUPTED
    try:
        while chunk := os.read(master, 4096):
            shown += chunk.decode()
    except OSError:  # the other end of a pseudo-terminal is closed
        pass
    os.close(master)
    assert "hockeystick: interrupted" in shown
    assert "Traceback" not in shown


def test_a_reader_that_has_seen_enough_is_no_failure(spec: str) -> None:
    command = " ".join(PROGRAM)
    run = subprocess.run(
        [BASH, "-c", f"set -o pipefail; {command} report {spec} --json | head -c 10"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stderr == ""
    assert run.returncode == 0


def test_the_status_says_what_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is still in the buffer when its reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with monkeypatch.context() as patched, os.fdopen(writer, "w", encoding="utf-8") as nobody:
        patched.setattr(sys, "stdout", nobody)
        run = ["--noise-multiplier", "1", "--batch-size", "5", "--population", "500", "--steps", "2"]
        assert main(["dpsgd", *run, "--delta", "0.1"]) == Status.NOT_CERTIFIED


def test_a_comparison_that_is_too_wide_has_one_blank_line_under_its_title(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text('[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 2.0\n[guarantee]\ndelta = 1e-5\n')
    assert main(["compare", str(spec), "--accountants", "fourier:spacing=1.25e-3,half_width=20.125"]) == 0
    title, blank, heads, *_ = capsys.readouterr().out.splitlines()
    assert (title, blank) == ("epsilon at delta 1e-5, relation add-remove, sampling none", "")
    assert heads.startswith("accountant ")
