"""What a run means, in words: the relation, the sampler and what is assumed of it, the noise, the method.

One sentence a topic, used alike by the command line and by receipts.
"""

from __future__ import annotations

import math

from hockeystick.app.report.numbers import bracket, count_text, nearest, plain, plural, rounded_up
from hockeystick.app.spec.cautions import verdict
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.registry import mechanisms, schemes
from hockeystick.bound import Bound, Estimate

IF_HELD = "if every assumption held"
"""How far a figure goes where an assumption is broken."""

_DONE = {
    "add-remove": ("added or removed", ", the worse of both directions"),
    "add": ("added", "; this direction alone, not its reverse"),
    "remove": ("removed", "; this direction alone, not its reverse"),
    "substitute": ("replaced by any other", ""),
    "zero-out": ("replaced by {null}", ", the worse of both directions"),
}
"""What is done to one of two neighbouring datasets, and what is accounted for."""

_SPELT = {"gaussian": "Gaussian", "laplace": "Laplace", "renyi": "Renyi", "dp": "DP", "prv": "PRV"}
"""Words of names that are not written in lower case."""

_CHANGES = {
    "add-remove": "adding or removing any {one}",
    "add": "adding any {one}",
    "remove": "removing any {one}",
    "substitute": "replacing any {one} by any other",
    "zero-out": "replacing any {one} by {null} (or back)",
}


def relation_words(specification: Specification) -> str:
    """What neighbouring means."""
    return relation(specification.adjacency, specification.protected, null_words(specification))


def relation(adjacency: str, one: str, null: str) -> str:
    """The same of what is protected, and what replaces it under zero-out."""
    done, accounted = _DONE[adjacency]
    return f"{adjacency}: {one} {done.format(null=null)}{accounted}"


def change_words(specification: Specification) -> str:
    """What neighbouring datasets differ in: "one example is added or removed"."""
    done, _ = _DONE[specification.adjacency]
    return f"{specification.protected} is {done.format(null=null_words(specification))}"


def null_words(specification: Specification) -> str:
    """What a record is replaced by under zero-out."""
    return "a null record" if specification.group_size == 1 else "null records"


def sampling_words(sampling: Choice | None, unit: str) -> str:
    """How the records of a step are chosen, as the accounting assumes it."""
    if sampling is None:
        return f"none: every {unit} takes part in every step"
    return schemes()[sampling.name].sentence(unit, sampling.mapping)  # type: ignore[arg-type]  # its own


def tuning_words(specification: Specification) -> str:
    """How often the steps are run before the best run is released, and what that rests on; empty where once."""
    runs = specification.runs
    if runs is None:
        return ""
    return (
        f"the best of {runs.words}: all steps are run that often, each time with settings drawn at random, and the best"
        " run alone is released. Their number is drawn without looking at the data; it and all other runs stay secret,"
        " and what decides which is best is released by every run, or public"
    )


def noise_words(entry: StepEntry) -> str:
    """What is released in one step, with every parameter."""
    if own := StepEntry(entry.mechanism).step.words:
        return own
    # without vectors of probabilities, which a page has no room for in a sentence
    short = {name: value for name, value in entry.mechanism.parameters if not isinstance(value, tuple)}
    said = choice_words(Choice.of(entry.mechanism.name, **short))
    name, _, parameters = said.partition(", ")
    what = mechanisms()[entry.mechanism.name].summary.rstrip(".")
    # the name need not be said twice
    return f"{what} ({parameters})" if what.lower().startswith(name.lower()) else f"{said}: {what}"


def steps_text(entry: StepEntry) -> str:
    """How many results are released, and in how many parts they are accounted."""
    each = entry.step.releases
    if each == 1 or entry.count == 1:
        return count_text(entry.count * each)
    return f"{count_text(entry.count * each)}, accounted as {count_text(entry.count)} times {count_text(each)}"


def times_text(entry: StepEntry) -> str:
    """The same, as a heading."""
    each = entry.step.releases
    if entry.count * each == 1:
        return "Once"
    over = f", {count_text(entry.count)} times over" if min(each, entry.count) > 1 else ""
    return f"{count_text(entry.count if each == 1 else each)} times{over}"


def choice_words(choice: Choice) -> str:
    """A name and its parameters in words."""
    words = [
        f"{name.replace('_', ' ')} {plain(value) if isinstance(value, float) else value}"
        for name, value in choice.parameters
    ]
    name = " ".join(_SPELT.get(word, word) for word in choice.name.split("-"))
    return ", ".join([name, *words])


