"""One item, made in a process of its own: a child process finds this module by its name, and `__main__` it does not."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from reproduce.items import Item, Size, modules
from reproduce.sheet import Sheet

__all__ = ["make"]


def make(name: str, size: Size, out: Path) -> None:
    """Make one item here and exit with its status."""
    item: Item = modules()[name].ITEM
    sheet, start = Sheet(name, folder=out), time.monotonic()
    item.make(sheet, size)
    sheet.save(out, seconds=time.monotonic() - start)
    for what in sheet.absent:
        print(f"{'':16} without {what}")
    for check in sheet.failed:
        print(f"{'':16} does not hold: {check.claim}: {check.left!r} {check.relation} {check.right!r}")
    sys.exit(1 if sheet.failed else 0)
