"""Where a guarantee is often claimed and does not hold: checked against what a specification states.

A caution is *broken* where the specification itself says so (batches are shuffled, delta is above 1/n), *unstated*
where it says nothing, so that the reader must ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.app.report.numbers import plain
from hockeystick.app.spec.model import Specification
from hockeystick.sampling import SCHEMES

__all__ = ["Caution", "cautions"]


@final
@dataclass(frozen=True)
class Caution:
    """One assumption that is broken, or on which nothing is stated.

    Attributes
    ----------
    name : str
        A short name, stable between versions.
    broken : bool
        Whether what is stated contradicts the accounting.
    text : str
        What a reader must know.
    """

    name: str
    broken: bool
    text: str


def cautions(specification: Specification) -> tuple[Caution, ...]:
    """The cautions of a specification, broken ones first."""
    found = [*_batches(specification), *_delta(specification), *_tuning(specification), *_adaptive(specification)]
    found += [*_one_direction(specification), *_callers_word(specification)]
    return tuple(sorted(found, key=lambda caution: not caution.broken))


def _broken(name: str, text: str) -> Caution:
    return Caution(name, broken=True, text=text)


def _unstated(name: str, text: str) -> Caution:
    return Caution(name, broken=False, text=text)


def _batches(specification: Specification) -> list[Caution]:
    of_kind = {scheme.batches: scheme for scheme in SCHEMES}
    accounted = sorted({scheme.batches for scheme in specification.schemes})
    stated = specification.circumstances.batches
    if not accounted:
        return []
    assumed = " and ".join(of_kind[kind].noun for kind in accounted)
    if stated is None:
        return [
            _unstated(
                "sampler-unstated",
                f"How batches are drawn in fact is not stated; the accounting assumes {assumed}. Most data loaders"
                " shuffle instead, which this guarantee does not cover.",
            )
        ]
    if accounted == [stated]:
        return []
    return [
        _broken(
            f"{stated}-accounted-as-{'-and-'.join(accounted)}",
            f"Batches are drawn {of_kind[stated].manner}, but the accounting assumes {assumed}: the guarantee does not"
            " apply to this run. Draw batches as accounted, or account what is drawn.",
        )
    ]


def _delta(specification: Specification) -> list[Caution]:
    examples = specification.circumstances.examples
    if examples is None:
        return [
            _unstated(
                "examples-unstated",
                f"The number of {specification.unit}s is not stated; delta should be well below one over it.",
            )
        ]
    return [
        _broken(
            "delta-above-one-over-n",
            f"delta {plain(delta)} is not below 1/n = {plain(1.0 / examples)} for n = {examples}: a mechanism that"
            f" publishes one {specification.unit} picked at random would pass. Ask for a smaller delta.",
        )
        for delta in specification.deltas
        if delta * examples >= 1.0
    ]


def _tuning(specification: Specification) -> list[Caution]:
    tuning = specification.circumstances.tuning
    if tuning == "not-counted":
        text = (
            "Hyperparameters were tuned on the same data and that is not counted: the guarantee covers this run alone,"
            " not the choice of its settings. Count every run, or tune on public data."
        )
        return [_broken("tuning-not-counted", text)]
    if tuning is None:
        text = (
            "Whether hyperparameters were tuned on the same data is not stated; if they were, that is not counted here."
        )
        return [_unstated("tuning-unstated", text)]
    return []


def _adaptive(specification: Specification) -> list[Caution]:
    adaptive = specification.circumstances.adaptive
    if adaptive == "yes":
        text = (
            "Noise, rate or number of steps depended on earlier outputs, but the accounting takes them as fixed in"
            " advance: the guarantee does not apply as stated. It needs a privacy filter."
        )
        return [_broken("adaptive-parameters", text)]
    if adaptive is None:
        text = (
            "Noise, rate and number of steps are taken as fixed in advance; stopping early on what was seen, or"
            " changing them on the way, is not covered."
        )
        return [_unstated("adaptive-unstated", text)]
    return []


def _one_direction(specification: Specification) -> list[Caution]:
    if specification.adjacency not in {"add", "remove"}:
        return []
    text = (
        f"Only the direction '{specification.adjacency}' is accounted. The usual guarantee takes the worse of both"
        " directions: adjacency 'add-remove'."
    )
    return [_unstated("one-direction", text)]


def _callers_word(specification: Specification) -> list[Caution]:
    if not any(entry.step.stated_by_caller for entry in specification.steps):
        return []
    text = (
        "A step is given by two probability vectors, not by a mechanism. The figures are proved for these vectors; that"
        " they dominate what is released rests on the word of whoever wrote them."
    )
    return [_unstated("pair-stated-by-caller", text)]
