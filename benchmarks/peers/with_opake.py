"""opake-accounting: privacy loss distributions in Rust, asked through opake-dpsgd, where its Gaussians live.

Release 0.16.1 installs on Python 3.11 and 3.12, but its import fails there.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

if sys.version_info < (3, 13):
    raise RuntimeError(f"needs Python 3.13, this is {sys.version_info[0]}.{sys.version_info[1]}")

import opake.accounting as composition
import opake.dpsgd.accounting as dpsgd


def epsilon(steps, delta):
    """Upper epsilon."""
    parts = [dpsgd.poisson(dpsgd.gaussian(noise), sample_rate=rate) * int(count) for noise, rate, count in steps]
    run = parts[0] if len(parts) == 1 else composition.compose(*parts)
    return {"upper": run.epsilon_at(delta)}


def allocated(steps, delta):
    """One round of random allocation, upper epsilon."""
    ((noise, _, count),) = steps
    run = dpsgd.k_out_of_t(dpsgd.gaussian(noise), k=1, t=int(count), allocation="total")
    return {"upper": run.epsilon_at(delta)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("opake-accounting", "opake-dpsgd")}
