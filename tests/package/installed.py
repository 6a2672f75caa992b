"""What an installed wheel must do with nothing but its own environment: run by `make dist`, far from the checkout."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files

import numpy as np
import scipy

import hockeystick as hs

TRUTH = 2.583841181692741  # epsilon of this run at delta 1e-5


def main() -> None:
    """Account a run in Python and by the command, and look for what must be shipped."""
    bound = hs.account(hs.Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 2000).epsilon(delta=1e-5)
    assert bound.certified
    assert bound.lower <= TRUTH <= bound.upper
    assert bound.upper - bound.lower < 1e-9
    command = ["dpsgd", "--noise-multiplier", "1", "--rate", "0.01", "--steps", "2000", "--delta", "1e-5"]
    told = subprocess.run(
        [sys.executable, "-m", "hockeystick", *command], check=True, capture_output=True, text=True
    ).stdout
    assert told.startswith("(2.5839, 1e-5)-differential privacy, certified"), told
    assert files("hockeystick").joinpath("py.typed").is_file()
    for name in ("explore.html", "explore.js", "explore.css", "uplot/uPlot.iife.min.js"):
        assert files("hockeystick.app.explore").joinpath("static", *name.split("/")).is_file(), name
    assert "site-packages" in str(hs.__file__)  # the wheel, not the checkout
    if importlib.util.find_spec("starlette") is not None:
        from hockeystick.app.explore.server import application

        assert application(8321).routes
    python = ".".join(map(str, sys.version_info[:3]))
    with_what = f"Python {python}, numpy {np.__version__}, scipy {scipy.__version__}"
    sys.stdout.write(f"hockeystick {version('hockeystick')} on {with_what}: [{bound.lower}, {bound.upper}]\n")


if __name__ == "__main__":
    main()
