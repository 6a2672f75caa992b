"""The room order: a module imports only from rooms below its own, or from its own.

`ROOMS` is the order, lowest first. A room is a top-level module or package of ``hockeystick``; rooms in one row may use
each other. ``exact`` stands beside the column: it is the independent truth that the float64 code is tested against, so
it shares no numerics with it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from hockeystick.integrations import FRAMEWORKS
from tests.architecture.imports import PACKAGE, Import, When, all_imports, module_name, read_imports, source_files

ROOMS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "bound", "decimals", "lazy", "state", "progress", "notebook"}),
    frozenset({"numerics"}),
    frozenset({"transforms"}),
    frozenset({"laws"}),
    frozenset({"composition"}),
    frozenset({"sampling"}),
    frozenset({"mechanisms"}),
    frozenset({"engines"}),
    frozenset({"accountants"}),
    frozenset({"curve", "together", "account", "readouts"}),
    frozenset({"audit", "calibrate", "dpsgd", "odometer", "filters", "selfcheck", "sweep"}),
    frozenset({"integrations", "ledger"}),
    frozenset({"app"}),
)
ROOT = Path(__file__).resolve().parents[2]
LEVEL = {room: level for level, row in enumerate(ROOMS) for room in row}

INDEPENDENT = "independent"  # proves receipts again: it shares nothing, not even `exact`, and takes plain documents

EXACT = "exact"
EXACT_MAY_IMPORT = frozenset({"errors", "bound", "laws", "composition"})
EXACT_IS_IMPORTED_FROM = LEVEL["accountants"]  # `hs.accountants.Exact` is its public door

OF_BALLS = frozenset({EXACT, INDEPENDENT, "selfcheck"})  # python-flint's rooms

SHARED_BY_ACCOUNTANTS = frozenset({"base"})  # the abstract interface

CORE_AT_IMPORT = frozenset({"numpy", "scipy.special", "scipy.fft"})
NEEDED_BY = {  # optional or slow third-party packages, and the rooms that may ask for them inside functions
    "matplotlib": frozenset({"app"}),
    "sqlalchemy": frozenset({"ledger"}),
    "pandas": frozenset({"sweep", "notebook"}),
    "pyarrow": frozenset({"sweep"}),
    "xarray": frozenset({"sweep"}),
    "starlette": frozenset({"app"}),
    "uvicorn": frozenset({"app"}),
    "flint": OF_BALLS,
}
FIRST_CLASS = frozenset({"numpy", "scipy"})


def room_of(module: str) -> str:
    """The room of a dotted module of ours; the package itself is ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_ours(found: Import) -> bool:
    return found.target.split(".")[0] == PACKAGE


def is_third_party(found: Import) -> bool:
    top = found.target.split(".")[0]
    return top != PACKAGE and top not in sys.stdlib_module_names


def breaks_room_order(found: Import) -> bool:
    if not is_ours(found):
        return False
    importer, target = room_of(found.importer), room_of(found.target)
    if importer in {target, "__init__", "__main__"}:
        return False
    if target == "__init__":
        # The public names sit above all rooms: a room that used them would depend on everything. Only a command reads
        # the version from there, when it runs.
        return not (importer == "app" and found.when is When.IN_FUNCTION)
    if importer == INDEPENDENT:
        return True
    if target == INDEPENDENT:
        return importer != "app"
    if importer == EXACT:
        return target not in EXACT_MAY_IMPORT
    if target == EXACT:
        return LEVEL[importer] < EXACT_IS_IMPORTED_FROM
    return LEVEL[target] > LEVEL[importer]


def breaks_accountant_separation(found: Import) -> bool:
    if not is_ours(found):
        return False
    importer, target = found.importer.split("."), found.target.split(".")
    both_inside = len(importer) > 2 and len(target) > 2 and importer[1] == target[1] == "accountants"
    return both_inside and importer[2] != target[2] and target[2] not in SHARED_BY_ACCOUNTANTS


