"""PLD_accounting: dp-accounting's lattices, subsampled by way of their duals (Feldman and Shenfeld, 2026)."""

from __future__ import annotations

from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld
from PLD_accounting import gaussian_allocation_epsilon_range, subsample_pld


def epsilon(steps, delta, interval=1e-4):
    """Upper epsilon."""
    total = None
    for noise, rate, count in steps:
        one = pld.from_gaussian_mechanism(noise, value_discretization_interval=interval)
        run = subsample_pld(pld=one, sampling_probability=rate).self_compose(int(count))
        total = run if total is None else total.compose(run)
    return {"upper": total.get_epsilon_for_delta(delta)}


def allocated(steps, delta):
    """One round of random allocation, both sides at the accuracy it takes by itself."""
    ((noise, _, count),) = steps
    upper, lower = gaussian_allocation_epsilon_range(delta=delta, sigma=noise, num_steps=int(count))
    return {"lower": lower, "upper": upper}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("PLD_accounting", "dp-accounting", "numpy", "scipy")}
