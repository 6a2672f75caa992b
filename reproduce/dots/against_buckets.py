"""What figures 6 and 8 of 000 share: connect-the-dots against privacy buckets, values and times.

Both at one spacing, and the paper's on a spacing many times larger than the buckets'. The truth is ball arithmetic,
for the direction "remove", which is the worse one in both figures. Times are for both directions, in the reduced size
for that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

import hockeystick as hs
from benchmarks.cases import Step
from benchmarks.methods import Method
from hockeystick.accountants import Certified
from hockeystick.accountants.lattice import Rounding
from reproduce.dots.compositions import (
    DELTA,
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
    record,
    speed_ups,
    step_axis,
)
from reproduce.items import Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend_below
from reproduce.work import peak_memory

__all__ = ["Comparison", "Limits", "Roundings", "compare"]

COUNTS = {"full": (500, 1000, 2000, 4000, 8000), "reduced": (500,)}
PEERS_AT = (500, 2000, 8000)
REPEATS = {"full": 5, "reduced": 1}
ADJACENCY = {"full": "add-remove", "reduced": "remove"}
REPEATS_FINE = {"full": 3, "reduced": 1}


@dataclass(frozen=True)
class Roundings:
    """The methods under test: the paper's upper and lower estimates, and our lower one."""

    upper: Rounding
    lower: Rounding
    ours: Rounding


@dataclass(frozen=True)
class Limits:
    """What the claims come to: the most that one method's error may be of another's, and the least gain in memory.

    Attributes
    ----------
    same_upper, same_lower : float
        Errors of connect-the-dots and Algorithm 2, of the buckets' at the same spacing.
    coarse_upper, coarse_lower, coarse_ours : float
        Errors of connect-the-dots, Algorithm 2 and tangents, of the buckets' at the fine spacing.
    ours : float
        Error of tangents, of Algorithm 2's.
    memory : float
        Memory of fine buckets over that of coarse dots.
    """

    same_upper: float
    same_lower: float
    coarse_upper: float
    coarse_lower: float
    coarse_ours: float
    ours: float
    memory: float


@dataclass(frozen=True)
class Comparison:
    """One figure: the sampled mechanism, its two spacings, and what is claimed."""

    figure: str
    step: hs.Step
    noise: float
    rate: float
    mechanism: Literal["gaussian", "laplace"]
    spacing: float
    fine: float
    published_speed_up: float
    limits: Limits
    note: str = "The published curves are pictures only; the numbers of steps are ours."


def compare(sheet: Sheet, size: Size, case: Comparison, roundings: Roundings) -> None:
    """Compute, check, draw and tell."""
    counts = COUNTS[size]
    low, exact = exact_epsilons(case.step, counts)
    found = _ours(case, roundings, size)
    record(sheet, counts, exact, found)
    check_sides(sheet, (low, exact), found)
    _check_errors(sheet, case, exact, found)
    _check_memory(sheet, case, roundings, size)
    peers = _peers(sheet, case) if size == "full" else {}
    if peers:
        index = [counts.index(count) for count in PEERS_AT]
        record(sheet, PEERS_AT, exact[index], peers)
        _check_peers(sheet, {name: one.upper[index] for name, one in found.items()}, peers)
    _draw(sheet, counts, exact, found, peers)
    _tell(sheet, case, counts, exact, found, peers)


def _ours(case: Comparison, roundings: Roundings, size: Size) -> dict[str, Answers]:
    """Every method of ours, by name."""
    asked: dict[str, tuple[str, Rounding, float]] = {
        "dots": ("dots", roundings.upper, case.spacing),
        "algorithm-2": ("algorithm-2", roundings.lower, case.spacing),
        "tangents": ("tangents", roundings.ours, case.spacing),
        "buckets-up": ("buckets", "buckets-up", case.spacing),
        "buckets-down": ("buckets", "buckets-down", case.spacing),
        "fine buckets-up": ("buckets", "buckets-up", case.fine),
        "fine buckets-down": ("buckets", "buckets-down", case.fine),
    }
    found = {}
    for name, (look, rounding, spacing) in asked.items():
        label = f"{LOOKS[look].label}, {spacing:g}"
        found[name] = answers(
            look,
            case.step,
            COUNTS[size],
            lattice(rounding, spacing),
            adjacency=ADJACENCY[size],
            repeats=(REPEATS_FINE if spacing == case.fine else REPEATS)[size],
            label=label,
            fine=spacing == case.fine,
        )
    default = answers(
        "hockeystick",
        case.step,
        COUNTS[size],
        lambda _: Certified(1e-3),
        adjacency=ADJACENCY[size],
        repeats=REPEATS[size],
    )
    return {**found, "default": default}


