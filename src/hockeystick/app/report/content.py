"""What a receipt says, arranged for reading: the same rows for the HTML page and for Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from hockeystick.app.report import words
from hockeystick.app.report.numbers import asked, claimed, nearest, number, number_of, plain, plural, quoted
from hockeystick.app.report.releases import releases
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.reader import from_document
from hockeystick.decimals import rounded_down, rounded_up
from hockeystick.numerics.rationals import float_beside
from hockeystick.readouts.outline import Samples

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The heads of the columns, and the rows."""

_DIGITS = 6  # in tables
_GIVEN = (
    "the proofs rest on the assumed error bounds of float64 arithmetic and of the functions of numpy, scipy and the C"
    " library (docs/concepts/assumptions.md), and on ideal noise, drawn from exactly the distribution stated"
)
_ABOUT = {
    "Data set": "dataset",
    "Owner of the data": "owner",
    "Contact": "contact",
    "Purpose": "purpose",
    "Other releases of the same data": "other_releases",
    "Who is trusted with the records": "trust_model",
    "Who sees intermediate results": "observers",
    "Noise generator": "noise_generator",
    "Tuning on the same data": "tuning",
    "Earlier runs on the same data": "tuning_runs",
    "Software that ran": "software",
    "Notes": "notes",
}
"""What an office asks of a release, and where a specification says it."""


@final
@dataclass(frozen=True)
class Row:
    """A name and what is said of it."""

    name: str
    text: str


