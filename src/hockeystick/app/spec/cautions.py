"""Where a guarantee is often claimed and does not hold: checked against what a specification states.

A caution is *broken* where the specification itself says so (batches are shuffled, delta is above 1/n): nothing is
certified then, whatever is proved of the run as accounted, and every output begins with that. It is *unstated* where
the specification says nothing, so that the reader must ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import final

from hockeystick.app.report.numbers import count_text, plain, plural
from hockeystick.app.spec.circumstances import Circumstances
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.registry import AUTOMATIC, schemes
from hockeystick.sampling import SCHEMES, Sampled


@dataclass(frozen=True)
class Stated:
    """What a specification states: the attributes of `hockeystick.app.spec.model.Specification`."""

    steps: tuple[StepEntry, ...]
    adjacency: str = "add-remove"
    unit: str = "example"
    deltas: tuple[float, ...] = ()
    epsilons: tuple[float, ...] = ()
    accountant: Choice = field(default_factory=lambda: Choice(AUTOMATIC))
    title: str = ""
    circumstances: Circumstances = field(default_factory=Circumstances)
    tuning: Choice | None = None
    group_size: int = 1

    @property
    def schemes(self) -> tuple[type[Sampled], ...]:
        """The sampling schemes of the steps, each once, by name."""
        names = sorted({entry.sampling.name for entry in self.steps if entry.sampling is not None})
        return tuple(schemes()[name] for name in names)


@final
@dataclass(frozen=True)
class Caution:
    """One assumption that is broken, or on which nothing is stated.

    Attributes
    ----------
    name : str
        A short name, stable between versions.
    text : str
        What a reader must know.
    broken : bool
        Whether what is stated contradicts the accounting.
    """

    name: str
    text: str
    broken: bool


def cautions(specification: Stated) -> tuple[Caution, ...]:
    """The cautions of a specification, broken ones first."""
    checks = (_batches, _population, _observers, _delta, _tuning, _adaptive, _one_direction, _callers_word)
    found = [caution for check in checks for caution in check(specification)]
    return tuple(sorted(found, key=lambda caution: not caution.broken))


def verdict(texts: Sequence[str]) -> str:
    """The first words of every output where something is broken; none where nothing is."""
    if not texts:
        return ""
    many = "an assumption of the accounting is" if len(texts) == 1 else f"{len(texts)} assumptions are"
    return f"NOT CERTIFIED: {many} broken"


_broken = partial(Caution, broken=True)
_unstated = partial(Caution, broken=False)


def _batches(specification: Stated) -> Iterator[Caution]:
    of_kind = {scheme.batches: scheme for scheme in SCHEMES}
    accounted = sorted({scheme.batches for scheme in specification.schemes})
    stated = specification.circumstances.batches
    everyone = f"that every {specification.unit} takes part in every step"
    assumed = " and ".join(of_kind[kind].noun for kind in accounted) or everyone
    if accounted and stated is None:
        others = "Many data loaders do otherwise" if "shuffled" in accounted else "Most data loaders shuffle instead"
        yield _unstated(
            "sampler-unstated",
            f"How batches are drawn in fact is not stated; the accounting assumes {assumed}. {others},"
            " which this guarantee does not cover.",
        )
    elif stated is not None and accounted != [stated]:
        yield _broken(
            f"{stated}-accounted-as-{'-and-'.join(accounted) or 'no-batches'}",
            f"Batches are drawn {of_kind[stated].manner}, but the accounting assumes {assumed}: the guarantee does not"
            " apply to this run. Draw batches as accounted, or account what is drawn.",
        )


def _population(specification: Stated) -> Iterator[Caution]:
    """Batches drawn from another number of records than there are; an epoch may leave out what fills no batch."""
    examples, many = specification.circumstances.examples, plural(specification.unit)
    if examples is None:
        return
    for sampling in dict.fromkeys(entry.sampling for entry in specification.steps if entry.sampling is not None):
        drawn_from = int(sampling.mapping.get("population", examples))  # type: ignore[arg-type]  # a number
        left_out = schemes()[sampling.name].step_is_epoch and drawn_from < examples
        if drawn_from != examples and not left_out:
            yield _broken(
                "population-is-not-examples",
                f"Batches are accounted as drawn from {count_text(drawn_from)} {many}, but there are"
                f" {count_text(examples)}: the guarantee does not apply to this run. State the number there is.",
            )


def _observers(specification: Stated) -> Iterator[Caution]:
    hidden = [scheme for scheme in specification.schemes if scheme.step_is_epoch]
    if hidden and specification.circumstances.observers is None:
        said = " and ".join(scheme.noun for scheme in hidden)
        kept = "for the whole run" if any(scheme.step_is_run for scheme in hidden) else "of every round or epoch"
        yield _unstated(
            "order-unstated",
            f"Who sees which step any {specification.unit} is in is not stated. The accounting ({said}) assumes that"
            f" nobody but the trainer ever learns the places {kept}, from logs, losses of batches or the storage that"
            " batches are read from.",
        )


def _delta(specification: Stated) -> Iterator[Caution]:
    examples = specification.circumstances.examples
    if examples is None:
        yield _unstated(
            "examples-unstated",
            f"The number of {plural(specification.unit)} is not stated; delta should be well below one over it.",
        )
        return
    if specification.epsilons:
        yield _unstated(
            "delta-found",
            f"Delta is what was found, not what was asked for: check that it is well below 1/n ="
            f" {plain(1.0 / examples)} for n = {count_text(examples)}.",
        )
    yield from _above_one_over(examples, specification.deltas, specification.unit)


def not_below_one_over(examples: int | None, deltas: Sequence[float], unit: str) -> tuple[str, ...]:
    """What is broken where deltas asked for are not below one over the number of records, if that is stated."""
    return () if examples is None else tuple(one.text for one in _above_one_over(examples, deltas, unit))


def _above_one_over(examples: int, deltas: Sequence[float], unit: str) -> Iterator[Caution]:
    for delta in deltas:
        if delta * examples >= 1.0:
            yield _broken(
                "delta-above-one-over-n",
                f"delta {plain(delta)} is not below 1/n = {plain(1.0 / examples)} for n = {count_text(examples)}: a"
                f" mechanism that publishes one {unit} picked at random would pass. Ask for a smaller delta.",
            )


def _tuning(specification: Stated) -> Iterator[Caution]:
    tuning = specification.circumstances.tuning
    if tuning == "not-counted":
        yield _broken(
            "tuning-not-counted",
            "Settings were tuned on the same data and that is not counted: the guarantee covers this run alone, not the"
            " choice of its settings. Count every run, or tune on public data.",
        )
    if tuning is None and specification.tuning is None:
        yield _unstated(
            "tuning-unstated",
            "Whether settings were tuned on the same data is not stated; if they were, that is not counted here.",
        )


def _adaptive(specification: Stated) -> Iterator[Caution]:
    adaptive = specification.circumstances.adaptive
    settings = "noise, rate" if specification.schemes else "noise"
    if adaptive == "yes":
        yield _broken(
            "adaptive-parameters",
            f"{settings.capitalize()} or the number of releases depended on earlier outputs, but the accounting takes"
            " them as fixed in advance: the guarantee does not apply as stated. It needs a privacy filter.",
        )
    if adaptive is None:
        yield _unstated(
            "adaptive-unstated",
            f"{settings.capitalize()} and the number of releases are taken as fixed in advance; stopping early on what"
            " was seen, or changing them on the way, is not covered.",
        )


def _one_direction(specification: Stated) -> Iterator[Caution]:
    if specification.adjacency in {"add", "remove"}:
        yield _unstated(
            "one-direction",
            f"Only the direction '{specification.adjacency}' is accounted. The usual guarantee takes the worse of both"
            " directions: adjacency 'add-remove'.",
        )


def _callers_word(specification: Stated) -> Iterator[Caution]:
    if any(entry.step.stated_by_caller for entry in specification.steps):
        yield _unstated(
            "pair-stated-by-caller",
            "A step is given by two probability vectors, not by a mechanism. The figures are proved for these vectors;"
            " that they dominate what is released rests on the word of whoever wrote them.",
        )
