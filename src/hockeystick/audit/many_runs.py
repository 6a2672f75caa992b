"""Audits of many runs: independent canaries, each in a run of its own, counted.

With probability ``1 - level`` the intervals of Clopper and Pearson hold, each at its share of the level, and then the
attack's true rates lie in a rectangle whose corner no true claim excludes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from hockeystick.audit.base import Audit
from hockeystick.audit.claims import Claim
from hockeystick.errors import check_count, check_finite, check_inside, check_reals, public_door, set_fields
from hockeystick.numerics.rounding import down, up

_THRESHOLDS = 10
_MOST = 10**12  # canaries: from some 10^13 on limits by scipy are off, to either side
Scores = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Counted:
    """How often one attack said "in", of canaries that were in and that were not."""

    true_positives: int
    positives: int
    false_positives: int
    negatives: int

    def __post_init__(self) -> None:
        for hits, of in (("true_positives", "positives"), ("false_positives", "negatives")):
            total = check_count(of, getattr(self, of))
            found = check_count(hits, getattr(self, hits), minimum=0)
            if found > total:
                raise ValueError(f"{hits} must be at most {of}: got {found} of {total}")
            if total > _MOST:
                raise ValueError(f"{of} must be at most {_MOST}, got {total}: no limits are known for more")
            set_fields(self, **{hits: found, of: total})

    def rates(self, level: float) -> tuple[float, float]:
        """The smallest true-positive and the largest false-positive rate that either count admits at a level."""
        return _lower(self.true_positives, self.positives, level), _upper(self.false_positives, self.negatives, level)


@final
@dataclass(frozen=True)
class ManyRuns(Audit):
    """Counts of one or more attacks on independent canaries (from `counts` or `scores`).

    Attributes
    ----------
    attacks : tuple of Counted
        One for each threshold; fixed without looking at these canaries.
    confidence : float
        That all which is said holds.
    """

    attacks: tuple[Counted, ...]
    confidence: float = 0.95

    @public_door
    def __post_init__(self) -> None:
        check_inside("confidence", self.confidence)
        if not self.attacks:
            raise ValueError("attacks must hold at least one count")
        if not all(isinstance(attack, Counted) for attack in self.attacks):
            raise TypeError(f"attacks must hold what hockeystick.audit.counts or scores made, got {self.attacks!r}")

    def refuted_at(self, claim: Claim, level: float) -> bool:
        share = 0.5 * level / len(self.attacks)
        return any(claim.cost(hits) > alarms for hits, alarms in (attack.rates(share) for attack in self.attacks))

    @public_door
    def false_negative_rate(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
        """The "worst" trade-off function at most, at the audit's confidence, as `PrivacyCurve.trade_off` has it.

        The smaller of two at every rate: the lower hull of what was seen, and its mirror image. No attack need reach
        what lies between a point of the one and a point of the other.

        Parameters
        ----------
        false_positive_rate : array_like
            In [0, 1].

        Examples
        --------
        >>> from hockeystick import audit
        >>> audit.counts(90, 100, false_positives=5, negatives=100).false_negative_rate([0.0, 0.2, 1.0]).round(3)
        array([1.  , 0.11, 0.  ])
        """
        share = 0.5 * (1.0 - self.confidence) / len(self.attacks)
        seen = ((alarms, 1.0 - hits) for hits, alarms in (attack.rates(share) for attack in self.attacks))
        alphas = check_reals("false_positive_rate", false_positive_rate, "in [0, 1]")
        if not np.all((alphas >= 0.0) & (alphas <= 1.0)):
            raise ValueError(f"false_positive_rate must be in [0, 1], got {false_positive_rate!r}")
        x, y = np.array(_lower_hull(sorted({(0.0, 1.0), (1.0, 0.0), *seen}))).T
        return np.asarray(np.minimum(np.interp(alphas, x, y), np.interp(alphas, y[::-1], x[::-1])))


def _lower(successes: int, trials: int, level: float) -> float:
    """Clopper and Pearson's lower limit of a rate, undercut with probability ``level`` at most; 0 where none is found.

    Not one less the upper limit of the others: that difference is rounded by more than a small rate.
    """
    found = float(betaincinv(successes, trials - successes + 1, level)) if successes else 0.0
    return max(0.0, down(found))  # also for NaN, which scipy has at some tiny levels


def _upper(successes: int, trials: int, level: float) -> float:
    """Clopper and Pearson's upper limit, exceeded with probability ``level`` at most; 1 where none is found."""
    found = 1.0 if successes == trials else float(betainccinv(successes + 1, trials - successes, level))
    return min(1.0, up(found))  # also for NaN


def _lower_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex hull of points sorted by their first coordinate."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        if hull and x == hull[-1][0]:
            continue  # above the one before
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (c - a) * (y - b) > (d - b) * (x - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


@public_door
def counts(
    true_positives: int, positives: int, *, false_positives: int, negatives: int, confidence: float = 0.95
) -> ManyRuns:
    """An audit from the counts of one attack on independent canaries.

    Parameters
    ----------
    true_positives, positives : int
        Of ``positives`` canaries that were in, the attack said so of ``true_positives``.
    false_positives, negatives : int
        Of ``negatives`` canaries that were not, the attack said "in" of ``false_positives``.
    confidence : float
        In (0, 1).

    Returns
    -------
    ManyRuns
        Valid where each canary's outcome is independent of the others': one canary a run, or many runs.

    Examples
    --------
    >>> f"{counts(100, 100, false_positives=0, negatives=100).epsilon(delta=0.0):.3f}"
    '3.281'
    """
    return ManyRuns((Counted(true_positives, positives, false_positives, negatives),), confidence)


@public_door
def scores(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    threshold: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> ManyRuns:
    """An audit from the scores of independent canaries, higher where the attack leans to "in".

    Parameters
    ----------
    members, nonmembers : array_like
        Scores of canaries that were in, and that were not.
    threshold : float, optional
        "In" is said from this score on; fixed in advance. By default half of the nonmembers choose ten thresholds,
        spread over the false-positive rates, and all other canaries are counted.
    confidence : float
        In (0, 1).
    seed : int
        Of the choice of the half.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> seen = scores(rng.normal(2.0, 1.0, 4000), rng.normal(0.0, 1.0, 4000))
    >>> 1.5 < seen.mu() < 2.0
    True
    """
    inside, outside = scores_of("members", members), scores_of("nonmembers", nonmembers)
    if threshold is not None:
        return ManyRuns((_at(inside, outside, check_finite("threshold", threshold)),), confidence)
    rng = np.random.default_rng(check_count("seed", seed, minimum=0))
    if outside.size < 2:
        raise ValueError("at least two scores of nonmembers are needed, half of them for thresholds: give more")
    chosen, counted = np.split(rng.permutation(outside), [outside.size // 2])
    chosen.sort()
    ranks = np.geomspace(1.0, chosen.size, _THRESHOLDS) - 1.0
    thresholds = np.unique(chosen[::-1][np.round(ranks).astype(int)])
    return ManyRuns(tuple(_at(inside, counted, float(threshold)) for threshold in thresholds), confidence)


def _at(inside: Scores, outside: Scores, threshold: float) -> Counted:
    return Counted(int(np.sum(inside >= threshold)), inside.size, int(np.sum(outside >= threshold)), outside.size)


def scores_of(name: str, values: ArrayLike) -> Scores:
    """Scores as a flat array: finite or infinite, never NaN."""
    found = check_reals(name, values, "finite or infinite").ravel()
    if found.size == 0:
        raise ValueError(f"{name} must hold at least one score")
    return found
