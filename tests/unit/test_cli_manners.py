"""The command line on a narrow terminal, a full disk and a closed stdout; numbers as people write them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import WIDTH, rate
from hockeystick.app.cli.status import Status

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


COMMANDS = [
    "dpsgd",
    "calibrate",
    "account",
    "compare",
    "curve",
    "report",
    "verify",
    "schema",
    "selfcheck",
    "completion",
]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_eighty_columns(
    capsys: pytest.CaptureFixture[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= WIDTH == 80


@pytest.mark.parametrize(
    "command",
    [
        RUN,
        "calibrate --epsilon 1 --delta 1e-6 --rate 0.001 --steps 1000",
        "account {spec}",
        "curve {spec} --delta 1e-5,1e-30",
        "compare {spec} --accountants automatic;exact",
        "compare {spec} --adjacencies remove,substitute,zero-out --samplings none,poisson --accountants automatic",
    ],
)
def test_answers_fit_eighty_columns(capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SPEC, encoding="utf-8")
    shown = told(capsys, command.replace("{spec}", str(tmp_path / "run.toml")))
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize(("text", "value"), [("1/235", 1 / 235), ("0.4%", 0.004), ("100%", 1.0), ("1e-3", 1e-3)])
def test_rates_are_read_as_people_write_them(text: str, value: float) -> None:
    assert rate("--rate")(text) == value


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
    ("wrong", "meant"), [("--safe", None), ("--rat", "--rate"), ("--stesp", "--steps"), ("--x", None)]
)
def test_only_what_is_alike_is_suggested(capsys: pytest.CaptureFixture[str], wrong: str, meant: str | None) -> None:
    error = told(capsys, f"{RUN} {wrong} 1", Status.BAD_INPUT)
    assert (f"did you mean {meant}?" in error) if meant else ("did you mean" not in error)
