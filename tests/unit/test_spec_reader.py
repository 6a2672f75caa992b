"""Specification files: what is read, and that every kind of error points at its line."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.spec import (
    Choice,
    Specification,
    SpecificationError,
    StepEntry,
    from_document,
    load,
    of_run,
    read,
    save,
    to_toml,
)
from hockeystick.app.spec.circumstances import Circumstances
from hockeystick.app.spec.positions import json_lines, toml_lines
from hockeystick.sampling import Poisson

GOOD = """\
title = "two kinds of steps"
[[steps]]
mechanism = "gaussian"
noise_multiplier = 1.5
sampling = { scheme = "poisson", rate = 0.01 }
count = 200
[[steps]]
mechanism = "laplace"
scale = 20
[guarantee]
adjacency = "remove"
unit = "user"
delta = [1e-5, 1e-6]
[accountant]
method = "certified"
tolerance = 1e-4
[circumstances]
examples = 50_000
batches = "poisson"
clipping_norm = 2
tuning = "none"
adaptive = "no"
notes = "none"
"""


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def problems(text: str, form: str = "toml") -> list[tuple[int, str]]:
    with pytest.raises(SpecificationError) as caught:
        read(text, form=form)  # type: ignore[arg-type]
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_every_part_is_read() -> None:
    found = read(GOOD)
    assert found.composition == hs.Gaussian(1.5).poisson(0.01) * 200 + hs.Laplace(20)
    assert (found.adjacency, found.unit, found.deltas) == ("remove", "user", (1e-5, 1e-6))
    assert found.method == hs.accountants.Certified(tolerance=1e-4)
    assert found.circumstances.examples == 50_000
    assert found.title == "two kinds of steps"


def test_document_reads_back_to_an_equal_specification() -> None:
    found = read(GOOD)
    assert from_document(found.document()) == found
    assert read(json.dumps(found.document()), form="json") == found


def test_batch_size_over_examples_is_the_rate() -> None:
    sized = replaced("rate = 0.01", "batch_size = 500, population = 50000")
    assert read(sized).composition == read(GOOD).composition


def test_sampling_none_is_no_sampling() -> None:
    text = replaced('{ scheme = "poisson", rate = 0.01 }', '"none"')
    assert read(text).steps[0] == StepEntry(Choice.of("gaussian", noise_multiplier=1.5), None, 200)


def test_curve_is_that_of_account() -> None:
    found = read('[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 2\n[guarantee]\ndelta = 1e-5\n')
    own = hs.account(hs.Gaussian(2.0)).epsilon(1e-5)
    bound = found.curve.epsilon(1e-5)
    assert isinstance(bound, hs.Bound)
    assert isinstance(own, hs.Bound)
    assert (bound.lower, bound.upper) == (own.lower, own.upper)


ONE_OF_EACH_KIND = {
    "unknown key": (replaced("unit =", "units ="), 12, "did you mean 'unit'"),
    "unknown top-level key": (replaced("title", "titel"), 1, "did you mean 'title'"),
    "unknown mechanism": (replaced('"gaussian"', '"gausian"'), 3, "did you mean 'gaussian'"),
    "no mechanism": ("[[steps]]\ncount = 2\n", 1, "mechanism is missing"),
    "mechanism no text": (replaced('"gaussian"', "3"), 3, "mechanism must be a name"),
    "misspelled parameter": (replaced("noise_multiplier", "noise_multipler"), 4, "did you mean 'noise_multiplier'"),
    "missing parameter": (replaced("noise_multiplier = 1.5\n", ""), 2, "noise_multiplier is missing"),
    "wrong kind": (replaced("noise_multiplier = 1.5", 'noise_multiplier = "big"'), 4, "must be a number"),
    "true is no number": (replaced("noise_multiplier = 1.5", "noise_multiplier = true"), 4, "must be a number"),
    "NaN": (replaced("noise_multiplier = 1.5", "noise_multiplier = nan"), 4, "NaN"),
    "negative": (replaced("noise_multiplier = 1.5", "noise_multiplier = -1.5"), 4, "above 0"),
    "rate out of range": (replaced("rate = 0.01", "rate = 1.01"), 5, "(0, 1]"),
    "rate missing": (replaced(", rate = 0.01", ""), 5, "rate is missing"),
    "unknown scheme": (replaced('"poisson"', '"poison"'), 5, "did you mean 'poisson'"),
    "batch above data": (replaced("rate = 0.01", "batch_size = 9, population = 8"), 5, "at most population"),
    "batch without data": (replaced("rate = 0.01", "batch_size = 9"), 5, "population is missing"),
    "two ways": (
        replaced("rate = 0.01", "rate = 0.01, batch_size = 9, population = 900"),
        5,
        "steps[1].sampling says the same in two ways: give rate, or batch_size and population, not both",
    ),
    "examples for population": (
        replaced('"poisson", rate = 0.01', '"without-replacement", batch_size = 9, examples = 90'),
        5,
        "unknown key 'examples' in steps[1].sampling; did you mean 'population'?",
    ),
    "zero count": (replaced("count = 200", "count = 0"), 6, "at least 1"),
    "fractional count": (replaced("count = 200", "count = 2.5e0"), 6, "integer"),
    "unknown adjacency": (replaced('"remove"', '"neighbour"'), 11, "adjacency must be one of"),
    "empty unit": (replaced('"user"', '" "'), 12, "unit must be a text"),
    "delta above one": (replaced("1e-6", "2"), 13, "[0, 1]"),
    "delta no number": (replaced("1e-6", '"x"'), 13, "must be a number"),
    "no deltas": (replaced("[1e-5, 1e-6]", "[]"), 13, "empty"),
    "unknown accountant": (replaced('"certified"', '"certifed"'), 15, "did you mean 'certified'"),
    "accountant's range": (replaced("tolerance = 1e-4", "tolerance = -1"), 16, "tolerance must be"),
    "unknown circumstance": (replaced("clipping_norm", "clip"), 20, "unknown key 'clip'"),
    "circumstance's choice": (replaced('"poisson"\nclip', '"shufled"\nclip'), 19, "batches must be one of"),
    "examples fractional": (replaced("50_000", "50_000.5"), 18, "integer"),
    "version": ("version = 2\n" + GOOD, 1, "version must be 1"),
    "no steps": ("title = 'x'\n", 1, "steps are missing"),
    "steps no list": ("title = 'x'\nsteps = 3\n", 2, "steps must be a list"),
    "no table": ("guarantee = 3\n[[steps]]\nmechanism = 'laplace'\nscale = 1\n", 1, "guarantee must be a table"),
    "digits of other scripts": (
        '[[steps]]\nmechanism = "discrete-pair"\np = ["1/²", "1/2"]\nq = [0.5, 0.5]\n',
        3,
        "p must be a list of numbers",
    ),
    "more digits than Python reads": (
        replaced("count = 200", f"count = {'3' * 5000}"),
        6,
        "a number of thousands of digits",
    ),
    "deep": ("x = 1\ny = " + "[" * 20_000, 1, "nested too deeply"),
    "scale beyond float64": ('[[steps]]\nmechanism = "discrete-laplace"\nepsilon = 5e-324\n', 1, "must be finite"),
    "syntax": (replaced("count = 200", "count = "), 6, "not valid TOML"),
    "end of file": ('title = "x', 1, "not valid TOML"),
}


@pytest.mark.parametrize(("text", "line", "said"), ONE_OF_EACH_KIND.values(), ids=ONE_OF_EACH_KIND.keys())
def test_each_kind_of_error_is_one_problem_at_its_line(text: str, line: int, said: str) -> None:
    ((found_line, message),) = problems(text)
    assert found_line == line
    assert said in message
    assert "\n" not in message


def test_all_problems_are_reported_together_in_order() -> None:
    text = replaced("noise_multiplier = 1.5", "noise_multiplier = -1").replace("1e-6", "2").replace("scale = 20", "")
    assert [line for line, _ in problems(text)] == [4, 7, 13]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"steps": [],\n "steps": []}', 2, "stands twice"),
        ("{", 1, "not valid JSON"),
        ("[]", 1, "must be a table"),
        ("null", 1, "must be a table, got null"),
        ('{"steps": [\n{"mechanism": "gaussian",\n"noise_multiplier": NaN}]}', 3, "NaN"),
        ('{"steps": [\n{"mechanism": "laplace",\n"scale": 1,\n "count": 0}]}', 4, "at least 1"),
        ('{"title": "\\ud800",\n "steps": [{"mechanism": "laplace", "scale": 1}]}', 1, "title must be a text"),
    ],
)
def test_json_errors_point_at_their_line(text: str, line: int, said: str) -> None:
    ((found_line, message),) = problems(text, "json")
    assert (found_line, said in message) == (line, True)


def test_the_text_of_an_error_is_file_line_message(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(replaced("count = 200", "count = 0"), encoding="utf-8")
    with pytest.raises(SpecificationError, match=r"run\.toml:6: count must be"):
        load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecificationError, match="UTF-8"):
        load(path)


def test_toml_lines_of_every_construct() -> None:
    text = '''# comment with [brackets] and = signs
a.b = """
two lines ] } #
"""   # trailing
"quoted key" = 'x = 1'
list = [ # comment, with commas
  1,
  { c = [2,
    3] },
]
[t.u]
v = 1979-05-27 07:32:00
[[t.many]]
w = "\\"#"
[[t.many]]
[t.many.inner]
x = -0.5e-3
'''
    lines = toml_lines(text)
    assert lines[("a", "b")] == 2
    assert lines[("quoted key",)] == 5
    assert lines[("list", 0)] == 7
    assert lines[("list", 1, "c", 1)] == 9
    assert lines[("t", "u", "v")] == 12
    assert lines[("t", "many", 0, "w")] == 14
    assert lines[("t", "many", 1)] == 15
    assert lines[("t", "many", 1, "inner", "x")] == 17


def test_json_lines_see_through_strings() -> None:
    lines = json_lines('{"a": "x\\" } ]",\n "b": {"c": [true,\n null,\n {"d": -1.5e3}]}}')
    assert (lines[("a",)], lines[("b", "c", 0)], lines[("b", "c", 1)], lines[("b", "c", 2, "d")]) == (1, 2, 3, 4)


def test_a_specification_is_hashable_and_frozen() -> None:
    assert isinstance(hash(read(GOOD)), int)
    assert isinstance(read(GOOD), Specification)


def test_every_problem_is_reported_at_once_beside_an_unknown_mechanism() -> None:
    text = """[[steps]]
