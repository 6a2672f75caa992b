"""Odometers and filters in a checkpoint: they go on as if never interrupted, and under no other budget."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.filters import GaussianDPFilter, RenyiFilter
from hockeystick.state import Saved, StateError, stamped

STEP = hs.Gaussian(30.0)
MAKERS: dict[str, Callable[[], Any]] = {
    "odometer": lambda: hs.Odometer(1e-5),
    "RenyiFilter": lambda: RenyiFilter(1.0, 1e-5, orders=(4.0, 16.0, 128.0), infinite_delta=1e-7),
    "GaussianDPFilter": lambda: GaussianDPFilter(0.25),
}


def begun(name: str) -> Any:
    """Some way into a run, with something measured."""
    made = MAKERS[name]()
    for noise in (30.0, 40.0, 30.0):
        made.step(hs.Gaussian(noise), count=7)
    if name != "GaussianDPFilter":
        made.step(hs.ApproximateDP(0.01, 1e-8))
    return made


def reading(thing: Any) -> Any:
    """Everything it says."""
    return thing.epsilon().sides if isinstance(thing, hs.Odometer) else (thing.remaining, thing.statement)


def path_on(thing: Any) -> list[Any]:
    """What it says and allows from here on."""
    found = [reading(thing), thing.steps]
    for _ in range(40):
        if not isinstance(thing, hs.Odometer) and not thing.allows(STEP):
            break
        thing.step(STEP)
        found += [reading(thing), thing.steps]
    return found


def restored_in_place(thing: Saved, name: str) -> Any:
    fresh = MAKERS[name]()
    fresh.load_state_dict(pickle.loads(pickle.dumps(thing.state_dict())))  # noqa: S301 - as a checkpoint does
    return fresh


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_restored_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    thing = begun(name)
    thing.save(tmp_path / "state.json")
    copies = [
        type(thing).load(tmp_path / "state.json"),
        restored_in_place(thing, name),
        copy.deepcopy(thing),
        pickle.loads(pickle.dumps(thing)),  # noqa: S301 - our own
    ]
    state = thing.to_json()
    expected = path_on(thing)
    assert expected[1] >= 21
    assert '"alive"' not in state or "false" in state  # an order has run out
    for other in copies:
        assert other.to_json() == state
        assert path_on(other) == expected


def test_an_odometer_is_copied_after_its_history_was_accounted_anew() -> None:
    odometer = hs.Odometer(1e-5)
    odometer.step(hs.Gaussian(4.0).poisson(0.1) * 20 + hs.DiscreteLaplace(20.0))
    anew = odometer.epsilon(1e-3)
    assert pickle.loads(pickle.dumps(odometer)).epsilon(1e-3).sides == anew.sides  # noqa: S301 - our own


def test_another_process_answers_alike() -> None:
    things = [begun(name) for name in MAKERS]
    curve, found = hs.account(STEP * 9), hs.calibrate(hs.Gaussian, epsilon=1.0, delta=1e-5)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = [pool.submit(path_on, thing) for thing in things]
        values = pool.submit(hs.PrivacyCurve.epsilon, curve, 1e-5), pool.submit(float, found)
        for thing, path in zip(things, there, strict=True):
            assert path.result() == path_on(thing)
        assert repr(values[0].result()) == repr(curve.epsilon(1e-5))
        assert values[1].result() == float(found)


@pytest.mark.parametrize("name", MAKERS)
def test_a_state_under_other_settings_is_refused_and_nothing_changes(name: str) -> None:
    thing = begun(name)
    others: dict[str, Any] = {
        "odometer": hs.Odometer(1e-4),
        "RenyiFilter": RenyiFilter(8.0, 1e-5, orders=(4.0, 16.0, 128.0), infinite_delta=1e-7),
        "GaussianDPFilter": GaussianDPFilter(4.0),
    }
    before = others[name].to_json()
    with pytest.raises(StateError, match=r"another (delta|epsilon|mu)"):
        others[name].load_state_dict(thing.state_dict())
    assert others[name].to_json() == before
    with pytest.raises(StateError, match="its format is"):
        MAKERS["odometer" if name != "odometer" else "RenyiFilter"]().load_state_dict(thing.state_dict())


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("RenyiFilter", {"steps": -1}),
    ("RenyiFilter", {"alive": [[True]]}),
    ("RenyiFilter", {"spent": [["-0x1p0"] * 4] * 2}),
    ("RenyiFilter", {"spent": [["nan"] * 4] * 2}),
    ("RenyiFilter", {"spent": [["0x1p0"] * 4]}),
    ("GaussianDPFilter", {"spent": [[["-1/2", 1]], []]}),
    ("GaussianDPFilter", {"spent": [[["1/2", 0]], []]}),
    ("GaussianDPFilter", {"spent": [[["1/0", 1]], []]}),
    ("GaussianDPFilter", {"spent": [[["1/2", 1]]]}),
    ("GaussianDPFilter", {"settings": {"mu": "-0x1p0", "adjacency": "add"}}),
]


def test_a_state_nested_too_deeply_is_none() -> None:
    with pytest.raises(StateError, match="not JSON"):
        hs.Odometer.from_json("[" * 100_000)


@pytest.mark.parametrize("given", [3, None, ["a"], b"\xff"])
def test_what_is_neither_text_nor_a_mapping_is_no_state(given: Any) -> None:
    with pytest.raises(StateError, match="not a saved odometer"):
        hs.Odometer.from_json(given)
    with pytest.raises(StateError, match="not a saved odometer"):
        hs.Odometer(1e-5).load_state_dict(given)


@pytest.mark.parametrize(("name", "change"), FORGED)
def test_a_filter_state_that_makes_no_sense_is_refused(name: str, change: dict[str, Any]) -> None:
    body = {
        key: value for key, value in begun(name).state_dict().items() if key not in {"format", "version", "checksum"}
    }
    with pytest.raises(StateError, match="damaged"):
        type(begun(name)).from_json(json.dumps(stamped(name, body | change)))


def test_two_writers_of_one_file_leave_a_whole_state_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "odometer.json"
    mine = begun("odometer")
    mine.save(path)

    def write(_: int) -> None:
        for _ in range(40):
            mine.save(path)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        while not all(writer.done() for writer in writers):
            assert reading(hs.Odometer.load(path)) == reading(mine)
    assert [writer.exception() for writer in writers] == [None] * 4
    assert [kept.name for kept in tmp_path.iterdir()] == ["odometer.json"]


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "odometer.json"
    with pytest.raises(FileNotFoundError, match=r"odometer\.json'$"):
        begun("odometer").save(path)


@pytest.mark.parametrize("name", ["run.toml", "linked.toml"])
def test_a_file_whose_writing_is_interrupted_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A specification cut short may be one of fewer steps."""
    (tmp_path / "linked.toml").symlink_to(tmp_path / "run.toml")
    hs.spec.save(hs.spec.of_run(hs.Gaussian(1.0) * 2000, delta=1e-5), tmp_path / name)
    (tmp_path / "run.toml").chmod(0o640)
    before = (tmp_path / "run.toml").read_text(encoding="utf-8")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hs.spec.save(hs.spec.of_run(hs.Gaussian(2.0), delta=1e-5), tmp_path / name)
    assert (tmp_path / "run.toml").read_text(encoding="utf-8") == before
    hs.spec.save(hs.spec.of_run(hs.Gaussian(2.0), delta=1e-5), tmp_path / name)
    assert "noise_multiplier = 2.0" in (tmp_path / "run.toml").read_text(encoding="utf-8")
    assert (tmp_path / "run.toml").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "linked.toml").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linked.toml", "run.toml"]
