"""A thousand kinds of steps in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.report.content import Content
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.releases import ranged, releases
from hockeystick.app.spec import Specification, of_run, read


def schedule(kinds: int, *, rates: float | np.ndarray = 0.01) -> hs.Composition:
    return hs.compose_arrays(noise_multipliers=np.linspace(1.25, 1.0, kinds), rates=rates)


def spec(run: hs.Step | hs.Composition) -> Specification:
    return of_run(run, delta=1e-6)


def test_kinds_that_differ_in_numbers_alone_are_said_as_one() -> None:
    found = releases(spec(schedule(60, rates=np.linspace(0.01, 0.02, 60)) * 50 + hs.Laplace(20.0)))
    assert [(one.often, one.times) for one in found] == [("3,000", "3,000 times in all"), ("1", "Once")]
    first, other = found
    assert "standard deviation 1 to 1.25 x clipping norm" in first.noise
    assert first.sampling.endswith("with probability 0.01 to 0.02")
    assert first.kinds.startswith("60 kinds of steps, each with its own numbers")
    assert "20" in other.noise
    assert other.kinds == ""


def test_a_few_kinds_are_listed() -> None:
    found = releases(spec(schedule(5)))
    assert [one.often for one in found] == ["1"] * 5
    assert len({one.noise for one in found}) == 5


@pytest.mark.parametrize(
    ("sentences", "said"),
    [
        (["1e-05 of 60,000", "0.001 of 60,000"], "1e-05 to 0.001 of 60,000"),
        (["batches of 256, then 3.", "batches of 64, then 3."], "batches of 64 to 256, then 3."),
        (["1,000 times", "12,000 times", "9 times"], "9 to 12,000 times"),
        (["from -0.5 on", "from 0.25 on", "from -1 on"], "from -1 to 0.25 on"),
        (["e2 and 2nd stay", "e2 and 2nd stay"], "e2 and 2nd stay"),
    ],
)
def test_ranges_of_numbers(sentences: list[str], said: str) -> None:
    assert ranged(sentences) == said


def test_names_and_notes_of_many_kinds_stand_beside_their_own_steps_alone() -> None:
    tables = [
        f"[[steps]]\nmechanism = 'gaussian'\nnoise_multiplier = {1 + k % 6}\nname = '{name}'\nnote = '{note}'\n"
        for k, (name, note) in enumerate([("a", "x")] * 6 + [("b", "y")])
    ]
    (found,) = releases(read("".join(tables)))
    assert (found.often, found.steps.name, found.steps.note) == ("7", "a; b", "a: x; b: y")


def test_a_receipt_of_a_schedule_has_one_row_and_all_of_its_numbers() -> None:
    made = receipt(spec(hs.compose([hs.Gaussian(sigma) for sigma in np.linspace(1.25, 1.0, 6).tolist()])))
    (row,) = Content(made).steps()
    assert row.name == "6 times in all"
    assert "1 to 1.25" in row.text
    assert len(made["specification"]["steps"]) == 6
