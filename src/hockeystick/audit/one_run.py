"""Audits in one run: many canaries, each in or out by a coin of its own, and one output.

The canaries' outcomes depend on each other through the output, so that no binomial interval holds. What holds is a
recursion over the number of correct guesses (Mahloujifar, Melis and Chaudhuri 2024; proof: docs/derivations/audit.md).
With m canaries, c guesses and ``p_i = P(i correct)``, ``a_i = sum_{l >= i} l p_l / m`` and
``b_i = sum_{l >= i} (c - l) p_l / m``, a claim asks for ``b_{i-1} >= cost(a_i)``. If ``P(at least v correct)`` were the
level, everything below would follow step by step, and the total ``a_0 + b_0`` cannot exceed ``c / m``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrc, expit

from hockeystick.audit.base import Audit, largest
from hockeystick.audit.claims import Claim
from hockeystick.audit.many_runs import scores_of
from hockeystick.errors import check_count, check_inside, check_probability, public_door, set_fields

_MOST = 10**6  # guesses
_ROUNDING = 1e-9  # relative, in the canaries' favour: above the rounding of a recursion of so many steps


@final
@dataclass(frozen=True)
class OneRun(Audit):
    """Guesses about the canaries of one run (from `one_run` or `one_run_scores`).

    Attributes
    ----------
    canaries : int
        Each in or out by an independent fair coin.
    guesses : int
        About how many of them the attack said "in" or "out", at most 10^6; fixed in advance.
    correct : int
        How many guesses were right.
    confidence : float
        That all which is said holds.
    """

    canaries: int
    guesses: int
    correct: int
    confidence: float = 0.95

    @public_door
    def __post_init__(self) -> None:
        check_inside("confidence", self.confidence)
        m = check_count("canaries", self.canaries)
        c, v = check_count("guesses", self.guesses), check_count("correct", self.correct, minimum=0)
        if not v <= c <= m:
            raise ValueError(f"correct <= guesses <= canaries must hold, got {v}, {c} and {m}")
        if c > _MOST:
            raise ValueError(f"guesses must be at most {_MOST}, got {c}: no rounding is proved for more")
        set_fields(self, canaries=m, guesses=c, correct=v)

    def refuted_at(self, claim: Claim, level: float) -> bool:
        m, c, v = self.canaries, self.guesses, self.correct
        right, wrong = level * v / m, level * (c - v) / m
        most = c / m * (1.0 + _ROUNDING)
        for i in range(v - 1, -1, -1):
            needed = claim.cost(min(right, 1.0))
            if needed <= wrong:
                break  # from here on nothing grows
            right += i / (c - i) * (needed - wrong)
            wrong = needed
            if right + wrong > most:
                return True
        return right + wrong > most

    @public_door
    def published_epsilon(self, delta: float) -> float:
        """The lower bound on epsilon of Steinke, Nasr and Jagielski (2023), for comparison (nats).

        Under an (epsilon, delta)-DP run at least v correct guesses have probability ``beta + 2 m delta alpha`` at most:
        ``beta = P(W >= v)``, ``alpha = max_i P(v > W >= v - i) / i``, W binomial with rate ``1 / (1 + e^-epsilon)``
        (their theorem 5.2; not proved here). `epsilon` is near it, and proved.

        Examples
        --------
        >>> f"{one_run(1000, 200, correct=180).published_epsilon(delta=1e-5):.6f}"
        '1.796285'
        """
        slack, level = check_probability("delta", delta), 1.0 - self.confidence
        return largest(lambda epsilon: self._published_p_value(epsilon, slack) < level)

    def _published_p_value(self, epsilon: float, delta: float) -> float:
        falls = np.arange(1, self.correct + 1)
        rate = float(expit(epsilon))
        beta = float(bdtrc(self.correct - 1, self.guesses, rate)) if self.correct else 1.0
        near = bdtrc(self.correct - falls - 1.0, self.guesses, rate) - beta
        return min(beta + 2.0 * self.canaries * delta * float(np.max(near / falls, initial=0.0)), 1.0)


@public_door
def one_run(canaries: int, guesses: int, *, correct: int, confidence: float = 0.95) -> OneRun:
    """An audit from the guesses about the canaries of one run.

    Parameters
    ----------
    canaries : int
        Planted records, each put in or left out by a fair coin of its own.
    guesses : int
        About how many of them the attack said "in" or "out", as fixed in advance; of the others it says nothing.
    correct : int
        How many guesses were right.
    confidence : float
        In (0, 1).

    Examples
    --------
    >>> seen = one_run(1000, 200, correct=180)
    >>> f"{seen.mu():.3f}", f"{seen.epsilon(delta=1e-5):.3f}"
    ('0.698', '1.785')
    """
    return OneRun(canaries, guesses, correct, confidence)


@public_door
def one_run_scores(members: ArrayLike, nonmembers: ArrayLike, *, guesses: int, confidence: float = 0.95) -> OneRun:
    """An audit from the scores of the canaries of one run: the highest ``guesses`` of them are guessed to be in.

    Parameters
    ----------
    members, nonmembers : array_like
        Scores of canaries that were in, and that were not, by a fair coin each.
    guesses : int
        How many of the highest scores are guessed to be in; fixed in advance. Ties count against the attack.
    confidence : float
        In (0, 1).

    Examples
    --------
    >>> one_run_scores([3.0, 2.0, 0.5], [1.0, 0.0, 0.5], guesses=3).correct
    2
    """
    inside, outside = scores_of("members", members), scores_of("nonmembers", nonmembers)
    values = np.concatenate((outside, inside))
    asked = check_count("guesses", guesses)
    if asked > values.size:
        raise ValueError(f"guesses must be at most the {values.size} canaries, got {asked}")
    first = np.argsort(-values, kind="stable")[:asked]
    return OneRun(values.size, asked, int(np.sum(first >= outside.size)), confidence)