def breaks_import_budget(found: Import) -> bool:
    """Whether a third-party package is asked for where it must not be, or at a moment it must not be."""
    if not is_third_party(found) or found.when is When.TYPE_CHECKING:
        return False
    importer, package = room_of(found.importer), found.target.split(".")[0]
    if importer == INDEPENDENT and package != "flint":
        return True
    if package in NEEDED_BY:
        at_import = found.when is When.AT_IMPORT and package != "flint"  # whose rooms are asked for when they are used
        return importer not in NEEDED_BY[package] or at_import
    if package not in FIRST_CLASS:
        its_framework = importer == "integrations" and FRAMEWORKS.get(found.importer.split(".")[-1]) == package
        return importer != "integrations" or (found.when is When.AT_IMPORT and not its_framework)
    if found.when is When.IN_FUNCTION:
        return False
    allowed = any(found.target == name or found.target.startswith(name + ".") for name in CORE_AT_IMPORT)
    return not allowed


def asks_for_balls_at_import(found: Import) -> bool:
    """Whether a module whose import must work without python-flint asks for it, or for a module that imports it."""
    importer, target = room_of(found.importer), room_of(found.target)
    if found.when is not When.AT_IMPORT or (importer in OF_BALLS and found.importer != f"{PACKAGE}.selfcheck"):
        return False
    of_balls = is_ours(found) and target in OF_BALLS and found.target.removeprefix(PACKAGE) != ".selfcheck"
    return of_balls or found.target.split(".")[0] == "flint"


def violations(imports: Iterable[Import], rule: Callable[[Import], bool]) -> list[str]:
    return [str(found) for found in imports if rule(found)]


def test_every_module_has_a_room() -> None:
    rooms = set(LEVEL) | {EXACT, INDEPENDENT, "__init__", "__main__", "_version"}
    homeless = sorted({module_name(path) for path in source_files() if room_of(module_name(path)) not in rooms})
    assert not homeless, f"give these modules a row in ROOMS: {homeless}"


RULES = (breaks_room_order, breaks_accountant_separation, breaks_import_budget, asks_for_balls_at_import)


@pytest.mark.parametrize("rule", RULES)
def test_imports_obey(rule: Callable[[Import], bool]) -> None:
    imports = all_imports()
    assert imports, "no import found: the test looks in the wrong place"
    assert not violations(imports, rule)


