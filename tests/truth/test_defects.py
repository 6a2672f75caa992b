"""What is not quite as it should be is counted: losses off their lattice, and a normal loss that decays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hockeystick.engines.contour.decay import Decay
from hockeystick.transforms.lattice import shared_lattice


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


def test_a_normal_loss_decays_no_faster_than_it_does() -> None:
    frequencies = np.linspace(0.1, 20.0, 50)
    for variance in (0.01, 1.0, 7.0):
        assert (Decay([], variance).log_bound(frequencies) >= -0.5 * variance * frequencies**2).all()
