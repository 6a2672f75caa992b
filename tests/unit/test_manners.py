"""The library in a person's hands: its names, what counts as a count, what it says when something is missing."""

from __future__ import annotations

import sys
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from mpmath import mp

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


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hockeystick\[plots\]'"):
        hs.plots.privacy_curve(hs.account(hs.Gaussian(1.0)), end=1.0)


def test_a_batch_size_and_a_population_are_a_rate() -> None:
    gaussian = hs.Gaussian(1.0)
    assert gaussian.poisson(batch_size=6, population=600) == gaussian.poisson(0.01)
    refused: list[dict[str, Any]] = [{}, {"batch_size": 6}, {"rate": 0.01, "batch_size": 6, "population": 600}]
    for given in refused:
        with pytest.raises(TypeError, match="either rate, or batch_size and population"):
            gaussian.poisson(**given)
    with pytest.raises(ValueError, match="at most population"):
        gaussian.poisson(batch_size=601, population=600)


def test_the_automatic_choice_has_its_name_in_python_too() -> None:
    chosen = hs.account(STEP, tolerance=1e-5, accountant="automatic")
    assert chosen.accountant == hs.account(STEP, tolerance=1e-5).accountant
    target: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
    noises = [hs.calibrate(hs.Gaussian, accountant=one, **target).value for one in ("automatic", None)]
    assert noises[0] == noises[1]
    least = hs.sweep(hs.Gaussian, find="noise_multiplier", accountant="automatic", **target)
    assert float(least.safe) == noises[0]
    found = hs.sweep(hs.Gaussian, noise_multiplier=[1.0], delta=1e-5, accountant="automatic")
    assert found.bound.upper == hs.account(hs.Gaussian(1.0)).epsilon(1e-5).sides[1]
    with pytest.raises(TypeError, match="such as Certified"):
        hs.account(STEP, accountant="certified")  # type: ignore[arg-type]


def test_an_alias_is_read_wherever_the_first_name_is() -> None:
    assert hs.Geometric is hs.DiscreteLaplace
    found = read('[[steps]]\nmechanism = "geometric"\nscale = 2.0\n')
    assert found == read('[[steps]]\nmechanism = "discrete-laplace"\nscale = 2.0\n')
    assert found.document()["steps"][0]["mechanism"] == "discrete-laplace"


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.1, 1.0, 3.3, 20.0, 36.0])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_mechanisms_by_epsilon_are_proved_to_have_it(epsilon: float, size: int) -> None:
    """The largest loss, in fractions of exact floats against 40 digits, is at most epsilon, and close to it."""
    laplace = hs.DiscreteLaplace.by_epsilon(epsilon, size)
    spent = Fraction(size) / Fraction(laplace.scale)
    assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= spent <= Fraction(epsilon)
    response = hs.RandomizedResponse.by_epsilon(epsilon, size + 1)
    true = Fraction(response.probability)
    with mp.workdps(40):
        odds = mp.mpf(true.numerator) * size / mp.mpf(true.denominator - true.numerator)
        assert true >= Fraction(1, size + 1)
        assert mp.mpf(epsilon) * mp.mpf("0.98") <= mp.log(odds)
        assert mp.log(odds) <= mp.mpf(epsilon)
    text = f'[[steps]]\nmechanism = "randomized-response"\nepsilon = {epsilon}\ncategories = {size + 1}\n'
    assert read(text).composition == response * 1
    text = f'[[steps]]\nmechanism = "geometric"\nepsilon = {epsilon}\nsensitivity = {size}\n'
    assert read(text).composition == laplace * 1