mechanism = "gausian"
noise_multiplier = -1
conut = 2
sampling = { scheme = "poison", rate = 1.5 }
count = 0
name = 3
[[steps]]
mechanism = "gaussian"
noise_multiplier = -1
sampling = { scheme = "poisson", rte = 0.1 }
count = 1.5
[[steps]]
mechanism = "xyz"
sigma = 3.0
nmae = "of nothing"
zzz = 1
sampling = { scheme = "qqq", rate = 2.0, rte = 1 }
[guarantee]
delta = 2
[accountant]
method = "certifed"
tolrance = 1
tolerance = -1
"""
    # a misspelt name is read as what it stands for; beside one that stands for nothing, what nothing known has is noted
    assert [line for line, _ in problems(text)] == [2, 3, 4, 5, 5, 6, 7, 10, 11, 12, 14, 16, 17, 18, 18, 20, 22, 23, 24]
    assert "unknown key 'nmae' in steps[3]; did you mean 'name'?" in [said for _, said in problems(text)]
    assert "unknown key 'zzz' in steps[3]" in [said for _, said in problems(text)]


def test_a_file_is_loaded_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(GOOD, encoding="utf-8")
    assert load(str(tmp_path / "run.toml")) == load(tmp_path / "run.toml")
    (tmp_path / "marked.toml").write_text(GOOD, encoding="utf-8-sig")  # as some editors begin a file
    assert load(tmp_path / "marked.toml") == load(tmp_path / "run.toml")


def test_a_run_put_together_in_python_is_read_back_from_a_file(tmp_path: Path) -> None:
    run = (
        hs.Gaussian(1.0).poisson(0.01) * 2000
        + hs.DiscretePair((Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3)))
        + hs.RandomizedResponse(0.75, 3) * 2
        + hs.Geometric(2.0).without_replacement(batch_size=2, population=10) * 7
        + hs.GaussianMixture.poisson_group(1.0, rate=0.01, size=3)
        + hs.ApproximateDP(1.0, 1e-9)
    )
    made = of_run(run, "remove", delta=[1e-5, 1e-9], epsilon=math.inf, title='He said "a\\b"\nand left', unit="user")
    assert made.composition == run
    for name in ("run.toml", "run.json"):
        save(made, tmp_path / name)
        assert load(tmp_path / name) == made
    with pytest.raises(TypeError, match="a specification cannot hold UserDefined"):
        of_run(hs.UserDefined(hs.Gaussian(1.0).pair("remove")), delta=1e-5)


@pytest.mark.parametrize("text", ["\x7f", "\x00\x1b", "\u2028x", "\ufeff", "a\r\nb\\u007f", '"""', "𝄞"])
def test_every_text_is_read_back(text: str) -> None:
    made = of_run(hs.Laplace(1.0), delta=0.1, unit=text, title=text, circumstances=Circumstances(notes=text))
    assert read(to_toml(made)) == made


