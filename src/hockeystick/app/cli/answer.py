"""An answer on the terminal: the number first, then what it covers and what it does not; or all of it as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from hockeystick.app.cli.parsing import WIDTH
from hockeystick.app.cli.status import Status
from hockeystick.app.report.cautions import broken, verdict
from hockeystick.app.report.numbers import jsonable, nearest, plain, result_document
from hockeystick.app.report.words import (
    IF_HELD,
    headline,
    method_words,
    noise_words,
    not_included,
    relation_words,
    result_words,
    sampling_words,
    statement,
    steps_text,
    tuning_words,
)
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve

_Each = Callable[[Iterable[tuple[str, float]]], Iterable[tuple[str, float]]]

_LABEL = 13
_FEW = 3  # names of steps that are otherwise alike


@final
@dataclass(frozen=True)
class Answer:
    """One point of the curve: ``quantity`` at ``given``."""

    quantity: str
    given: float
    result: Bound | Estimate

    @property
    def other(self) -> str:
        """What is given."""
        return "delta" if self.quantity == "epsilon" else "epsilon"


def answers(specification: Specification, curve: PrivacyCurve, each: _Each = iter) -> list[Answer]:
    """Epsilon at every delta of the specification, and delta at every epsilon, counted one by one if asked for."""
    return [
        Answer(quantity, level, curve.epsilon(level) if quantity == "epsilon" else curve.delta(level))
        for quantity, level in each(specification.questions)
    ]


def answer_document(specification: Specification, found: Sequence[Answer]) -> dict[str, Any]:
    """The answers and what they rest on, as JSON holds them."""
    return {
        "broken_assumptions": list(broken(specification)),
        "specification": specification.document(),
        "results": [
            {
                "quantity": answer.quantity,
                "at": {answer.other: answer.given},
                **result_document(answer.result),
                "statement": statement(specification, answer.quantity, answer.given, answer.result),
            }
            for answer in found
        ],
        "not_included": list(not_included(specification)),
    }


def print_json(document: Any) -> None:
    """Print a document as JSON, infinities as strings."""
    print(json.dumps(jsonable(document), indent=2, allow_nan=False, ensure_ascii=False))


def print_answers(specification: Specification, found: Sequence[Answer], *, as_json: bool) -> Status:
    """Print the answers with what they rest on, after what is broken; the exit status."""
    if as_json:
        print_json(answer_document(specification, found))
    else:
        title = f"{textwrap.fill(specification.title, WIDTH)}\n\n" if specification.title else ""
        print(opening(specification) + title + answer_text(specification, found))
    return status_of(specification)


def status_of(*specifications: Specification) -> Status:
    """The exit status of an answer: whether what it rests on is broken."""
    return Status.NOT_CERTIFIED if any(map(broken, specifications)) else Status.OK


def opening(specification: Specification) -> str:
    """What stands before everything else: nothing, or that an assumption is broken, and which."""
    texts = broken(specification)
    return "\n".join([verdict(texts), *map(_item, texts), "", ""]) if texts else ""


def answer_text(specification: Specification, found: Sequence[Answer]) -> str:
    """The answers and what they rest on, for a person."""
    lines: list[str] = []
    assumed = IF_HELD if broken(specification) else ""
    for answer in found:
        lines += [headline(answer.quantity, answer.given, answer.result, assumed=assumed), ""]
        bound = "at most " if isinstance(answer.result, Bound) else ""
        lines.append(_row(answer.quantity, bound + result_words(answer.result)))
        lines += [_row(f"at {answer.other}", plain(answer.given)), ""]
    lines += ["What this covers", *_covered(specification, found), "", "What it does not cover"]
    lines += [_item(item) for item in not_included(specification)]
    return "\n".join(lines)


def _covered(specification: Specification, found: Sequence[Answer]) -> list[str]:
    lines = [_row("relation", relation_words(specification)), _row("unit", specification.protected)]
    kinds = specification.kinds
    of_run = "" if specification.tuning is None else " of the best run"
    published = f"every intermediate result{of_run} may be published"
    for number, entry in enumerate(kinds, 1):
        tag = f" {number}" if len(kinds) > 1 else ""
        said = (("name", _first_few(entry.name)), ("note", _first_few(entry.note)))
        lines += [_row(label + tag, text) for label, text in said if text]
        lines.append(_row("steps" + tag, f"{steps_text(entry)}; {published}"))
        lines.append(_row("noise" + tag, noise_words(entry)))
        lines.append(_row("sampling" + tag, sampling_words(entry.sampling, specification.unit)))
    if specification.tuning is not None:
        lines.append(_row("tuning", tuning_words(specification)))
    lines += [_row("method", method) for method in dict.fromkeys(method_words(answer.result) for answer in found)]
    lines += [_row("note", note) for note in dict.fromkeys(note for a in found for note in a.result.notes)]
    errors: dict[str, float] = {}
    for answer in found:
        if isinstance(answer.result, Bound):
            for name, size in answer.result.errors.items():
                errors[name] = max(errors.get(name, 0.0), size)
    if errors:
        lines.append(_row("errors", ", ".join(f"{name} {nearest(size, 2)}" for name, size in errors.items())))
    return lines


def _first_few(texts: str) -> str:
    """The names or notes of steps that are otherwise alike; receipts list them all."""
    listed = texts.split("; ")
    return texts if len(listed) <= _FEW + 1 else f"{'; '.join(listed[:_FEW])}; and {len(listed) - _FEW} more"


def _row(label: str, text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=f"  {label:<{_LABEL}}", subsequent_indent=" " * (_LABEL + 2), break_on_hyphens=False
    )


def _item(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
