"""The core in Pyodide, by Node.js: pure Python on the numpy and scipy that Pyodide loads.

It needs `npm install pyodide` in the folder of the project or in one that PYODIDE names, and the wheels of numpy and
scipy, which Pyodide fetches from where it is published: where one is missing it is skipped, saying which.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import hockeystick as hs

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
const { loadPyodide } = await import(process.argv[2]);
const pyodide = await loadPyodide();
try {
  await pyodide.loadPackage(["numpy", "scipy"], { messageCallback: () => {}, errorCallback: () => {} });
  pyodide.runPython("import numpy, scipy.fft");
} catch (error) {
  console.log("no wheels: " + (error.message.match(/No module named '[a-z.]+'/) ?? [error.message])[0]);
  process.exit(0);
}
pyodide.FS.mkdir("/src");
pyodide.mountNodeFS("/src", process.argv[3]);
console.log(pyodide.runPython(`
import sys, json
sys.path.insert(0, "/src")
import hockeystick as hs
bound = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000).epsilon(1e-5)
json.dumps([float(bound.lower), float(bound.upper)])
`));
"""


def test_the_core_accounts_in_pyodide(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run Pyodide in")
    module = Path(os.environ.get("PYODIDE", ROOT)) / "node_modules" / "pyodide" / "pyodide.mjs"
    if not module.exists():
        pytest.skip("Pyodide is not installed: npm install pyodide, and name its folder in PYODIDE")
    script = tmp_path / "run.mjs"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [node, str(script), str(module), str(ROOT / "src")], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.strip().splitlines()[-1]
    if said.startswith("no wheels"):
        pytest.skip(f"Pyodide could not load numpy and scipy here ({said})")
    lower, upper = json.loads(said)
    here = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000).epsilon(1e-5)
    assert lower <= here.upper
    assert here.lower <= upper
    assert upper - lower <= 2e-3
