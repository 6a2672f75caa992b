"""What can be reproduced: every module of the rooms beside this file that defines an ``ITEM``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Literal

from reproduce.sheet import Sheet

__all__ = ["ROOMS", "Item", "Size", "modules"]

Size = Literal["full", "reduced"]

ROOMS = ("dots", "fourier", "pitfalls", "saddle_point", "ours")


@dataclass(frozen=True)
class Item:
    """One figure or table.

    Attributes
    ----------
    name : str
        Paper and number, such as "000-fig6".
    title : str
        One line, shown above the picture in the gallery.
    minutes : float
        Time budget of the full size; the run is stopped and counted as failed beyond it.
    make : callable
        Fills a sheet: rows, checks, claims, a picture. The reduced size takes seconds and makes the same checks.
    swaps : mapping of str to object
        For each module-level name that holds the method under test, a worse one: with it at least one check must fail.
    """

    name: str
    title: str
    minutes: float
    make: Callable[[Sheet, Size], None]
    swaps: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def modules() -> dict[str, ModuleType]:
    """The module of each item, by the item's name, in order."""
    found: dict[str, ModuleType] = {}
    for room in ROOMS:
        package = importlib.import_module(f"reproduce.{room}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"reproduce.{room}.{info.name}")
            if hasattr(module, "ITEM"):
                found[module.ITEM.name] = module
    return dict(sorted(found.items()))
