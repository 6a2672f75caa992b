"""Our own: Poisson sampling against random allocation, one round of 1000 steps, epsilon at delta 1e-5 against noise.

Both are certified on both sides. A record that takes part exactly once a round is not one that takes part once in the
mean: with little noise the rare records that are drawn several times decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import figure

STEPS = 1000
DELTAS = (1e-5, 1e-10)
NOISES = {
    "full": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0),
    "reduced": (0.5, 1.0, 2.0),
}
TICKS = (0.3, 0.5, 1.0, 2.0, 5.0)
COLOURS = ("#0072B2", "#009E73")
WIDE = 1e-3  # how far apart the sides may be, relatively


def allocated(noise: float) -> hs.Composition:
    """One round of random allocation."""
    return hs.Gaussian(noise).random_allocation(steps=STEPS) * 1


def poisson(noise: float) -> hs.Composition:
    """As many steps on Poisson samples of the same rate."""
    return hs.Gaussian(noise).poisson(1 / STEPS) * STEPS


def sides(run: hs.Composition, delta: float) -> tuple[float, float]:
    """Both sides of epsilon."""
    low, high = hs.account(run).epsilon(delta).sides
    return float(low), float(high)


def make(sheet: Sheet, size: Size) -> None:
    """Account both at every noise, check, draw."""
    noises = np.array(NOISES[size])
    picture, (left, right) = figure(columns=2)
    for axes, delta in ((left, DELTAS[0]), (right, DELTAS[1])):
        found = {
            "random allocation": np.array([sides(allocated(noise), delta) for noise in noises]).T,
            "Poisson": np.array([sides(poisson(noise), delta) for noise in noises]).T,
        }
        for colour, (name, (low, high)) in zip(COLOURS, found.items(), strict=True):
            sheet.table(sampling=name, delta=delta, noise=noises, lower=low, upper=high)
            sheet.check(f"{name}: the sides are close at delta {delta:g}", high - low, "<=", WIDE * high)
            axes.plot(noises, high, color=colour, marker="o", markersize=4, label=name)
            axes.plot(noises, low, color=colour, linestyle="--")
        axes.set(xscale="log", yscale="log", xlabel="noise multiplier", ylabel=f"ε at δ = {delta:g}")
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.legend(frameon=False)
        _compare(sheet, noises, delta, found)
    sheet.picture = picture


def _compare(sheet: Sheet, noises: NDArray[np.float64], delta: float, found: Mapping[str, NDArray[np.float64]]) -> None:
    """By how much allocation is proved to be below."""
    allocation, usual = found["random allocation"], found["Poisson"]
    sheet.check(f"allocation is below Poisson at delta {delta:g}", allocation[1], "<", usual[0])
    saved = 1.0 - allocation[1] / usual[0]
    least, most = int(np.argmin(saved)), int(np.argmax(saved))
    sheet.say(
        f"At δ = {delta:g} one pass of {STEPS} steps by random allocation is proved to cost less than Poisson samples"
        f" of the same rate at every noise here: by {saved[least]:.1%} at noise {noises[least]:g}, by"
        f" {saved[most]:.0%} at noise {noises[most]:g}."
    )


ITEM = Item(
    name="ours-allocation",
    title="Poisson samples against random allocation",
    minutes=5.0,
    make=make,
    swaps=MappingProxyType({"allocated": lambda noise: hs.Gaussian(noise).poisson(1 / STEPS) * (STEPS + 1)}),
)
