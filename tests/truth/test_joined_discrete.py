"""The joined pair of discrete Gaussian noise: its transform holds that of the thinned pair, its curve is narrow."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from flint import arb, ctx
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
    """``ln sum q e^{a l}`` by the definition: outcomes of the base kept or merged (docs/derivations/fixed-size.md)."""
    with ctx.workdps(80):
        s, g, shift = arb(sigma), arb(rate), sensitivity
        reach = int(40 * sigma) + 25 * sensitivity + 60
        masses = {x: (-arb(x * x) / (2 * s * s)).exp() for x in range(-reach - shift, reach + shift + 1)}
        total = sum(masses.values(), arb(0))
        atoms: list[tuple[arb, arb]] = []
        merged = arb(0)
        for x in range(-reach, reach + 1):
            p, q = masses[x - shift] / total, masses[x] / total
            loss = arb(shift * (2 * x - shift)) / (2 * s * s)
            if loss > 0:
                atoms.append((q, (1 - g + g * loss.exp()).log()))
                merged += (1 - (g + (1 - g) * (-loss).exp())) * p
            elif loss < 0:
                atoms.append((q * (g + (1 - g) * loss.exp()), -(1 - g + g * (-loss).exp()).log()))
            else:
                atoms.append((q, arb(0)))
        atoms.append((merged, arb(0)))
        return [mpf(sum((q * (a * loss).exp() for q, loss in atoms), arb(0)).log()) for a in EXPONENTS]


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.875])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.7, 1), (1.0, 2), (3.0, 2), (4.0, 7), (20.0, 12)])
@pytest.mark.parametrize("reverse", [False, True])
def test_transform_is_that_of_the_thinned_pair(sigma: float, sensitivity: int, rate: float, reverse: bool) -> None:
    with mp.workdps(50):
        truth = thinned_moments(sigma, sensitivity, rate)
        pair = JoinedPair(DiscreteGaussianPair(sigma, sensitivity), rate)
        rules = PairSum([(pair.reversed() if reverse else pair, 1)]).rules(Window(EXPONENTS, 0.0, -60.0))
        assert rules is not None
        with ctx.workdps(50):
            masses = [arb(log).exp() for log in rules[0].log_weight[0].tolist()]
            errors = rules[0].weight_error[0].tolist()
            off = sum((mass * arb(error).expm1() for mass, error in zip(masses, errors, strict=True)), arb(0))
            assert abs(sum(masses, arb(0)) - 1) <= off + arb(10) ** -25
        found = log_moments(rules[0], np.array(EXPONENTS))
        for k, moment in enumerate(truth):
            error = float(found.total_error[k, 0])
            assert abs(mpf(float(found.value[k, 0])) - moment) <= error
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
