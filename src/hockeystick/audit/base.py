"""What every audit answers: which claims it refutes, and so which numbers the truth must exceed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from hockeystick.audit.claims import Approximate, Claim, Gaussian, claim_of
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain, rounded_up
from hockeystick.errors import check_finite, check_probability, public_door

_STEPS = 60  # halvings of an interval
MOST = 1e3  # nats, or mu, beyond which nothing is looked for
_LEAST_LEVEL = 1e-300


@final
@dataclass(frozen=True)
class Verdict:
    """Whether an audit refutes a claim.

    Attributes
    ----------
    refuted : bool
        Whether what was seen contradicts the claim, at the audit's confidence.
    p_value : float
        A bound on the probability that a true claim is contradicted as clearly as this: the chance of a false alarm.
    confidence : float
        Of the audit.
    """

    refuted: bool
    p_value: float
    confidence: float

    def __str__(self) -> str:
        if self.refuted:
            chance = rounded_up(self.p_value, 3)
            return f"refuted: were the claim true, this would be seen with probability {chance} at most"
        return (
            f"not refuted at confidence {plain(self.confidence)}: the attack saw nothing that the claim "
            f"rules out (p-value {rounded_up(self.p_value, 3)})"
        )


def largest(refuted: Callable[[float], bool], most: float = MOST) -> float:
    """The largest parameter refuted, where claims grow weaker with it; 0 where none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, min(1.0, most)
    while high < most and refuted(high):
        low, high = high, 2.0 * high
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


class Audit(ABC):
    """The outcome of an attack on canaries.

    All that one audit says holds at once with probability ``confidence``: a claim is refuted if and only if what was
    seen is too unlikely under it, and a weaker claim than one that stands, stands.
    """

    confidence: float

    @abstractmethod
    def refuted_at(self, claim: Claim, level: float) -> bool:
        """Whether a claim is refuted, where a true one may be with probability ``level`` at most."""

    @public_door
    def epsilon(self, delta: float) -> float:
        """The largest epsilon found too small: the run is not (epsilon, delta)-DP for any below it (nats).

        Parameters
        ----------
        delta : float
            In [0, 1].

        Examples
        --------
        >>> from hockeystick import audit
        >>> f"{audit.counts(90, 100, false_positives=5, negatives=100).epsilon(delta=1e-5):.3f}"
        '1.988'
        """
        slack = check_probability("delta", delta)
        return self._largest(lambda epsilon: Approximate(epsilon, slack))

    @public_door
    def delta(self, epsilon: float) -> float:
        """The largest delta found too small at an epsilon: the run is not (epsilon, delta)-DP for any below it.

        Examples
        --------
        >>> from hockeystick import audit
        >>> f"{audit.counts(90, 100, false_positives=5, negatives=100).delta(epsilon=1.0):.3f}"
        '0.517'
        """
        if check_finite("epsilon", epsilon) < 0.0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")
        return self._largest(lambda delta: Approximate(float(epsilon), delta), most=1.0)

    @public_door
    def mu(self) -> float:
        """The largest mu found too small: the run is not mu-Gaussian-DP for any below it.

        Examples
        --------
        >>> from hockeystick import audit
        >>> f"{audit.counts(90, 100, false_positives=5, negatives=100).mu():.3f}"
        '2.141'
        """
        return self._largest(Gaussian)

    @public_door
    def verdict(self, claim: PrivacyCurve) -> Verdict:
        """Whether a claimed curve is refuted, and how likely a false alarm is.

        Parameters
        ----------
        claim : PrivacyCurve
            From `hockeystick.account`, by an accountant that certifies; of the relation that the canaries were drawn
            by: add-remove where a canary is in or out.

        Examples
        --------
        >>> import hockeystick as hs
        >>> seen = hs.audit.counts(90, 100, false_positives=5, negatives=100)
        >>> seen.verdict(hs.account(hs.Gaussian(0.3))).refuted, seen.verdict(hs.account(hs.Gaussian(2.0))).refuted
        (False, True)
        """
        lines = claim_of(claim)
        return Verdict(self.refuted_at(lines, 1.0 - self.confidence), self._p_value(lines), self.confidence)

    def _largest(self, claim: Callable[[float], Claim], most: float = MOST) -> float:
        level = 1.0 - self.confidence
        return largest(lambda value: self.refuted_at(claim(value), level), most)

    def _p_value(self, claim: Claim) -> float:
        """The smallest level at which a claim is refuted, from above: refutation is monotone in the level."""
        if not self.refuted_at(claim, 1.0):
            return 1.0
        low, high = math.log(_LEAST_LEVEL), 0.0
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.refuted_at(claim, math.exp(middle)) else (middle, high)
        return math.exp(high)