@final
class Content:
    """The parts of a receipt.

    Parameters
    ----------
    receipt : mapping
        As `hockeystick.app.report.receipt.receipt` makes it.
    """

    def __init__(self, receipt: Mapping[str, Any]) -> None:
        self.receipt = receipt
        self.specification: Specification = from_document(receipt["specification"])
        self.results: list[dict[str, Any]] = receipt["results"]

    @property
    def title(self) -> str:
        """The run's title."""
        return self.specification.title or "Privacy receipt"

    @property
    def certified(self) -> bool:
        """Whether every result is a proved bracket."""
        return all(result["certified"] for result in self.results)

    def figure(self, result: Mapping[str, Any]) -> str:
        """The pair that may be quoted, such as ``epsilon = 2.5841 at delta = 1e-5``, or that there is none."""
        given, level = asked(result)
        if math.isinf(claimed(result)):
            known = words.known_of_none(number(result.get("lower")))
            return f"no finite {result['quantity']} {known} at {given} = {plain(level)}"
        about = "" if result["certified"] else "about "
        return f"{result['quantity']} = {about}{quoted(result)} at {given} = {plain(level)}"

    def worth(self, result: Mapping[str, Any]) -> str:
        """What a figure is worth."""
        if not result["certified"]:
            return "an estimate, not proved"
        if self.broken:
            return f"not certified, true only {words.IF_HELD}"
        return "no guarantee" if math.isinf(claimed(result)) else "certified"

    @property
    def broken(self) -> list[str]:
        """What the specification itself says is not as accounted."""
        return [caution["text"] for caution in self.receipt["cautions"] if caution["broken"]]

    @property
    def unstated(self) -> list[str]:
        """What a reader must ask."""
        return [caution["text"] for caution in self.receipt["cautions"] if not caution["broken"]]

    def bracket(self, result: Mapping[str, Any]) -> str:
        """The bracket, rounded outward; or the estimate with its error; and which of the two it is."""
        if result["certified"]:
            true, least = f"the true {result['quantity']}", number(result["lower"])
            if math.isinf(least):
                return capital(f"{words.IF_HELD}, {true} would be infinite" if self.broken else f"{true} is infinite")
            proved = f"{words.IF_HELD}, {true} would" if self.broken else f"{true} is proved to"
            return f"{capital(proved)} lie between {rounded_down(least)} and {quoted(result)}"
        size = number(result["error"])
        error = "no error is known" if math.isnan(size) else f"error about {nearest(size, 2)}"
        return f"Estimate {quoted(result)} ({error}; not proved)"

    def plainly(self) -> str:
        """What an attacker can reach, without epsilon; empty where nothing is proved of that."""
        tradeoff = self.receipt["tradeoff"]
        if tradeoff is None or not tradeoff["certified"]:
            return ""
        alpha, missed = tradeoff["false_positive"][0], number(tradeoff["false_negative"][0]["lower"])
        if missed <= 0.0:
            return ""
        found = rounded_up(float_beside(100 * (1 - Fraction(missed)), up=True), 2)
        wrong = f"no more than {round(alpha * 1000)} in 1,000"
        members = self._members()
        if self.specification.adjacency == "substitute":
            said = (
                f"An attacker who must say which of two {members} is in the data, and wrongly names the first in"
                f" {wrong} cases, names it correctly in at most {found}% of cases, whatever else they know"
            )
        else:
            zero_out = self.specification.adjacency == "zero-out"
            others = "that null records stand for to be in the data" if zero_out else "outside the data to be in it"
            said = (
                f"An attacker who sees everything that is released, and wrongly takes {wrong} of the {members}"
                f" {others}, recognises at most {found}% of the {members} in it, whatever else they know"
            )
        return f"{capital(words.IF_HELD)}: {said[0].lower()}{said[1:]}." if self.broken else f"{said}."

    def _members(self) -> str:
        """Those whom an attack looks for, in the plural."""
        unit, size = plural(self.specification.unit), self.specification.group_size
        return unit if size == 1 else f"groups of up to {size} {unit}"

    def about(self) -> list[Row]:
        """Which data, whose, for what, and under which circumstances, as far as that is stated."""
        stated = self.specification.circumstances
        said = {name: getattr(stated, field) for name, field in _ABOUT.items()}
        rows = [Row(name, _said(_ABOUT[name], value)) for name, value in said.items() if value is not None]
        if stated.examples is not None:
            size = Row("Size", number_of(stated.examples, self.specification.unit))
            rows.insert(int(stated.dataset is not None), size)
        counted = ("notes", "tuning") if self.specification.tuning is not None else ("notes",)
        missing = [name for name, value in said.items() if value is None and _ABOUT[name] not in counted]
        if missing:
            rows.append(Row("Not stated", ", ".join(name[0].lower() + name[1:] for name in missing)))
        return rows

    def guarantee(self) -> list[Row]:
        """Relation, unit, sampler, normalisation."""
        rows = [Row("Relation", self.receipt["relation"]), Row("Unit of privacy", self._unit())]
        if self.specification.schemes:
            drawn = list(dict.fromkeys(release.sampling for release in releases(self.specification)))
            drawn.append("Beyond that draws are assumed to be independent; which records were drawn is kept secret.")
            rows.append(Row("Sampling", ". ".join(drawn)))
        if self.specification.tuning is not None:
            rows.append(Row("Tuning", f"{capital(words.tuning_words(self.specification))}."))
        return [*rows, Row("Normalisation", self._normalisation())]

    def _unit(self) -> str:
        unit = self.specification.unit
        people = " A person who contributes several examples is not protected as a whole." if unit == "example" else ""
        whole = "clipped and sampled as a whole" if self.specification.schemes else "counted as a whole"
        if self.specification.group_size > 1:
            people = people.replace("several examples", "more examples than that")
            people = f" All records of the group may change at once.{people}"
        return f"{self.specification.protected}: each {unit} is one record, {whole}.{people}"

    def _normalisation(self) -> str:
        unit = self.specification.unit
        noisy = [entry.step for entry in self.specification.steps if entry.step.adds_noise]
        if not noisy:
            return "Nothing to normalise: steps are stated by their outcomes or by a guarantee, not by noise on a sum."
        replaced = self.specification.adjacency == "substitute"
        said = []
        for adds, change in dict.fromkeys(step.contribution for step in noisy):
            scale = "of the stated size times C" if "C" in adds else "of the stated size"
            by = f" Replacing one {unit} changes the sum by up to {change}." if replaced else ""
            said.append(f"Each {unit} adds {adds} to a sum, to which noise {scale} is added.{by}")
        if any("C" in step.contribution[0] for step in noisy):
            norm = self.specification.circumstances.clipping_norm
            said.append("C is not stated here." if norm is None else f"C = {plain(norm)}.")
        if self.specification.schemes:
            said.append(
                "A mean is the noisy sum over a number fixed in advance, such as the expected batch size, never over"
                " the size the batch happened to have."
            )
        if len(noisy) < len(self.specification.steps):
            said.append("Steps stated by their outcomes or by a guarantee have nothing to normalise.")
        return " ".join(said)

    def steps(self) -> list[Row]:
        """One row a step: how often, and what is released, with every parameter."""
        rows = []
        for release in releases(self.specification):
            steps = release.steps
            said = (release.noise, release.kinds, f"for: {steps.name}" if steps.name else "", steps.note)
            rows.append(Row(release.times, " ".join(_sentence(one) for one in said if one)))
        return rows

    def accounting(self) -> list[Row]:
        """The accountant and its settings."""
        methods = dict.fromkeys(result["guarantee"] for result in self.results)
        notes = dict.fromkeys(note for result in self.results for note in result["notes"])
        rows = [Row("Accountant", capital(words.choice_words(self.specification.accountant)))]
        rows += [Row("Method", method) for method in methods]
        rows += [Row("Note", note) for note in notes]
        if any(result["certified"] for result in self.results):
            rows += [Row("Given", _GIVEN), Row("Self-check", self._self_check())]
        return rows

    def _self_check(self) -> str:
        """What the self-check found where the receipt was made."""
        found = self.receipt.get("selfcheck")
        if found is None:
            return "not run where this was made: python-flint is not installed there"
        worst = {name: number(share) for name, share in found["worst"].items()}
        exceeded = [name for name, share in worst.items() if share > 1.0]
        if exceeded or not found["passed"]:
            return f"FAILED where this was made: {', '.join(exceeded)}. What is said to be proved is not proved."
        return f"passed: {len(worst)} primitives kept their assumed bounds where this was made ({found['platform']})"

    def directions(self) -> Table:
        """One row for each result and direction: what, direction, and the sides or the estimate."""
        rows = []
        for result in self.results:
            what = f"{result['quantity']} at {_at(result)}"
            rows += [((what, direction), sides) for direction, sides in result["directions"].items()]
        return _table(("Quantity", "Direction"), rows, names=("At least", "At most", "Value"))

    def errors(self) -> list[tuple[str, ...]]:
        """One row for each error source and result: source, size, what it is an error of."""
        return [
            (source, rounded_up(number(size), 2), f"{result['quantity']} at {_at(result)}")
            for result in self.results
            for source, size in result.get("errors", {}).items()
        ]

    @property
    def samples(self) -> Samples:
        """What the pictures are drawn from."""
        return Samples.of(self.receipt["drawn"])

    @property
    def attacked(self) -> str:
        """What an attack tells apart."""
        one, adjacency = self.specification.protected, self.specification.adjacency
        if adjacency == "substitute":
            return f"which of two {self._members()} is in the data"
        instead = f" or {words.null_words(self.specification)}" if adjacency == "zero-out" else ""
        return f"whether {one} is in the data{instead}"

    def curve(self) -> Table:
        """One row for each point of the curve: delta, and the sides or the estimate."""
        rows = [((plain(number(point["delta"])),), point) for point in self.receipt["curve"]]
        return _table(("delta",), rows, names=("epsilon at least", "epsilon at most", "epsilon"))

    def versions(self) -> str:
        """What made the receipt."""
        return ", ".join(f"{name} {version}" for name, version in self.receipt["software"].items())

    def stated(self, field: str) -> str:
        """A circumstance in words; empty where it is not stated."""
        value = getattr(self.specification.circumstances, field)
        return "" if value is None else _said(field, value)

    def specification_text(self) -> str:
        """The specification as a JSON file."""
        return json.dumps(self.receipt["specification"], indent=2, ensure_ascii=False)


def _said(field: str, value: object) -> str:
    return capital(str(value).replace("-", " ")) if field == "tuning" else str(value)


def _sentence(said: str) -> str:
    return capital(said) if said.endswith((".", "!", "?")) else f"{capital(said)}."


def capital(said: str) -> str:
    """The same with a capital letter first."""
    return said[0].upper() + said[1:]


def _table(
    heads: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]], *, names: tuple[str, str, str]
) -> Table:
    """Two columns for the sides where all are proved, else one that tells brackets from estimates."""
    if all("upper" in sides for _, sides in rows):
        return (*heads, *names[:2]), [(*first, _least(sides), quoted(sides, _DIGITS)) for first, sides in rows]
    return (*heads, names[2]), [(*first, _either(sides)) for first, sides in rows]


def _least(sides: Mapping[str, Any]) -> str:
    return rounded_down(number(sides["lower"]), _DIGITS)


def _either(sides: Mapping[str, Any]) -> str:
    most = quoted(sides, _DIGITS)
    return f"[{_least(sides)}, {most}]" if "upper" in sides else f"about {most}"


def _at(result: Mapping[str, Any]) -> str:
    given, level = asked(result)
    return f"{given} {plain(level)}"
