"""Blocks of frequencies that a long line forgets: bounds on the transform there, and on all that is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.composition import Direction
from hockeystick.engines.contour import line
from hockeystick.engines.contour.line import line_parts
from hockeystick.engines.contour.line_part import LinePart, Sieved
from hockeystick.engines.contour.sieve import TooManyBlocksError, _Atoms, sieve
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, Pair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import Array, Window

SKEWED = DiscretePair((0.5, 0.3125, 0.1875), (0.3125, 0.25, 0.4375))
OTHER = DiscretePair((0.25, 0.3125, 0.4375), (0.5, 0.25, 0.25))
THETA = 2.0
SUMS: dict[str, list[tuple[Pair, int]]] = {
    "three atoms": [(SKEWED, 80)],
    "two laws of three atoms": [(SKEWED, 60), (OTHER, 25)],
    "three atoms and many": [(SKEWED, 20), (hs.DiscreteGaussian(2.0).poisson(0.25).pair("remove"), 100)],
    "many atoms": [(hs.Binomial(40).pair("remove"), 30)],
    "few steps of many atoms": [(hs.Binomial(40).pair("remove"), 5)],
    "very many steps": [(hs.DiscreteGaussian(1.0).poisson(0.01).pair("add"), 100_000)],
}


def parts_of(parts: Sequence[tuple[Pair, int]], theta: float = THETA) -> Sequence[LinePart]:
    exponent = 1.0 + theta
    rules = PairSum(parts).rules(Window((exponent,), 0.0, -60.0))
    assert rules is not None
    moments = [log_moments(rule, np.array([exponent])) for rule in rules]
    tilted = [tilt(rule, exponent, found) for rule, found in zip(rules, moments, strict=True)]
    return line_parts(rules, tilted, exponent, math.inf)


def log_transform(parts: Sequence[LinePart], s: Array) -> Array:
    """``sum T ln |phi|``, term by term."""
    total = np.zeros(s.size)
    for part in parts:
        for weight, offset, count in zip(part.tilted.weight, part.tilted.offset, part.counts, strict=True):
            size = np.abs(np.exp(1j * np.outer(s, offset)) @ weight)
            total += count * np.log(np.minimum(size, 1.0))  # at frequency 0 the sum may be a rounding above one
    return total


def terms(parts: Sequence[LinePart], step: float, index: Array, variance: float) -> Array:
    """The sizes of the terms of S at nodes."""
    s = step * index
    kernel = np.hypot(THETA, s) * np.hypot(1.0 + THETA, s)
    return step / math.pi * np.exp(log_transform(parts, s) - 0.5 * variance * s * s) / kernel


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("log_error", [-12.0, -30.0])
def test_what_is_left_out_is_bounded_and_what_matters_is_kept(name: str, log_error: float) -> None:
    parts = parts_of(SUMS[name])
    variance = math.fsum(float(part.counts @ part.tilted.spread) for part in parts)
    step, nodes = 2.0 ** math.floor(math.log2(0.4 / math.sqrt(variance))), 100_001
    noise = (6.0 / (step * nodes)) ** 2
    found = sieve(parts, THETA, step, nodes, variance=noise, log_error=log_error)
    index = np.rint(found.frequencies / step).astype(int)
    assert (np.diff(index) > 0).all()
    assert (index * step == found.frequencies).all()
    assert index[-1] == nodes - 1
    every = terms(parts, step, np.arange(float(nodes)), noise)
    left_out = math.fsum(np.delete(every, index).tolist())
    assert left_out <= found.left_out <= math.exp(log_error)
    assert index.size <= 1.1 * np.count_nonzero(every > math.exp(log_error - 3.0) / nodes) + 1
    exact = log_transform(parts, found.frequencies[:-1])
    error = found.total.error[:-1]
    known = error < 1.0
    assert (np.abs(found.total.log_size[:-1] - exact) <= error + 1e-9)[known].all()
    assert (exact <= found.total.log_size_bound[:-1] + 1e-9).all()


@pytest.mark.parametrize("turns", [0.3, 1.5, 4.0])
@pytest.mark.parametrize("name", SUMS)
def test_the_transform_between_two_frequencies_is_below_its_bound(name: str, turns: float) -> None:
    """Blocks of every length, dense frequencies in each, with light atoms left out."""
    rng = np.random.default_rng(7)
    for part in parts_of(SUMS[name]):
        width = turns / math.sqrt(float(part.tilted.spread.max()))
        near = width * np.arange(9.0)
        far = np.sort(np.append(0.0, rng.uniform(0.0, 3e4 * width, 40)))
        for rest in (0.03, 1e-4, 0.0):
            bound = _Atoms.heavy(part, rest).log_sizes(near, far)
            inside = (far[:, None, None] + near[:-1, None]) + width * np.linspace(0.0, 1.0, 33)
            truth = log_transform([part], inside.ravel()).reshape(inside.shape).max(axis=2)
            assert (truth <= bound).all()
            if turns < 1.0 and rest < 1e-3:
                slack = float(part.counts.sum()) * (turns**2 / 8.0 + rest)
                assert np.quantile(bound - truth, 0.1) <= 3.0 * slack


@pytest.mark.parametrize("stored", ["slope_error", "weight_error", "quadrature"])
def test_errors_stored_widen_the_bound(stored: str) -> None:
    """A loss, a weight or the law itself may be that far off."""
    part = parts_of(SUMS["many atoms"])[0]
    near, far = np.array([0.0, 4.0]), np.array([1000.0, 3000.0])
    plain = _Atoms.heavy(part, 0.01).log_sizes(near, far)
    error = np.array([1e-5 if stored == "slope_error" else 1e-2])
    moved = (
        replace(part, quadrature=error)
        if stored == "quadrature"
        else replace(part, tilted=replace(part.tilted, **{stored: error}))
    )
    worse = _Atoms.heavy(moved, 0.01).log_sizes(near, far)
    added = 1e-5 * 3004.0 if stored == "slope_error" else 1e-2
    steps = float(part.counts.sum())
    assert (np.exp(worse / steps) >= np.exp(plain / steps) + 0.99 * added).all()


@pytest.mark.parametrize("share", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("name", SUMS)
def test_atoms_left_out_of_a_line_move_the_transform_by_no_more_than_is_said(name: str, share: float) -> None:
    for several in parts_of(SUMS[name]):
        reach = 40.0 / math.sqrt(float(several.tilted.spread.max()))
        for part in (several.at(np.array([row])) for row in range(several.counts.size)):
            fewer = part.but(share, reach)
            (said,) = fewer.quadrature - part.quadrature
            assert 0.0 <= said <= share * (1.0 + 1e-6)
            frequencies = np.linspace(0.0, reach, 501)
            lost = np.abs(sums_of(part, frequencies) - sums_of(fewer, frequencies))
            rounding = 1e-15 * (1.0 + reach * float(np.abs(part.tilted.offset).max()))
            assert (lost <= said + rounding).all()
            if share > 1e-9 and part.tilted.weight.shape[1] > 20:
                assert fewer.tilted.weight.shape[1] < part.tilted.weight.shape[1]


def sums_of(part: LinePart, s: Array) -> Array:
    """The sum that a line takes of one law, ``sum w (e^{isy} - 1 - isy)``."""
    x = np.outer(s, part.tilted.offset[0])
    return np.asarray((np.exp(1j * x) - 1.0 - 1j * x) @ part.tilted.weight[0])


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_long_lines_of_atoms_beside_little_noise_contain_the_truth(
    direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = hs.DiscretePair((0.5, 0.3, 0.2), (0.2, 0.35, 0.45)) * 300 + hs.Gaussian(75.0)
    lengths: list[int] = []

    def sieved(parts: Sequence[LinePart], theta: float, step: float, nodes: int, **settings: float) -> Sieved:
        lengths.append(nodes)
        return sieve(parts, theta, step, nodes, **settings)

    monkeypatch.setattr("hockeystick.engines.contour.sieve.sieve", sieved)
    curve = hs.account(run, direction, accountant=hs.accountants.Contour())
    for epsilon in (10.0, 26.0, 45.0):
        found, truth = curve.delta(epsilon), exact_delta(run.pairs(direction), epsilon, digits=12)
        assert found.lower <= truth.high
        assert truth.low <= found.upper <= found.lower * (1.0 + 1e-9)
    assert max(lengths) > line.LONGEST


def test_too_many_blocks_are_refused() -> None:
    parts = parts_of([(SKEWED, 3)])
    with pytest.raises(TooManyBlocksError):
        sieve(parts, THETA, 0.125, 1 << 18, variance=1e-10, log_error=-30.0, most=100_000)


@pytest.mark.parametrize(("noise", "delta"), [(1e4, 0.1), (1e8, 1e-5)])
def test_a_line_whose_atoms_all_have_one_loss_is_answered(noise: float, delta: float) -> None:
    """Their blocks may be of any length: longer than all integers, they were no array."""
    nothing = hs.DiscretePair((0.5, 0.5), (0.5, 0.5))
    assert hs.account(hs.Gaussian(noise) + nothing, "remove").epsilon(delta).sides == (0.0, 0.0)
