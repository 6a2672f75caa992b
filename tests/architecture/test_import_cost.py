"""``import hockeystick`` costs no more than the imports it stands on: numpy, scipy.special and scipy.fft.

Counted, not timed: in a fresh process that has those three, it loads two small modules of its own and nothing else.
"""

from __future__ import annotations

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
print(json.dumps([sorted(loaded), sorted(set(sys.modules) - before)]))
"""
TOO_SLOW_TO_IMPORT = {"scipy.stats", "scipy.optimize", "matplotlib", "flint", "pandas", "mpmath"}


def probe() -> tuple[set[str], set[str]]:
    """In a fresh process: what the import loads beyond the three, and what is loaded after a first answer."""
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=60)
    loaded, used = json.loads(run.stdout)
    return set(loaded), set(used)


def test_import_loads_two_small_modules_and_nothing_else() -> None:
    loaded, used = probe()
    assert loaded == {"hockeystick", "hockeystick.lazy"}
    assert "hockeystick.curve" in used, "no answer was given: the test looks in the wrong place"
    assert not used & TOO_SLOW_TO_IMPORT
    assert not any(module.startswith(("hockeystick.app", "hockeystick.exact")) for module in used)


def test_rooms_that_are_attributes_load_when_they_are_first_used() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import hockeystick as hs;"
        "rooms = ('accountants', 'dpsgd', 'filters', 'plots', 'spec');"
        "assert not any('hockeystick.' + room in sys.modules for room in rooms);"
        "assert set(rooms) <= set(dir(hs));"
        "assert callable(hs.plots.privacy_curve) and callable(hs.spec.schema);"
        "assert callable(hs.filters.RenyiFilter) and callable(hs.dpsgd.noise_multiplier_for);"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_command_loads_no_other_command() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from hockeystick.app.cli import main;"
        "assert main(['dpsgd', '--noise-multiplier', '1', '--rate', '.01', '--steps', '2000', '--delta', '1e-5']) == 0;"
        "ours = {name.rpartition('.')[2] for name in sys.modules if name.startswith('hockeystick.app.cli.')};"
        "assert 'dpsgd' in ours;"
        "assert not ours & {'calibrate', 'compare', 'curve', 'receipt', 'selfcheck', 'schema'}, ours;"
        "assert not any(name.startswith(('hockeystick.calibrate', 'hockeystick.independent')) for name in sys.modules);"
        "assert 'scipy' not in sys.modules, 'more than half of a cold start, for what this answer does not need'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
