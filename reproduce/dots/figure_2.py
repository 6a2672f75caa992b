"""000, Figure 2: hockey-stick curves of the Gaussian (noise 1) and Laplace (noise 2/3) mechanisms, and upper estimates.

The paper connects the dots of the curve at the discretisation points and compares with privacy buckets, which round
every loss up; by Corollary 4.3 the former is nowhere above the latter, and by Lemma 4.1 it is the least of all upper
estimates on these points. Its points are not stated; here they are the multiples of 0.49 nats. Our lower estimate from
tangents is drawn as well, so that the truth is seen between two curves.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from hockeystick.engines.lattice.grid import Grid
from hockeystick.engines.lattice.tangents import tangents
from reproduce.dots.curves import (
    ROUNDING,
    Array,
    Curve,
    Estimator,
    area,
    buckets_above,
    dots,
    gaussian,
    laplace,
    picture_of,
    stick_of,
)
from reproduce.items import Item, Size
from reproduce.sheet import Sheet

CURVES = (gaussian(1.0), laplace(2.0 / 3.0))
SPACING = 0.49  # the Laplace's largest loss, 1.5, lies just above a lattice point
KINK = Grid.covering(-4.0, 4.0, 0.5)  # the Laplace's largest loss is one of its points
GRID = Grid.covering(-4.0, 4.0, SPACING)
SHOWN = (0.02, 5.0)  # alpha
POINTS = {"full": 800, "reduced": 120}


UPPER: Estimator = dots


def make(sheet: Sheet, size: Size) -> None:
    """Compare the curves, and draw them with what they are above the truth."""
    alphas = np.linspace(*SHOWN, POINTS[size])
    found = {curve: _estimates(curve, alphas) for curve in CURVES}
    shares = []
    for curve, values in found.items():
        sheet.table(mechanism=curve.label, alpha=alphas, **values)
        shares.append(_check(sheet, curve, alphas, values))
    kinds = {"exact": "upper", "dots": "upper", "buckets": "upper", "tangents": "lower"}
    sheet.picture = picture_of(alphas, found, kinds, GRID)
    sheet.claim(
        "Figure 2, Corollary 4.3",
        published="connect-the-dots nowhere above privacy buckets",
        ours=f"nowhere above; {shares[0]:.0%} and {shares[1]:.0%} of their area above the truth",
        verdict="confirmed",
        remark=f"The points of the published picture are not stated: multiples of {SPACING} nats here. Were the"
        f" Laplace's largest loss one of them (0.5 nats), {_share_with(KINK, CURVES[1], alphas):.0%} for it.",
    )
    sheet.claim(
        "Algorithm 1, P(+inf)",
        published="h(+inf)",
        ours=f"h at the last finite point: {float(CURVES[0].value(np.exp(GRID.points[-1:]))[0]):.2g} here",
        verdict="not confirmed",
        remark="With h(+inf) as printed, masses sum to less than 1 and the estimate drops to h(+inf) beyond the last"
        " point, below the curve; Lemma 3.2 (v) asks for the value at the last finite point.",
    )
    sheet.say(
        "The paper's upper estimate joins the points of the hockey-stick curve at the discretisation points; privacy"
        " buckets round each loss up instead."
    )
    sheet.say(
        f"With points {SPACING} nats apart, connecting the dots leaves {shares[0]:.0%} of the buckets' area above the"
        f" Gaussian's curve and {shares[1]:.0%} above the Laplace's, and is nowhere higher; it meets the curve at"
        " every point, which makes it the least upper estimate there is."
    )
    sheet.say("Our tangents close the picture from below: the truth lies between the two curves.")


def _estimates(curve: Curve, alphas: Array) -> dict[str, Array]:
    """The exact curve and the estimates of one mechanism."""
    return {
        "exact": curve.value(alphas),
        "dots": stick_of(UPPER(curve.pair, GRID), alphas),
        "buckets": stick_of(buckets_above(curve.pair, GRID), alphas),
        "tangents": stick_of(tangents(curve.pair, GRID), alphas),
    }


def _share_with(grid: Grid, curve: Curve, alphas: Array) -> float:
    """The share of the buckets' area above the curve that connecting the dots leaves, on another grid."""
    above = [
        area(stick_of(build(curve.pair, grid), alphas) - curve.value(alphas), alphas)
        for build in (UPPER, buckets_above)
    ]
    return above[0] / above[1]


def _check(sheet: Sheet, curve: Curve, alphas: Array, values: dict[str, Array]) -> float:
    """State the claims for one mechanism; the share of the buckets' area that connecting the dots leaves."""
    exact = values["exact"]
    points = np.exp(GRID.points[2:-2])
    met = np.abs(stick_of(UPPER(curve.pair, GRID), points) - curve.value(points))
    sheet.check(f"{curve.label}: dots above the exact curve", values["dots"] + ROUNDING, ">=", exact)
    sheet.check(f"{curve.label}: dots below buckets", values["dots"], "<=", values["buckets"] + ROUNDING)
    sheet.check(f"{curve.label}: dots meet the curve at the points, hence least", met, "<=", 1e-11)
    sheet.check(f"{curve.label}: tangents below the exact curve", values["tangents"], "<=", exact + ROUNDING)
    ours, theirs = (area(values[name] - exact, alphas) for name in ("dots", "buckets"))
    sheet.check(f"{curve.label}: area above the curve, dots against half of buckets'", ours, "<=", 0.5 * theirs)
    return ours / theirs


ITEM = Item(
    "000-fig2",
    "Upper estimates of a hockey-stick curve",
    minutes=1.0,
    make=make,
    swaps=MappingProxyType({"UPPER": buckets_above}),
)
