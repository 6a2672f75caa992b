"""Every link in the documentation leads to a file that is there, and to a heading that is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
LINK = re.compile(r"\]\(([^()\s]+)\)")


def links(page: Path) -> list[str]:
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings are reached: lower case, hyphens for blanks, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


def test_every_page_of_the_documentation_is_reached_from_its_contents() -> None:
    reached, todo = set(), [ROOT / "docs" / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        named = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
        todo += [target for target in named if target.suffix == ".md" and target.is_file()]
    of_the_site = {"index.md", "changelog.md", "python.md"}  # which Sphinx reaches from its own front page
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in of_the_site]
    missing = {str(page.relative_to(ROOT)) for page in pages} - {
        str(page.relative_to(ROOT)) for page in reached if page.is_relative_to(ROOT)
    }
    assert not missing


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
