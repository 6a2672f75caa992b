"""What a receipt says, arranged for reading: the same rows for the HTML page and for Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from hockeystick.app.report.numbers import count_text, nearest, number, plain, rounded_down, rounded_up
from hockeystick.app.report.words import mechanism_words, sampling_words
from hockeystick.app.spec.model import Specification, StepEntry
from hockeystick.app.spec.reader import from_document

__all__ = ["Content", "Row", "Table"]

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The heads of the columns, and the rows."""

_GIVEN = (
    "what is proved is proved given the assumed error bounds of float64 arithmetic and of the functions of numpy, scipy"
    " and the C library (docs/concepts/assumptions.md), and given ideal noise, drawn from exactly the law stated"
)


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
        """The pair that may be quoted, such as ``epsilon = 2.5841 at delta = 1e-5``."""
        ((given, level),) = result["at"].items()
        value = (
            rounded_up(number(result["upper"])) if result["certified"] else "about " + nearest(number(result["value"]))
        )
        return f"{result['quantity']} = {value} at {given} = {plain(number(level))}"

    def bracket(self, result: Mapping[str, Any]) -> str:
        """The bracket, rounded outward; or the estimate with its error; and which of the two it is."""
        if result["certified"]:
            return f"Bracket [{rounded_down(number(result['lower']))}, {rounded_up(number(result['upper']))}]"
        size = number(result["error"])
        error = "no error is known" if math.isnan(size) else f"error about {nearest(size, 2)}"
        return f"Estimate {nearest(number(result['value']))} ({error}; not proved)"

    def guarantee(self) -> list[Row]:
        """Relation, unit, sampler, normalisation."""
        unit = self.specification.unit
        rows = [Row("Relation", self.receipt["relation"]), Row("Unit of privacy", self._unit())]
        several = len(self.specification.kinds) > 1
        for place, entry in enumerate(self.specification.kinds, 1):
            mark = f" (step {place})" if several else ""
            rows.append(
                Row("Sampler" + mark, f"{sampling_words(entry.sampling, unit)}. {self._assumed(entry)}".strip())
            )
        rows.append(Row("Normalisation", self._normalisation()))
        if self.specification.circumstances.examples is not None:
            rows.append(Row("Data", f"{count_text(self.specification.circumstances.examples)} {unit}s"))
        if self.specification.circumstances.notes:
            rows.append(Row("Notes", self.specification.circumstances.notes))
        return rows

    def _unit(self) -> str:
        unit = self.specification.unit
        people = " A person behind several examples is not protected as one." if unit == "example" else ""
        return f"one {unit}: each {unit} is one record, clipped and sampled as a whole.{people}"

    @staticmethod
    def _assumed(entry: StepEntry) -> str:
        if entry.sampling is None:
            return ""
        return "Draws are assumed independent between steps, and which records were drawn is kept secret."

    def _normalisation(self) -> str:
        noisy = [entry.step.adds_noise for entry in self.specification.steps]
        if not any(noisy):
            return "Nothing to normalise: steps are stated by their outcomes or by a guarantee, not by noise on a sum."
        others = "" if all(noisy) else " Steps stated by their outcomes or by a guarantee have nothing to normalise."
        norm = self.specification.circumstances.clipping_norm
        stated = "is not stated here" if norm is None else f"is {plain(norm)}"
        doubled = " Under substitution the sensitivity is 2." if self.specification.adjacency == "substitute" else ""
        return (
            f"Noise is per unit of add/remove sensitivity: each {self.specification.unit}'s contribution is clipped"
            " to norm C (or lies in [-1, 1] x C), contributions are summed, and noise of the stated size times C is"
            f" added to the sum. C {stated}. A mean is the noisy sum over a number fixed in advance, such as the"
            f" expected batch size, never over the size the batch happened to have.{doubled}{others}"
        )

    def steps(self) -> list[Row]:
        """One row a step: how often; mechanism and sampling with every parameter, and what is done."""
        return [
            Row(
                f"{count_text(entry.count)} x",
                f"{entry.mechanism.text}, sampling {'none' if entry.sampling is None else entry.sampling.text}."
                f" {mechanism_words(entry)}.{f' For: {entry.name}.' if entry.name else ''}"
                + (f" {entry.note}" if entry.note else ""),
            )
            for entry in self.specification.kinds
        ]

    def accounting(self) -> list[Row]:
        """The accountant and its settings."""
        methods = dict.fromkeys(result["guarantee"] for result in self.results)
        notes = dict.fromkeys(note for result in self.results for note in result["notes"])
        rows = [Row("Accountant", self.specification.accountant.text)]
        rows += [Row("Method", method) for method in methods]
        rows += [Row("Note", note) for note in notes]
        return [*rows, Row("Given", _GIVEN), Row("Self-check", self._self_check())] if self._proves_anything else rows

    @property
    def _proves_anything(self) -> bool:
        return any(result["certified"] for result in self.results)

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
        heads, rows = ("Quantity", "Direction"), []
        for result in self.results:
            ((given, level),) = result["at"].items()
            what = f"{result['quantity']} at {given} {plain(number(level))}"
            rows += [((what, direction), sides) for direction, sides in result["directions"].items()]
        return _table(heads, rows, names=("At least", "At most", "Value"), digits=8)

    def errors(self) -> list[tuple[str, ...]]:
        """One row for each error source and result: source, size, what it is an error of."""
        return [
            (source, rounded_up(number(size), 2), f"{result['quantity']} at {_at(result)}")
            for result in self.results
            for source, size in result.get("errors", {}).items()
        ]

    @property
    def curve_certified(self) -> bool:
        """Whether every point of the curve is a proved bracket."""
        return all("upper" in point for point in self.receipt["curve"])

    def curve(self) -> Table:
        """One row for each point of the curve: delta, and the sides or the estimate."""
        rows = [((plain(number(point["delta"])),), point) for point in self.receipt["curve"]]
        return _table(("delta",), rows, names=("epsilon at least", "epsilon at most", "epsilon"), digits=6)

    def versions(self) -> str:
        """What made the receipt."""
        return ", ".join(f"{name} {version}" for name, version in self.receipt["software"].items())

    def specification_text(self) -> str:
        """The specification as a JSON file."""
        return json.dumps(self.receipt["specification"], indent=2, ensure_ascii=False)


def _table(
    heads: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]],
    *,
    names: tuple[str, str, str],
    digits: int,
) -> Table:
    """Two columns for the sides where all are proved, else one that tells brackets from estimates."""
    if all("upper" in sides for _, sides in rows):
        cells = [(rounded_down(number(s["lower"]), digits), rounded_up(number(s["upper"]), digits)) for _, s in rows]
        return (*heads, *names[:2]), [(*first, *cell) for (first, _), cell in zip(rows, cells, strict=True)]
    return (*heads, names[2]), [(*first, _either(sides, digits)) for first, sides in rows]


def _either(sides: Mapping[str, Any], digits: int) -> str:
    if "upper" not in sides:
        return f"about {nearest(number(sides['value']), digits)}"
    return f"[{rounded_down(number(sides['lower']), digits)}, {rounded_up(number(sides['upper']), digits)}]"


def _at(result: Mapping[str, Any]) -> str:
    ((given, level),) = result["at"].items()
    return f"{given} {plain(number(level))}"
