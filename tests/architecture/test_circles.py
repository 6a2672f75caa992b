"""No module of ours needs itself in the end: imports, counted wherever they stand, form no circle.

An import inside a function, or for type checking only, counts like any other: two modules that need each other are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from tests.architecture.imports import PACKAGE, Import, all_imports, read_imports


def circle_in(imports: Iterable[Import]) -> list[str]:
    """The modules of one circle, its first named again at the end; none where there is no circle."""
    needs: dict[str, set[str]] = {}
    for found in imports:
        if found.target.split(".")[0] == PACKAGE:
            needs.setdefault(found.importer, set()).add(found.target)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        modules: list[str] = error.args[1]
        return modules
    return []


def test_there_is_no_circle() -> None:
    imports = all_imports()
    assert len(imports) > 500, "hardly an import found: the test looks in the wrong place"
    circle = circle_in(imports)
    assert not circle, " <- ".join(circle)


def test_a_circle_is_seen_wherever_its_imports_stand() -> None:
    codes = {
        "hockeystick.bound": "if TYPE_CHECKING:\n    from hockeystick.errors import PrecisionError",
        "hockeystick.errors": "def f():\n    from hockeystick.numerics import rounding",
        "hockeystick.numerics.rounding": "from hockeystick.bound import Bound",
    }
    imports = [found for module, code in codes.items() for found in read_imports(module, code)]
    assert set(circle_in(imports)) == set(codes)
    assert not circle_in(imports[:-1])
