"""PLD_accounting: dp-accounting's lattices, subsampled by way of their duals (Feldman and Shenfeld, 2026)."""

from __future__ import annotations

from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld
from PLD_accounting import subsample_pld


def epsilon(steps, delta, interval=1e-4):
    """Upper epsilon."""
    total = None
    for noise, rate, count in steps:
        one = pld.from_gaussian_mechanism(noise, value_discretization_interval=interval)
        run = subsample_pld(pld=one, sampling_probability=rate).self_compose(int(count))
        total = run if total is None else total.compose(run)
    return {"upper": total.get_epsilon_for_delta(delta)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("PLD_accounting", "dp-accounting", "numpy", "scipy")}
