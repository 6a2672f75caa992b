"""Our own: what is claimed at most and what an attack has seen at least, of a run as claimed and of one with a bug.

The attack knows the mechanism and claims "in" where the noisy sum is above a threshold; its counts are those expected
of 100,000 runs with the canary and as many without. The bug leaves out half of the noise.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.audit import Audit
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import figure

CLAIMED = 2.0
RUNS = 100_000
THRESHOLD = 3.0  # in deviations of the noise that is really added


def noise_with_a_bug() -> float:
    """What is really added, where half of the noise is left out."""
    return CLAIMED / 2.0


def attacked(noise: float) -> Audit:
    """What the attack sees of runs with this noise."""
    found, mistaken = (round(RUNS * float(ndtr(shift - THRESHOLD))) for shift in (1.0 / noise, 0.0))
    return hs.audit.counts(found, RUNS, false_positives=mistaken, negatives=RUNS)


def make(sheet: Sheet, size: Size) -> None:
    """Hold both against the claim, check, draw."""
    claim = hs.account(hs.Gaussian(CLAIMED))
    epsilons = np.linspace(0.0, 2.0, 9 if size == "full" else 3)
    most = np.asarray(claim.delta(epsilons).sides[1])
    picture, axes = figure(columns=2)
    for place, title, noise in zip(axes, ("as claimed", "with a bug"), (CLAIMED, noise_with_a_bug()), strict=True):
        seen = attacked(noise)
        least = np.array([seen.delta(float(epsilon)) for epsilon in epsilons])
        truth = np.asarray(hs.account(hs.Gaussian(noise)).delta(epsilons).sides[1])
        sheet.table(run=title, epsilon=epsilons, claimed_at_most=most, seen_at_least=least)
        sheet.check(f"{title}: what was seen is below what is true", least, "<=", truth)
        hs.plots.audit(seen, claim, ax=place, title=title)
        verdict = seen.verdict(claim)
        refuted = noise < CLAIMED
        sheet.check(
            f"{title}: refuted only with the bug", verdict.p_value, "<" if refuted else ">", 1e-6 if refuted else 0.05
        )
        sheet.say(
            f"Noise {CLAIMED:g} claimed, {noise:g} added: an attack sees epsilon of at least {seen.epsilon(1e-5):.3f}"
            f" at δ = 1e-5, where at most {float(claim.epsilon(1e-5).sides[1]):.3f} is claimed"
            + (f"; that is refuted (p = {verdict.p_value:.0e})." if verdict.refuted else "; the claim stands.")
        )
    sheet.picture = picture


ITEM = Item(
    name="ours-audit",
    title="Claimed at most, seen at least",
    minutes=2.0,
    make=make,
    swaps=MappingProxyType({"noise_with_a_bug": lambda: 0.95 * CLAIMED}),
)
