"""Calibration: the smallest noise, or the largest rate, batch size or number of steps, that is proved to meet a target.

Guarantee: the value returned is safe by a certified upper bound, and a neighbouring value is unsafe by a
certified lower one: the best value lies between the two, if privacy gets steadily better or steadily worse from one
end of the values to the other. Cost: some ten estimates and usually two or three certified evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from hockeystick.accountants.base import Accountant
from hockeystick.calibrate.result import Calibration, UnreachableTargetError
from hockeystick.calibrate.sought import certify_either_side, sought
from hockeystick.composition import Composition, Step
from hockeystick.errors import public_door
from hockeystick.progress import Progress

__all__ = ["Calibration", "UnreachableTargetError", "calibrate"]


@public_door
def calibrate(
    family: Callable[[Any], Step | Composition],
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
    adjacency: str = "add-remove",
    values: str = "real",
    within: tuple[float, float] | None = None,
    safe: str = "detect",
    precision: float = 1e-5,
    guess: float | None = None,
    accountant: Accountant | Literal["automatic"] | None = None,
) -> Calibration:
    """The best value of a one-parameter family that is proved to meet a target.

    Parameters
    ----------
    family : callable
        From one positive number (an int where ``values="integer"``) to a step or a composition; privacy must
        get steadily better or steadily worse as the number grows. Where it does not, as with sigma for few steps of
        discrete Gaussian noise, ``value`` is safe and ``unsafe`` is not, and nothing is known of other values.
    epsilon, delta : float
        Target: (epsilon, delta)-differential privacy.
    mu, floor : float
        Target: Gaussian differential privacy, for delta above the floor (see
        `hockeystick.readouts.summary.smallest_mu`).
    true_positive_rate, false_positive_rate : float
        Target: no attack with this false-positive rate has a larger true-positive rate.
    advantage : float
        Target: no attack has a larger difference of the two rates.
    bayes_risk, prior : float
        Target: nobody who takes a record to be in the data with this prior errs less often (see
        `hockeystick.PrivacyCurve.bayes_risk`). Attribute inference or reconstruction from a baseline b is the target
        ``true_positive_rate`` at ``false_positive_rate=b``.
    adjacency : str
        Which datasets count as neighbours, as for `hockeystick.account`.
    values : {"real", "integer"}
        Which numbers the family takes.
    within : (float, float), optional
        Smallest and largest number allowed; say ``(1e-6, 1.0)`` for a sampling rate.
    safe : {"detect", "larger", "smaller"}
        Which numbers are safer; by default found out: more steps are never more private, and else by estimates.
    precision : float
        Relative distance between the value returned and one proved unsafe. Integers are exact.
    guess : float, optional
        Where to look first, as a value found for a similar run.
    accountant : Accountant, optional
        One that certifies; by default ``Certified()``, whose tolerance is then chosen for each evaluation.

    Returns
    -------
    Calibration
        ``value`` is proved safe, ``unsafe`` proved unsafe.

    Raises
    ------
    UnreachableTargetError
        Where even the safest value is proved to miss the target.
    PrecisionError
        Where no value is proved to meet the target, and the safest one is not proved to miss it.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = calibrate(lambda s: hs.Gaussian(s).poisson(0.001) * 10_000, epsilon=1.0, delta=1e-6)
    >>> f"{found.value:.4f}", bool(found.bound.upper <= 1e-6), found.precision <= 1e-5
    ('0.7876', True, True)
    >>> steps = calibrate(lambda n: hs.Gaussian(1.0).poisson(0.001) * n, epsilon=1.0, delta=1e-6, values="integer")
    >>> steps.unsafe - steps.value
    1
    """
    one = sought(**locals())
    with Progress("calibrating"):
        one.foresee()
        certify_either_side([one])
        return one.found()
