"""An answer on the terminal: the number first, then what it covers and what it does not; tables; or all as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from hockeystick.app.cli.parsing import Status, wrapped
from hockeystick.app.report import words
from hockeystick.app.report.numbers import jsonable, plain, result_document, rounded_up
from hockeystick.app.report.releases import releases
from hockeystick.app.spec.cautions import verdict
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
    return [Answer(asked, level, getattr(curve, asked)(level)) for asked, level in each(specification.questions)]


def answer_document(specification: Specification, found: Sequence[Answer]) -> dict[str, Any]:
    """The answers and what they rest on, as JSON holds them."""
    return {
        "specification": specification.document(),
        "results": [
            {
                "quantity": answer.quantity,
                "at": {answer.other: answer.given},
                **result_document(answer.result),
                "statement": words.statement(specification, answer.quantity, answer.given, answer.result),
            }
            for answer in found
        ],
        "not_included": list(words.not_included(specification)),
    }


def print_json(document: Any) -> None:
    """Print a document as JSON, infinities as strings."""
    print(json.dumps(jsonable(document), indent=2, allow_nan=False, ensure_ascii=False))


def told(specification: Specification, document: Mapping[str, Any], text: str, *, as_json: bool) -> Status:
    """Print a document as JSON or a text, after what is broken; the exit status."""
    if as_json:
        print_json({"broken_assumptions": list(specification.broken), **document})
    else:
        print(opening(specification.broken) + text)
    return status_of(specification)


def status_of(*specifications: Specification) -> Status:
    """The exit status of an answer: whether what it rests on is broken."""
    return Status.NOT_CERTIFIED if any(one.broken for one in specifications) else Status.OK


def opening(broken: Sequence[str]) -> str:
    """What stands before everything else: nothing, or that an assumption is broken, and which."""
    return "\n".join([verdict(broken), *map(_item, broken), "", ""]) if broken else ""


def answer_text(specification: Specification, found: Sequence[Answer]) -> str:
    """The answers and what they rest on, for a person."""
    lines: list[str] = []
    for answer in found:
        lines += [words.headline(specification, answer.quantity, answer.given, answer.result), ""]
        bound = "at most " if isinstance(answer.result, Bound) else ""
        lines.append(_row(answer.quantity, bound + words.result_words(answer.result)))
        lines += [_row(f"at {answer.other}", plain(answer.given)), ""]
    lines += ["What this covers", *_covered(specification, found), "", "What it does not cover"]
    return "\n".join([*lines, *map(_item, words.not_included(specification))])


def _covered(specification: Specification, found: Sequence[Answer]) -> list[str]:
    rows = [("relation", words.relation_words(specification)), ("unit", specification.protected)]
    kinds, tuning = releases(specification), words.tuning_words(specification)
    published = f"every intermediate result{' of the best run' if tuning else ''} may be published"
    for number, release in enumerate(kinds, 1):
        said = {
            "name": _first_few(release.steps.name),
            "note": _first_few(release.steps.note),
            "steps": "; ".join(filter(None, (release.often, release.kinds, published))),
            "noise": release.noise,
            "sampling": release.sampling,
        }
        tag = f" {number}" if len(kinds) > 1 else ""
        rows += [(label + tag, text) for label, text in said.items()]
    rows.append(("tuning", tuning))
    rows += [("method", method) for method in dict.fromkeys(words.method_words(answer.result) for answer in found)]
    rows += [("note", note) for note in dict.fromkeys(note for answer in found for note in answer.result.notes)]
    errors: dict[str, float] = {}
    for bound in (answer.result for answer in found if isinstance(answer.result, Bound)):
        errors |= {name: max(errors.get(name, 0.0), size) for name, size in bound.errors.items()}
    rows.append(("errors", ", ".join(f"{name} {rounded_up(size, 2)}" for name, size in errors.items())))
    return [_row(label, text) for label, text in rows if text]


def _first_few(texts: str) -> str:
    """The names or notes of steps that are otherwise alike; receipts list them all."""
    listed = texts.split("; ")
    return texts if len(listed) <= _FEW + 1 else f"{'; '.join(listed[:_FEW])}; and {len(listed) - _FEW} more"


def _row(label: str, text: str) -> str:
    return wrapped(text, f"  {label:<{_LABEL - 1}} ", " " * (_LABEL + 2))


def _item(text: str) -> str:
    return wrapped(text, "  - ", "    ")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Aligned columns under a line of heads.

    Parameters
    ----------
    heads : sequence of str
        One for each column.
    rows : sequence of sequence of str
        The cells.
    right : sequence of int
        The columns that are aligned to the right.

    Examples
    --------
    >>> print(table(["name", "n"], [["a", "10"], ["bc", "5"]], right=[1]))
    name   n
    a     10
    bc     5
    """
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join(lines)
