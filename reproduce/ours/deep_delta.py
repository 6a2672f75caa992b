"""Our own: epsilon against delta down to 1e-100, with every other library's curve until it breaks.

The run is the everyday one of `benchmarks`: noise 1, rate 0.01, 2000 steps. A library breaks where it gives no answer
(an error or infinity) or one below the truth; it is not asked for smaller deltas then. Renyi accountants do not break:
they are far above the truth everywhere. The truth is ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from benchmarks.cases import DPSGD, Case, Truth
from benchmarks.measure import Limits, measure
from benchmarks.methods import METHODS, Method, peer
from hockeystick.accountants import Certified, Exact
from hockeystick.accountants.base import Accountant
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

RUN = hs.Gaussian(DPSGD.noise_multiplier).poisson(DPSGD.rate) * DPSGD.count
EXPONENTS = {  # of 1 / delta
    "full": (3, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100),
    "reduced": (5, 30, 100),
}
ZOOM = 21  # the right picture ends at delta 1e-ZOOM
LIMITS = Limits(seconds=30.0, memory=4 << 30)
SAFETY = 1e-9  # relative, of the truth: an answer lower by more is below it

DEFAULT: Accountant = Certified()


@dataclass(frozen=True)
class Walk:
    """A library's upper ends until it breaks, and how it broke: "" where it did not."""

    look: str
    label: str
    exponents: tuple[int, ...]
    upper: Array
    broke_at: int | None
    how: str


def make(sheet: Sheet, size: Size) -> None:
    """Ask for smaller and smaller deltas, check, draw."""
    exponents = EXPONENTS[size]
    lower, upper = _ends(DEFAULT, exponents)
    low, high = _ends(Exact(12), exponents)
    for index, exponent in enumerate(exponents):
        sheet.row(
            method="hockeystick", delta=f"1e-{exponent}", lower=lower[index], upper=upper[index], exact=high[index]
        )
    _check(sheet, (lower, upper), (low, high))
    walks = _walks(sheet, exponents, low) if size == "full" else []
    for walk in walks:
        for exponent, value in zip(walk.exponents, walk.upper, strict=True):
            exact = high[exponents.index(exponent)]
            sheet.row(method=walk.label, delta=f"1e-{exponent}", upper=value, exact=exact)
    for walk in walks:
        if walk.how == "":
            at = [exponents.index(exponent) for exponent in walk.exponents]
            sheet.check(f"{walk.label} is above the truth by more than our width", walk.upper - high[at], ">=", 1e-3)
    _draw(sheet, exponents, upper, high, walks)
    _tell(sheet, exponents, (lower, upper), walks)


def _ends(accountant: Accountant, exponents: Sequence[int]) -> tuple[Array, Array]:
    """Lower and upper ends of epsilon, on one curve, for the worse direction."""
    curve = hs.account(RUN, "add-remove" if accountant is DEFAULT else "remove", accountant=accountant)
    bounds = [curve.epsilon(delta=10.0**-exponent) for exponent in exponents]
    ends = [(float(one.lower), float(one.upper)) for one in bounds if isinstance(one, hs.Bound)]
    lower, upper = np.array(ends).T
    return lower, upper


def _check(sheet: Sheet, ours: tuple[Array, Array], truth: tuple[Array, Array]) -> None:
    (lower, upper), (low, high) = ours, truth
    sheet.check("our lower ends are below the truth", lower, "<=", high)
    sheet.check("our upper ends are above the truth", upper, ">=", low)
    sheet.check("our brackets' width", upper - lower, "<=", 1e-7)
    sheet.check("epsilon grows as delta falls", upper[1:], ">", upper[:-1])


def _asked() -> dict[str, tuple[str, Method]]:
    return {
        "dp-accounting PLD": ("dp-accounting", peer("dp-accounting", "with_dp_accounting")),
        "prv-accountant": ("prv-accountant", peer("prv-accountant", "with_prv_accountant", eps_error=0.01)),
        "Opacus PRV": ("opacus", peer("Opacus", "with_opacus")),
        "autodp Rényi": ("autodp", METHODS["autodp"]),
    }


def _walks(sheet: Sheet, exponents: Sequence[int], low: Array) -> list[Walk]:
    walks = []
    for label, (look, method) in _asked().items():
        if method.interpreter.exists():
            walks.append(_walk(look, label, method, dict(zip(exponents, low, strict=True))))
        else:
            sheet.missing(f"{label}: not installed")
    return walks


