"""The documentation as `make docs` builds it: two clicks to every page, formulas that render, a search that finds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import CHROMIUM, DRIVER, chromium
from tests.site.axe import in_colours, serious_faults

SITE = Path(os.environ.get("HOCKEYSTICK_SITE", "none")).resolve()
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="make docs builds the site and runs these")

BUILT_BY_SPHINX = {"genindex.html", "py-modindex.html", "search.html"}
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Reader(HTMLParser):
    """Links that are seen without unfolding anything, what is loaded, the formulas, and the text beside them."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: list[str] = []
        self.formulas: list[str] = []
        self.text, self.code = "", [""]
        self._folded, self._inside = 0, ""
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._folded += tag == "details"
        if tag == "a" and not self._folded:
            self.links.add((found.get("href") or "").partition("#")[0])
        if tag in LOADED and found.get("rel") not in {"canonical", "index", "search", "next", "prev", "author"}:
            self.loaded.append(found.get(LOADED[tag]) or "")
        if tag == "math":
            self.formulas.append("")
        if tag == "code":
            self.code.append("")
        if tag in {"math", "code", "script", "style", "pre"} and not self._inside:
            self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._folded -= tag == "details"
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "math":
            self.formulas[-1] += data
        elif self._inside == "code":
            self.code[-1] += data
        elif not self._inside:
            self.text += data


def pages() -> dict[Path, Reader]:
    return {page: Reader(page) for page in SITE.rglob("*.html") if "_static" not in page.parts}


@pytest.fixture(scope="module")
def read() -> dict[Path, Reader]:
    return pages()


def test_every_page_is_reached_from_the_front_page_in_two_clicks(read: dict[Path, Reader]) -> None:
    reached = {SITE / "index.html"}
    for _ in range(2):
        named = {(page.parent / link).resolve() for page in reached for link in read[page].links if link}
        reached |= named & read.keys()
    missing = {page.relative_to(SITE).as_posix() for page in read.keys() - reached}
    assert not missing - BUILT_BY_SPHINX


def test_no_page_loads_anything_from_elsewhere(read: dict[Path, Reader]) -> None:
    for page, found in read.items():
        assert not [one for one in found.loaded if re.match(r"(https?:)?//", one)], page


def test_links_that_are_none_here_leave_no_brackets(read: dict[Path, Reader]) -> None:
    assert [page.name for page, found in read.items() if "[] (" in found.text] == []  # code is left out of the text


def test_formulas_are_rendered(read: dict[Path, Reader]) -> None:
    proofs = [page for page in read if page.parent.name == "derivations" and page.name != "index.html"]
    assert len(proofs) > 10
    for page in proofs:
        found = read[page]
        assert found.formulas, page
        for formula in found.formulas:
            assert formula.strip(), page
            assert not set("\\&$") & set(formula), (page.name, formula)  # TeX that was left as it is
        assert "$" not in found.text, page
        assert not re.search(r"\\[a-zA-Z]", found.text), page
        assert not [code for code in found.code if re.search(r" <= |_\{|\^\{|\bsum_", code)], page


# --------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    with chromium() as driver:
        driver.set_script_timeout(300)  # axe looks at every element of long pages
        yield driver


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("add-remove", "concepts/neighbours.html"),
        ("calibrate", "how-to/calibrate.html"),
        ("Opacus", "how-to/frameworks.html"),
    ],
)
def test_search_finds(browser: Any, words: str, page: str) -> None:
    browser.get(f"{(SITE / 'search.html').as_uri()}?q={words}")
    found = browser.execute_async_script(
        "const done = arguments[0], look = () => { const links = document.querySelectorAll('#search-results li a');"
        " const over = /finished|matching/.test(document.querySelector('#search-results').textContent);"
        " over ? done([...links].map((one) => one.href)) : setTimeout(look, 50); }; look();"
    )
    assert any(page in link for link in found), found


@pytest.mark.parametrize("page", ["index.html", "derivations/fixed-size.html", "choose.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_offline_without_fault(browser: Any, page: str, scheme: str) -> None:
    """From a file, no server helping; axe finds nothing serious, the console no fault, all is loaded from here."""
    in_colours(browser, scheme)
    browser.get_log("browser")  # what earlier pages left
    browser.get((SITE / page).as_uri())
    browser.execute_async_script(
        "const [scheme, done] = arguments, look = () => document.documentElement.dataset.theme === scheme"
        " ? done() : setTimeout(look, 50); look();",
        scheme,
    )
    assert not serious_faults(browser)
    assert not [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert all(name.startswith(("file:", "data:")) for name in loaded)
