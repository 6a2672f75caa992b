"""The command line on a narrow terminal, a full disk and a closed stdout; numbers as people write them."""

from __future__ import annotations

import errno
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import WIDTH, Status, rate
from hockeystick.app.cli.program import COMMANDS

BASH = shutil.which("bash") or "/bin/bash"
PROGRAM = f"{sys.executable} -m hockeystick"
RUN = "dpsgd --noise-multiplier 1 --rate 0.01 --steps 200 --delta 1e-5"
SPEC = """\
title = "A run"
[[steps]]
mechanism = "gaussian"
noise_multiplier = 1.0
sampling = { scheme = "poisson", batch_size = 500, population = 50_000 }
count = 200
[guarantee]
delta = 1e-5
"""


def shell(command: str) -> subprocess.CompletedProcess[str]:
    line = f"set -o pipefail; {command}"
    return subprocess.run([BASH, "-c", line], capture_output=True, text=True, check=False, timeout=60)


def told(capsys: pytest.CaptureFixture[str], command: str, status: Status = Status.OK) -> str:
    assert main(command.split()) == status
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.out if status == Status.OK else printed.err


@pytest.mark.parametrize(
    ("redirect", "said"), [("> /dev/full", "cannot write the answer: No space left"), (">&-", "stdout is closed")]
)
def test_an_answer_that_cannot_be_written_is_one_line_and_status_2(redirect: str, said: str) -> None:
    run = shell(f"{PROGRAM} {RUN} {redirect}")
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    assert run.returncode == Status.BAD_INPUT


def test_an_answer_that_the_terminal_has_no_letters_for_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    assert main([*RUN.split(), "--unit", "m\xe9nage"]) == Status.BAD_INPUT
    wanted = "cannot write the answer: ascii has no '\\xe9'; set PYTHONIOENCODING=utf-8\n"
    assert said.getvalue() == f"hockeystick: error: {wanted}"


def test_a_failure_that_cannot_be_said_keeps_its_status() -> None:
    assert shell(f"{PROGRAM} account missing.toml 2> /dev/full").returncode == Status.BAD_INPUT


def test_an_answer_needs_no_stderr(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SPEC, encoding="utf-8")
    run = shell(f"{PROGRAM} account {tmp_path}/run.toml 2>&-")
    assert run.returncode == Status.OK
    assert "certified" in run.stdout


@pytest.mark.parametrize("command", ["account", "verify", "import", "audit --scores"])
def test_a_closed_stdin_is_one_line_and_status_2(command: str) -> None:
    run = shell(f"{PROGRAM} {command} - <&-")
    assert (run.returncode, run.stderr.count("\n")) == (Status.BAD_INPUT, 1)
    assert "stdin is closed" in run.stderr


def test_a_file_from_stdin_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SPEC, encoding="utf-8-sig")
    assert shell(f"{PROGRAM} account - < {tmp_path}/run.toml").returncode == Status.OK


def test_what_import_prints_is_read_from_stdin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "event.json").write_text('{"class_name": "GaussianDpEvent", "noise_multiplier": 2.0}', encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(told(capsys, f"import {tmp_path}/event.json --delta 1e-5")))
    assert "(1.9931, 1e-5)" in told(capsys, "account -")


def test_a_picture_that_cannot_be_drawn_leaves_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def half(_: object, stream: Any, **__: object) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.png").write_text("before", encoding="utf-8")
    monkeypatch.setattr(figure.Figure, "savefig", half)
    assert "cannot write" in told(capsys, f"{RUN} --plot {tmp_path}/a.png", Status.BAD_INPUT)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["before"]


def test_minus_zero_is_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(SPEC.replace("1e-5", "-0.0"), encoding="utf-8")
    for command in (f"account {tmp_path}/run.toml", f"{RUN.replace('1e-5', '-0')}"):
        assert "at delta 0\n" in told(capsys, command)


@pytest.mark.parametrize("noun", ["", " ", "\udcff"])
def test_a_unit_says_what_a_record_is(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN.split(), "--unit", noun]) == Status.BAD_INPUT
    assert "--unit must be a text" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["account", "report", "verify", "verify --independent", "import"])
