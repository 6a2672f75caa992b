"""003, Conjecture 12: for the Poisson-subsampled Gaussian the remove curve is the larger at every epsilon >= 0.

003, section 5: for the Laplace mechanism it is not; for the Gaussian the authors searched a wide range of parameters
and found no counterexample. This search compares certified brackets of both curves: what it finds for or against is
proved, and what it cannot decide is counted. Its state is ``003-conjecture12.state.json`` beside the results, and every
full run adds `GOAL` curves to it, or as many as there is time for. `conjecture_search` describes the configurations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hockeystick as hs
from hockeystick.accountants import Accountant
from hockeystick.bound import Bound
from hockeystick.laws import LaplacePair
from reproduce.items import Item, Size
from reproduce.pitfalls.conjecture_search import PER_CURVE, Curve, State, accountants_for, curve, search
from reproduce.sheet import Sheet
from reproduce.style import figure

ENGINES: Callable[[Curve], tuple[Accountant, ...]] = accountants_for

GOAL = 3150  # curves that a full run adds
SECONDS = 480.0  # after which a full run stops, to go on the next time
SAVED_EVERY = 5.0  # seconds
REDUCED = 4
STATE = "003-conjecture12.state.json"

CONTROL = (0.75, 0.6, 2)  # scale, rate and steps of a Laplace mechanism with a counterexample (003, Figure 1)


def make(sheet: Sheet, size: Size) -> None:
    """Search on, then say what has been found so far."""
    state = _full(sheet) if size == "full" else _reduced()
    _check(sheet, state, configurations=GOAL * PER_CURVE if size == "full" else REDUCED * PER_CURVE)
    _check_control(sheet)
    _check_closest(sheet, state)
    for one in state.least:
        sheet.row(noise=one.noise, rate=one.rate, steps=one.steps, epsilon=one.epsilon, smallest_margin=one.margin)
    _draw(sheet, state)
    _say(sheet, state)


def _reduced() -> State:
    state = State()
    for number in range(REDUCED):
        at = curve(number)
        state = search(state, at, ENGINES(at))
    return state


def _full(sheet: Sheet) -> State:
    """The saved state, some curves on, saved again."""
    path: Path | None = sheet.folder / STATE if sheet.folder is not None else None
    state = State.load(path) if path is not None else State()
    goal = (state.curves // GOAL + 1) * GOAL
    start = saved = time.monotonic()
    while state.curves < goal and time.monotonic() - start < SECONDS:
        at = curve(state.curves)
        state = search(state, at, ENGINES(at))
        if path is not None and (time.monotonic() - saved > SAVED_EVERY or state.curves == goal):
            state.save(path)
            saved = time.monotonic()
    if path is not None:
        state.save(path)
    if state.curves < goal:
        sheet.missing(f"{goal - state.curves} of {GOAL} curves: time ran out; run it again, and it goes on")
    return state


def _check(sheet: Sheet, state: State, *, configurations: int) -> None:
    counts = state.counts
    sheet.check("no configuration contradicts the conjecture", counts["against"], "<=", 0)
    sheet.check("enough configurations were compared", state.configurations, ">=", configurations)
    sheet.check("of them undecided: at most 1 in 1000", counts["undecided"], "<=", 1e-3 * state.configurations)
    closest = state.closest
    margin = "none" if closest is None else f"{closest.margin:.1e}"
    sheet.claim(
        "Conjecture 12",
        published="the remove curve is the larger at every epsilon >= 0; no counterexample was found",
        ours=(
            f"{state.configurations:,} configurations: {counts['for']:,} proved to agree, {counts['undecided']}"
            f" undecided, {counts['against']} against; smallest proved margin {margin} of delta"
        ),
        verdict="not confirmed" if counts["against"] else "not measured",
        remark="a search proves the configurations it compares, not the conjecture",
    )


def _check_control(sheet: Sheet) -> None:
    """The same search finds the counterexample of the Laplace mechanism."""
    scale, rate, steps = CONTROL
    epsilons = np.linspace(0.1, 0.4, 4)
    laplace = Curve(0, LaplacePair(scale), scale, rate, steps, epsilons, 1.0)
    found = search(State(), laplace, ENGINES(laplace))
    sheet.check("the same search finds the counterexample of the Laplace mechanism", found.counts["against"], ">=", 3)


def _check_closest(sheet: Sheet, state: State) -> None:
    """The smallest margin again, in ball arithmetic."""
    one = state.closest
    if one is None:
        sheet.check("some configuration was decided", 0, ">", 0)
        return
    run = hs.Gaussian(one.noise).poisson(one.rate) * one.steps
    exact = hs.accountants.Exact(digits=14)
    remove, add = (hs.account(run, way, accountant=exact).delta(one.epsilon) for way in ("remove", "add"))
    if not isinstance(remove, Bound) or not isinstance(add, Bound):
        raise TypeError("exact curves are bounds")
    sheet.check("the closest configuration agrees in ball arithmetic", float(add.lower), "<=", float(remove.upper))
    margin = 1.0 - float(add.lower) / float(remove.upper)
    sheet.check("and its margin is no larger than proved there", one.margin, "<=", margin + 1e-13)


def _draw(sheet: Sheet, state: State) -> None:
    from matplotlib.ticker import FuncFormatter

    sheet.picture, axes = figure(columns=2, width=9.6)
    margin = np.array([max(one.margin, 1e-16) for one in state.least])
    logit = np.array([math.log(one.rate / (1.0 - one.rate)) for one in state.least])
    order = np.argsort(-margin)
    columns = {
        "steps": np.array([one.steps for one in state.least], dtype=float),
        "noise multiplier": np.array([one.noise for one in state.least]),
    }
    for plot, (label, x) in zip(axes, columns.items(), strict=True):
        dots = plot.scatter(x[order], margin[order], c=logit[order], s=5.0, cmap="viridis", linewidths=0.0)
        plot.set_xscale("log")
        plot.set_yscale("log")
        plot.set_xlabel(label)
    axes[0].set_ylabel("smallest proved 1 − δ(add) / δ(remove)")
    axes[0].set_title(f"{len(state.least):,} curves, {PER_CURVE} values of ε each")
    bar = sheet.picture.colorbar(dots, ax=axes[1])
    bar.set_label("sampling rate")
    bar.formatter = FuncFormatter(lambda value, _: f"{1.0 / (1.0 + math.exp(-value)):.2g}")
    bar.update_ticks()


def _say(sheet: Sheet, state: State) -> None:
    one = state.closest
    sheet.say(
        "003 conjectures that for the Gaussian mechanism on Poisson samples the remove curve is nowhere below the add"
        f" curve, for ε ≥ 0. In {state.configurations:,} configurations certified brackets agree"
        f" {state.counts['for']:,} times, leave {state.counts['undecided']} undecided and contradict it"
        f" {state.counts['against']} times."
    )
    if one is not None:
        sheet.say(
            f"The smallest margin proved is {one.margin:.1e} of δ, at noise {one.noise:.3g}, rate {one.rate:.3g},"
            f" {one.steps:,} steps and ε = {one.epsilon:.3g}: as the rate nears 1, or ε nears 0, both curves meet, so"
            " small margins there are no hint of a counterexample."
        )
    sheet.say(
        "The same search finds the known counterexample of the Laplace mechanism. Run it again, and it goes on with new"
        " configurations."
    )


def _coarse(at: Curve) -> tuple[Accountant, ...]:
    """Brackets too wide to tell many curves apart."""
    return (hs.accountants.Lattice(at.epsilons[-1] + 0.1),)


ITEM = Item(
    "003-conjecture12",
    "A search for a counterexample to Conjecture 12",
    minutes=9.0,
    make=make,
    swaps={"ENGINES": _coarse},
)
