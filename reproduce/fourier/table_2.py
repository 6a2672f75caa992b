"""002, Table 2: the bound on the error of the grid approximation, for the binomial mechanism, at several epsilons.

002, section 5.3: the bound follows the tail of the composed loss, so it falls with epsilon as delta does, at
epsilon 0.7, 1.1, 1.5 and 1.9. We put the true error beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from hockeystick.accountants import Accountant
from reproduce.fourier.binomial import (
    EPSILONS,
    STEPS,
    TRIALS,
    GridError,
    check_errors,
    coarse,
    columns,
    fourier,
    grid_error,
    record,
)
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import LOOKS, figure, legend

FOURIER: Callable[[float], Accountant] = fourier

SPACING = 1e-4


def make(sheet: Sheet, size: Size) -> None:
    """Bound and true error at every epsilon."""
    spacing = SPACING if size == "full" else 4.0 * SPACING
    epsilons = EPSILONS if size == "full" else EPSILONS[:: len(EPSILONS) - 1]  # the first and the last
    found = [grid_error(FOURIER, spacing, epsilon) for epsilon in epsilons]
    _check(sheet, found)
    record(sheet, found)
    _draw(sheet, found)
    first, last = found[0], found[-1]
    small, large = float(first.truth.upper), float(last.truth.upper)
    sheet.say(
        f"002's bound on the grid error follows δ: from ε = {first.epsilon} to {last.epsilon} it falls"
        f" from {first.bound:.1e} to {last.bound:.1e}, the true error from {first.error:.1e} to {last.error:.1e}, δ"
        f" itself from {small:.1e} to {large:.1e}."
    )
    sheet.say(
        f"Relative to δ the bound grows from {first.bound / small:.0%} to {last.bound / large:.0%}, the true error from"
        f" {first.error / small:.1%} to {last.error / large:.1%}: a fixed grid serves small δ worse."
    )


def _check(sheet: Sheet, found: list[GridError]) -> None:
    bound, delta = columns(found)["bound"], columns(found)["delta"]
    check_errors(sheet, found, most=60.0)
    sheet.check("the bound falls by more than 500 from the first epsilon to the last", bound[0] / bound[-1], ">", 500.0)
    sheet.check("but not as fast as delta", bound / delta, ">=", 0.99 * bound[0] / delta[0])
    for one in found:
        sheet.claim(
            f"Table 2, epsilon {one.epsilon}",
            published="(its number is lost in the text)",
            ours=f"bound {one.bound:.2e}, true error {one.error:.2e}",
            verdict="not measured",
            remark=f"trials {TRIALS}, steps {STEPS}, spacing {one.spacing:g} are ours",
        )


def _draw(sheet: Sheet, found: list[GridError]) -> None:
    sheet.picture, (plot,) = figure()
    epsilon = [one.epsilon for one in found]
    look = LOOKS["fourier"]
    plot.semilogy(epsilon, [float(one.truth.upper) for one in found], **LOOKS["exact"].line(label="δ"))
    plot.semilogy(epsilon, [one.bound for one in found], **look.line(label="bound of Theorem 2 on the grid error"))
    plot.semilogy(epsilon, [one.error for one in found], **look.line("lower", marker="x", label="true grid error"))
    plot.set_xticks(epsilon)
    plot.set_xlabel("ε (nats)")
    plot.set_ylabel("δ, error of δ")
    plot.set_title(f"{STEPS} binomial steps, {TRIALS} trials, spacing {found[0].spacing:g} nats")
    legend(plot, loc="lower left")


ITEM = Item(
    "002-table2",
    "The grid error of the Fourier accountant, by epsilon",
    minutes=1.0,
    make=make,
    swaps={"FOURIER": coarse},
)