@pytest.mark.parametrize(("name", "text"), [("deep.json", "[" * 100_000), ("deep.toml", f"x = {'[' * 20_000}")])
def test_a_file_nested_too_deeply_is_one_line_and_status_2(
    command: str, name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = told(capsys, f"{command} {tmp_path / name}", Status.BAD_INPUT)
    assert said.startswith(str(tmp_path / name))
    assert said.count("\n") == 1


def test_a_picture_is_written_even_if_the_table_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SPEC, encoding="utf-8")
    run = shell(f"{PROGRAM} curve {tmp_path}/run.toml --plot {tmp_path}/a.svg | true")
    assert run.stderr == ""
    assert (tmp_path / "a.svg").exists()


def test_an_interrupt_while_everything_loads_leaves_no_traceback() -> None:
    code = (
        "import builtins, os, signal, sys\n"
        "load = builtins.__import__\n"
        "def slow(name, *rest):\n"
        "    if name.startswith('numpy'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest)\n"
        "from hockeystick.app.cli import main\n"
        "builtins.__import__ = slow\n"
        "sys.exit(main(['--version']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == Status.INTERRUPTED
    assert run.stderr == "hockeystick: interrupted\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_eighty_columns(
    capsys: pytest.CaptureFixture[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= WIDTH == 80


LONG = """\
title = "A run whose title goes on for so long that no line of a terminal holds it, whatever one does"
[[steps]]
mechanism = "gaussian"
noise_multiplier = 1.0
sampling = { scheme = "poisson", batch_size = 500, population = 50_000 }
count = 2000
name = "training"
note = "a note that goes on for a while as well, so that it has to be continued on the line below it"
[[steps]]
mechanism = "laplace"
scale = 30.0
[guarantee]
unit = "member of a household"
delta = [1e-5, 1e-6]
[circumstances]
batches = "shuffled"
"""
ANSWERS = [
    RUN,
    RUN + ",1e-6,1e-7,1e-8 --by-epoch",
    "calibrate --epsilon 1 --delta 1e-6 --rate 0.001 --steps 1000",
    "calibrate {spec} --find noise_multiplier --epsilon 3 --delta 1e-6",
    "account {spec}",
    "account {spec} --group-size 1",
    "curve {spec} --delta 1e-5,1e-30",
    "compare {spec} --accountants automatic;moments --adjacencies add,zero-out --samplings poisson,without-replacement",
    "sweep --noise-multiplier 0.8,1,1.5 --rate 0.005,0.01 --steps 1000 --delta 1e-5",
    "sweep --epsilon 1,2 --rate 0.01 --steps 1000 --delta 1e-5",
    "audit --canaries 1000 --guesses 200 --correct 180",
    "selfcheck --quick",
    "schema --example",
]
LENGTHENED = ("account {spec}", "verify {receipt}")  # what "report" says of the receipt is shown before


@pytest.mark.parametrize(
    ("command", "text"),
    [
        *((command, SPEC) for command in ANSWERS),
        *((command, LONG) for command in LENGTHENED),
        pytest.param("verify --independent {receipt}", SPEC, marks=pytest.mark.torture),
    ],
)
def test_answers_fit_eighty_columns(
    capsys: pytest.CaptureFixture[str], command: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(text, encoding="utf-8")
    if command.startswith("verify"):
        main(["report", "run.toml", "-o", "run.json"])
    main(command.replace("{spec}", "run.toml").replace("{receipt}", "run.json").split())
    shown = capsys.readouterr().out
    assert shown
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize(("text", "value"), [("1/235", 1 / 235), ("0.4%", 0.004), ("100%", 1.0), ("1e-3", 1e-3)])
def test_rates_are_read_as_people_write_them(text: str, value: float) -> None:
    assert rate("--rate")(text) == value


@pytest.mark.parametrize("text", [f"1{'0' * 400}/3", f"1{'0' * 400}%"])
def test_a_rate_beyond_float64_is_one_line(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*RUN.replace("0.01", text).split()]) == Status.BAD_INPUT
    assert capsys.readouterr().err.startswith("hockeystick dpsgd: error: --rate must be in (0, 1], got inf")


@pytest.mark.parametrize("text", ["1/0", ".%", "1/x", "1.2.3%"])
def test_what_is_no_rate_is_said_to_be_no_number(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*RUN.replace("0.01", text).split()]) == Status.BAD_INPUT
    assert f"--rate must be a number, got {text!r}" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1/0", "0/5", "3/2", "101%", "0%", "1/", "%", "1.2.3%", "-1/2", "1e-400", "x"])
def test_a_rate_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert "--rate" in told(capsys, f"{RUN} --rate={text}", Status.BAD_INPUT)


@pytest.mark.parametrize("form", ["toml", "json", "option"])
@pytest.mark.parametrize("text", ["1e-400", "0.00001e-330", "1e400"])
def test_what_float64_cannot_hold_is_not_taken_for_another_number(
    capsys: pytest.CaptureFixture[str], text: str, form: str, tmp_path: Path
) -> None:
    if form == "option":
        error = told(capsys, RUN.replace("1e-5", text), Status.BAD_INPUT)
    else:
        written = {
            "toml": SPEC.replace("1e-5", text),
            "json": '{"steps": [{"mechanism": "gaussian", "noise_multiplier": 1}],\n"guarantee": {"delta": '
            + text
            + "}}",
        }[form]
        (tmp_path / f"run.{form}").write_text(written, encoding="utf-8")
        error = told(capsys, f"account {tmp_path}/run.{form}", Status.BAD_INPUT)
        assert f"run.{form}:{8 if form == 'toml' else 2}: " in error
    assert f"{text} is " in error
    assert "float64" in error


def test_zero_is_zero_however_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no finite epsilon" in told(capsys, RUN.replace("1e-5", "0.0e-400"))


@pytest.mark.parametrize(
    ("wrong", "meant"), [("--sleep", None), ("--rat", "--rate"), ("--stesp", "--steps"), ("--x", None)]
)
def test_only_what_is_alike_is_suggested(capsys: pytest.CaptureFixture[str], wrong: str, meant: str | None) -> None:
    error = told(capsys, f"{RUN} {wrong} 1", Status.BAD_INPUT)
    assert (f"did you mean {meant}?" in error) if meant else ("did you mean" not in error)


EPOCHS = "dpsgd --noise-multiplier 1 --batch-size 256 --population 60000 --epochs 30"


def test_epochs_are_counted_as_a_data_loader_does_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """30 x ceil(60000 / 256) = 7050 steps at rate 256/60000: no less than by dropping the last batch, or at 1/235."""
    shown = told(capsys, f"{EPOCHS} --delta 1e-5")
    assert "7,050" in shown
    assert "30 epochs of 235 batches, the last one short and counted" in shown
    (found,) = json.loads(told(capsys, f"{EPOCHS} --delta 1e-5 --json"))["results"]
    for steps, chance in ((7031, 256 / 60_000), (7050, 1 / 235), (7020, 256 / 60_000)):
        other = hs.account(hs.Gaussian(1.0).poisson(chance) * steps).epsilon(1e-5)
        assert isinstance(other, hs.Bound)
        assert other.upper <= found["upper"]
    same = hs.dpsgd.run(
        1.0, hs.dpsgd.steps_in(30, batch_size=256, population=60_000), batch_size=256, population=60_000
    )
    assert hs.account(same).epsilon(1e-5).sides == (found["lower"], found["upper"])


@pytest.mark.parametrize(("epochs", "rate", "steps"), [(30, 1 / 235, 7050), (0.5, 0.01, 50), (1, 0.3, 4)])
def test_epochs_of_a_rate_are_whole_batches(epochs: float, rate: float, steps: int) -> None:
    assert hs.dpsgd.steps_in(epochs, rate=rate) == steps
    assert hs.dpsgd.batches_in_epoch(rate=1 / 3) == 3


def test_the_table_by_epoch_ends_where_the_run_does(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(told(capsys, f"{EPOCHS} --delta 1e-5,1e-7 --by-epoch --json"))
    rows = document["by_epoch"]
    assert [row["steps"] for row in rows] == [235 * k for k in range(1, 31)]
    for place, result in enumerate(document["results"]):
        uppers = [row["epsilon"][place]["upper"] for row in rows]
        assert uppers == sorted(uppers)
        assert uppers[-1] == result["upper"]
    long = json.loads(told(capsys, f"{RUN.replace('200', '12345')} --by-epoch --json"))["by_epoch"]
    assert len(long) <= 41
    assert long[-1]["steps"] == 12345
    shown = told(capsys, f"{EPOCHS} --delta 1e-5,1e-7 --by-epoch")
    assert max(map(len, shown.splitlines())) <= WIDTH


@pytest.mark.parametrize("more", ["", "--by-epoch"])
def test_a_run_is_drawn_and_saved_as_a_specification(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: str
) -> None:
    run = EPOCHS.replace("--epochs 30", "--epochs 3")
    shown = told(capsys, f"{run} --delta 1e-5 {more} --plot {tmp_path}/a.png --save {tmp_path}/run.toml")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    again = told(capsys, f"account {tmp_path}/run.toml")
    assert again.splitlines()[0] == shown.splitlines()[0]
    assert "cannot write" in told(capsys, f"{RUN} --save /nonexistent/run.toml", Status.BAD_INPUT)


def test_shuffled_batches_are_accounted_as_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    passes = EPOCHS.replace("60000", "59904").replace("--epochs 30", "--epochs 2")
    shuffled = f"{passes} --delta 1e-5 --sampling shuffled"
    shown = told(capsys, shuffled)
    assert "zero-out" in shown
    assert "one unsampled release an epoch" in " ".join(shown.split())
    (found,) = json.loads(told(capsys, f"{shuffled} --json"))["results"]
    unsampled = hs.account(hs.Gaussian(1.0) * 2, "zero-out").epsilon(1e-5)
    assert float(unsampled.sides[1]) == found["upper"]
    assert "--population 59904" in told(capsys, shuffled.replace("59904", "60000"), Status.BAD_INPUT)
    by_steps = shuffled.replace("--epochs 2", "--steps 468")
    assert told(capsys, by_steps).splitlines()[0] == shown.splitlines()[0]
    assert "whole passes" in told(capsys, shuffled.replace("--epochs 2", "--steps 469"), Status.BAD_INPUT)


def test_a_target_at_every_delta_is_warned_of_and_a_floor_helps(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "calibrate --mu 0.5 --rate 0.01 --steps 1000"
    everywhere = told(capsys, asked)
    assert everywhere.startswith("noise multiplier = 63.2")
    assert "--floor" in everywhere
    above = told(capsys, f"{asked} --floor 1e-6 --tolerance 1e-2 --precision 1e-2")
    assert "note: mu-GDP at every delta" not in above
    assert "above delta 1e-6" in above
    assert float(above.split()[3]) < 5.0
    assert "--mu" in told(capsys, f"{asked.replace('--mu 0.5', '--advantage 0.1')} --floor 1e-6", Status.BAD_INPUT)


def test_a_target_out_of_reach_is_status_3_in_the_callers_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text('[[steps]]\nmechanism = "discrete-gaussian"\nsigma = 2.0\n', encoding="utf-8")
    asked = f"calibrate {tmp_path}/s.toml --find sigma --epsilon 1e-9 --delta 1e-9 --adjacency remove"
    error = told(capsys, asked, Status.NO_ANSWER)
    assert "no value from" in error
    assert "at the safest one, 1000000," in error  # the largest sigma that the mechanism takes
    assert "must be at most" not in error


def test_a_family_is_searched_where_it_is_defined() -> None:
    found = hs.calibrate(lambda q: hs.Gaussian(1.0).poisson(q) * 100, epsilon=200.0, delta=1e-5, guess=0.5)
    assert found.value == 1.0
    assert found.unsafe is None
