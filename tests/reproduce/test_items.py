"""Each figure and table in its reduced size: every check holds, and one fails with a worse method in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.items import modules
from reproduce.sheet import Sheet

MODULES = modules()
SWAPS = [(name, swap) for name, module in MODULES.items() for swap in module.ITEM.swaps]
QUICK = {"000-fig8", "002-fig4", "003-conjecture12", "004-fig4", "ours-width-time"}  # one of each paper, and ours
SAVED = {"004-fig4", "ours-width-time"}


@pytest.mark.parametrize("name", MODULES)
def test_every_check_holds(name: str, tmp_path: Path) -> None:
    sheet = Sheet(name)
    MODULES[name].ITEM.make(sheet, "reduced")
    assert sheet.checks
    assert not sheet.failed
    if name in SAVED:
        sheet.save(tmp_path, seconds=0.0)
        assert (tmp_path / f"{name}.csv").stat().st_size > 0
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    else:  # every artist is drawn, on no canvas: no picture of 35 is written
        assert sheet.rows
        assert sheet.picture is not None
        sheet.picture.set_layout_engine("none")
        for axis in (axis for axes in sheet.picture.axes for axis in (axes.xaxis, axes.yaxis)):
            axis.set_ticks([])  # which are laid out for longer than all else
            axis.set_ticks([], minor=True)
        sheet.picture.draw_without_rendering()


@pytest.mark.parametrize(
    ("name", "swap"), [pytest.param(*each, marks=[] if each[0] in QUICK else pytest.mark.torture) for each in SWAPS]
)
def test_a_worse_method_is_noticed(name: str, swap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = MODULES[name]
    monkeypatch.setattr(module, swap, module.ITEM.swaps[swap])
    sheet = Sheet(name)
    module.ITEM.make(sheet, "reduced")
    assert sheet.failed


def test_every_item_names_a_worse_method() -> None:
    assert all(module.ITEM.swaps for module in MODULES.values())