BROKEN = [
    ("numerics.fft", "import hockeystick.laws", breaks_room_order),
    ("numerics.fft", "from hockeystick import laws", breaks_room_order),
    ("laws.gaussian", "import hockeystick", breaks_room_order),
    ("mechanisms.gaussian", "def f():\n    from hockeystick.accountants import lattice", breaks_room_order),
    ("engines.lattice.dots", "if TYPE_CHECKING:\n    from hockeystick.curve import PrivacyCurve", breaks_room_order),
    ("exact.gaussian", "from hockeystick.numerics.fft import convolve", breaks_room_order),
    ("exact.gaussian", "from hockeystick.engines.lattice import dots", breaks_room_order),
    ("laws.gaussian", "from hockeystick.exact import gaussian", breaks_room_order),
    ("independent.laws", "from hockeystick.laws import GaussianPair", breaks_room_order),
    ("independent.laws", "def f():\n    from hockeystick.exact import balls", breaks_room_order),
    ("independent.laws", "from hockeystick.bound import Bound", breaks_room_order),
    ("independent.laws", "import mpmath", breaks_import_budget),
    ("app.cli.verify", "from hockeystick.independent import check", asks_for_balls_at_import),
    ("accountants.exact", "from hockeystick.exact import gaussian", asks_for_balls_at_import),
    ("selfcheck", "from hockeystick.selfcheck.sums import Sum", asks_for_balls_at_import),
    ("selfcheck", "import flint", asks_for_balls_at_import),
    ("independent.laws", "def f():\n    import numpy", breaks_import_budget),
    ("laws.gaussian", "from hockeystick.independent import check", breaks_room_order),
    ("accountants.moments", "from hockeystick.accountants.contour import Contour", breaks_accountant_separation),
    ("accountants.moments", "import hockeystick.accountants.contour.nodes", breaks_accountant_separation),
    ("laws.gaussian", "from scipy import stats", breaks_import_budget),
    ("laws.gaussian", "import scipy.optimize", breaks_import_budget),
    ("calibrate", "from scipy.optimize import brentq", breaks_import_budget),
    ("laws.gaussian", "def f():\n    import flint", breaks_import_budget),
    ("laws.gaussian", "import flint", breaks_import_budget),
    ("app.plots", "import matplotlib.pyplot as plt", breaks_import_budget),
    ("curve", "def plot():\n    import matplotlib", breaks_import_budget),
    ("app.explore.server", "from starlette.applications import Starlette", breaks_import_budget),
    ("ledger", "def f():\n    import uvicorn", breaks_import_budget),
    ("ledger", "import torch", breaks_import_budget),
    ("integrations.opacus", "import dp_accounting", breaks_import_budget),
    ("integrations.dp_events", "import dp_accounting", breaks_import_budget),
    ("integrations", "from hockeystick.app.spec import model", breaks_room_order),
]
ALLOWED = [
    ("laws.gaussian", "from hockeystick.numerics import fft\nfrom hockeystick.errors import NotCertified"),
    ("accountants.moments", "from hockeystick.accountants.base import Accountant"),
    ("accountants.exact", "def f():\n    from hockeystick.exact import gaussian"),
    ("accountants", "from hockeystick.accountants.moments import Moments"),
    ("exact.gaussian", "import flint\nfrom hockeystick.laws import GaussianPair"),
    ("independent.run", "from hockeystick.independent.laws import Law\nimport flint"),
    ("selfcheck.sums", "import flint\nfrom hockeystick.exact.balls import precision"),
    ("selfcheck", "if TYPE_CHECKING:\n    from hockeystick.selfcheck.sums import Sum"),
    ("app.cli.verify", "def f():\n    from hockeystick.independent import check"),
    ("app.cli.verify", "from hockeystick.selfcheck import self_check"),
    ("calibrate", "import math\ndef f():\n    from scipy.optimize import brentq"),
    ("app.plots", "def f():\n    import matplotlib.pyplot"),
    ("app.explore.server", "def f():\n    import uvicorn"),
    ("numerics.tails", "import numpy as np\nfrom scipy import special\nfrom scipy.fft import rfft"),
    ("integrations.opacus", "import opacus\ndef f():\n    import torch"),
    ("integrations.dp_events", "def f():\n    import dp_accounting"),
]


@pytest.mark.parametrize(("module", "code", "rule"), BROKEN)
def test_a_broken_rule_is_seen(module: str, code: str, rule: Callable[[Import], bool]) -> None:
    assert violations(read_imports(f"{PACKAGE}.{module}", code), rule)


@pytest.mark.parametrize(("module", "code"), ALLOWED)
def test_what_is_allowed_passes(module: str, code: str) -> None:
    imports = read_imports(f"{PACKAGE}.{module}", code)
    assert imports
    for rule in RULES:
        assert not violations(imports, rule)


def test_relative_imports_are_refused() -> None:
    with pytest.raises(AssertionError, match="relative import"):
        read_imports(f"{PACKAGE}.laws.gaussian", "from . import base")


def test_every_framework_is_an_extra_and_has_its_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for module, framework in FRAMEWORKS.items():
        assert (ROOT / "tests" / "integrations" / f"test_{module}.py").is_file()
        names = [requirement.split(">")[0].replace("-", "_") for requirement in extras[module.replace("_", "-")]]
        assert names == [framework]