def _walk(look: str, label: str, method: Method, truth: dict[int, float]) -> Walk:
    """Ask one library for ever smaller deltas, until it breaks."""
    asked: list[int] = []
    values: list[float] = []
    for exponent, least in truth.items():
        case = Case("deep delta", (DPSGD,), 10.0**-exponent, Truth(least, 0.0), "epsilon against delta")
        outcome = measure(case, method, LIMITS)
        if outcome.error is not None or outcome.upper is None or not math.isfinite(outcome.upper):
            return Walk(look, label, tuple(asked), np.array(values), exponent, "no answer")
        asked.append(exponent)
        values.append(outcome.upper)
        if outcome.upper < least * (1.0 - SAFETY):
            return Walk(look, label, tuple(asked), np.array(values), exponent, "below the truth")
    return Walk(look, label, tuple(asked), np.array(values), None, "")


def _draw(sheet: Sheet, exponents: Sequence[int], upper: Array, exact: Array, walks: Sequence[Walk]) -> None:
    sheet.picture, (whole, near) = figure(columns=2, height=4.6)
    whole.plot(exponents, upper, label="hockeystick (default): both ends", **LOOKS["hockeystick"].line())
    whole.plot(exponents, exact, color=LOOKS["exact"].colour, linewidth=0.8, label="exact")
    truth = dict(zip(exponents, exact, strict=True))
    for walk in walks:
        whole.plot(walk.exponents, walk.upper, label=walk.label, **LOOKS[walk.look].line())
        _draw_distance(near, walk, truth)
        if walk.broke_at is not None and walk.how == "no answer":
            whole.plot(walk.broke_at, truth[walk.broke_at], "x", color=LOOKS[walk.look].colour, markersize=9.0)
    zoom = [exponent for exponent in exponents if exponent <= ZOOM]
    distance = np.maximum(np.abs(upper - exact)[: len(zoom)], 1e-16)
    near.plot(zoom, distance, label="hockeystick", **LOOKS["hockeystick"].line())
    near.set(yscale="log", ylabel="|upper end − exact| (nats)", xlim=(2.0, ZOOM))
    near.set_xticks(range(4, ZOOM, 4))
    near.set_title("hollow: below the truth; ×: no answer", fontsize=9.0)
    whole.set(ylabel="ε (nats)", xlim=(0.0, max(exponents) + 2.0))
    for panel in (whole, near):
        panel.set_xlabel("−log₁₀ δ")
    handles, labels = whole.get_legend_handles_labels()
    sheet.picture.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.0)


def _draw_distance(near: Axes, walk: Walk, truth: dict[int, float]) -> None:
    """How far a library's answers are from the truth; hollow where below, a cross where there is none."""
    style = LOOKS[walk.look].line()
    answers = zip(walk.exponents, walk.upper, strict=True)
    shown = [(exponent, value - truth[exponent]) for exponent, value in answers if exponent <= ZOOM]
    if not shown:
        return
    near.plot([e for e, _ in shown], [abs(d) for _, d in shown], **style)
    below = [(e, abs(d)) for e, d in shown if d < -SAFETY * truth[e]]
    hollow = {**style, "linestyle": "", "markerfacecolor": "white", "markersize": 8.0}
    near.plot([e for e, _ in below], [d for _, d in below], **hollow)
    if walk.broke_at is not None and walk.how == "no answer" and walk.broke_at <= ZOOM:
        near.plot(walk.broke_at, abs(shown[-1][1]), "x", color=LOOKS[walk.look].colour, markersize=9.0)


def _tell(sheet: Sheet, exponents: Sequence[int], ours: tuple[Array, Array], walks: Sequence[Walk]) -> None:
    lower, upper = ours
    sheet.say(
        f"Noise 1, rate 0.01, 2000 steps: our certified brackets are at most {float((upper - lower).max()):.0e} nats"
        f" wide from δ = 1e-{exponents[0]} to 1e-{exponents[-1]}, where ε is {upper[-1]:.3f}, and contain the exact"
        " value at each."
    )
    for walk in walks:
        if walk.broke_at is None:
            above = walk.upper[-1] - upper[-1]
            sheet.say(f"{walk.label} does not break, and is {above:.2f} above at 1e-{walk.exponents[-1]}.")
        elif walk.how == "no answer":
            sheet.say(f"{walk.label} gives no answer from 1e-{walk.broke_at} on.")
        else:
            gap = upper[list(exponents).index(walk.broke_at)] - walk.upper[-1]
            sheet.say(f"{walk.label} is {gap:.2g} below the truth at 1e-{walk.broke_at}.")


ITEM = Item(
    "ours-deep-delta",
    "Epsilon down to delta 1e-100",
    minutes=5.0,
    make=make,
    swaps=MappingProxyType({"DEFAULT": Certified(1e-2, engine="lattice")}),
)