def method_words(result: Bound | Estimate) -> str:
    """Which accountant, and what its answer is worth."""
    if isinstance(result, Bound):
        return f"{result.method}; both sides are proved, floating-point rounding included"
    return f"{result.method}; an estimate: it is NOT proved to be a bound and may under-report"


def result_words(result: Bound | Estimate) -> str:
    """A scalar result on one line."""
    if isinstance(result, Bound):
        width = rounded_up(float(result.width), 2)
        return f"{rounded_up(float(result.upper))}  (bracket {bracket(result)}, width {width})"
    error = float(result.error)
    size = "" if math.isnan(error) else f" (error about {nearest(error, 2)})"
    return f"about {nearest(float(result.value))}{size}"


def _pair(quantity: str, given: float, value: str) -> tuple[str, str]:
    """Epsilon and delta, in decimal."""
    return (value, plain(given)) if quantity == "epsilon" else (plain(given), value)


def known_of_none(lower: float) -> str:
    """What is known where the upper side is infinite: that no finite epsilon holds, or only that none is proved."""
    return "holds" if math.isinf(lower) else "is proved"


def headline(specification: Specification, quantity: str, given: float, result: Bound | Estimate) -> str:
    """The pair (epsilon, delta) that may be quoted, and what it is worth."""
    if not isinstance(result, Bound):
        value, kind = "about " + nearest(float(result.value)), "an estimate, not certified"
    elif math.isinf(float(result.upper)):
        return f"no finite epsilon {known_of_none(float(result.lower))} at delta {plain(given)}"
    else:
        value, kind = rounded_up(float(result.upper)), IF_HELD if specification.broken else "certified"
    return f"({', '.join(_pair(quantity, given, value))})-differential privacy{alone(specification)}, {kind}"


def alone(specification: Specification) -> str:
    """What is said of a guarantee in one direction: it bounds how far a step that way lowers a probability, no more."""
    adjacency = specification.adjacency
    return f" in the direction {adjacency} alone" if adjacency in {"add", "remove"} else ""


def statement(specification: Specification, quantity: str, given: float, result: Bound | Estimate) -> str:
    """The guarantee in words a reader can quote."""
    found = _statement(specification, quantity, given, result)
    broken = specification.broken
    return f"{verdict(broken)}. {IF_HELD.capitalize()}: {found[0].lower()}{found[1:]}" if broken else found


def _statement(specification: Specification, quantity: str, given: float, result: Bound | Estimate) -> str:
    one = specification.protected.removeprefix("a ")
    change = _CHANGES[specification.adjacency].format(one=one, null=null_words(specification))
    total = sum(entry.count * entry.step.releases for entry in specification.steps)
    steps = "the one release" if total == 1 else f"all {count_text(total)} releases together"
    if specification.tuning is not None:
        steps = f"{steps} of the best run"
    if not isinstance(result, Bound):
        epsilon, delta = _pair(quantity, given, nearest(float(result.value)))
        return (
            f"By the estimate of {result.method}, {steps} {'is' if total == 1 else 'are'} about"
            f" ({epsilon}, {delta})-differentially private under {change}. This is an estimate, not a guarantee."
        )
    epsilon, delta = _pair(quantity, given, rounded_up(float(result.upper)))
    if quantity == "epsilon" and math.isinf(float(result.upper)):
        known = known_of_none(float(result.lower))
        return f"No guarantee follows: no finite epsilon {known} at delta {delta}, under {change}."
    if quantity == "delta" and float(result.upper) >= 1.0:
        return f"No guarantee follows: at delta {delta}, epsilon is {epsilon}, under {change}."
    way = alone(specification)
    return (
        f"{change[0].upper()}{change[1:]} {'lowers' if way else 'changes'} the probability of any set of outcomes of"
        f" {steps} by a factor of at most e^{epsilon}, up to an additive {delta}: ({epsilon}, {delta})-differential"
        f" privacy{way}."
    )


def not_included(specification: Specification) -> tuple[str, ...]:
    """What the number does not cover, whatever the specification says."""
    unit, many = specification.unit, plural(specification.unit)
    items = ["tuning settings on the same data: every run counts, released or not"]
    if specification.tuning is not None:
        items = ["tuning of anything else on the same data, and the other runs or their number if these become known"]
    items += [scheme.not_covered for scheme in specification.schemes]
    if unit == "example":
        several = "several" if specification.group_size == 1 else f"more than {specification.group_size}"
        items.append(f"people behind {several} examples: the unit is {specification.protected}, not one person")
    beside = f"validation on private {many}, batch normalisation, " if specification.schemes else ""
    items.append(f"statistics released beside the run ({beside}the number of {many})")
    items.append("noise drawn by a predictable or finite-precision generator")
    return tuple(items)
