"""003, Figure 4 left: the dominating pair of fixed-size batches under substitution, a pointwise maximum of two curves.

003, section 8: for one step of the Gaussian mechanism, noise 4, rate 0.05, values in [-1, 1], the remove order has the
larger hockey-stick divergence for epsilon >= 0 and the add order for epsilon < 0. The pointwise maximum, joined at
epsilon = 0, is the curve of a pair, and that pair may be composed.

Symbols: g the rate, a = e^epsilon, m = 2 / noise the shift. Truth: the closed form of one step in 40 digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.composition import Direction
from hockeystick.laws import Pair
from hockeystick.laws.one_step import one_step_delta
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend

DIRECTION: Direction = "substitute"  # the direction whose pair is to dominate both orders

NOISE, BATCH, POPULATION = 4.0, 1, 20
RATE = BATCH / POPULATION
POINTS = 81
REACH = 0.12  # epsilon from -REACH to REACH

Array = NDArray[np.float64]


def _sides(pair: Pair, epsilon: Array) -> tuple[Array, Array]:
    """Certified lower and upper bounds of the curve of one step, at epsilons of any sign."""
    found = np.array([one_step_delta(pair, float(value)) for value in epsilon])
    return found[:, 0], found[:, 1]


def _closed_form(epsilon: float) -> tuple[float, float]:
    """H_a of the remove and of the add order, by 40-digit arithmetic."""
    import mpmath

    with mpmath.workdps(40):
        a, g, m = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(RATE), 2 / mpmath.mpf(NOISE)

        def curve(level: mpmath.mpf) -> mpmath.mpf:
            """((1-g) Q + g P) against Q: where r = 1 - g + g e^{m y - m^2 / 2} exceeds the level."""
            if level <= 1 - g:
                return 1 - level
            cut = mpmath.log((level - 1 + g) / g) / m + m / 2
            q, p = mpmath.ncdf(-cut), mpmath.ncdf(m - cut)
            return (1 - g) * q + g * p - level * q

        # H_a(Q || P') = 1 - a + a H_{1/a}(P' || Q)
        return float(curve(a)), float(1 - a + a * curve(1 / a))


def make(sheet: Sheet, size: Size) -> None:
    """The curves of both orders and of the joined pair, against the closed form."""
    epsilon = np.linspace(-REACH, REACH, POINTS if size == "full" else 17)
    step = hs.Gaussian(NOISE).without_replacement(batch_size=BATCH, population=POPULATION)
    joined = _sides(step.pair(DIRECTION), epsilon)
    orders = {order: _sides(step.pair(order), epsilon) for order in ("remove", "add")}
    truth = np.array([_closed_form(float(value)) for value in epsilon])
    _check(sheet, epsilon, joined, orders, truth)
    for i, value in enumerate(epsilon):
        sheet.row(
            epsilon=float(value),
            joined_lower=joined[0][i],
            joined_upper=joined[1][i],
            remove_lower=orders["remove"][0][i],
            remove_upper=orders["remove"][1][i],
            add_lower=orders["add"][0][i],
            add_upper=orders["add"][1][i],
            remove_exact=truth[i, 0],
            add_exact=truth[i, 1],
        )
    _draw(sheet, epsilon, joined, orders)
    gap = float(np.max(np.abs(truth[:, 0] - truth[:, 1])))
    sheet.say(
        "003 composes a pair whose curve is the larger of two: the remove order for ε ≥ 0, the add order below. The"
        " picture shows what the curves add to max(1 − eᵋ, 0), which every pair has."
    )
    sheet.say(
        f"The joined pair's curve is the pointwise maximum to {float(np.max(joined[1] - joined[0])):.1e}, proved at"
        f" every point drawn; the two orders differ by up to {gap:.2e}, and either alone would not dominate the other."
    )


def _check(
    sheet: Sheet,
    epsilon: Array,
    joined: tuple[Array, Array],
    orders: dict[str, tuple[Array, Array]],
    truth: Array,
) -> None:
    positive, negative = epsilon > 0.0, epsilon < 0.0
    largest = truth.max(axis=1)
    sheet.check("the joined curve is not below the larger order", joined[1], ">=", largest * (1.0 - 1e-15))
    sheet.check("the joined curve is not above the larger order", joined[0], "<=", largest * (1.0 + 1e-15))
    sheet.check("the joined curve is known to 1e-12", joined[1] - joined[0], "<=", 1e-12)
    remove, add = orders["remove"], orders["add"]
    sheet.check("above 0 removing is surely the larger", remove[0][positive], ">", add[1][positive])
    sheet.check("below 0 adding is surely the larger", add[0][negative], ">", remove[1][negative])
    sheet.check("remove: the bracket is below the closed form", remove[0], "<=", truth[:, 0] * (1.0 + 1e-15))
    sheet.check("remove: the bracket is above the closed form", remove[1], ">=", truth[:, 0] * (1.0 - 1e-15))
    sheet.claim(
        "Figure 4 left",
        published="the worse order changes at epsilon = 0",
        ours="certified on both sides, at every point drawn",
        verdict="confirmed",
        remark="the figure's own noise and rate are not in the text: those of the right-hand figure are used",
    )


def _draw(sheet: Sheet, epsilon: Array, joined: tuple[Array, Array], orders: dict[str, tuple[Array, Array]]) -> None:
    sheet.picture, (plot,) = figure()
    least = np.maximum(-np.expm1(epsilon), 0.0)  # what any pair has
    every = max(epsilon.size // 12, 1)
    upper = LOOKS["substitute"]
    plot.plot(epsilon, joined[1] - least, color=upper.colour, linewidth=5.0, alpha=0.45, label="joined pair")
    for order, sides in orders.items():
        plot.plot(epsilon, sides[1] - least, **LOOKS[order].line(label=LOOKS[order].label, markevery=every))
    plot.axvline(0.0, color="black", linewidth=0.8)
    plot.set_xlabel("ε (nats)")
    plot.set_ylabel("hockey-stick divergence − max(1 − eᵋ, 0)")
    plot.set_title("one step, noise 4, batches of 1 in 20, values in [−1, 1]")
    legend(plot, loc="upper right")


ITEM = Item(
    "003-fig4-left",
    "The joined pair of fixed-size batches under substitution, one step",
    minutes=1.0,
    make=make,
    swaps={"DIRECTION": "remove"},
)
