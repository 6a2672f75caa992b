"""Every source file has fewer than 350 lines: a longer one holds two nouns."""

from __future__ import annotations

from tests.architecture.imports import module_name, source_files

LIMIT = 350


def test_every_source_file_is_below_the_limit() -> None:
    lengths = {module_name(path): len(path.read_text("utf-8").splitlines()) for path in source_files()}
    assert lengths, "no source file found: the test looks in the wrong place"
    too_long = {name: length for name, length in lengths.items() if length >= LIMIT}
    assert not too_long, f"split by noun: {too_long}"
