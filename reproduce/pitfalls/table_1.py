"""003, Table 1: epsilon of 10,000 subsampled Gaussian steps, Poisson against fixed-size batches, at four deltas.

003, section 6: at rate 0.001 and noise multiplier 0.8 the two sampling schemes differ by more than a factor of ten in
epsilon, which no slack of a few orders of magnitude in delta makes good. A record in a fixed-size batch pushes another
one out, so that the values move by 2 where Poisson sampling moves them by 1 (Proposition 9).
"""

from __future__ import annotations

import numpy as np

import hockeystick as hs
from benchmarks.cases import Case, Step, Truth
from hockeystick.accountants import Accountant
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from reproduce.items import Item, Size
from reproduce.peers import ask, installed
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend

ACCOUNTANT: Accountant = hs.accountants.Certified(tolerance=1e-6)

NOISE, RATE, STEPS = 0.8, 0.001, 10_000
BATCH, POPULATION = 1, 1000  # b / n is the rate
DELTAS = np.array([1e-7, 1e-6, 1e-5, 1e-4])
PUBLISHED = {"poisson": (1.19, 0.96, 0.80, 0.64), "fixed-size": (17.48, 15.26, 12.98, 10.62)}
PEER = "opacus"  # what the paper used


def _epsilon(run: Composition, delta: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Bound:
    found = hs.account(run, accountant=ACCOUNTANT).epsilon(delta)
    if not isinstance(found, Bound):
        raise TypeError(f"{ACCOUNTANT!r} gives estimates; this needs brackets")
    return found


def make(sheet: Sheet, size: Size) -> None:
    """The table, the relation of its columns, and the paper's accountant beside it where it is installed."""
    poisson = _epsilon(hs.Gaussian(NOISE).poisson(RATE) * STEPS, DELTAS)
    step = hs.Gaussian(NOISE).without_replacement(batch_size=BATCH, population=POPULATION)
    fixed = _epsilon(step * STEPS, DELTAS)
    halved = _epsilon(hs.Gaussian(NOISE / 2.0).poisson(RATE) * STEPS, DELTAS)
    for name, bound in (("poisson", poisson), ("fixed-size", fixed)):
        _compare(sheet, name, bound)
    _check_schemes(sheet, poisson, fixed, halved)
    peers = _ask_peer(sheet) if size == "full" else {}
    for i, delta in enumerate(DELTAS):
        sheet.row(
            delta=float(delta),
            poisson_lower=float(np.asarray(poisson.lower)[i]),
            poisson_upper=float(np.asarray(poisson.upper)[i]),
            poisson_published=PUBLISHED["poisson"][i],
            fixed_size_lower=float(np.asarray(fixed.lower)[i]),
            fixed_size_upper=float(np.asarray(fixed.upper)[i]),
            fixed_size_published=PUBLISHED["fixed-size"][i],
            opacus_poisson=peers.get(float(delta)),
        )
    _draw(sheet, poisson, fixed)
    _say(sheet, poisson, fixed)


def _compare(sheet: Sheet, name: str, bound: Bound) -> None:
    """The published numbers are upper bounds to two decimals: ours lie below, and not far."""
    published = np.array(PUBLISHED[name])
    sheet.check(f"{name}: at most the published epsilon, rounding of its digits granted", bound.upper, "<=", published)
    sheet.check(f"{name}: within 0.03 of the published epsilon", bound.lower, ">=", published - 0.03)
    sheet.check(f"{name}: brackets narrower than 1e-5", bound.width, "<=", 1e-5)
    for delta, printed, lower, upper in zip(
        DELTAS, published, np.asarray(bound.lower), np.asarray(bound.upper), strict=True
    ):
        same = abs(upper - printed) <= 0.005
        sheet.claim(
            f"Table 1, delta {delta:.0e}, {name}",
            published=f"{printed:.2f}",
            ours=f"[{lower:.6f}, {upper:.6f}]",
            verdict="confirmed" if same else "better",
            remark="to the digits printed" if same else "the published bound is not tight to its digits",
        )


def _check_schemes(sheet: Sheet, poisson: Bound, fixed: Bound, halved: Bound) -> None:
    ratio = np.asarray(fixed.lower) / np.asarray(poisson.upper)
    sheet.check("fixed-size batches cost more than ten times the epsilon of Poisson samples", ratio, ">", 10.0)
    least, most = np.asarray(fixed.lower).min(), np.asarray(poisson.upper).max()
    sheet.check("three orders of magnitude in delta do not make it good", least, ">", 5.0 * most)
    sheet.check("fixed-size is Poisson at half the noise, from below", fixed.lower, "<=", halved.upper)
    sheet.check("fixed-size is Poisson at half the noise, from above", fixed.upper, ">=", halved.lower)
    sheet.claim(
        "abstract",
        published="epsilon about 1 for Poisson, above 10 without replacement",
        ours=f"{np.asarray(poisson.upper)[1]:.4f} and {np.asarray(fixed.lower)[1]:.4f} at delta 1e-6",
        verdict="confirmed",
    )


def _ask_peer(sheet: Sheet) -> dict[float, float]:
    """The Poisson column by the accountant that the paper used."""
    if not installed(PEER):
        sheet.missing(f"{PEER}: not installed")
        return {}
    found = {}
    for delta in (float(value) for value in DELTAS):
        case = Case("table-1", (Step(NOISE, RATE, STEPS),), delta, Truth(1.0, 1.0), "003, Table 1")
        outcome = ask(case, PEER)
        if outcome.upper is None:
            sheet.missing(f"{PEER} at delta {delta:.0e}: {outcome.error}")
        else:
            found[delta] = outcome.upper
    return found


def _draw(sheet: Sheet, poisson: Bound, fixed: Bound) -> None:
    sheet.picture, (plot,) = figure()
    for name, bound in (("poisson", poisson), ("fixed-size", fixed)):
        plot.loglog(DELTAS, np.asarray(bound.upper), **LOOKS[name].line(label=f"{LOOKS[name].label}, certified"))
        plot.loglog(
            DELTAS,
            PUBLISHED[name],
            color=LOOKS[name].colour,
            linestyle="",
            marker="x",
            markersize=9.0,
            label=f"{LOOKS[name].label}, published",
        )
    plot.set_xlabel("δ")
    plot.set_ylabel("ε (nats)")
    plot.set_yticks([0.5, 1.0, 2.0, 5.0, 10.0, 20.0], ["0.5", "1", "2", "5", "10", "20"])
    plot.minorticks_off()
    plot.set_title("10,000 steps, rate 0.001, noise multiplier 0.8")
    legend(plot, loc="center right")


def _say(sheet: Sheet, poisson: Bound, fixed: Bound) -> None:
    above = np.array(PUBLISHED["poisson"]) - np.asarray(poisson.upper)
    sheet.say(
        "003's table puts ε of Poisson samples beside that of fixed-size batches, noise and rate the same. Ours,"
        f" certified to six decimals, are {np.asarray(poisson.upper)[1]:.6f} and {np.asarray(fixed.upper)[1]:.6f} at"
        " δ = 1e-6: the gap of more than a factor of ten is real."
    )
    sheet.say(
        f"The published Poisson numbers are {above.min():.3f} to {above.max():.3f} larger than the truth, as upper"
        " bounds of an accountant with a tolerance are; fixed-size batches cost exactly what Poisson samples cost at"
        " half the noise."
    )


ITEM = Item(
    "003-table1",
    "Poisson samples against fixed-size batches at noise 0.8",
    minutes=2.0,
    make=make,
    swaps={"ACCOUNTANT": hs.accountants.Moments()},
)
