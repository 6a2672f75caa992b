"""`docs/gallery.md`: every picture with its sentences, and a table of the papers' numbers with ours beside them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["write_gallery"]

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAPERS = {
    "000": "Connect the dots (000)",
    "002": "The Fourier accountant (002)",
    "003": "Pitfalls of subsampling and neighbouring relations (003)",
    "004": "The saddle-point accountant (004)",
    "ours": "Our own",
}
HEAD = """# Gallery

Every figure and table of the four papers this library stands on, redrawn by `make reproduce`, which also checks every
claim below as an inequality and fails where one does not hold. `make reproduce ONLY=000-fig6` makes one.

A colour is one method everywhere. Solid lines are upper bounds, dashed ones lower bounds, dotted ones estimates.
"""


def write_gallery(found: Mapping[str, ModuleType], results: Path) -> None:
    """Write the page and copy the pictures, from the results of a full run."""
    pictures = DOCS / "images" / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    made: dict[str, dict[str, Any]] = {}
    for name in found:
        path = results / f"{name}.json"
        if path.exists():
            made[name] = json.loads(path.read_text(encoding="utf-8"))
    parts = [HEAD]
    for paper, heading in PAPERS.items():
        parts.append(f"## {heading}\n")
        for name, result in made.items():
            if name.startswith(paper):
                parts.append(_section(name, found[name].ITEM.title, result, results, pictures))
    parts.append(_table(made))
    (DOCS / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


def _section(name: str, title: str, result: dict[str, Any], results: Path, pictures: Path) -> str:
    lines = [f"### {_number(name)}{title}\n"]
    picture = results / f"{name}.png"
    if picture.exists():
        _copy_small(picture, pictures / picture.name)
        lines.append(f"![{title}](images/gallery/{picture.name})\n")
    lines.append(" ".join(result["sentences"]) + "\n")
    if result["missing"]:
        lines.append(f"Left out in this run: {'; '.join(result['missing'])}.\n")
    lines.append(f"`{name}`: {_held(result['checks'])}, {_seconds(result['seconds'])}.\n")
    return "\n".join(lines)


def _number(name: str) -> str:
    """Of the figure or table, as ``Figure 6:`` for 000-fig6."""
    found = re.fullmatch(r"\d{3}-(fig|table)(\d+)([ab]?)(?:-(left|right))?", name)
    if found is None:
        return ""
    kind, number, letter, side = found.groups()
    return f"{'Figure' if kind == 'fig' else 'Table'} {number}{letter}{f', {side}' if side else ''}: "


def _held(checks: list[dict[str, Any]]) -> str:
    held = sum(check["holds"] for check in checks)
    return f"{held} checks hold" if held == len(checks) else f"{held} of {len(checks)} checks hold"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1.0 else "less than a second"


def _copy_small(source: Path, target: Path) -> None:
    """The same picture with a palette of 64 colours: a third of the bytes."""
    from PIL import Image

    with Image.open(source) as picture:
        small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(target, optimize=True)


def _table(made: Mapping[str, dict[str, Any]]) -> str:
    counted = Counter(claim["verdict"] for result in made.values() for claim in result["claims"])
    introduction = (
        f"{', '.join(f'{count} {verdict}' for verdict, count in counted.most_common())}. Better: ours is tighter, or"
        " keeps what the paper's loses. Not measured: the number is lost in the text we have, or no measurement decides"
        " it; the remark says which.\n"
    )
    lines = [
        "## The papers' numbers, and ours\n",
        introduction,
        "| item | claim | published | ours | verdict | remark |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in made.items():
        for claim in result["claims"]:
            verdict = f"**{claim['verdict']}**" if claim["verdict"] == "not confirmed" else claim["verdict"]
            cells = (name, claim["where"], claim["published"], claim["ours"], verdict, claim["remark"])
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
