"""``import hockeystick`` costs no more than the imports it stands on: numpy, scipy.special and scipy.fft.

Counted, not timed: in a fresh process that has those three, it loads two small modules of its own and nothing else.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"

PROBE = f"""
import json, sys
sys.path.insert(0, {str(SOURCE)!r})
import numpy, scipy.special, scipy.fft
before = set(sys.modules)
import hockeystick
loaded = set(sys.modules) - before
hockeystick.account(hockeystick.Gaussian(1.0).poisson(0.1) * 10).epsilon(1e-5)
used = set(sys.modules) - before
rooms = ("accountants", "dpsgd", "filters", "plots", "spec")
assert set(rooms) <= set(dir(hockeystick))
assert callable(hockeystick.plots.privacy_curve) and callable(hockeystick.spec.schema)
assert callable(hockeystick.filters.RenyiFilter) and callable(hockeystick.dpsgd.noise_multiplier_for)
print(json.dumps([sorted(loaded), sorted(used), sorted(set(sys.modules) - before)]))
"""
TOO_SLOW_TO_IMPORT = {"scipy.stats", "scipy.optimize", "matplotlib", "flint", "pandas", "mpmath"}


@functools.cache
def probe() -> tuple[set[str], set[str], set[str]]:
    """In a fresh process, beyond the three: what the import loads, what an answer needs, and what all rooms need."""
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=60)
    loaded, used, with_rooms = json.loads(run.stdout)
    return set(loaded), set(used), set(with_rooms)


def test_import_loads_two_small_modules_and_nothing_else() -> None:
    loaded, used, _ = probe()
    assert loaded == {"hockeystick", "hockeystick.lazy"}
    assert "hockeystick.curve" in used, "no answer was given: the test looks in the wrong place"
    assert not used & TOO_SLOW_TO_IMPORT
    assert not any(module.startswith(("hockeystick.app", "hockeystick.exact")) for module in used)


def test_rooms_that_are_attributes_load_when_they_are_first_used() -> None:
    loaded, _, with_rooms = probe()
    rooms = {"hockeystick.accountants", "hockeystick.dpsgd", "hockeystick.filters"}
    rooms |= {"hockeystick.app.plots", "hockeystick.app.spec"}
    assert not rooms & loaded
    assert rooms <= with_rooms
    assert "matplotlib" not in with_rooms


def test_a_command_loads_no_other_command() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from hockeystick.app.cli import main;"
        "assert main(['dpsgd', '--noise-multiplier', '1', '--rate', '.01', '--steps', '2000', '--delta', '1e-5']) == 0;"
        "ours = {name.rpartition('.')[2] for name in sys.modules if name.startswith('hockeystick.app.cli.')};"
        "assert 'dpsgd' in ours;"
        "assert not ours & {'calibrate', 'compare', 'curve', 'receipt', 'selfcheck', 'schema'}, ours;"
        "assert not any(name.startswith(('hockeystick.calibrate', 'hockeystick.independent')) for name in sys.modules);"
        "rooms = ('enumeration', 'one_sided', 'lattice', 'laplace_sum', 'contour.sieve');"
        "unused = tuple('hockeystick.engines.' + room for room in rooms);"
        "assert not any(name.startswith(unused) for name in sys.modules);"
        "assert not {'statistics', 'uuid'} & set(sys.modules);"
        "assert 'scipy' not in sys.modules, 'more than half of a cold start, for what this answer does not need'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
