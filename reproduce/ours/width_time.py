"""Our own: width of the answer against the time it takes, for this library and others, on the same cases.

Two of the cases of `benchmarks`: an everyday DP-SGD run, and a million steps of small rate. Each method is asked at
several settings of its accuracy. Where a method answers with both sides, the width is their distance; where it answers
with an upper bound alone, its distance from the truth, which is kind to it. Times are of one processor: medians over
fresh curves here, one answer after a warm-up for the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

import hockeystick as hs
from benchmarks.cases import CASES, Case
from benchmarks.measure import Limits, measure
from benchmarks.methods import METHODS, Method, peer
from hockeystick.accountants import Certified, Exact
from hockeystick.accountants.base import Accountant
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure
from reproduce.work import peak_memory

NAMES = {"full": ("dpsgd", "million-steps"), "reduced": ("dpsgd",)}
TITLES = {"dpsgd": "noise 1, rate 0.01, 2000 steps", "million-steps": "noise 10, rate 0.001, 10⁶ steps"}
TOLERANCES = {"full": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5), "reduced": (1e-1, 1e-4)}
DIGITS: dict[Size, tuple[int, ...]] = {"full": (12,), "reduced": ()}
REPEATS: dict[Size, int] = {"full": 5, "reduced": 1}
REPEATS_LATTICE: dict[Size, int] = {"full": 3, "reduced": 1}
LIMITS = Limits(seconds=30.0, memory=4 << 30)

DEFAULT: Accountant = Certified()


@dataclass(frozen=True)
class Answer:
    """One answer: who gave it at which setting, its ends (nats; an upper bound alone has no lower), its cost."""

    look: str
    label: str
    setting: str
    lower: float | None
    upper: float
    seconds: float

    def width(self, truth: float) -> float:
        """Distance of the ends, or of the upper end from the truth where there is no lower one (nats)."""
        return abs(self.upper - truth) if self.lower is None else self.upper - self.lower


def make(sheet: Sheet, size: Size) -> None:
    """Ask everybody, check, draw."""
    cases = {case.name: case for case in CASES if case.name in NAMES[size]}
    for accountant in (Certified(), *(Exact(digits) for digits in DIGITS[size])):  # a warm-up, as the others have
        _timed(hs.Gaussian(2.0).poisson(0.5) * 30, 1e-3, accountant)
    found: dict[str, list[Answer]] = {}
    for name, case in cases.items():
        ours = _ours(case, size)
        _check(sheet, case, ours)
        theirs = _theirs(sheet, case) if size == "full" else []
        if theirs:
            _check_against(sheet, case, ours[0], theirs)
        found[name] = [*ours, *theirs]
        for one in found[name]:
            width = one.width(case.truth.value)
            sheet.row(
                case=name,
                method=one.label,
                setting=one.setting,
                lower=one.lower,
                upper=one.upper,
                width=width,
                seconds=one.seconds,
            )
    _draw(sheet, cases, found)
    _tell(sheet, cases, found)


def _run(case: Case) -> hs.Composition:
    return hs.compose([(hs.Gaussian(step.noise_multiplier).poisson(step.rate), step.count) for step in case.steps])


def _timed(run: hs.Composition, delta: float, accountant: Accountant) -> tuple[float, float, float]:
    """Lower and upper end of epsilon, and the seconds a fresh curve took."""
    start = time.process_time()
    bound = hs.account(run, accountant=accountant).epsilon(delta=delta)
    seconds = time.process_time() - start
    if isinstance(bound, hs.Estimate):
        raise TypeError(f"a bound is needed here, got {bound!r}")
    return float(bound.lower), float(bound.upper), seconds


def _ours(case: Case, size: Size) -> list[Answer]:
    """The default first, then lattices alone at several tolerances, then the exact accountant."""
    run = _run(case)

    def ask(look: str, label: str, setting: str, accountant: Accountant, repeats: int) -> Answer:
        answers = [_timed(run, case.delta, accountant) for _ in range(repeats)]
        lower, upper, _ = answers[0]
        return Answer(look, label, setting, lower, upper, float(np.median([one[2] for one in answers])))

    found = [ask("hockeystick", LOOKS["hockeystick"].label, "default", DEFAULT, REPEATS[size])]
    for tolerance in TOLERANCES[size]:
        accountant = Certified(tolerance, engine="lattice")
        found.append(
            ask("dots", "hockeystick, lattices", f"tolerance {tolerance:g}", accountant, REPEATS_LATTICE[size])
        )
    found += [ask("exact", "hockeystick, exact", f"{d} digits", Exact(d), 1) for d in DIGITS[size]]
    return found


def _asked(case: Case) -> dict[tuple[str, str], Method]:
    """Other libraries by look and setting, from coarse to fine."""
    errors = (0.1, 0.01, 0.001) if case.name == "dpsgd" else (0.1, 0.01)  # finer ones end without an answer
    asked = {
        ("dp-accounting", f"grid {h:g}"): peer("dp-accounting", "with_dp_accounting", interval=h)
        for h in (1e-2, 1e-3, 1e-4, 1e-5)
    }
    for error in errors:
        setting = f"eps_error {error:g}"
        asked["prv-accountant", setting] = peer("prv-accountant", "with_prv_accountant", eps_error=error)
        asked["opacus", setting] = peer("Opacus PRV", "with_opacus", eps_error=error)
    return {**asked, ("autodp", "Rényi"): METHODS["autodp"]}


def _theirs(sheet: Sheet, case: Case) -> list[Answer]:
    found = []
    for (look, setting), method in _asked(case).items():
        if not method.interpreter.exists():
            missing = f"{method.label}: not installed"
            if missing not in sheet.absent:
                sheet.missing(missing)
            continue
        outcome = measure(case, method, LIMITS)
        if outcome.error is not None or outcome.upper is None or outcome.processor_seconds is None:
            sheet.missing(f"{LOOKS[look].label} with {setting} on {case.name}: {outcome.error}")
            continue
        found.append(Answer(look, LOOKS[look].label, setting, outcome.lower, outcome.upper, outcome.processor_seconds))
    return found


def _check(sheet: Sheet, case: Case, ours: Sequence[Answer]) -> None:
    truth, radius = case.truth.value, case.truth.radius
    lower, upper = (np.array([getattr(one, end) for one in ours], dtype=float) for end in ("lower", "upper"))
    sheet.check(f"{case.name}: our lower ends are below the truth", lower, "<=", truth + radius)
    sheet.check(f"{case.name}: our upper ends are above the truth", upper, ">=", truth - radius)
    default, lattices = ours[0], [one for one in ours if one.look == "dots"]
    asked = [float(one.setting.split()[-1]) for one in lattices]
    widths = [one.width(truth) for one in lattices]
    sheet.check(f"{case.name}: lattices keep the tolerance", widths, "<=", asked)
    sheet.check(f"{case.name}: the default's width", default.width(truth), "<=", 1e-10)
    finest = Certified(min(asked), engine="lattice")
    held, of = (peak_memory(partial(_timed, _run(case), case.delta, one)) for one in (DEFAULT, finest))
    sheet.check(f"{case.name}: the default holds a tenth of what a fine lattice does, or less", held, "<=", of / 10)


def _check_against(sheet: Sheet, case: Case, ours: Answer, theirs: Sequence[Answer]) -> None:
    truth = case.truth.value
    widths = np.array([one.width(truth) for one in theirs])
    sheet.check(
        f"{case.name}: a thousand times narrower than every other answer", ours.width(truth), "<=", widths / 1e3
    )


def _draw(sheet: Sheet, cases: dict[str, Case], found: dict[str, list[Answer]]) -> None:
    sheet.picture, axes = figure(columns=len(cases), height=4.6)
    for panel, (name, answers) in zip(axes, found.items(), strict=True):
        truth = cases[name].truth.value
        for name_shown in dict.fromkeys(one.label for one in answers):
            line = [one for one in answers if one.label == name_shown]
            label = name_shown if line[0].lower is not None else f"{name_shown}: upper − truth"
            style = LOOKS[line[0].look].line("upper", markersize=6.0)
            if line[0].look == "exact":
                style["marker"] = "*"
            if line[0].lower is None:
                style["markerfacecolor"] = "white"
            panel.plot([1e3 * one.seconds for one in line], [one.width(truth) for one in line], label=label, **style)
        panel.set(title=TITLES[name], xscale="log", yscale="log", xlabel="processor time (ms)")
        panel.margins(0.08)
    axes[0].set_ylabel("width of the bracket for ε (nats), δ = 1e-5")
    handles, labels = axes[0].get_legend_handles_labels()
    sheet.picture.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8.0)


def _tell(sheet: Sheet, cases: dict[str, Case], found: dict[str, list[Answer]]) -> None:
    for name, answers in found.items():
        truth = cases[name].truth.value
        ours, others = answers[0], [one for one in answers if one.look in _PEERS]
        text = (
            f"At {TITLES[name]} the default's certified bracket is {ours.width(truth):.0e} nats wide after"
            f" {1e3 * ours.seconds:.0f} ms"
        )
        if others:
            best = min(others, key=lambda one: one.width(truth))
            text += (
                f"; the narrowest answer of another library is {best.label}'s with {best.setting},"
                f" {best.width(truth):.0e} nats after {1e3 * best.seconds:.0f} ms"
            )
        sheet.say(text + ".")
    sheet.say(
        "The lattices alone keep the tolerance they are asked for, and cost more the narrower it is; the contour, which"
        " the default asks first, costs the same. The exact accountant, in ball arithmetic, is there to check them."
    )


_PEERS = frozenset({"dp-accounting", "prv-accountant", "opacus", "autodp"})

ITEM = Item(
    "ours-width-time",
    "How narrow, and how fast",
    minutes=5.0,
    make=make,
    swaps=MappingProxyType({"DEFAULT": Certified(1e-2, engine="lattice")}),
)
