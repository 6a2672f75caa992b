"""Pictures of guarantees: one line each to call, the figure returned for the caller to change.

Every certified quantity is drawn as a band that is proved to hold it between its points, too
(`hockeystick.readouts.outline`), with the safe side as its line; an estimate as a dashed line through its points.
Colours are those of Okabe and Ito, told apart by colour-blind readers. Needs matplotlib, an extra: from a checkout,
``python3 -m pip install '.[plots]'``. Figures are made without pyplot and hold no global state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import dpsgd
from hockeystick.account import account
from hockeystick.app.canvas import GREY, Array, between, canvas, dashed, draw, finished, reach, rising, ticks_at
from hockeystick.app.contours import contours
from hockeystick.app.evidence import audit
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain
from hockeystick.errors import (
    check_choice,
    check_count,
    check_inside,
    check_positive,
    check_probability,
    check_sequence,
    public_door,
)
from hockeystick.progress import Progress
from hockeystick.readouts.directions import Asked, ways
from hockeystick.readouts.outline import LARGEST_EPSILON, Lines, sampled
from hockeystick.together import asked_together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["audit", "contours", "epsilon_against_steps", "noise_against_rate", "privacy_curve", "trade_off"]

Run = Step | Composition | Callable[[int], Composition]
"""What is repeated, or a function from a number of steps to the run stopped there."""

_SEEN = 3e-3  # of the axis
_FLAT = 1e-3  # of delta, on the axes of a trade-off
_FEWEST = 1e-6  # false alarms, where a trade-off begins on a logarithmic scale
_ENDS = np.array([0.0, 1.0])
_FLATTEST = 0.9  # delta: what an axis reaches down to, at least
_FINE = 400  # steps of either rate along a line on it: no longer than is seen


@public_door
def privacy_curve(
    curves: PrivacyCurve | Mapping[str, PrivacyCurve],
    *,
    end: float | None = None,
    least: float = 1e-12,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """delta against epsilon, on a logarithmic scale.

    Parameters
    ----------
    curves : PrivacyCurve or mapping of str to PrivacyCurve
        One curve, or several with their names.
    end : float, optional
        The largest epsilon (nats); by default where delta falls to ``least``, or nearly to what it never falls below.
        Curves are outlined as far as 690, and no picture goes beyond.
    least : float
        The smallest delta, above 0 and below 1.
    title : str, optional
        Of the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = privacy_curve(hs.account(hs.Gaussian(1.0)), end=2.0)
    >>> figure.axes[0].get_ylabel()
    'δ'
    """
    named = _named(curves)
    lowest = check_inside("least", least)
    last = min(reach(named, lowest) if end is None else check_positive("end", end), LARGEST_EPSILON)
    figure, axes = canvas(title or "Privacy curve", ax)
    shown = [_FLATTEST]
    for index, (name, curve) in enumerate(named.items()):
        samples = sampled(curve, last, least=lowest, seen=_SEEN)
        if samples.certified:
            lines = samples.privacy(lowest)
            draw(axes, lines, lines.above, index, name)
            shown += lines.above[1][lines.above[0] <= last].tolist()
        else:
            dashed(axes, *samples.estimate, index, name)
            shown += samples.estimate[1].tolist()
    axes.set_yscale("log")
    bottom = max(min(delta for delta in shown if delta > 0.0), lowest)
    axes.set(xlabel="ε (nats)", ylabel="δ", xlim=(0.0, last), ylim=(bottom, 1.0))
    return finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


@public_door
def trade_off(
    curves: PrivacyCurve | Mapping[str, PrivacyCurve],
    *,
    directions: Sequence[str] | None = None,
    scale: str = "linear",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """False-negative rate against false-positive rate of the best attack.

    Parameters
    ----------
    curves : PrivacyCurve or mapping of str to PrivacyCurve
        One curve, or several with their names.
    directions : sequence of str, optional
        Which to draw: directions of the relation, and ``"worst"``; by default each direction, where they differ.
    scale : {"linear", "logarithmic"}
        Of both axes; logarithmic shows attacks with few false alarms, from 1e-6.
    title : str, optional
        Of the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = trade_off(hs.account(hs.Gaussian(1.0).poisson(0.1) * 10))
    >>> len(figure.axes[0].lines)  # two directions and blind guessing
    3
    """
    first = _FEWEST if check_choice("scale", scale, ("linear", "logarithmic")) == "logarithmic" else 0.0
    figure, axes = canvas(title or "Trade-off function", ax, size=(5.4, 5.0))
    index = 0
    for run, curve in _named(curves).items():
        both_ways = ways(curve)
        samples = sampled(curve, reach({"": curve}, _FLAT * (first or 1.0)), least=1.0, names=both_ways, seen=_SEEN)
        for name in _distinct(curve) if directions is None else directions:
            check_choice("direction", name, ("worst", *both_ways))
            words, lines = _ATTACKS.get(name, name), _from(first, samples.trade_off(name))
            label = f"{run}: {words}" if run else words
            if samples.certified:
                draw(axes, lines, lines.below, index, label)
            else:
                dashed(axes, *lines.below, index, label)
            index += 1
    blind = _from(first, Lines((_ENDS, _ENDS[::-1]), (_ENDS, _ENDS[::-1]))).below
    axes.plot(*blind, color=GREY, linewidth=1.0, linestyle=":", label="blind guessing")
    if first > 0.0:
        axes.set(xscale="log", yscale="log")
    axes.set(
        xlabel="false-positive rate", ylabel="false-negative rate", xlim=(first, 1.0), ylim=(first, 1.0), aspect="equal"
    )
    return finished(axes, legend=True, figure=figure)


_ATTACKS = {
    "remove": 'attack claims "was there"',
    "add": 'attack claims "was not there"',
    "worst": "any attack",
    "substitute": "any attack",
}


@public_door
def epsilon_against_steps(
    steps: Mapping[str, Run] | Run,
    counts: ArrayLike,
    *,
    delta: float,
    adjacency: str = "add-remove",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Epsilon at one delta as the number of steps grows.

    Parameters
    ----------
    steps : Step, Composition or callable, or a mapping of names to such
        What is repeated, or a function from a number of steps to the run stopped there; with names where there are
        several.
    counts : array_like of int
        Numbers of steps.
    delta : float
        In (0, 1).
    adjacency : str
        The neighbouring relation.
    title : str, optional
        Of the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = epsilon_against_steps(hs.Gaussian(1.0).poisson(0.01), [100, 1000], delta=1e-5)
    >>> figure.axes[0].get_xlabel()
    'steps'
    """
    named = dict(steps) if isinstance(steps, Mapping) else {"": steps}
    if not named:
        raise ValueError("steps must hold at least one step or run: there is nothing to draw")
    numbers = sorted(check_count("counts", count) for count in np.asarray(counts).ravel().tolist())
    if not numbers:
        raise ValueError("counts must hold at least one number of steps: there is nothing to draw")
    at = np.full(len(numbers), check_probability("delta", delta))
    figure, axes = canvas(title or f"ε at δ = {plain(delta)}", ax)
    for index, (name, step) in enumerate(named.items()):
        with Progress("accounting"):
            runs = [step * number if isinstance(step, Step | Composition) else step(number) for number in numbers]
            curves = [account(run, adjacency) for run in runs]
            found = asked_together(curves, np.arange(len(curves)), at, "epsilon")
        rising(axes, np.array(numbers, dtype=np.float64), found, index, name)
    axes.set(xlabel="steps", ylabel="ε (nats)", ylim=(max(axes.get_ylim()[0], 0.0), None))
    if max(numbers) > 20 * min(numbers):
        axes.set_xscale("log")
    ticks_at(axes, numbers)
    return finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


