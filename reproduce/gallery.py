"""`docs/gallery.md`: every picture with its sentences, and a table of the papers' numbers with ours beside them."""

from __future__ import annotations

import json
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
    "ours": "Beside other libraries",
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
    lines = [f"### {title}\n"]
    picture = results / f"{name}.png"
    if picture.exists():
        _copy_small(picture, pictures / picture.name)
        lines.append(f"![{title}](images/gallery/{picture.name})\n")
    lines.append(" ".join(result["sentences"]) + "\n")
    if result["missing"]:
        lines.append(f"Left out in this run: {'; '.join(result['missing'])}.\n")
    lines.append(f"`{name}`: {len(result['checks'])} checks, {result['seconds']:.0f} s.\n")
    return "\n".join(lines)


def _copy_small(source: Path, target: Path) -> None:
    """The same picture with a palette of 64 colours: a third of the bytes."""
    from PIL import Image

    with Image.open(source) as picture:
        small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(target, optimize=True)


def _table(made: Mapping[str, dict[str, Any]]) -> str:
    lines = [
        "## The papers' numbers, and ours\n",
        "| item | claim | published | ours | verdict | remark |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in made.items():
        for claim in result["claims"]:
            cells = (name, claim["where"], claim["published"], claim["ours"], claim["verdict"], claim["remark"])
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
