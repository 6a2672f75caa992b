"""The receipt as Markdown, for a model card or a repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hockeystick.app.report.content import Content, Row
from hockeystick.app.report.evaluation import evaluation
from hockeystick.app.spec.cautions import verdict


def markdown(receipt: Mapping[str, Any]) -> str:
    """The receipt as a Markdown document."""
    content = Content(receipt)
    lines = [f"# {_plain(content.title)}", "", f"Privacy receipt, {receipt['created']}.", ""]
    if content.broken:
        lines += [f"**{verdict(content.broken)}.**", "", *_items(content.broken)]
    for result in content.results:
        lines += [f"**{content.figure(result)}** ({content.worth(result)})", ""]
        lines += [f"> {_plain(result['statement'])}", "", f"{content.bracket(result)}.", ""]
    if content.plainly():
        lines += [f"In plain words: {_plain(content.plainly())}", ""]
    if content.unstated:
        lines += ["## Ask before relying on it", "", *_items(content.unstated)]
    lines += ["## About this release", "", *_rows(content.about())]
    lines += ["## What was run", "", *_rows(content.steps())]
    lines += ["## What is promised, to whom", "", *_rows(content.guarantee())]
    lines += ["## What is not included", "", *_items(receipt["not_included"])]
    lines += ["## The whole curve", "", *_table(*content.curve())]
    lines += ["## How it was computed", "", *_rows(content.accounting())]
    lines += _table(*content.directions())
    if content.errors():
        lines += ["Errors inside the bracket:", "", *_table(("Source", "At most", "Of"), content.errors())]
    lines += ["## In the order of NIST SP 800-226", "", *_rows(evaluation(content))]
    lines += ["## Check it", "", "Run `hockeystick verify` on the JSON of this receipt. The whole input:", ""]
    lines += ["```json", content.specification_text(), "```", ""]
    lines += [f"Made with {content.versions()}. Contents `{receipt['checksum']}`.", ""]
    return "\n".join(lines)


def _plain(words: str) -> str:
    """Text that Markdown leaves alone."""
    for mark in ("\\", "`", "*", "_", "<", ">", "|", "[", "]", "#"):
        words = words.replace(mark, "\\" + mark)
    return " ".join(words.splitlines())  # at every character that some reader takes for the end of a line


def _items(items: Sequence[str]) -> list[str]:
    return [*(f"- {_plain(item)}" for item in items), ""]


def _rows(rows: Sequence[Row]) -> list[str]:
    return [*(f"- **{row.name}:** {_plain(row.text)}" for row in rows), ""]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    return [*lines, *(f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows), ""]
