"""Receipts caution as fits the sampler: fresh or fixed bins, and who sees the order."""

from __future__ import annotations

import pytest

import hockeystick as hs
from hockeystick.app.report.words import not_included
from hockeystick.app.spec.cautions import cautions
from hockeystick.sampling import SCHEMES


def specification(sampling: str, circumstances: str = "") -> hs.spec.Specification:
    return hs.spec.read(
        f"""
        steps = [{{ mechanism = "gaussian", noise_multiplier = 2.0, sampling = {{ {sampling} }} }}]
        guarantee = {{ delta = 1e-5, adjacency = "zero-out" }}
        circumstances = {{ {circumstances} }}
        """
    )


@pytest.mark.parametrize("drawn", [scheme.batches for scheme in SCHEMES])
def test_steps_without_sampling_are_no_account_of_batches(drawn: str) -> None:
    """A record more pushes another out of a batch of fixed size, and may be in several micro-batches."""
    text = 'steps = [{ mechanism = "gaussian", noise_multiplier = 2.0 }]\nguarantee = { delta = 1e-5 }\n'
    (found,) = hs.spec.read(f'{text}circumstances = {{ batches = "{drawn}" }}').broken
    assert "the accounting assumes that every example takes part in every step" in found
    assert not hs.spec.read(text).broken


@pytest.mark.parametrize(
    ("sampling", "examples", "breaks"),
    [
        ('scheme = "poisson", batch_size = 10, population = 1000', 1000, False),
        ('scheme = "poisson", batch_size = 10, population = 1000', 100, True),  # the rate is ten times that accounted
        ('scheme = "without-replacement", batch_size = 10, population = 1000', 999, True),
        ('scheme = "cut-batches", rate = 0.01, largest_batch = 10, population = 1000', 2000, True),
        ('scheme = "shuffled", batch_size = 10, population = 1000', 1009, False),  # the last nine fill no batch
        ('scheme = "shuffled", batch_size = 10, population = 1000', 990, True),
        ('scheme = "poisson", rate = 0.01', 7, False),
    ],
)
def test_batches_of_more_records_than_there_are_break_the_guarantee(sampling: str, examples: int, breaks: bool) -> None:
    found = specification(sampling, f"examples = {examples}").broken
    assert any("accounted as drawn from 1,000 examples" in text for text in found) is breaks
    assert not specification(sampling).broken


ROUNDS = 'scheme = "random-allocation", steps = 10'
BINS = 'scheme = "balls-in-bins", bins = 10, epochs = 3'


@pytest.mark.parametrize(
    ("sampling", "drawn"),
    [(ROUNDS, "balls-in-bins"), (BINS, "random-allocation"), (BINS, "shuffled"), (ROUNDS, "poisson")],
)
def test_bins_of_another_kind_break_the_guarantee(sampling: str, drawn: str) -> None:
    assert any(
        "the guarantee does not apply" in text for text in specification(sampling, f'batches = "{drawn}"').broken
    )


@pytest.mark.parametrize(("sampling", "kept"), [(ROUNDS, "of every round"), (BINS, "for the whole run")])
def test_who_sees_the_order_is_asked(sampling: str, kept: str) -> None:
    (asked,) = (one for one in cautions(specification(sampling)) if one.name == "order-unstated")
    assert not asked.broken
    assert kept in asked.text
    stated = specification(sampling, 'observers = "the trainer alone"')
    assert not any(one.name == "order-unstated" for one in cautions(stated))


def test_shuffled_batches_are_not_said_to_be_uncovered_by_what_is_accounted_for_them() -> None:
    epoch = 'scheme = "shuffled", batch_size = 10, population = 100'
    asked = " ".join(one.text for one in cautions(specification(epoch)))
    assert "assumes a shuffled pass over the data. Many data loaders do otherwise" in asked
    assert "which step any example is in" in asked


def test_poisson_samples_have_no_order_to_ask_for() -> None:
    found = cautions(specification('scheme = "poisson", rate = 0.1'))
    assert not any(one.name == "order-unstated" for one in found)


def test_what_is_not_covered_tells_fresh_from_fixed_bins() -> None:
    assert any("keep their place from round to round" in text for text in not_included(specification(ROUNDS)))
    assert any("bins of one size" in text for text in not_included(specification(BINS)))
