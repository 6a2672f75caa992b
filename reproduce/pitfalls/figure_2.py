"""003, Figure 2: the smallest noise multiplier against the sampling rate, Poisson and fixed-size batches.

003, section 6: delta 1e-6 and 10,000 steps under add-remove. For large rates the noise grows in proportion to the
rate, for small ones it hardly falls; the bend is slightly below noise 1 for Poisson samples and slightly below 2 for
fixed-size batches, which need exactly twice the noise. There, the noise that gives epsilon 1 to Poisson samples gives
more than 10 to fixed-size batches.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend

DELTA, STEPS = 1e-6, 10_000
EPSILONS = (1.0, 2.0, 5.0, 10.0)
FIXED_EPSILON = 10.0  # the one line that the paper draws for fixed-size batches; we draw all
PRECISION = {"full": 1e-4, "reduced": 1e-2}  # relative distance of the noise returned from one proved unsafe
WITHIN = (0.1, 5000.0)  # of the noise
RATES = {
    "full": tuple(Fraction(round(10_000_000 * 10.0 ** (i / 4.0 - 4.0)), 10_000_000) for i in range(17)),
    "reduced": (Fraction(3, 10_000), Fraction(9, 10_000), Fraction(3, 10), Fraction(1)),
}

_MARKERS = {1.0: "o", 2.0: "^", 5.0: "D", 10.0: "s"}

Array = NDArray[np.float64]
Family = Callable[[float], Composition]
Lines = dict[tuple[str, float], tuple[Array, Array]]
"""Of every scheme and epsilon: noises proved safe and unsafe, by the rates."""


def _poisson(rate: Fraction) -> Family:
    return lambda noise: hs.Gaussian(noise).poisson(float(rate)) * STEPS


def _fixed_size(rate: Fraction) -> Family:
    step = {"batch_size": 100 * rate.numerator, "population": 100 * rate.denominator}
    return lambda noise: hs.Gaussian(noise).without_replacement(**step) * STEPS


FIXED_SIZE: Callable[[Fraction], Family] = _fixed_size


def _noises(
    scheme: Callable[[Fraction], Family], rates: tuple[Fraction, ...], epsilon: float, precision: float
) -> tuple[Array, Array]:
    """For every rate a noise proved safe, and one proved unsafe."""
    found: list[hs.Calibration] = []
    for i, rate in enumerate(reversed(rates)):
        near = i > 0 and rates[-i] <= 4 * rate
        guess = float(found[-1].value) if near else None
        found.append(
            hs.calibrate(
                scheme(rate),
                epsilon=epsilon,
                delta=DELTA,
                precision=precision,
                within=WITHIN,
                guess=guess,
                safe="larger",
            )
        )
    safe = [float(one.value) for one in reversed(found)]
    unsafe = [float("nan") if one.unsafe is None else float(one.unsafe) for one in reversed(found)]
    return np.array(safe), np.array(unsafe)


def make(sheet: Sheet, size: Size) -> None:
    """All lines of both schemes, and what the paper reads from them."""
    rates, precision = RATES[size], PRECISION[size]
    epsilons = EPSILONS if size == "full" else (1.0, FIXED_EPSILON)
    lines: Lines = {}
    for epsilon in epsilons:
        lines["poisson", epsilon] = _noises(_poisson, rates, epsilon, precision)
        if size == "full" or epsilon == FIXED_EPSILON:
            # of two neighbours the smaller must still fill a batch: rate 1 is for Poisson samples alone
            lines["fixed-size", epsilon] = _noises(FIXED_SIZE, rates[:-1], epsilon, precision)
    for (scheme, epsilon), (safe, unsafe) in lines.items():
        for rate, value, below in zip(rates, safe, unsafe, strict=False):
            sheet.row(scheme=scheme, epsilon=epsilon, rate=float(rate), noise_safe=value, noise_unsafe=below)
    x = np.array([float(rate) for rate in rates])
    _check_twice(sheet, lines, precision)
    _check_bend(sheet, x, lines)
    _check_lines(sheet, x, lines)
    worst = _check_mistake(sheet, rates, lines)
    _draw(sheet, x, lines)
    sheet.say(
        "003 plots the noise that 10,000 steps need for δ = 1e-6 and several ε. Every noise here is proved safe, and"
        f" one smaller by {precision:g} of it proved unsafe; fixed-size batches are accounted on their own and need"
        " twice the noise of Poisson samples at every rate."
    )
    sheet.say(
        f"Noise that is right for ε = 1 with Poisson samples gives ε = {worst[0]:.2f} with fixed-size batches at rate"
        f" {worst[1]:.1e}: the paper's warning, with a certificate."
    )


def _check_twice(sheet: Sheet, lines: Lines, precision: float) -> None:
    for scheme, epsilon in lines:
        safe, unsafe = lines["poisson", epsilon]
        sheet.check(f"epsilon {epsilon:g}: safe and unsafe meet", unsafe, ">=", safe * (1.0 - 2.0 * precision))
        if scheme == "fixed-size":
            twice, below = lines[scheme, epsilon]
            sheet.check(f"epsilon {epsilon:g}: twice the noise is not proved unsafe", below, "<=", 2.0 * safe[:-1])
            sheet.check(f"epsilon {epsilon:g}: less than twice is not safe", twice, ">=", 2.0 * unsafe[:-1])
    sheet.claim(
        "section 6 and Proposition 9",
        published="fixed-size batches need exactly twice the noise",
        ours=f"the same to {precision:g} at every rate and epsilon",
        verdict="confirmed",
    )


def _slopes(x: Array, safe: Array) -> Array:
    """Of ln noise over ln rate, between neighbouring rates."""
    return np.asarray(np.diff(np.log(safe)) / np.diff(np.log(x)))


def _check_bend(sheet: Sheet, x: Array, lines: Lines) -> None:
    """In proportion to the rate to the right of the bend, nearly flat to its left."""
    for (scheme, epsilon), (safe, _) in lines.items():
        if scheme == "poisson":
            slope = _slopes(x, safe)
            right = abs(float(slope[-1]) - 1.0)
            sheet.check(f"epsilon {epsilon:g}: in proportion to the rate on the right", right, "<=", 0.05)
            sheet.check(f"epsilon {epsilon:g}: nearly flat on the left", slope[0], "<=", 0.25)
    safe = lines["poisson", 1.0][0]
    slope = _slopes(x, safe)
    i = int(np.searchsorted(slope, 0.5))
    middles = 0.5 * (np.log(safe[:-1]) + np.log(safe[1:]))
    bend = float(np.exp(np.interp(0.5, slope[i - 1 : i + 1], middles[i - 1 : i + 1])))
    if x.size > 10:  # neighbouring rates are close enough to tell
        sheet.check("the bend is above noise 0.6", bend, ">", 0.6)
        sheet.check("the bend is at about noise 1", bend, "<", 1.2)
        sheet.claim(
            "Figure 2, bend of the lines",
            published="slightly less than 1 for Poisson, slightly less than 2 for fixed-size batches",
            ours=f"the slope is 1/2 at noise {bend:.2f} and {2.0 * bend:.2f}",
            verdict="confirmed",
            remark="at epsilon 1; what counts as the bend is a matter of definition",
        )


def _check_lines(sheet: Sheet, x: Array, lines: Lines) -> None:
    """Where the line of fixed-size batches at epsilon 10 lies among those of Poisson samples."""
    fixed, one = lines["fixed-size", FIXED_EPSILON][0], lines["poisson", 1.0][0][:-1]
    small = x[:-1] <= 1e-3
    sheet.check(
        "small rates: fixed size at epsilon 10 takes more noise than 1 in Poisson samples",
        fixed[small],
        ">",
        one[small],
    )
    if ("poisson", 5.0) not in lines:
        return
    ratio = float(fixed[-1] / lines["poisson", 5.0][0][-2])
    sheet.check("large rates: at most 1.3 times the noise of epsilon 5 in Poisson samples", ratio, "<=", 1.3)
    sheet.check("and at least 0.9 times", ratio, ">=", 0.9)
    sheet.claim(
        "Figure 2, large rates",
        published="epsilon 10 in fixed-size batches roughly matches epsilon 5 in Poisson samples",
        ours=f"its noise is {ratio:.2f} times as large at rate {x[-2]:.2f}",
        verdict="confirmed",
    )


def _check_mistake(sheet: Sheet, rates: tuple[Fraction, ...], lines: Lines) -> tuple[float, float]:
    """What fixed-size batches really cost at noise calibrated for Poisson samples at epsilon 1, and the worst rate."""
    costs = []
    for rate, noise in zip(rates[:-1], lines["poisson", 1.0][0], strict=False):
        found = hs.account(FIXED_SIZE(rate)(float(noise))).epsilon(DELTA)
        costs.append(float(found.lower) if isinstance(found, Bound) else float("nan"))
    worst = int(np.argmax(costs))
    sheet.check("the true epsilon is surely above 10 at some rate", costs[worst], ">", 10.0)
    sheet.claim(
        "section 6",
        published="noise for epsilon 1 (Poisson) may give epsilon above 10 (fixed size)",
        ours=f"epsilon above {costs[worst]:.2f} at rate {float(rates[worst]):.1e}",
        verdict="confirmed",
        remark="certified",
    )
    return costs[worst], float(rates[worst])


def _draw(sheet: Sheet, x: Array, lines: Lines) -> None:
    sheet.picture, axes = figure(columns=2)
    for (scheme, epsilon), (safe, _) in lines.items():
        look = LOOKS[scheme]
        style = look.line(marker=_MARKERS[epsilon], markevery=max(x.size // 6, 1), label=f"ε = {epsilon:g}")
        axes[0 if scheme == "poisson" else 1].loglog(x[: safe.size], safe, **style)
    reference, _ = lines["fixed-size", FIXED_EPSILON]
    look = LOOKS["fixed-size"]
    axes[0].loglog(x[: reference.size], reference, **look.line("lower", marker="", label="fixed size, ε = 10"))
    for plot, scheme in zip(axes, ("poisson", "fixed-size"), strict=True):
        plot.set_title(f"{LOOKS[scheme].label}, 10,000 steps, δ = 1e-6")
        plot.set_xlabel("sampling rate")
        plot.set_xlim(7e-5, 1.5)
        plot.set_ylim(0.2, 1500.0)
        legend(plot, loc="upper left")
    axes[0].set_ylabel("noise multiplier")


ITEM = Item(
    "003-fig2",
    "Noise multiplier against sampling rate",
    minutes=3.0,
    make=make,
    swaps={"FIXED_SIZE": _poisson},  # the mistake that the paper warns of
)
