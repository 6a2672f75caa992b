"""Pictures of guarantees: one line each to call, the figure returned for the caller to change.

Every certified quantity is drawn as its bracket, a band between the lower and the upper bound with the safe side as its
line; an estimate as a dashed line.
Needs matplotlib, an extra: from a checkout, ``python3 -m pip install '.[plots]'``. Figures are made without pyplot and
hold no global state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import dpsgd
from hockeystick.account import account
from hockeystick.app.canvas import GREY, LINE, Array, blank, draw, finished
from hockeystick.bound import Bound
from hockeystick.calibrate import Calibration
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain
from hockeystick.errors import check_count, check_delta, public_door
from hockeystick.sweep import Sweep
from hockeystick.together import asked_together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["contours", "epsilon_against_steps", "noise_against_rate", "privacy_curve", "trade_off"]


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
    figure, axes = blank(title or "Privacy curve")
    shown = []
    for index, (name, curve) in enumerate(named.items()):
        found = curve.delta(points)
        draw(axes, points, found, index, name)
        upper = np.asarray(found.sides[1], dtype=np.float64)
        shown.append(float(np.min(upper, where=upper > 0.0, initial=1.0)))
    axes.set_yscale("log")
    # a trivial lower bound is a band to the bottom and must not set the scale
    axes.set(
        xlabel="ε (nats)", ylabel="δ", xlim=(float(points.min()), float(points.max())), ylim=(0.3 * min(shown), 1.0)
    )
    return finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


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
    figure, axes = blank(title or "Trade-off function", size=(5.4, 5.0))
    for index, name in enumerate(names):
        found = curve.trade_off(alphas, direction=name, tolerance=tolerance)
        draw(axes, alphas, found.false_negative_rate, index, _ATTACKS.get(name, name), safe="lower")
    axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=1.0, linestyle=":", label="blind guessing")
    axes.set(
        xlabel="false-positive rate", ylabel="false-negative rate", xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal"
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
    figure, axes = blank(title or f"ε at δ = {plain(delta)}")
    for index, (name, step) in enumerate(named.items()):
        curves = [account(step * number, adjacency) for number in numbers]
        found = asked_together(
            curves, np.arange(len(curves)), np.full(len(curves), float(check_delta(delta))), "epsilon"
        )
        draw(axes, np.array(numbers, dtype=np.float64), found, index, name, markers=len(numbers) <= 40)
    axes.set(xlabel="steps", ylabel="ε (nats)")
    if max(numbers) > 20 * min(numbers):
        axes.set_xscale("log")
    return finished(axes, legend=len(named) > 1 or "" not in named, figure=figure)


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
    figure, axes = blank(title or f"Noise for (ε, {plain(delta)})-DP after {steps:,} steps")
    for index, epsilon in enumerate(epsilons):
        found = dpsgd.noise_multipliers_for(epsilon=epsilon, delta=delta, steps=steps, rates=rates, **settings)
        draw(
            axes,
            np.asarray(rates, dtype=np.float64),
            _bracket(found),
            index,
            f"ε = {plain(epsilon)}",
            markers=len(rates) <= 40,
        )
    axes.set(xlabel="sampling rate", ylabel="noise multiplier", xscale="log", yscale="log")
    return finished(axes, legend=True, figure=figure)


@public_door
def contours(
    sweep: Sweep,
    *,
    x: str | None = None,
    y: str | None = None,
    at: Mapping[str, Any] | None = None,
    levels: ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    """Lines of equal guarantee over two axes of a sweep: of the safe side, or of the values that were found.

    Dots are the plans; between them lines are interpolated, and prove nothing.

    Parameters
    ----------
    sweep : Sweep
        From `hockeystick.sweep`.
    x, y : str, optional
        Which axes; by default the first two that `at` leaves.
    at : mapping, optional
        Of every other axis, which of its values.
    levels : array_like, optional
        Where lines are drawn; by default eight, evenly or, over a wide range, by equal factors.
    title : str, optional
        Of the picture.

    Examples
    --------
    >>> import hockeystick as hs
    >>> def plan(noise, steps):
    ...     return hs.Gaussian(noise) * steps
    >>> found = hs.sweep(plan, noise=[10.0, 20.0, 40.0], steps=[1, 10, 100], delta=1e-5)
    >>> contours(found).axes[0].get_xlabel()
    'noise'
    """
    across, up, values = _plane(sweep, x, y, dict(at or {}))
    axes_values = [np.asarray(sweep.grid.axes[name], dtype=np.float64) for name in (across, up)]
    same = ", ".join(f"{name} {value}" for name, value in {**sweep.grid.fixed, **(at or {})}.items())
    figure, axes = blank(title or f"{sweep.quantity} at {same}")
    shown = values[np.isfinite(values)]
    if shown.size == 0:
        raise ValueError("no plan of this plane has a finite answer: there is nothing to draw")
    at_levels = _levels(shown) if levels is None else np.sort(np.asarray(levels, dtype=np.float64).ravel())
    lines = axes.contour(*axes_values, values, levels=at_levels, colors=[LINE])
    axes.clabel(lines, fmt=lambda level: f"{level:.3g}", fontsize=8.0)
    axes.plot(*(mesh.ravel() for mesh in np.meshgrid(*axes_values)), ".", color=GREY, markersize=1.5)
    axes.set(xlabel=across, ylabel=up)
    for set_scale, along in zip((axes.set_xscale, axes.set_yscale), axes_values, strict=True):
        if along.min() > 0.0 and along.max() > 20.0 * along.min():
            set_scale("log")
    return finished(axes, legend=False, figure=figure)


def _is_accounted(sweep: Sweep) -> bool:
    return sweep.quantity in {"epsilon", "delta"}


def _plane(sweep: Sweep, x: str | None, y: str | None, at: dict[str, Any]) -> tuple[str, str, Array]:
    """The two axes of a picture, and the numbers by rows of the second; NaN where there is no answer."""
    axes = sweep.grid.axes
    free = [name for name in axes if name not in at and name not in {x, y}]
    across = x if x is not None else (free.pop(0) if free else "")
    up = y if y is not None else (free.pop(0) if free else "")
    unknown = {across, up, *at} - set(axes)
    if free or unknown or across == up:
        raise ValueError(
            f"a picture needs two different axes of {', '.join(axes)}, and a value of every other one in at=, got"
            f" x={x!r}, y={y!r}, at={at!r}"
        )
    values = np.asarray(sweep.bound.upper if _is_accounted(sweep) else sweep.safe, dtype=np.float64)
    values = np.where(sweep.refused == "", values, np.nan)
    for name, wanted in at.items():
        if wanted not in axes[name]:
            raise ValueError(f"{name} has no value {wanted!r} in this sweep: it has {axes[name]!r}")
    place = tuple(axes[name].index(at[name]) if name in at else slice(None) for name in axes)
    plane = values[place]
    kept = [name for name in axes if name not in at]
    return across, up, plane.T if kept.index(across) < kept.index(up) else plane


def _levels(shown: Array) -> Array:
    low, high = float(shown.min()), float(shown.max())
    if low > 0.0 and high > 20.0 * low:
        return np.geomspace(low, high, 10)[1:-1]
    return np.linspace(low, high, 10)[1:-1]


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