def _peers(sheet: Sheet, case: Comparison) -> dict[str, Answers]:
    """dp-accounting's dots and buckets at both spacings, as far as it is installed."""
    steps = [Step(case.noise, case.rate, count) for count in PEERS_AT]
    asked = {
        "dots": ("dots", "connect-the-dots", case.spacing),
        "buckets-up": ("buckets", "buckets-up", case.spacing),
        "fine buckets-up": ("buckets", "buckets-up", case.fine),
    }
    found = {}
    for name, (look, rounding, spacing) in asked.items():
        label = f"dp-accounting, {LOOKS[look].label}, {spacing:g}"
        method = _always(google(rounding, spacing, method=case.mechanism))
        fine = spacing == case.fine
        one = peer_answers(sheet, look, label, steps, method, fine=fine, repeats=1 if fine else 3)
        if one is not None:
            found[name] = one
    return found


def _always(method: Method) -> Callable[[int], Method]:
    return lambda _: method


def _check_errors(sheet: Sheet, case: Comparison, exact: Array, found: Mapping[str, Answers]) -> None:
    limits = case.limits
    dots, same, fine = (found[name].error(exact, "upper") for name in ("dots", "buckets-up", "fine buckets-up"))
    _share(sheet, "upper, same spacing: dots of buckets", dots, same, limits.same_upper)
    _share(sheet, "upper: coarse dots of fine buckets", dots, fine, limits.coarse_upper)
    names = ("algorithm-2", "tangents", "buckets-down", "fine buckets-down")
    paper, ours, same, fine = (found[name].error(exact, "lower") for name in names)
    _share(sheet, "lower, same spacing: Algorithm 2 of buckets", paper, same, limits.same_lower)
    _share(sheet, "lower: coarse Algorithm 2 of fine buckets", paper, fine, limits.coarse_lower)
    _share(sheet, "lower: coarse tangents of fine buckets", ours, fine, limits.coarse_ours)
    _share(sheet, "lower, same spacing: our tangents of Algorithm 2", ours, paper, limits.ours)
    sheet.check("the default's bracket at most 1e-9 wide", found["default"].upper - found["default"].lower, "<=", 1e-9)


def _check_memory(sheet: Sheet, case: Comparison, roundings: Roundings, size: Size) -> None:
    """What makes the speed: how much is held at once, which is the same on a busy machine."""
    count = COUNTS[size][0]

    def held(rounding: Rounding, spacing: float) -> int:
        curve = hs.account(case.step * count, ADJACENCY[size], accountant=lattice(rounding, spacing)(count))
        return peak_memory(lambda: curve.epsilon(delta=DELTA))

    dots, same, fine = (
        held(roundings.upper, case.spacing),
        held("buckets-up", case.spacing),
        held("buckets-up", case.fine),
    )
    sheet.check("dots hold at most three times what buckets of the same spacing do", dots, "<=", 3 * same)
    claim = f"fine buckets hold at least {case.limits.memory:g} times what coarse dots do"
    sheet.check(claim, fine, ">=", case.limits.memory * dots)


def _share(sheet: Sheet, claim: str, error: Array, of: Array, limit: float) -> None:
    sheet.check(f"{claim}: at most {limit:g} of the error", error, "<=", limit * of)


def _speed_up(found: Mapping[str, Answers], fast: str, slow: str) -> float:
    """How many times faster, in the median over the numbers of steps."""
    return float(np.median(speed_ups(found, fast, slow)))


def _check_peers(sheet: Sheet, ours: Mapping[str, Array], peers: Mapping[str, Answers]) -> None:
    for name, one in peers.items():
        sheet.check(f"dp-accounting's {name} are ours: the same lattice", np.abs(one.upper - ours[name]), "<=", 1e-6)


