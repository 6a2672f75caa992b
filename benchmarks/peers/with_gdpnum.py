"""gdpnum: its accountant, dp-accounting's lattices read for Gaussian differential privacy; asked for epsilon here."""

from __future__ import annotations

from importlib.metadata import version

from gdpnum import CTDAccountant


def epsilon(steps, delta):
    """Upper epsilon."""
    accountant = CTDAccountant()
    # what `step`, called once a step, leaves behind
    accountant.history = [(noise, rate, int(count)) for noise, rate, count in steps]
    return {"upper": accountant.get_epsilon(delta=delta)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("gdpnum", "dp-accounting", "numpy", "scipy")}
