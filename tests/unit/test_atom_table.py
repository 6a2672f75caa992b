"""Sums of the masses of a table of atoms."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.laws.atom_table import AtomTable


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("size", [0.0, 1e-13, 1e-3, 0.15])
@pytest.mark.parametrize("reach", [5.0, 800.0])
def test_sums_of_atoms_contain_those_of_masses_as_wrong_as_they_say(sign: float, size: float, reach: float) -> None:
    """In either order, from masses that float64 does not tell from 0 on."""
    rng = np.random.default_rng(5)
    truth, error = [mpf(float(x)) for x in rng.uniform(-reach, 0.0, 60)], size * rng.uniform(0.5, 1.0, 60)
    logs = np.array([float(x) for x in truth]) + 0.999 * sign * error
    table = AtomTable(np.arange(60.0), np.zeros(60), logs, logs[::-1].copy(), error)
    with mp.workdps(40):
        for (sums, doubts), masses in ((table.above[0], truth[::-1]), (table.below[0], truth)):
            assert sums[0] == -np.inf
            for number in range(1, 61):
                exact = mp.log(mp.fsum(mp.exp(x) for x in masses[:number]))
                assert abs(exact - mpf(float(sums[number]))) <= mpf(float(doubts[number]))
            assert doubts.max() <= 2.0 * size + 60 * 2.0**-52 * (8.0 + reach)


def test_sums_of_q_are_those_of_its_own_masses() -> None:
    table = hs.Binomial(12, 0.3).pair("remove").atoms
    assert table is not None
    for (sums, doubts), order in ((table.above[1], slice(None, None, -1)), (table.below[1], slice(None))):
        with mp.workdps(40):
            exact = mp.log(mp.fsum(mp.exp(mpf(float(x))) for x in table.log_q[order][:5]))
            assert abs(exact - mpf(float(sums[5]))) <= mpf(float(doubts[5])) <= 1e-12
