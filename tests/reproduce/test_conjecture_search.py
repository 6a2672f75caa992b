"""The search of 003's Conjecture 12 goes on where it stopped, and does not go on from what is not its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hockeystick.accountants import Certified
from hockeystick.laws import GaussianPair, LaplacePair
from reproduce.pitfalls import conjecture_search
from reproduce.pitfalls.conjecture_search import PER_CURVE, Curve, State, curve, search

COARSE = (Certified(tolerance=0.03, engine="lattice"),)


def small(number: int) -> Curve:
    noise, rate = 1.0 + number, 0.2
    return Curve(number, GaussianPair(noise), noise, rate, 2, np.array([0.05, 0.2, 0.3]), 1.0)


def test_a_search_in_two_runs_ends_as_one_in_a_single_run(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    whole = State()
    for number in range(4):
        whole = search(whole, small(number), COARSE)
    for first, last in ((0, 2), (2, 4)):
        state = State.load(path)
        assert state.curves == first
        for number in range(first, last):
            state = search(state, small(number), COARSE)
        state.save(path)
    assert State.load(path) == whole
    assert whole.configurations == 12
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_a_state_of_another_version_or_search_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    search(State(), small(0), COARSE).save(path)
    monkeypatch.setattr(conjecture_search, "PER_CURVE", PER_CURVE + 1)
    assert State.load(path) == State()
    monkeypatch.undo()
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": -1}))
    assert State.load(path) == State()


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    search(State(), small(0), COARSE).save(path)
    path.write_text(path.read_text()[:100])
    with pytest.raises(ValueError, match="move it away"):
        State.load(path)


def test_the_counterexample_of_the_laplace_mechanism_is_found() -> None:
    laplace = Curve(0, LaplacePair(0.75), 0.75, 0.6, 2, np.array([0.25, 1.5]), 1.0)
    state = search(State(), laplace, COARSE)
    assert state.counts == {"for": 1, "against": 1, "undecided": 0}
    assert state.against[0]["epsilon"] == 0.25
    assert state.against[0]["add"][0] > state.against[0]["remove"][1]


def test_the_curves_cover_their_box() -> None:
    curves = [curve(number) for number in range(64)]
    noise, rate = np.array([one.noise for one in curves]), np.array([one.rate for one in curves])
    assert noise.min() < 0.4
    assert noise.max() > 15.0
    assert rate.min() < 2e-3
    assert rate.max() > 0.95
    assert min(one.steps for one in curves) <= 3
    assert max(one.steps for one in curves) > 10_000
    assert all((one.epsilons > 0.0).all() and one.epsilons.size == PER_CURVE for one in curves)
