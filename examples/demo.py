"""A real DP-SGD run, accounted: the bracket for epsilon, epsilon at ever smaller delta, and a picture of the curve.

The run is a published CIFAR-10 one: 50,000 examples, batches of 500 by Poisson sampling, noise multiplier 1.0, 2000
steps. Run by ``make demo``; the picture goes to ``out/privacy_curve.png``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick import decimals
from hockeystick.readouts.outline import sampled

T = TypeVar("T")

EXAMPLES, BATCH, NOISE, STEPS, DELTA = 50_000, 500, 1.0, 2000, 1e-5
EXPONENTS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
PICTURE = Path(__file__).resolve().parents[1] / "out" / "privacy_curve.png"

LEAST = 1e-32  # of the deltas drawn
SEEN = 1e-3  # of the axis: closer together, the two sides look like one line

# Okabe and Ito's colours, which stay apart for every kind of colour vision.
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#5B6770"


def main() -> None:
    """Account, print, draw."""
    run = hs.Gaussian(noise_multiplier=NOISE).poisson(rate=BATCH / EXAMPLES) * STEPS
    print(f"DP-SGD: {EXAMPLES:,} examples, batches of {BATCH} by Poisson sampling (rate {BATCH / EXAMPLES:g}),")
    print(f"        noise multiplier {NOISE:g}, {STEPS:,} steps; neighbours differ by one example added or removed.\n")

    bound, elapsed = timed(partial(account_at, run, DELTA))
    ends = f"{down(bound.lower)} <= epsilon <= {up(bound.upper)}"
    print(f"    {ends}    at delta = {decimals.plain(DELTA)}, in {milliseconds(elapsed)}\n")
    print("Certified: the true epsilon lies between the two, rounding errors included.\n")

    print_table(run)
    PICTURE.parent.mkdir(exist_ok=True)
    points, elapsed = timed(partial(draw, run, PICTURE))
    print(f"\nPrivacy curve, {points} certified points, computed and drawn in {elapsed:.1f} s: out/{PICTURE.name}")


def print_table(run: hs.Composition) -> None:
    """Epsilon at delta from 1e-3 to 1e-30, each accounted from scratch."""
    print("      delta   epsilon at least          at most     width        time")
    for exponent in EXPONENTS:
        delta = float(f"1e-{exponent}")
        bound, elapsed = timed(partial(account_at, run, delta))
        ends = f"{down(bound.lower):>16} {up(bound.upper):>16}"
        width = decimals.rounded_up(float(bound.width), 1)
        print(f"    {decimals.plain(delta):>7}   {ends}   {width:>7}   {milliseconds(elapsed):>9}")


def account_at(run: hs.Composition, delta: float) -> hs.Bound:
    """Epsilon of the run at one delta, from nothing."""
    return bracket(hs.account(run, adjacency="add-remove"), delta)


def draw(run: hs.Composition, path: Path) -> int:
    """Draw delta against epsilon, for each direction and for the relation; return the number of points."""
    epsilon = np.linspace(0.0, 12.0, 81)
    curves = {name: hs.account(run, adjacency=name) for name in ("remove", "add", "add-remove")}
    found = {name: certified(curve.delta(epsilon=epsilon)) for name, curve in curves.items() if name != "add-remove"}
    brackets = {name: (np.asarray(bound.lower), np.asarray(bound.upper)) for name, bound in found.items()}
    figure = Figure(figsize=(8.0, 5.4), layout="constrained", dpi=160)
    top, bottom = figure.subplots(2, sharex=True, height_ratios=(4, 1))
    draw_curves(top, epsilon, curves)
    mark_deltas(top, run)
    draw_widths(bottom, epsilon, brackets)
    title = (
        f"{STEPS:,} steps of DP-SGD, noise multiplier {NOISE:g}, sampling rate {BATCH / EXAMPLES:g}: the privacy curve"
    )
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.savefig(path)
    return 2 * epsilon.size


Brackets = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


def draw_curves(axes: Axes, epsilon: NDArray[np.float64], curves: dict[str, hs.PrivacyCurve]) -> None:
    """Both directions as bands that are proved to hold them between the points too, and look like lines."""
    for name, colour, label, place in (
        ("remove", BLUE, "one example\nremoved\n(worse here)", (7.2, 1e-21)),
        ("add", GREEN, "one example\nadded", (4.2, 1e-20)),
    ):
        lines = sampled(curves[name], float(epsilon[-1]), least=LEAST, seen=SEEN).privacy(LEAST)
        around = [np.concatenate((below, above[::-1])) for below, above in zip(lines.below, lines.above, strict=True)]
        axes.fill(*around, color=colour, linewidth=1.8)
        axes.text(*place, label, color=colour, ha="right", va="top")
    worst = sampled(curves["add-remove"], float(epsilon[-1]), least=LEAST, seen=SEEN).privacy(LEAST).above
    axes.fill_between(
        np.append(worst[0], epsilon[-1]), np.append(worst[1], LEAST), 1.0, color=BLUE, alpha=0.06, linewidth=0
    )
    axes.text(8.6, 1e-6, "every (epsilon, delta)\nhere is guaranteed", color=BLUE, ha="center", va="center")
    axes.set(yscale="log", ylim=(1e-32, 10.0), ylabel="delta (probability)")
    axes.set_yticks([10.0**-k for k in range(0, 31, 5)])
    axes.minorticks_off()
    plain(axes)


def mark_deltas(axes: Axes, run: hs.Composition) -> None:
    """Name epsilon at a few deltas."""
    for delta in (1e-5, 1e-10, 1e-20, 1e-30):
        upper = float(account_at(run, delta).upper)
        axes.plot(upper, delta, "o", color=VERMILION, markersize=5, zorder=3)
        text = f"$\\varepsilon \\leq$ {up(upper, 3)}"
        axes.annotate(text, (upper, delta), (8, 4), textcoords="offset points", color=VERMILION)


def draw_widths(axes: Axes, epsilon: NDArray[np.float64], brackets: Brackets) -> None:
    """How wide the brackets are, relative to delta: invisible above."""
    for name, colour in (("remove", BLUE), ("add", GREEN)):
        lower, upper = brackets[name]
        axes.plot(epsilon, (upper - lower) / lower, color=colour, linewidth=1.5)
    axes.set(
        xlabel="epsilon (nats)", xlim=(epsilon[0], epsilon[-1]), ylabel="relative width\nof the bracket", yscale="log"
    )
    axes.minorticks_off()
    plain(axes)


def plain(axes: Axes) -> None:
    """No frame, a faint grid, quiet ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GREY, alpha=0.15, linewidth=0.8)
    axes.tick_params(color=GREY, labelcolor=GREY)


def bracket(curve: hs.PrivacyCurve, delta: float) -> hs.Bound:
    """Epsilon as a certified bracket."""
    return certified(curve.epsilon(delta=delta))


def certified(answer: hs.Bound | hs.Estimate) -> hs.Bound:
    """The answer, which the default accountant always certifies."""
    if not isinstance(answer, hs.Bound):
        raise TypeError(f"expected a certified bracket, got {answer!r}")
    return answer


def timed(ask: Callable[[], T]) -> tuple[T, float]:
    """An answer and the seconds it took."""
    start = time.perf_counter()
    answer = ask()
    return answer, time.perf_counter() - start


def down(value: hs.bound.Real, digits: int = 10) -> str:
    """A lower bound in decimals, rounded down so that what is printed is still one."""
    return decimals.formatted(float(value), f".{digits}f", "lower")


def up(value: hs.bound.Real, digits: int = 10) -> str:
    """An upper bound in decimals, rounded up so that what is printed is still one."""
    return decimals.formatted(float(value), f".{digits}f", "upper")


def milliseconds(seconds: float) -> str:
    """A duration as people say it."""
    return f"{1e3 * seconds:.0f} ms"


if __name__ == "__main__":
    main()
