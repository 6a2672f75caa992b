"""riskcal: its accountant, dp-accounting's lattices read for attack risk; asked for epsilon here."""

from __future__ import annotations

from importlib.metadata import version

from riskcal.accountants import CTDAccountant


def epsilon(steps, delta):
    """Upper epsilon."""
    accountant = CTDAccountant()
    # what `step`, called once a step, leaves behind
    accountant.history = [(noise, rate, int(count)) for noise, rate, count in steps]
    return {"upper": accountant.get_epsilon(delta=delta)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("riskcal", "dp-accounting", "numpy", "scipy")}
