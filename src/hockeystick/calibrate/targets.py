"""What a calibration aims at: one quantity of the curve, and the most it may be.

Every target is a quantity that grows as privacy gets worse, so "the certified upper bound meets the target" is
``upper <= most`` and "proved to miss it" is ``lower > most``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from hockeystick.accountants.base import DirectedCurve, Parts
from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain
from hockeystick.errors import check_inside, check_positive, check_probability, check_real
from hockeystick.numerics.rounding import U, down, up
from hockeystick.readouts.gaussian_dp import tail_of
from hockeystick.readouts.risk import bayes_risk as risk_of
from hockeystick.readouts.summary import smallest_mu
from hockeystick.readouts.trade_off import trade_off
from hockeystick.together import worst


def _unlimited(_: float) -> float:
    """The most that a quantity can be which has no such limit."""
    return math.inf


def _may_be_met(_: Sequence[Parts]) -> str:
    """Nothing keeps runs from meeting a target."""
    return ""


@final
@dataclass(frozen=True)
class Target:
    """One quantity of a privacy curve and the most it may be.

    Attributes
    ----------
    words : str
        The target in words.
    quantity : str
        What is measured, in words.
    most : float
        The largest value allowed.
    whole : callable, optional
        The quantity of a curve, to about a relative tolerance.
    of_direction : callable, optional
        The quantity of one direction, where that of the curve is the largest over them.
    delta_at : float, optional
        The epsilon, where the quantity is a delta.
    largest : callable
        From the probability that the record is ever drawn to the most that the quantity can be.
    cheap : bool
        Whether certifying the quantity costs no more than an estimate.
    hopeless : callable
        From the pairs of every direction to why no run of such steps is proved to meet it; nothing where some may be.
    """

    words: str
    quantity: str
    most: float
    whole: Callable[[PrivacyCurve, float], Bound | Estimate] | None = None
    of_direction: Callable[[DirectedCurve], Bound | Estimate] | None = None
    delta_at: float | None = None
    largest: Callable[[float], float] = _unlimited
    cheap: bool = False
    hopeless: Callable[[Sequence[Parts]], str] = _may_be_met

    def measure(self, curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        """The quantity of a curve, to about a relative tolerance where the method has a choice."""
        if self.whole is not None:
            return self.whole(curve, tolerance)
        answers = {name: self.measure_direction(directed) for name, directed in curve.directed.items()}
        return worst(answers, curve.composition.notes)

    def measure_direction(self, curve: DirectedCurve) -> Bound | Estimate:
        """The quantity of one direction."""
        if self.of_direction is None:
            raise TypeError(f"{self.quantity} is not a matter of one direction")
        return self.of_direction(curve)


def _delta(epsilon: float, delta: float) -> Target:
    quantity, words = f"delta at epsilon {plain(epsilon)}", f"epsilon {plain(epsilon)} at delta {plain(delta)}"
    return Target(
        words, quantity, delta, of_direction=lambda curve: curve.delta(epsilon), delta_at=epsilon, largest=float
    )


def _advantage(most: float) -> Target:
    largest = check_inside("advantage", most)
    return replace(_delta(0.0, largest), words=f"advantage {plain(largest)}", quantity="the advantage")


def _mu(mu: float, floor: float) -> Target:
    above = f" above delta {plain(floor)}" if floor else ""

    def measured(curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        return smallest_mu(curve, floor=floor, tolerance=tolerance, allowed=mu)

    def hopeless(every: Sequence[Parts]) -> str:
        if floor > 0.0 or all(tail_of(parts) is not None for parts in every):
            return ""
        return "no bound on the tail is known for such steps: give a floor, such as floor=1e-9"

    return Target(f"mu {plain(mu)}{above}", "mu" + above, mu, measured, hopeless=hopeless)


def target_of(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    floor: float = 0.0,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    advantage: float | None = None,
    bayes_risk: float | None = None,
    prior: float | None = None,
) -> Target:
    """The one target that was given."""
    given = dict(locals())
    asked = [names for names in _ASKED if any(given[name] is not None for name in names)]
    if len(asked) != 1:
        said = " as well as ".join(map(" and ".join, asked))
        raise TypeError(f"give one target ({'; or '.join(map(' and '.join, _ASKED))}), got {said or 'none'}")
    if mu is not None:
        return _mu(check_positive("mu", mu), check_probability("floor", floor))
    if floor != 0.0:
        raise TypeError("floor belongs to the target mu")
    values = [given[name] for name in asked[0]]
    if any(value is None for value in values):
        raise TypeError(f"{' and '.join(asked[0])} go together: give both")
    return _ASKED[asked[0]](*values)


TARGETS: Final = tuple(inspect.signature(target_of).parameters)
"""The names by which a target is given."""


def _epsilon_delta(epsilon: float, delta: float) -> Target:
    smallest = check_probability("delta", delta)
    if smallest == 1.0:
        raise ValueError("delta must be below 1: every run meets it")
    if smallest == 0.0:
        most = check_positive("epsilon", epsilon, hint="with delta 0 no run that reveals anything meets it")
        # the largest loss
        words = f"epsilon {plain(most)} at delta 0"
        return Target(words, "epsilon at delta 0", most, of_direction=lambda curve: curve.epsilon(0.0), cheap=True)
    largest = check_real("epsilon", epsilon)
    if not 0.0 <= largest < math.inf:
        raise ValueError(f"epsilon must be finite and at least 0, got {epsilon!r}")
    return _delta(largest, smallest)


def _attack(true_positive_rate: float, false_positive_rate: float) -> Target:
    most = check_inside("true_positive_rate", true_positive_rate)
    alpha = check_probability("false_positive_rate", false_positive_rate)
    if not alpha < most:
        raise ValueError(
            f"true_positive_rate must be above false_positive_rate, which guessing reaches: got {most!r} at {alpha!r}"
        )
    at = f"at false-positive rate {plain(alpha)}"

    def measured(curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        return trade_off(curve, alpha, tolerance=tolerance).true_positive_rate

    words, quantity = f"true-positive rate {plain(most)} {at}", f"the true-positive rate {at}"
    # where the record is not drawn, an attack finds as often as it is wrong
    return Target(words, quantity, most, measured, largest=lambda drawn: up(alpha + drawn))


def _risk(bayes_risk: float, prior: float) -> Target:
    """At least this risk of error is at most this delta at the epsilon that the prior decides."""
    least, believed = check_inside("bayes_risk", bayes_risk), check_inside("prior", prior)
    rarer = min(believed, 1.0 - believed)
    if not least < rarer:
        raise ValueError(
            f"bayes_risk must be below {plain(rarer)}, which guessing by a prior of {plain(believed)} reaches: "
            f"got {least!r}"
        )

    def missing(curve: PrivacyCurve, _: float) -> Bound | Estimate:
        found = risk_of(curve, believed)
        low, high = (rarer - float(side) for side in reversed(found.sides))
        if isinstance(found, Bound):  # 4 U more on the lower side, for the rounding of what it is compared with
            return Bound(max(down(low, 4.0 * U), 0.0), up(high), found.method, found.notes)
        return Estimate(high, float(found.error), found.method, found.notes)

    at = f"at prior {plain(believed)}"
    words, quantity = f"Bayes risk at least {plain(least)} {at}", f"how far the Bayes risk {at} is below guessing's"
    most = max(down(rarer - least), math.ulp(0.0))  # differences as small are exact
    return Target(words, quantity, most, missing, largest=lambda drawn: up(rarer * drawn))


_ASKED: Final[dict[tuple[str, ...], Callable[..., Target]]] = {
    ("epsilon", "delta"): _epsilon_delta,
    ("mu",): _mu,
    ("true_positive_rate", "false_positive_rate"): _attack,
    ("advantage",): _advantage,
    ("bayes_risk", "prior"): _risk,
}
"""What makes a target of the arguments that say it together."""
