"""Public names that are imported when first used, so that ``import hockeystick`` costs next to nothing.

A package that calls `attach` finds its public names on demand (PEP 562). A function may share its name with the module
it lives in, as `hockeystick.account` does: importing the module must not put it in the function's place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class _LazyPackage(ModuleType):
    """A package whose public names are looked up where they live."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        home = self._homes.get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module = importlib.import_module(home)
        is_module = module is self or not hasattr(module, name)
        value = importlib.import_module(f"{home}.{name}") if is_module else getattr(module, name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in self._homes and hasattr(value, name):
            return  # the import system binding a submodule whose function of that name is the public one
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self._homes)

    def __reduce__(self) -> tuple[object, ...]:
        # a function that is sent to other machines with what it refers to, as cloudpickle does, refers to the package
        return importlib.import_module, (self.__name__,)


def attach(package: str) -> None:
    """Let ``package`` find on demand the names that its stub says it has, and list them in its ``__all__``.

    Parameters
    ----------
    package : str
        Its ``__name__``; its stub ``__init__.pyi``, which type checkers read, has a line for each name: ``from home
        import name as name``.
    """
    module: Any = sys.modules[package]
    stub = module.__spec__.loader.get_data(f"{module.__file__.removesuffix('c')}i").decode()
    homes = {name: home for _, home, _, name, *_ in map(str.split, stub.splitlines())}
    listed = sorted(homes, key=lambda name: (not name.isupper(), name))  # the order in which commands name them
    vars(module).update(_homes=homes, __all__=listed)
    module.__class__ = _LazyPackage
