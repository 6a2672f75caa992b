"""The decision picture of the documentation: three questions, their answers, and what to write for each."""

from __future__ import annotations

from html import escape
from pathlib import Path

__all__ = ["draw"]

QUESTIONS = (
    (
        "Which relation?",
        "Whom do you promise what?",
        "#0b5cad",
        (
            ("the number of records is not published", '"add-remove"'),
            ("it is known, and records may be swapped", '"substitute"'),
            ("it is known, and data is used or not", '"zero-out"'),
        ),
    ),
    (
        "Which sampler?",
        "How are batches drawn in fact?",
        "#a04a00",
        (
            ("each record joins by a coin of its own", ".poisson(rate=...)"),
            ("the same, cut to a largest batch", ".poisson(largest_batch=...)"),
            ("a random set of fixed size each step", ".without_replacement(...)"),
            ("a permutation each epoch, cut into batches", ".shuffled(...)"),
            ("one random step of each round for each record", ".random_allocation(steps=...)"),
            ("the same random step in every epoch", ".balls_in_bins(bins=...)"),
            ("all records every time", "no sampler"),
        ),
    ),
    (
        "Which accountant?",
        "What is the number for?",
        "#2e7d32",
        (
            ("to quote, to calibrate, to stop by", "none: the certified default"),
            ("to check a bracket by other means", "Exact(digits=...)"),
            ("to compare with a paper or another tool", "Moments, SaddlePoint, PRV, ..."),
        ),
    ),
)

_ROW, _GAP, _WIDTH = 40, 26, 960


def draw(path: Path) -> None:
    """Write the picture."""
    parts: list[str] = []
    top = 16
    for title, question, colour, answers in QUESTIONS:
        height = _ROW * len(answers)
        middle = top + height / 2
        parts.append(f'<rect x="12" y="{middle - 38}" width="236" height="76" rx="10" fill="{colour}"/>')
        parts.append(_text(130, middle - 6, title, "#ffffff", "middle", "bold 19px"))
        parts.append(_text(130, middle + 18, question, "#ffffff", "middle", "14px"))
        for number, (condition, answer) in enumerate(answers):
            y = top + _ROW * (number + 0.5)
            parts.append(
                f'<path d="M248 {middle} C268 {middle} 264 {y} 290 {y}"'
                f' fill="none" stroke="{colour}" stroke-width="1.6"/>'
            )
            parts.append(_text(298, y + 5, condition, "#1b1f24", "start", "15px"))
            parts.append(
                f'<rect x="668" y="{y - 15}" width="280" height="30" rx="6" fill="#f6f8fa" stroke="{colour}"/>'
            )
            parts.append(
                _text(680, y + 5, answer, "#1b1f24", "start", "14px", "ui-monospace, Menlo, Consolas, monospace")
            )
        top += height + _GAP
    drawn = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}">\n'
        f'<rect width="{_WIDTH}" height="{top}" fill="#ffffff"/>\n{drawn}\n</svg>\n',
        encoding="utf-8",
    )


def _text(x: float, y: float, said: str, colour: str, anchor: str, size: str, family: str = "") -> str:
    font = f"{size} {family or 'system-ui, Segoe UI, Roboto, Arial, sans-serif'}"
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}" style="font:{font}">{escape(said)}</text>'
