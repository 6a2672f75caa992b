"""Public names that are imported when first used, so that ``import hockeystick`` costs next to nothing.

A package that calls `attach` finds on demand (PEP 562) what it imports of ours below ``if TYPE_CHECKING``: one list of
names, for type checkers and for users. A function may share its name with the module it lives in, as
`hockeystick.account` does: importing the module must not put it in the function's place.
"""

from __future__ import annotations

import dis
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
    """Let ``package`` find on demand the names it imports for type checkers, and list them in its ``__all__``.

    Parameters
    ----------
    package : str
        Its ``__name__``. Its statements ``from`` a module of ours ``import`` its public names, each as itself, and
        nothing else; all that need not be loaded with it stand below ``if TYPE_CHECKING``, and never run.
    """
    module = sys.modules[package]
    homes = {name: home for home, name in _imported(module) if home.startswith(package.partition(".")[0])}
    homes.pop(attach.__name__)
    listed = sorted(homes, key=lambda name: (not name.isupper(), name))  # the order in which commands name them
    vars(module).update(_homes=homes, __all__=listed)
    module.__class__ = _LazyPackage


def _imported(module: ModuleType) -> list[tuple[str, str]]:
    """Where from and what the statements of a module import, those that do not run included.

    They are read in its compiled code, which is there however the package was installed.
    """
    loader: Any = module.__loader__
    found, home = [], ""
    for step in dis.get_instructions(loader.get_code(module.__name__)):
        if step.opname == "IMPORT_NAME":
            home = step.argval
        elif step.opname == "IMPORT_FROM":
            found.append((home, step.argval))
    return found
