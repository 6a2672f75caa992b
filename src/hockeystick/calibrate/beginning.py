"""Where a calibration begins: near the answers of its neighbours along a line, or at the Gaussian limit of DP-SGD.

With very many steps, Poisson-sampled at rate g, a run is mu-Gaussian DP, ``mu = g sqrt(T (e^{1/s^2} - 1))`` (Bu et al.
2020; 002, appendix A.3): s follows from the mu that takes epsilon to delta. That is usually 1 to 5 % off.

Estimates, from which proofs begin. Cost: a tenth of a millisecond; two estimates or more where the direction is to be
told, in which values are safer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hockeystick.accountants.base import Parts
from hockeystick.accountants.certified import Certified
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.problem import Problem
from hockeystick.calibrate.search import Search
from hockeystick.calibrate.targets import target_of
from hockeystick.composition import Composition, directions
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.tilted_normal import tilted_normal

_ASIDE = 0.5  # of the precision
_STEP = 0.05  # in ln
_KNOWN = 6  # answers from which another is predicted
_FARTHEST = math.log(2.0)  # that it may lie from the nearest
_LOW, _HIGH, _NEAR = -12.0, 6.0, 1e-3  # ln mu
_REALISTIC = (0.1, 1e3)
_MOST = sys.float_info.max  # an int may be beyond
_ONE_RECORD = ("add-remove", "add", "remove")
_NEIGHBOURS = (4.0, 1.0, 0.25)  # of the guess, where estimates are compared: much less noise is slow
_ANCHORS = (1.0, 30.0, 1e-2, 1e3, 1e-4, 1e5, 1e-6, 1e8)  # and then: what is far off is slow, most of all tiny noise
_TELLING = 0.1  # difference of the excess that tells a direction
_KNOWN_BY = ("epsilon", "delta", "rate", "batch_size", "population")


def led_to(known: Sequence[tuple[float, float]], place: float) -> float | None:
    """The answer at a place, predicted from the nearest few: the polynomial through them, on logarithmic scales.

    Parameters
    ----------
    known : sequence of (float, float)
        Places and answers, all positive; of two as near the later one counts.
    place : float
        A positive place.

    Examples
    --------
    >>> round(led_to([(1.0, 3.0), (2.0, 6.0)], 3.0), 12)
    9.0
    """
    if not known or math.isnan(place):
        return None
    x = math.log(place)
    every = [(math.log(at), math.log(answer)) for at, answer in known]
    near = sorted(every, key=lambda one: -abs(one[0] - x))[-_KNOWN:]
    last = near[-1][1]
    if len({at for at, _ in near}) < len(near):  # the same place twice
        return math.exp(last)
    following = sum(
        value * math.prod((x - other) / (at - other) for other, _ in near if other != at) for at, value in near
    )
    return math.exp(min(max(following, last - _FARTHEST), last + _FARTHEST))


def begun(steps: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a noise multiplier that is sought, with a guess where none is given and one is known.

    Examples
    --------
    >>> f"{begun(2000, {'epsilon': 1.0, 'delta': 1e-5, 'rate': 0.01})['guess']:.2f}"
    '1.81'
    """
    guess = settings.get("guess")
    return {**settings, "guess": _limit_noise(steps, settings) if guess is None else guess}


def _limit_noise(steps: Any, settings: Mapping[str, Any]) -> float | None:
    """About the noise multiplier of a run that meets epsilon (nats) at delta; None where the limit does not say.

    What is no such run, or not valid, is left to who proves the answer.
    """
    known: list[Any] = [settings.get(name) for name in _KNOWN_BY]
    epsilon, delta, rate, batch_size, population = known
    if rate is None and isinstance(population, int) and isinstance(batch_size, int) and 0 < batch_size <= population:
        rate = batch_size / population
    numbers = (steps, epsilon, delta, rate)
    if not all(isinstance(number, int | float) and 0.0 < number <= _MOST for number in numbers):
        return None
    of_one_record = settings.get("adjacency", "add-remove") in _ONE_RECORD
    if settings.get("sampling", "poisson") != "poisson" or not of_one_record or not (rate <= 1.0 and delta < 1.0):
        return None

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        return tilted_normal(0.0, 0.5 * mu - epsilon / mu, mu).log - math.log(delta)

    drawn = math.exp(increasing_root(excess, _LOW, _HIGH, _NEAR)) / rate
    least = drawn * drawn / steps  # a power would raise where this is infinite
    return min(max(1.0 / math.sqrt(math.log1p(max(least, 1e-30))), _REALISTIC[0]), _REALISTIC[1])


def foreseen_noise(
    family: Callable[[float], Composition], wanted: Mapping[str, Any], *, within: tuple[float, float], precision: float
) -> float:
    """About the smallest noise multiplier with which a run meets a target: epsilon (nats) at delta, by adjacency.

    What a picture begins with, whose curve then is the proof: on the safe side by half the precision. Cost: three or
    four estimates.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = foreseen_noise(
    ...     lambda noise: hs.Gaussian(noise).poisson(0.01) * 2000,
    ...     {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "guess": 1.8},
    ...     within=(0.1, 100.0),
    ...     precision=1e-3,
    ... )
    >>> proved = hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-5, steps=2000, rate=0.01)
    >>> 0.0 < found / proved.value - 1.0 < 1e-3
    True
    """
    target = target_of(epsilon=wanted["epsilon"], delta=wanted["delta"])
    problem = Problem(family, target, wanted["adjacency"], Certified())
    search = Search(problem, Axis(*within, whole=False, sign=-1, precision=precision))
    start = min(max(wanted["guess"] or 1.0, within[0]), within[1])
    place = search.predicted_root(start, _STEP)
    return search.axis.value(place - _ASIDE * precision)


def detected(search: Search, start: float) -> int:
    """1 where larger values are less safe, -1 where smaller ones are, from estimates."""
    axis = search.axis
    seen: list[tuple[float, float]] = []
    for wanted in (*(start * factor for factor in _NEIGHBOURS), *_ANCHORS):
        value = axis.value(axis.place(min(max(wanted, axis.low), axis.high)))
        if any(value == other for other, _ in seen):
            continue
        excess = search.estimated(axis.place(value))
        for other, known in seen:
            if abs(excess - known) > _TELLING:
                return 1 if (excess > known) == (value > other) else -1
        seen.append((value, excess))
    seem = "miss" if min(excess for _, excess in seen) > 0.0 else "meet"
    raise ValueError(
        f"could not tell whether larger or smaller values are safer: all that were tried seem to {seem} the target"
        " alike; give safe='larger' or safe='smaller', and a guess near the answer, or another target"
    )


def by_steps(search: Search, start: float) -> int:
    """1 where the family only repeats its steps more often as the value grows, -1 where less often, 0 otherwise.

    More steps are never more private, however much or little the estimates differ.
    """
    problem = search.problem
    first = min(start, search.axis.high - 1)
    low, high = problem.run(int(first)), problem.run(int(first) + 1)
    names = directions(problem.adjacency)
    grows = all(_contains(high.pairs(name), low.pairs(name)) for name in names)
    shrinks = all(_contains(low.pairs(name), high.pairs(name)) for name in names)
    return int(grows) - int(shrinks)


def _contains(more: Parts, fewer: Parts) -> bool:
    counts = dict(more)
    return all(counts.get(pair, 0) >= count for pair, count in fewer)
