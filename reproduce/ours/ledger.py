"""Our own: a ledger that admits releases until the next would break the budget, and the epsilon spent after each.

Beside it the sum of what each release has on its own, at its share of delta: the rule of thumb that a ledger replaces.
"""

from __future__ import annotations

import tempfile
from types import MappingProxyType

import numpy as np

import hockeystick as hs
from hockeystick.ledger import Budget, DataSet, Ledger
from reproduce.items import Item, Size
from reproduce.sheet import Sheet
from reproduce.style import figure

RELEASE = hs.Gaussian(60.0) * 20  # twenty answers
EPSILON, DELTA = 1.0, 1e-6  # the budget
MOST = {"full": 100, "reduced": 4}


def spent(most: int) -> list[tuple[float, float]]:
    """Both sides of the epsilon spent after each release that the ledger admits."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(f"sqlite:///{folder}/ledger.db")
        ledger.add_dataset(DataSet("census", Budget(epsilon=EPSILON, delta=DELTA), unit="household"))
        found: list[tuple[float, float]] = []
        while len(found) < most and ledger.would_fit("census", RELEASE):
            with ledger.spending("census", RELEASE, why=f"table {len(found) + 1}"):
                pass
            low, high = ledger.total("census").epsilon.sides
            found.append((float(low), float(high)))
    return found


def make(sheet: Sheet, size: Size) -> None:
    """Spend, check, draw."""
    low, high = np.array(spent(MOST[size])).T
    count = np.arange(1, high.size + 1)
    alone = np.array([k * float(hs.account(RELEASE).epsilon(DELTA / k).sides[1]) for k in count.tolist()])
    truth = [hs.account(RELEASE * k).epsilon(DELTA).sides for k in count.tolist()]
    sheet.table(releases=count, lower=low, upper=high, summed=alone)
    sheet.check("what is spent stays within the budget", high, "<=", EPSILON)
    sheet.check("the ledger's sides hold the composition's", low, "<=", [float(sides[1]) for sides in truth])
    sheet.check("and from above", high, ">=", [float(sides[0]) for sides in truth])
    sheet.check("less is spent than the sum of its parts", high[1:], "<", alone[1:])
    picture, (axes,) = figure()
    axes.step(count, high, where="post", color="#0072B2", label="spent, by the ledger")
    axes.fill_between(count, low, high, step="post", color="#0072B2", alpha=0.2)
    within = alone <= 1.5 * EPSILON
    axes.step(count[within], alone[within], where="post", color="#D55E00", linestyle=":", label="summed")
    axes.axhline(EPSILON, color="black", linewidth=1.0)
    axes.annotate("budget", (count[-1], EPSILON), ha="right", va="bottom")
    axes.set(xlabel="releases", ylabel=f"ε at δ = {DELTA:g}", ylim=(0.0, 1.3 * EPSILON))
    axes.legend(frameon=False, loc="lower right")
    sheet.picture = picture
    sheet.say(
        f"A budget of ε = {EPSILON:g} at δ = {DELTA:g} admits {high.size} releases of twenty Gaussian"
        f" answers (noise 60), which spend at most {high[-1]:.4f}; epsilons summed release by"
        f" release allow {int((alone <= EPSILON).sum())}."
    )


ITEM = Item(
    name="ours-ledger",
    title="What a ledger has spent",
    minutes=3.0,
    make=make,
    swaps=MappingProxyType({"spent": lambda most: [(0.3 * k, 0.3 * k + 0.01) for k in range(1, min(most, 4) + 1)]}),
)
