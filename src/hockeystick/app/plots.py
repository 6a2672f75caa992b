"""Pictures of guarantees: one line each to call, the figure returned for the caller to change.

Every certified quantity is drawn as its bracket, a band between the lower and the upper bound with the safe side as its
line; an estimate as a dashed line. Colours are those of Okabe and Ito, told apart by colour-blind readers.
Needs matplotlib, an extra: from a checkout, ``python3 -m pip install '.[plots]'``. Figures are made without pyplot and
hold no global state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick import dpsgd
from hockeystick.account import account
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate import Calibration
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain
from hockeystick.errors import check_count, check_delta, public_door
from hockeystick.together import asked_together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["epsilon_against_steps", "noise_against_rate", "privacy_curve", "trade_off"]

Array = NDArray[np.float64]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#888888"
_SMALLEST = 1e-300
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


@public_door
def privacy_curve(
    curves: PrivacyCurve | Mapping[str, PrivacyCurve], *, epsilon: ArrayLike | None = None, title: str | None = None
) -> Figure:
    """delta against epsilon, on a logarithmic scale.

    Parameters
    ----------
    curves : PrivacyCurve or mapping of str to PrivacyCurve
        One curve, or several with their names.
    epsilon : array_like, optional
        Where to draw (nats); by default from 0 to where delta is 1e-12.
    title : str, optional
        Of the picture.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = privacy_curve(hs.account(hs.Gaussian(1.0)), epsilon=[0.0, 1.0, 2.0])
    >>> figure.axes[0].get_ylabel()
    'δ'
    """
    named = _named(curves)
    points = _reach(named) if epsilon is None else np.asarray(epsilon, dtype=np.float64)
    figure, axes = _figure(title or "Privacy curve")
    shown = []
    for index, (name, curve) in enumerate(named.items()):
        found = curve.delta(points)
        _draw(axes, points, found, index, name)
        upper = np.asarray(found.sides[1], dtype=np.float64)
        shown.append(float(np.min(upper, where=upper > 0.0, initial=1.0)))
    axes.set_yscale("log")
    # a trivial lower bound is a band to the bottom and must not set the scale
    axes.set(
        xlabel="ε (nats)", ylabel="δ", xlim=(float(points.min()), float(points.max())), ylim=(0.3 * min(shown), 1.0)
    )
    return _finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


@public_door
def trade_off(
    curve: PrivacyCurve,
    *,
    directions: Sequence[str] | None = None,
    points: int = 60,
    tolerance: float = 1e-2,
    title: str | None = None,
) -> Figure:
    """False-negative rate against false-positive rate of the best attack.

    Parameters
    ----------
    curve : PrivacyCurve
        From `hockeystick.account`.
    directions : sequence of str, optional
        Which to draw: directions of the relation, and ``"worst"``; by default each direction, where they differ.
    points : int
        How many false-positive rates.
    tolerance : float
        Relative width asked for.
    title : str, optional
        Of the picture.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = trade_off(hs.account(hs.Gaussian(1.0).poisson(0.1) * 10), points=5)
    >>> len(figure.axes[0].lines)  # two directions and blind guessing
    3
    """
    count = check_count("points", points, minimum=3)
    names = _distinct(curve) if directions is None else list(directions)
    # denser at both ends, where the function is steep
    alphas = 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, count)))
    figure, axes = _figure(title or "Trade-off function", size=(5.4, 5.0))
    for index, name in enumerate(names):
        found = curve.trade_off(alphas, direction=name, tolerance=tolerance)
        _draw(axes, alphas, found.false_negative_rate, index, _ATTACKS.get(name, name), safe="lower")
    axes.plot([0.0, 1.0], [1.0, 0.0], color=_GREY, linewidth=1.0, linestyle=":", label="blind guessing")
    axes.set(
        xlabel="false-positive rate", ylabel="false-negative rate", xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal"
    )
    return _finished(axes, legend=True, figure=figure)


_ATTACKS = {
    "remove": 'attack claims "was there"',
    "add": 'attack claims "was not there"',
    "worst": "any attack",
    "substitute": "any attack",
}


@public_door
def epsilon_against_steps(
    steps: Mapping[str, Step] | Step,
    counts: ArrayLike,
    *,
    delta: float,
    adjacency: str = "add-remove",
    title: str | None = None,
) -> Figure:
    """Epsilon at one delta as the number of steps grows.

    Parameters
    ----------
    steps : Step or mapping of str to Step
        What is repeated, with names where there are several.
    counts : array_like of int
        Numbers of steps.
    delta : float
        In (0, 1).
    adjacency : str
        The neighbouring relation.
    title : str, optional
        Of the picture.

    Examples
    --------
    >>> import hockeystick as hs
    >>> figure = epsilon_against_steps(hs.Gaussian(1.0).poisson(0.01), [100, 1000], delta=1e-5)
    >>> figure.axes[0].get_xlabel()
    'steps'
    """
    named = {"": steps} if isinstance(steps, Step) else dict(steps)
    numbers = [check_count("counts", int(count)) for count in np.asarray(counts).ravel()]
    figure, axes = _figure(title or f"ε at δ = {plain(delta)}")
    for index, (name, step) in enumerate(named.items()):
        curves = [account(step * number, adjacency) for number in numbers]
        found = asked_together(
            curves, np.arange(len(curves)), np.full(len(curves), float(check_delta(delta))), "epsilon"
        )
        _draw(axes, np.array(numbers, dtype=np.float64), found, index, name, markers=len(numbers) <= 40)
    axes.set(xlabel="steps", ylabel="ε (nats)")
    if max(numbers) > 20 * min(numbers):
        axes.set_xscale("log")
    return _finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


@public_door
def noise_against_rate(
    rates: Sequence[float],
    *,
    epsilons: Sequence[float],
    delta: float,
    steps: int,
    title: str | None = None,
    **settings: Any,
) -> Figure:
    """The smallest noise multiplier of DP-SGD against the sampling rate, one line an epsilon.

    Parameters
    ----------
    rates : sequence of float
        Poisson sampling rates, in order.
    epsilons : sequence of float
        One line each (nats).
    delta : float
        In (0, 1).
    steps : int
        Number of steps.
    title : str, optional
        Of the picture.
    **settings
        As for `hockeystick.calibrate`, such as ``precision=``.

    Examples
    --------
    >>> figure = noise_against_rate([0.01, 0.02], epsilons=[1.0], delta=1e-6, steps=1000, precision=1e-3)
    >>> figure.axes[0].get_ylabel()
    'noise multiplier'
    """
    figure, axes = _figure(title or f"Noise for (ε, {plain(delta)})-DP after {steps:,} steps")
    for index, epsilon in enumerate(epsilons):
        found = dpsgd.noise_multipliers_for(epsilon=epsilon, delta=delta, steps=steps, rates=rates, **settings)
        _draw(
            axes,
            np.asarray(rates, dtype=np.float64),
            _bracket(found),
            index,
            f"ε = {plain(epsilon)}",
            markers=len(rates) <= 40,
        )
    axes.set(xlabel="sampling rate", ylabel="noise multiplier", xscale="log", yscale="log")
    return _finished(axes, legend=True, figure=figure)


def _named(curves: PrivacyCurve | Mapping[str, PrivacyCurve]) -> dict[str, PrivacyCurve]:
    if isinstance(curves, PrivacyCurve):
        return {"": curves}
    given: object = curves
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"curves must be a PrivacyCurve or a mapping from names to such, got {curves!r}")
    return dict(given)


def _reach(named: Mapping[str, PrivacyCurve]) -> Array:
    """From 0 to where the last curve falls to 1e-12, or nearly to what it never falls below."""
    ends = []
    for curve in named.values():
        floor = curve.delta(np.inf).sides[1]
        ends.append(float(curve.epsilon(float(np.clip(1.1 * float(floor), 1e-12, 0.99))).sides[1]))
    finite = [end for end in ends if np.isfinite(end)]
    return np.linspace(0.0, max(finite, default=10.0) or 1.0, 121)


def _distinct(curve: PrivacyCurve) -> list[str]:
    """The directions of a curve whose dominating pairs differ."""
    composition: Composition = curve.composition
    pairs = {composition.pairs(name): name for name in curve.directed}  # type: ignore[arg-type]  # its own directions
    return list(pairs.values()) if len(pairs) > 1 else ["worst"]


def _bracket(found: Sequence[Calibration]) -> Bound:
    """Where the best value lies: between the unsafe and the safe one."""
    safe = np.array([float(one.value) for one in found])
    unsafe = np.array([float(one.value if one.unsafe is None else one.unsafe) for one in found])
    return Bound(np.minimum(safe, unsafe), np.maximum(safe, unsafe), "calibration")


def _figure(title: str, size: tuple[float, float] = (6.4, 4.2)) -> tuple[Figure, Axes]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=150)
        axes = figure.subplots()
        axes.set_title(title)
    return figure, axes


def _draw(
    axes: Axes, x: Array, answer: Bound | Estimate, index: int, name: str, *, safe: str = "upper", markers: bool = False
) -> None:
    """One band with its safe side as a line; an estimate as a dashed line."""
    lower, upper = (np.asarray(side, dtype=np.float64) for side in answer.sides)
    colour = _COLOURS[index % len(_COLOURS)]
    marker = _MARKERS[index % len(_MARKERS)] if markers else None
    style: dict[str, Any] = {"color": colour, "label": name or None, "marker": marker}
    if isinstance(answer, Estimate):
        axes.plot(x, upper, linestyle="--", markersize=4.0, **style)
        return
    shown = np.where(upper > 0.0, np.maximum(lower, _SMALLEST), lower)
    axes.fill_between(x, shown, upper, color=colour, alpha=0.3, linewidth=0.0)
    axes.plot(x, upper if safe == "upper" else lower, markersize=4.0, **style)


def _finished(axes: Axes, *, legend: bool, figure: Figure) -> Figure:
    if legend:
        axes.legend(frameon=False)
    return figure
