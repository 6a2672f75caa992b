"""Opacus: its PRV accountant (what its privacy engine uses by default) and its Renyi accountant, as they come."""

from __future__ import annotations

from importlib.metadata import version

from opacus.accountants import PRVAccountant, RDPAccountant

ACCOUNTANTS = {"prv": PRVAccountant, "rdp": RDPAccountant}


def epsilon(steps, delta, method="prv", **accuracy):
    """Upper epsilon."""
    accountant = ACCOUNTANTS[method]()
    # What `step`, called once a step, leaves behind; a million calls would be timed otherwise.
    accountant.history = [(noise, rate, int(count)) for noise, rate, count in steps]
    return {"upper": accountant.get_epsilon(delta=delta, **accuracy)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("opacus", "torch", "numpy", "scipy")}
