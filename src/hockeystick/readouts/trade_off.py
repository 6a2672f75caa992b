"""The trade-off function of a privacy curve: what any attack can reach, certified from both sides.

An attack guesses which of two neighbouring datasets was used. Its *false-positive rate* alpha is how often it
claims the first of an ordered pair where the second was used; its *false-negative rate* is how often it misses.
The trade-off function f(alpha) is the smallest false-negative rate of any attack (Dong, Roth and Su 2022), and
1 - f(alpha) the largest true-positive rate. Mathematics and rounding: `envelope`.

Guarantee: ``Bound`` from a certified accountant: no attack misses less often than ``false_negative_rate.lower``, and
some attack on the stated dominating pair misses no more often than ``upper``; where datasets are known that show less
than the pair, on some one pair of those (`one_test`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick import notebook
from hockeystick.bound import Bound, Estimate, from_sides
from hockeystick.errors import check_choice, check_positive, check_probabilities, public_door
from hockeystick.readouts.directions import OPPOSITE, Asked
from hockeystick.readouts.envelope import Enclosure, Value, worst
from hockeystick.readouts.one_test import KnownAttacks, of_several
from hockeystick.together import Curve


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TradeOff:
    """A trade-off function at given false-positive rates.

    Attributes
    ----------
    false_positive_rate : ndarray
        alpha, in [0, 1].
    false_negative_rate : Bound or Estimate
        The smallest false-negative rate of any attack, f(alpha), of the same shape; ``lower`` is the guarantee.
    true_positive_rate : Bound or Estimate
        The largest true-positive rate of any attack, 1 - f(alpha), accurate relative to itself; ``upper`` is
        the guarantee.
    direction : str
        The ordered pair attacked, or ``"worst"`` for the function that holds for every pair of neighbours.
    """

    false_positive_rate: NDArray[np.float64]
    false_negative_rate: Bound | Estimate
    true_positive_rate: Bound | Estimate
    direction: str

    def to_table(self) -> dict[str, list[float]]:
        """Columns by name, as a data frame takes them: one row an alpha."""
        table = {"false_positive_rate": _column(self.false_positive_rate)}
        for name in ("false_negative_rate", "true_positive_rate"):
            table |= columns(name, getattr(self, name))
        return table

    def to_pandas(self) -> Any:
        """`to_table` as a data frame; needs pandas."""
        return notebook.frame(self.to_table())


def columns(name: str, result: Bound | Estimate) -> dict[str, list[float]]:
    """The columns of a result: its two sides, or its value and error."""
    if isinstance(result, Bound):
        return {f"{name}_lower": _column(result.lower), f"{name}_upper": _column(result.upper)}
    return {name: _column(result.value), f"{name}_error": _column(result.error)}


def _column(values: ArrayLike) -> list[float]:
    return [float(value) for value in np.ravel(np.asarray(values, dtype=np.float64))]


@public_door
def trade_off(
    curve: Curve, false_positive_rate: ArrayLike, *, direction: str = "worst", tolerance: float = 1e-3
) -> TradeOff:
    """The trade-off function of a privacy curve.

    Parameters
    ----------
    curve : PrivacyCurve
        From `hockeystick.account`.
    false_positive_rate : float or array_like
        alpha, in [0, 1].
    direction : str
        A direction of the relation: ``"remove"`` is the attack that claims the record was there (alpha: how often
        it claims so where it was not), ``"add"`` the one that claims it was not; each is the other's inverse
        function. Or ``"worst"``: the smaller of the two at every alpha, which holds for any attack on any pair of
        neighbours; it is its own inverse, and where the two cross it need not be convex.
    tolerance : float
        Relative width asked for of both rates; the accountant's own width limits it.

    Returns
    -------
    TradeOff
        Rates of the shape of ``false_positive_rate``.

    Examples
    --------
    >>> import hockeystick as hs
    >>> curve = hs.account(hs.Gaussian(noise_multiplier=1.0))
    >>> found = trade_off(curve, 0.05)
    >>> found.false_negative_rate.contains(0.740488980), f"{found.true_positive_rate:.3f}"
    (True, '[0.259, 0.260]')
    """
    alphas = check_probabilities("false_positive_rate", false_positive_rate)
    width = check_positive("tolerance", tolerance)
    enclosures, ask = _enclosures(curve, direction)
    several = ask.certified and of_several(curve)
    ways = [KnownAttacks(ask, *named).rates if several else named[1].refined for named in enclosures.items()]
    found = [worst([rates(float(alpha), width) for rates in ways]) for alpha in alphas.ravel()]
    notes = () if direction == "worst" else (f"direction: {direction}",)
    method = f"trade-off of {curve.accountant.name}"

    def gathered(values: list[Value]) -> Bound | Estimate:
        if ask.certified:
            values = [Value(*map(float, from_sides(value.lower, value.upper, method).sides)) for value in values]
        upper = np.array([value.upper for value in values], dtype=np.float64).reshape(alphas.shape)
        lower = np.minimum(np.array([value.lower for value in values]).reshape(alphas.shape), upper)
        if ask.certified:
            return Bound(lower, upper, method, notes)
        return Estimate(0.5 * (lower + upper), upper - lower, method, notes)

    return TradeOff(
        false_positive_rate=alphas,
        false_negative_rate=gathered([one.negative for one in found]),
        true_positive_rate=gathered([one.positive for one in found]),
        direction=direction,
    )


def _enclosures(curve: Curve, direction: str) -> tuple[dict[str, Enclosure], Asked]:
    """The enclosures of one direction's curve (or of each), and what knows whether their values are certified."""
    names = list(curve.directed)
    check_choice("direction", direction, tuple(dict.fromkeys(("worst", *names, *(OPPOSITE[name] for name in names)))))
    ask = Asked(curve)

    def enclosure(name: str) -> Enclosure:
        opposite = OPPOSITE[name]
        return Enclosure(ask(name), None if ask.kind(name) == ask.kind(opposite) else ask(opposite))

    distinct = {ask.kind(name): name for name in (names if direction == "worst" else [direction])}
    return {name: enclosure(name) for name in distinct.values()}, ask
