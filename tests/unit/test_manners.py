"""The library in a person's hands: its names, what counts as a count, what it says when something is missing."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.cli.parsing import count
from hockeystick.app.spec.reader import read

STEP = hs.Gaussian(1.0).poisson(0.01)


def test_the_version_and_the_public_names_are_what_dir_shows() -> None:
    assert hs.__version__ == version("hockeystick")
    assert dir(hs) == sorted(hs.__all__)


WHOLE = [3, 3.0, np.int8(3), np.uint64(3), np.float32(3.0), np.array(3)]
NOT_WHOLE = [True, 2.5, "3", None, float("nan"), float("inf"), np.float64(0.5), 0, -1.0, 2.0**54, 3 + 0j]


@pytest.mark.parametrize("given", WHOLE)
def test_whole_numbers_of_any_type_are_counts(given: Any) -> None:
    assert STEP * given == STEP * 3
    assert hs.compose([(STEP, given)]) == STEP * 3
    assert hs.DiscreteGaussian(1.0, sensitivity=given) == hs.DiscreteGaussian(1.0, sensitivity=3)
    assert hs.dpsgd.run(1.0, given, batch_size=given, population=300) == STEP * 3


@pytest.mark.parametrize("given", NOT_WHOLE)
def test_what_is_not_whole_is_no_count(given: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="must be an integer of at least 1, got"):
        STEP * given


@pytest.mark.parametrize("written", ["3", "3.0", "3e0"])
def test_files_and_options_read_counts_as_python_does(written: str) -> None:
    assert count("--steps")(written) == 3
    mechanism = f'mechanism = "discrete-gaussian"\nsigma = 1.0\nsensitivity = {written}\ncount = {written}'
    found = read(f"[[steps]]\n{mechanism}\n[guarantee]\ndelta = 1e-5\n")
    assert found.composition == hs.DiscreteGaussian(1.0, sensitivity=3) * 3
    assert found == read(f"[[steps]]\n{mechanism}\n[guarantee]\ndelta = 1e-5\n".replace(written, "3"))


def test_a_list_of_steps_is_pointed_to_compose() -> None:
    with pytest.raises(TypeError, match=r"compose\(run\)"):
        hs.account([STEP, STEP])  # type: ignore[arg-type]


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from hockeystick.app.report.picture import picture

    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hockeystick\[plots\]'"):
        hs.plots.privacy_curve(hs.account(hs.Gaussian(1.0)), epsilon=[0.0, 1.0])
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hockeystick\[plots\]'"):
        picture(((1e-5, 1.0, 1.0), (1e-6, 2.0, 2.0)), tmp_path / "curve.png", title="")