def _draw(
    sheet: Sheet, counts: tuple[int, ...], exact: Array, found: Mapping[str, Answers], peers: Mapping[str, Answers]
) -> None:
    sheet.picture, (values, errors, times) = figure(columns=3, width=10.5, height=4.8)
    coarse = {name: one for name, one in found.items() if "fine" not in name and name != "default"}
    draw_ends(values, counts, coarse)
    values.plot(counts, exact, color=LOOKS["exact"].colour, linewidth=1.0, label="exact")
    values.set(title="same spacing", ylim=(0.0, 4.0 * float(exact[-1])))
    draw_errors(
        errors, counts, exact, {k: v for k, v in found.items() if k not in {"default", "buckets-up", "buckets-down"}}
    )
    errors.set(title="larger spacing for dots")
    draw_times(times, counts, {name: one for name, one in found.items() if "down" not in name and name != "tangents"})
    draw_times(times, PEERS_AT, peers)
    times.set(title="times")
    for panel in (values, errors, times):
        step_axis(panel, counts)
    legend_below(sheet.picture, (values, errors, times), columns=3)


def _tell(
    sheet: Sheet,
    case: Comparison,
    counts: tuple[int, ...],
    exact: Array,
    found: Mapping[str, Answers],
    peers: Mapping[str, Answers],
) -> None:
    def off(name: str, side: str) -> float:
        return float(found[name].error(exact, side)[-1])

    def worst(name: str, side: str) -> float:
        buckets = found["fine buckets-up" if side == "upper" else "fine buckets-down"]
        return float((found[name].error(exact, side) / buckets.error(exact, side)).max())

    ratio = case.spacing / case.fine
    ours = speed_ups(found, "dots", "fine buckets-up")
    theirs = speed_ups(peers, "dots", "fine buckets-up") if len(peers) == 3 else None
    speed = f"{ours.min():.0f} to {ours.max():.0f} times"
    in_theirs = (
        "" if theirs is None else f"; {theirs.min():.0f} to {theirs.max():.0f} times in dp-accounting, as it is now"
    )
    highest = float(ours.max() if theirs is None else max(ours.max(), theirs.max()))
    at = f"at {counts[-1]} steps (ε = {exact[-1]:.3f})"
    sheet.claim(
        f"{case.figure} a",
        published="same spacing: significantly tighter",
        ours=f"upper {off('buckets-up', 'upper') / off('dots', 'upper'):.0f} times nearer {at}",
        verdict="confirmed",
        remark=case.note,
    )
    sheet.claim(
        f"{case.figure} b",
        published=f"spacing {ratio:.4g} times larger: comparable",
        ours=f"off by {off('dots', 'upper'):.2g} and {off('algorithm-2', 'lower'):.2g}, buckets by"
        f" {off('fine buckets-up', 'upper'):.2g} and {off('fine buckets-down', 'lower'):.2g} {at}",
        verdict="confirmed",
        remark=f"Errors at most {worst('dots', 'upper'):.2g} times the buckets' above,"
        f" {worst('algorithm-2', 'lower'):.2g} times below ({worst('tangents', 'lower'):.2g} with our tangents).",
    )
    sheet.claim(
        f"{case.figure} c",
        published="same spacing: mildly longer running time",
        ours=f"{1.0 / _speed_up(found, 'dots', 'buckets-up'):.1f} times the buckets'",
        verdict="confirmed",
    )
    sheet.claim(
        f"{case.figure} d",
        published=f"speed-up about {case.published_speed_up:g} times",
        ours=f"{speed} in this library{in_theirs}",
        verdict="confirmed" if highest >= 0.9 * case.published_speed_up else "not confirmed",
        remark="The paper measured dp-accounting as it was then; this library composes a fine lattice on its low"
        " frequencies alone, so that less is left to gain. The range is over the numbers of steps.",
    )
    sheet.say(
        f"At the same spacing {case.spacing:g}, {at}, connecting the dots is {off('dots', 'upper'):.2g} above and"
        f" Algorithm 2 {off('algorithm-2', 'lower'):.2g} below, where buckets are"
        f" {off('buckets-up', 'upper'):.2g} above and {off('buckets-down', 'lower'):.2g} below; on a lattice"
        f" {ratio:.3g} times finer the buckets come to {off('fine buckets-up', 'upper'):.2g} and"
        f" {off('fine buckets-down', 'lower'):.2g}."
    )
    sheet.say(
        f"The coarse lattice is {speed} faster than the fine one here{in_theirs}; the paper reports"
        f" about {case.published_speed_up:g}, against the dp-accounting of its day. Our tangents are off by"
        f" {off('tangents', 'lower'):.2g} instead of Algorithm 2's {off('algorithm-2', 'lower'):.2g}."
    )
    width = float((found["default"].upper - found["default"].lower).max())
    sheet.say(
        f"Without a spacing to choose, the default's certified bracket is {width:.0e} wide after"
        f" {1e3 * float(np.median(found['default'].seconds)):.0f} ms."
    )
