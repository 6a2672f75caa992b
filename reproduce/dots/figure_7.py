"""000, Figure 7: the subsampled Gaussian of Figure 6 against the PRV accountant.

Left half: all at spacing 0.005; right half: connect-the-dots and Algorithm 2 still at 0.005, the PRV accountant at
0.00075, 6.66 times finer. The paper finds its estimates significantly tighter at the same spacing in less time, and
comparable on the larger one with more of a speed-up. The numbers of steps are not stated. Its implementation of the
PRV accountant knows the direction "remove" only, so that is the direction here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import hockeystick as hs
from benchmarks.cases import Step
from hockeystick.accountants.lattice import Rounding
from reproduce.dots.compositions import (
    LOWER,
    OURS,
    UPPER,
    WORSE,
    Answers,
    Array,
    answers,
    check_sides,
    draw_ends,
    draw_errors,
    draw_times,
    exact_epsilons,
    google,
    lattice,
    peer_answers,
    prv,
    prv_peer,
    record,
    speed_ups,
    step_axis,
)
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend_below

NOISE, RATE = 1.0, 0.01
STEP = hs.Gaussian(NOISE).poisson(RATE)
SPACING, FINE = 0.005, 0.00075
STEPS = {"full": (500, 1000, 2000, 4000, 8000), "reduced": (500,)}
PEERS_AT = (500, 2000, 8000)
REPEATS = {"full": 9, "reduced": 1}


def make(sheet: Sheet, size: Size) -> None:
    """Compare with the PRV accountant at the same spacing and on a finer one."""
    steps = STEPS[size]
    low, exact = exact_epsilons(STEP, steps)
    found = _ours(size)
    record(sheet, steps, exact, found)
    _check(sheet, low, exact, found)
    peers = _peers(sheet) if size == "full" else {}
    if peers:
        record(sheet, PEERS_AT, exact[[steps.index(count) for count in PEERS_AT]], peers)
    _draw(sheet, steps, exact, found, peers)
    _claims(sheet, steps, exact, found, peers)
    _tell(sheet, steps, exact, found, peers)


def _ours(size: Size) -> dict[str, Answers]:
    asked: dict[str, tuple[str, Rounding]] = {
        "dots": ("dots", UPPER),
        "algorithm-2": ("algorithm-2", LOWER),
        "tangents": ("tangents", OURS),
    }
    steps = STEPS[size]
    found = {
        name: answers(
            look,
            STEP,
            steps,
            lattice(rounding, SPACING),
            adjacency="remove",
            repeats=REPEATS[size],
            label=f"{LOOKS[look].label}, {SPACING:g}",
        )
        for name, (look, rounding) in asked.items()
    }
    for name, spacing in (("prv", SPACING), ("fine prv", FINE)):
        found[name] = answers(
            "prv",
            STEP,
            steps,
            prv(spacing),
            adjacency="remove",
            repeats=REPEATS[size],
            label=f"{LOOKS['prv'].label}, {spacing:g}",
            fine=spacing == FINE,
        )
    return found


def _peers(sheet: Sheet) -> dict[str, Answers]:
    steps = [Step(NOISE, RATE, count) for count in PEERS_AT]
    dots = google("connect-the-dots", SPACING)
    found = {
        "dp-accounting dots": peer_answers(sheet, "dots", f"dp-accounting, {SPACING:g}", steps, lambda _: dots),
        "prv-accountant": peer_answers(sheet, "prv", f"prv-accountant, {SPACING:g}", steps, prv_peer(SPACING)),
        "fine prv-accountant": peer_answers(
            sheet, "prv", f"prv-accountant, {FINE:g}", steps, prv_peer(FINE), fine=True
        ),
    }
    return {name: one for name, one in found.items() if one is not None}


def _check(sheet: Sheet, low: Array, exact: Array, found: Mapping[str, Answers]) -> None:
    check_sides(sheet, (low, exact), found)
    dots, same, fine = (found[name].error(exact, "upper") for name in ("dots", "prv", "fine prv"))
    sheet.check("upper, same spacing: dots at most 0.1 of the PRV accountant's error", dots, "<=", 0.1 * same)
    sheet.check("upper: coarse dots at most 0.65 of the fine PRV accountant's error", dots, "<=", 0.65 * fine)
    paper, ours, same, fine = (
        found[name].error(exact, "lower") for name in ("algorithm-2", "tangents", "prv", "fine prv")
    )
    sheet.check("lower, same spacing: Algorithm 2 at most 0.4 of the PRV accountant's error", paper, "<=", 0.4 * same)
    sheet.check("lower: coarse Algorithm 2 at most 2.5 of the fine PRV accountant's error", paper, "<=", 2.5 * fine)
    sheet.check("lower: coarse tangents at most 1.3 of the fine PRV accountant's error", ours, "<=", 1.3 * fine)
    sheet.check("lower, same spacing: our tangents at most 0.7 of Algorithm 2's error", ours, "<=", 0.7 * paper)


def _speed_up(found: Mapping[str, Answers], fast: str, slow: str) -> float:
    """How many times faster, in the median over the numbers of steps."""
    return float(np.median(speed_ups(found, fast, slow)))


def _draw(
    sheet: Sheet, steps: tuple[int, ...], exact: Array, found: Mapping[str, Answers], peers: Mapping[str, Answers]
) -> None:
    sheet.picture, (values, errors, times) = figure(columns=3, width=10.5, height=4.8)
    draw_ends(values, steps, {name: one for name, one in found.items() if name != "fine prv"})
    values.plot(steps, exact, color=LOOKS["exact"].colour, linewidth=1.0, label="exact")
    values.set(title="same spacing")
    draw_errors(errors, steps, exact, {name: one for name, one in found.items() if name != "prv"})
    errors.set(title="larger spacing for dots")
    draw_times(times, steps, found)
    draw_times(times, PEERS_AT, peers)
    times.set(title="times")
    for panel in (values, errors, times):
        step_axis(panel, steps)
    legend_below(sheet.picture, (values, errors, times), columns=3)


def _claims(
    sheet: Sheet, steps: tuple[int, ...], exact: Array, found: Mapping[str, Answers], peers: Mapping[str, Answers]
) -> None:
    error = {name: (one.error(exact, "upper")[-1], one.error(exact, "lower")[-1]) for name, one in found.items()}
    at = f"at {steps[-1]} steps (ε = {exact[-1]:.3f})"
    sheet.claim(
        "Figure 7 a",
        published="same spacing: significantly tighter",
        ours=f"upper {error['prv'][0] / error['dots'][0]:.0f} times nearer,"
        f" lower {error['prv'][1] / error['algorithm-2'][1]:.1f} times {at}",
        verdict="confirmed",
    )
    sheet.claim(
        "Figure 7 b",
        published=f"spacing {SPACING / FINE:.3g} times larger: comparable",
        ours=f"off by {error['dots'][0]:.2g} and {error['algorithm-2'][1]:.2g}, the PRV accountant by"
        f" {error['fine prv'][0]:.2g} and {error['fine prv'][1]:.2g} {at}",
        verdict="confirmed",
    )
    if len(peers) < 3:
        return
    for figure_part, slow, published in (
        ("c", "prv-accountant", "same spacing: shorter running time"),
        ("d", "fine prv-accountant", "larger spacing: an even larger speed-up"),
    ):
        sheet.claim(
            f"Figure 7 {figure_part}",
            published=published,
            ours=f"dp-accounting's dots {_speed_up(peers, 'dp-accounting dots', slow):.1f} times faster than"
            " prv-accountant",
            verdict="confirmed",
            remark=f"Within this library: {_speed_up(found, 'dots', slow.replace('-accountant', '')):.1f} times.",
        )


def _tell(
    sheet: Sheet, steps: tuple[int, ...], exact: Array, found: Mapping[str, Answers], peers: Mapping[str, Answers]
) -> None:
    error = {name: (one.error(exact, "upper")[-1], one.error(exact, "lower")[-1]) for name, one in found.items()}
    sheet.say(
        f"At the same spacing {SPACING:g} and {steps[-1]} steps (ε = {exact[-1]:.3f}), connecting the dots is"
        f" {error['dots'][0]:.2g} above and Algorithm 2 {error['algorithm-2'][1]:.2g} below; the PRV accountant is"
        f" {error['prv'][0]:.2g} away on either side, and still {error['fine prv'][0]:.2g} on a grid"
        f" {SPACING / FINE:.3g} times finer. Our tangents are {error['tangents'][1]:.2g} below."
    )
    if len(peers) == 3:
        sheet.say(
            f"prv-accountant takes {_speed_up(peers, 'dp-accounting dots', 'prv-accountant'):.1f} times as long as"
            " dp-accounting's dots at the same spacing, and"
            f" {_speed_up(peers, 'dp-accounting dots', 'fine prv-accountant'):.1f} times on the finer grid."
        )
    sheet.say(
        "The PRV accountant of this library costs"
        f" {_speed_up(found, 'dots', 'prv'):.1f} times the dots at the same spacing and"
        f" {_speed_up(found, 'dots', 'fine prv'):.1f} times on the finer grid, both sides at once."
    )


ITEM = Item(
    "000-fig7",
    "The subsampled Gaussian: dots against the PRV accountant",
    minutes=2.0,
    make=make,
    swaps=WORSE,
)