def test_a_run_that_no_file_can_hold_is_refused() -> None:
    twice = Poisson(hs.Gaussian(1.0).random_allocation(steps=10), 0.5)
    with pytest.raises(TypeError, match="one sampling scheme a step"):
        of_run(twice, delta=1e-5)
    for wrong in ({"unit": " "}, {"title": "\n"}, {"title": "\ud800"}):
        with pytest.raises(ValueError, match="must be a text"):
            of_run(hs.Laplace(1.0), **wrong)  # type: ignore[arg-type]


def test_circumstances_stated_in_python_are_checked_as_those_of_a_file(tmp_path: Path) -> None:
    stated = Circumstances(examples=np.int64(7), clipping_norm=np.float32(0.5))  # type: ignore[arg-type]
    made = of_run(hs.Laplace(1.0), delta=0.1, circumstances=stated)
    save(made, tmp_path / "run.toml")
    assert load(tmp_path / "run.toml") == made
    for wrong in ({"examples": -1}, {"batches": "shufled"}, {"notes": ""}, {"clipping_norm": math.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Circumstances(**wrong)  # type: ignore[arg-type]


def test_names_and_notes_are_kept_and_like_steps_are_one_kind() -> None:
    text = "".join(
        f'[[steps]]\nmechanism = "geometric"\nscale = 2.0\nname = "Table {place}"\nnote = "by county"\n'
        for place in range(40)
    )
    found = read(text + '[[steps]]\nmechanism = "laplace"\nscale = 3.0\n')
    assert [entry.name for entry in found.steps][:2] == ["Table 0", "Table 1"]
    alike, other = found.kinds
    assert (alike.count, other.count) == (40, 1)
    assert alike.name.split("; ") == [f"Table {place}" for place in range(40)]
    assert alike.note == "by county"
    assert read(to_toml(found)) == found


def test_a_note_of_one_of_several_like_steps_stands_beside_its_name() -> None:
    notes = {"Table 1": "", "Table 2": "ages by county", "Table 3": ""}
    text = "".join(
        f'[[steps]]\nmechanism = "laplace"\nscale = 2.0\nname = "{name}"\n' + (f'note = "{note}"\n' if note else "")
        for name, note in notes.items()
    )
    (kind,) = read(text).kinds
    assert (kind.count, kind.name, kind.note) == (3, "Table 1; Table 2; Table 3", "Table 2: ages by county")


def test_no_earlier_run_can_be_stated() -> None:
    text = '[[steps]]\nmechanism = "laplace"\nscale = 2.0\n[circumstances]\ntuning_runs = {}\n'
    assert read(text.format(0)).circumstances.tuning_runs == 0
    with pytest.raises(SpecificationError, match="at least 0"):
        read(text.format(-1))
