"""The joined pair of discrete Gaussian noise: its transform holds that of the thinned pair, its curve is narrow."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import Certified, Contour
from hockeystick.laws import DiscreteGaussianPair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import Window

EXPONENTS = (0.0, 0.5, 1.0, 1.0009765625, 3.0, 20.0)


@functools.cache
def thinned_moments(sigma: float, sensitivity: int, rate: float) -> list[mpf]:
    """``sum q e^{a l}`` by the definition: outcomes of the base kept or merged (docs/derivations/fixed-size.md)."""
    s, g, shift = mpf(sigma), mpf(rate), sensitivity
    reach = int(40 * sigma) + 25 * sensitivity + 60
    masses = {x: mp.exp(-mpf(x * x) / (2 * s * s)) for x in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(masses.values())
    atoms: list[tuple[mpf, mpf]] = []
    merged = mpf(0)
    for x in range(-reach, reach + 1):
        p, q = masses[x - shift] / total, masses[x] / total
        loss = mpf(shift * (2 * x - shift)) / (2 * s * s)
        if loss > 0:
            atoms.append((q, mp.log(1 - g + g * mp.exp(loss))))
            merged += (1 - (g + (1 - g) * mp.exp(-loss))) * p
        elif loss < 0:
            atoms.append((q * (g + (1 - g) * mp.exp(loss)), -mp.log(1 - g + g * mp.exp(-loss))))
        else:
            atoms.append((q, mpf(0)))
    atoms.append((merged, mpf(0)))
    return [mp.fsum(q * mp.exp(mpf(a) * loss) for q, loss in atoms) for a in EXPONENTS]


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.875])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.7, 1), (1.0, 2), (3.0, 2), (4.0, 7), (20.0, 12)])
@pytest.mark.parametrize("reverse", [False, True])
def test_transform_is_that_of_the_thinned_pair(sigma: float, sensitivity: int, rate: float, reverse: bool) -> None:
    with mp.workdps(50):
        truth = thinned_moments(sigma, sensitivity, rate)
        pair = JoinedPair(DiscreteGaussianPair(sigma, sensitivity), rate)
        rules = PairSum([(pair.reversed() if reverse else pair, 1)]).rules(Window(EXPONENTS, 0.0, -60.0))
        assert rules is not None
        masses = [mp.exp(mpf(float(log))) for log in rules[0].log_weight[0]]
        off = mp.fsum(
            mass * mp.expm1(mpf(float(error))) for mass, error in zip(masses, rules[0].weight_error[0], strict=True)
        )
        assert abs(mp.fsum(masses) - 1) <= off + mpf(10) ** -25
        found = log_moments(rules[0], np.array(EXPONENTS))
        for k, moment in enumerate(truth):
            error = float(found.total_error[k, 0])
            assert abs(mpf(float(found.value[k, 0])) - mp.log(moment)) <= error
            assert error <= 1e-11


@pytest.mark.parametrize(("sigma", "sensitivity", "rate"), [(2.0, 1, 0.25), (4.0, 6, 0.0625)])
def test_nine_digits_lie_within_the_lattice_bracket(sigma: float, sensitivity: int, rate: float) -> None:
    parts = ((JoinedPair(DiscreteGaussianPair(sigma, sensitivity), rate), 400),)
    contour, lattice = Contour().directed(parts), Certified(engine="lattice").directed(parts)
    for epsilon in (0.5, 4.0):
        ours, theirs = contour.delta(epsilon), lattice.delta(epsilon)
        assert isinstance(ours, hs.Bound)
        assert theirs.lower <= ours.lower <= ours.upper <= theirs.upper
        assert ours.width <= 1e-9 * float(ours.lower)
