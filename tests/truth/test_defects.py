"""What is not quite as it should be is counted: losses off their lattice, masses that do not sum to 1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hockeystick.engines.contour.decay import Decay
from hockeystick.laws import DiscretePair, GaussianMixturePair
from hockeystick.laws.atom_rules import shared_lattice
from hockeystick.laws.loss_sum import PairSum


@pytest.mark.parametrize("off", [Fraction(1, 10**15), Fraction(-3, 10**16)])
def test_losses_nearly_on_a_lattice_are_as_far_off_as_it_says(off: Fraction) -> None:
    losses = [Fraction(0), Fraction(1) + off, Fraction(3), Fraction(7)]
    lattice = shared_lattice([(losses, 5.0)])
    assert lattice is not None
    (index,) = lattice.indices
    most = max(
        abs(loss - losses[0] - lattice.exact_spacing * int(n)) for loss, n in zip(losses, index - index[0], strict=True)
    )
    assert 0 < 5 * most <= Fraction(lattice.slack)


@pytest.mark.parametrize("missing", [9e-10, -9e-10])
def test_masses_that_do_not_sum_to_one_leave_a_gap(missing: float) -> None:
    p = (0.7, 0.3 - missing)
    gap = abs(1 - sum(Fraction(mass) for mass in p))
    for pair in (DiscretePair(p, (0.5, 0.5)), GaussianMixturePair(1.0, p, (0.0, 1.0), (1.0,), (0.0,))):
        defect = PairSum([(pair, 40)]).mass_defect
        # 40 steps have at most (1 + gap)^40 - 1 too much
        assert (1 + gap) ** 40 - 1 <= Fraction(defect) < 100 * gap


def test_a_normal_loss_decays_no_faster_than_it_does() -> None:
    frequencies = np.linspace(0.1, 20.0, 50)
    for variance in (0.01, 1.0, 7.0):
        assert (Decay([], variance).log_bound(frequencies) >= -0.5 * variance * frequencies**2).all()
