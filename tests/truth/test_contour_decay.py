"""Bounds on the decay of a transform where the cells they come from are coarse, or are not those of its own law."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

from hockeystick.engines.contour.decay import Rectangles, RoughDecay, rectangles
from hockeystick.engines.contour.lattice_line import Runs
from hockeystick.laws import GaussianPair, SubsampledPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import Cells, Window


@pytest.mark.parametrize("bend", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_rectangles_lie_under_a_density_with_a_valley(cells: int, bend: float) -> None:
    """``e^{bend x^2 / 2}`` on [-1, 1]: between the ends of a cell it lies below both, as far as its curvature says."""
    points = np.linspace(-1.0, 1.0, cells + 1)
    with mp.workdps(30):
        total = mp.quad(lambda x: mp.exp(mpf(bend) * x * x / 2), [-1, 0, 1])
        logs = 0.5 * bend * points**2 - float(mp.log(total))
        size = np.array([(points[1] - points[0]) ** 2])
        none = np.zeros(1)
        known = Cells(points[None], logs[None], np.zeros((1, cells)), np.array([bend]), none, none, size)
        found = rectangles(known, 0.0, none)
        assert 0.0 < float(found.mass.sum()) <= 1.0
        for s in (0.5, 1.5, 2.5):
            exact = mp.quad(lambda x, s=s: mp.cos(s * x) * mp.exp(mpf(bend) * x * x / 2), [-1, 0, 1]) / total  # type: ignore[misc]
            assert mp.log(abs(exact)) <= mpf(float(found.log_bound(np.array([s]))[0, 0]))


@pytest.mark.parametrize("exponent", [7.0, 9.0])
@pytest.mark.parametrize("log_drop", [-6.0, -10.0])
def test_a_rule_that_is_cut_off_has_the_decay_of_its_own_cells(exponent: float, log_drop: float) -> None:
    """All losses lie over a wide range, those below the cut-off over a short one: their transform falls later."""
    losses = PairSum([(SubsampledPair(GaussianPair(0.5), 1e-4), 3)])
    sketches = losses.sketches(Window((1.0, 1.0 + exponent), 0.0, -30.0, cells=8))
    rules = losses.dropping(log_drop).rules(Window((exponent,), 40.0, -30.0, cells=8))
    assert sketches is not None
    assert rules is not None
    assert rules[0].dropped.any()
    rough = RoughDecay.of(sketches, exponent, 0.0)
    moments = log_moments(rules[0], np.array([exponent]))
    tilted = tilt(rules[0], exponent, moments)
    s = np.geomspace(0.05, 40.0, 200)
    log_size = 3.0 * np.log(np.abs((np.exp(1j * s[:, None] * tilted.offset[0]) * tilted.weight[0]).sum(axis=1)))
    from_here_on = np.maximum.accumulate(log_size[::-1])[::-1]
    assert (from_here_on <= rough.measured(rules, [moments]).log_bound(s) + 1e-9).all()  # of the sum in float64
    assert not (from_here_on <= rough.decay.log_bound(s)).all()  # as that of all losses would have it


_SMALL = np.geomspace(1e-7, 1e-4, 40)  # frequencies at which the transform of one of 2^40 steps is next to 1


def test_a_bound_that_many_steps_multiply_is_as_accurate_as_what_is_left_of_one() -> None:
    """``1 - S`` of 1e-12 is not taken from 1: times 2^40 its rounding would be 1e-4 nats, in a bound that decides."""
    mass, width = np.array([0.25, 0.5]), np.array([1.0, 3.0])
    found = Rectangles(mass[None, None], width[None, None]).log_bound(_SMALL)[:, 0]
    with mp.workdps(40):
        for s, log in zip(_SMALL.tolist(), found.tolist(), strict=True):
            size = [(mpf(m), mpf(s) * mpf(w) / 2) for m, w in zip(mass.tolist(), width.tolist(), strict=True)]
            assert mpf(log) >= mp.log(1 - sum(m * (1 - mp.exp(-x * x / 6)) for m, x in size))


def test_the_same_on_a_lattice() -> None:
    """There with ``e^{-(k^2 - 1) x^2 / 6}`` for a run of k points."""
    mass, length = np.array([0.25, 0.5]), np.array([2.0, 5.0])
    found = Runs(mass, length, 1.0).log_bound(_SMALL)[:, 0]
    with mp.workdps(40):
        for s, log in zip(_SMALL.tolist(), found.tolist(), strict=True):
            runs = [(mpf(m), mpf(k)) for m, k in zip(mass.tolist(), length.tolist(), strict=True)]
            assert mpf(log) >= mp.log(1 - sum(m * (1 - mp.exp((1 - k * k) * mpf(s) ** 2 / 24)) for m, k in runs))