@public_door
def noise_against_rate(
    rates: Sequence[float],
    *,
    epsilons: Sequence[float],
    delta: float,
    steps: int,
    title: str | None = None,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """The smallest noise multiplier of DP-SGD against the sampling rate, one line an epsilon.

    Parameters
    ----------
    rates : sequence of float
        Poisson sampling rates.
    epsilons : sequence of float
        One line each (nats).
    delta : float
        In (0, 1).
    steps : int
        Number of steps.
    title : str, optional
        Of the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    **settings
        As for `hockeystick.calibrate`, such as ``precision=``.

    Examples
    --------
    >>> figure = noise_against_rate([0.01, 0.02], epsilons=[1.0], delta=1e-6, steps=1000, precision=1e-3)
    >>> figure.axes[0].get_ylabel()
    'noise multiplier'
    """
    figure, axes = canvas(title or f"Noise for (ε, {plain(delta)})-DP after {steps:,} steps", ax)
    ordered, targets = sorted(check_sequence("rates", rates)), list(check_sequence("epsilons", epsilons))
    if not ordered or not targets:
        raise ValueError("rates and epsilons must hold at least one number each: there is nothing to draw")
    for index, epsilon in enumerate(targets):
        found = dpsgd.noise_multipliers_for(epsilon=epsilon, delta=delta, steps=steps, rates=ordered, **settings)
        rising(axes, np.asarray(ordered, dtype=np.float64), between(found), index, f"ε = {plain(epsilon)}")
    axes.set(xlabel="sampling rate", ylabel="noise multiplier", xscale="log", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    ticks_at(axes, rates)
    return finished(axes, legend=True, figure=figure)


def _named(curves: PrivacyCurve | Mapping[str, PrivacyCurve]) -> dict[str, PrivacyCurve]:
    if isinstance(curves, PrivacyCurve):
        return {"": curves}
    given: object = curves
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, PrivacyCurve) for one in given.values()):
        raise TypeError(f"curves must be a PrivacyCurve or a mapping from names to such, got {curves!r}")
    return dict(given)


def _distinct(curve: PrivacyCurve) -> list[str]:
    """The directions that have curves of their own."""
    ask = Asked(curve)
    kinds = {ask.kind(name): name for name in curve.directed}
    return list(kinds.values()) if len(kinds) > 1 else ["worst"]


def _from(first: float, lines: Lines) -> Lines:
    """The lines from a false-positive rate on, as they may be drawn on logarithmic scales.

    A falling straight line is concave there: chords lie below it. One step late they lie above whatever falls.
    """
    if first == 0.0:
        return lines

    def fine(x: Array, y: Array) -> tuple[Array, Array]:
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        rates = np.geomspace(first, 1.0, _FINE)
        at = np.union1d(rates, np.maximum(np.concatenate((x, np.interp(rates, y[::-1], x[::-1]))), first))
        return at, np.interp(at, x, y)

    at, above = fine(*lines.above)
    return Lines(fine(*lines.below), (at, np.append(above[:1], above[:-1])))
