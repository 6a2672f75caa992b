"""Atoms left out because they do not matter to a window: what they are worth is in the bound."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from hockeystick.laws import BinomialPair, DiscretePair
from hockeystick.laws.atom_rules import AtomBatch
from hockeystick.laws.kept_atoms import kept_atoms, may_be_cut
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import Window

PAIRS = (BinomialPair(700), BinomialPair(3000, 0.3, 2))
EXPONENTS = [(-2.0, 3.0), (1.0, 20.0), (1.0, 2000.0), (-2000.0, 1.0)]


@pytest.mark.parametrize("exponents", EXPONENTS)
@pytest.mark.parametrize("log_accuracy", [-2.0, -6.0, -20.0])
def test_atoms_left_out_are_worth_no_more_than_stated(log_accuracy: float, exponents: tuple[float, float]) -> None:
    window = Window(exponents, 0.0, log_accuracy)
    for pair in PAIRS:
        table = pair.atoms
        (kept,), tails = kept_atoms([table], window)
        between = np.array([min(*exponents, 0.0), 0.0, 0.7, 1.0, max(*exponents, 1.0)])
        for exponent, bound in zip(between, tails.error(between)[:, 0], strict=True):
            logs = table.log_q + exponent * table.loss
            terms = np.exp(logs - logs.max())
            left = math.fsum(terms[~np.isin(table.loss, kept.loss)])
            assert left <= bound * math.fsum(terms)
        assert kept.size < table.size
        assert tails.share[0] <= 4.1 * math.exp(log_accuracy)
        outside = np.array([between[0] - 1e-9, between[-1] + 1e-9])
        assert np.isinf(tails.error(outside)).all()


@pytest.mark.parametrize(("exponents", "end"), [((1.0, 2000.0), 0), ((-2000.0, 1.0), -1)])
def test_what_is_left_out_at_one_end_alone_counts(exponents: tuple[float, float], end: int) -> None:
    """With noise so even, a tilt that large needs every atom up to one end; those beyond the other are left out."""
    table = PAIRS[0].atoms
    (kept,), tails = kept_atoms([table], Window(exponents, 0.0, -2.0))
    assert kept.loss[-1 - end] == table.loss[-1 - end]
    masses = np.exp(table.log_q if end == 0 else table.log_p)
    left = (
        1.0 - math.fsum(masses[np.isin(table.loss, kept.loss)]) - (table.infinite_q if end == 0 else table.infinite_p)
    )
    assert 1e-4 < left <= float(tails.error(np.array([0.0 if end == 0 else 1.0]))[0, 0])


def test_many_laws_of_different_sizes_make_one_rule_with_the_true_moments() -> None:
    """A law of fewer atoms than others need has its last one in equal parts."""
    pairs = (BinomialPair(520), BinomialPair(8_000))
    batch = AtomBatch(tuple(pair.atoms for pair in pairs), np.array([3.0, 2.0]))
    exponents = np.array([1.5, 2000.0])
    rule = batch.rule(Window(tuple(exponents.tolist()), 0.0, -40.0))
    assert 520 < rule.nodes < 6_000
    found = log_moments(rule, exponents)
    with mpmath.workdps(40):
        for column, pair in enumerate(pairs):
            n = pair.trials
            coefficients = [mpf(1)]
            for x in range(1, n + 1):
                coefficients.append(coefficients[-1] * (n - x + 1) / x)
            for row, power in enumerate(exponents.tolist()):
                ratios = (mpf(x) / (n - x + 1) for x in range(1, n + 1))
                total = mp.fsum(c * r ** mpf(power) for c, r in zip(coefficients[1:], ratios, strict=True))
                truth = mp.log(total) - n * mp.log(2)
                error = mpf(float(found.total_error[row, column]))
                assert abs(truth - mpf(float(found.value[row, column]))) <= error
                assert error <= mpf(1e-7)


def test_a_rule_carries_what_it_leaves_out() -> None:
    table, powers = PAIRS[0].atoms, np.array([1.0, 4.0])
    rule = AtomBatch((table,), np.ones(1)).rule(Window((1.0, 4.0), 0.0, -3.0))
    logs = table.log_q + powers[:, None] * table.loss
    truth, found = np.log(np.exp(logs).sum(axis=1)), log_moments(rule, powers)
    assert (np.abs(truth - found.value[:, 0])[1] > 1e-3).all()
    assert (np.abs(truth - found.value[:, 0]) <= found.quadrature[:, 0] + 1e-9).all()


def test_few_atoms_and_exact_losses_are_all_kept() -> None:
    assert not may_be_cut(BinomialPair(100).atoms)
    assert may_be_cut(PAIRS[0].atoms)


def test_atoms_left_out_on_purpose_share_no_lattice() -> None:
    """Lines of a lattice have the whole of a period, and add no mass that has none of it."""
    run = PairSum([(DiscretePair((0.75, 0.25), (0.25, 0.75)), 5)])
    rules = run.rules(Window((1.5,), 0.0, -40.0))
    assert rules is not None
    assert run.lattice(rules) is not None
    assert run.lattice([replace(rules[0], dropped=np.array([1e-9]))]) is None
