"""The formulas of the derivations are written as formulas, which the site renders, and not as code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = (Path(__file__).resolve().parents[2] / "docs" / "derivations").glob("*.md")
DERIVATIONS = sorted(page for page in PAGES if page.name not in {"README.md", "index.md"})
CODE = re.compile(r"`([^`\n]*)`")
FORMULA = re.compile(r" <= |_\{|\^\{|\bsum_")


@pytest.mark.parametrize("page", DERIVATIONS, ids=lambda page: page.stem)
def test_formulas_are_not_written_as_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "$" in text
    assert not [code for code in CODE.findall(text) if FORMULA.search(code)]
    assert not [line for line in text.splitlines() if re.match(r" {4}.*(?: <= |\^\{|sum_)", line)]
