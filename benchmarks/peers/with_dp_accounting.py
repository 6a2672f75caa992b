"""dp-accounting: privacy loss distributions (the default accountant), the same with both roundings, and Renyi.

The accountant rounds losses up only, so its answer is an upper bound as far as its floating-point arithmetic allows; a
lower one needs the distributions built by hand with ``pessimistic_estimate=False``.
"""

from __future__ import annotations

import math
from importlib.metadata import version

import dp_accounting
import numpy as np
from dp_accounting import pld, rdp


def epsilon(steps, delta, method="pld", interval=1e-4):
    """Epsilon under add-or-remove-one: upper (``pld``, ``rdp``, ``self-compose``), or both (``both-roundings``)."""
    if method == "self-compose":
        return {"upper": _by_hand(steps, delta, interval, pessimistic=True, merge=False)}
    if method == "both-roundings":
        return {
            "lower": _by_hand(steps, delta, interval, pessimistic=False),
            "upper": _by_hand(steps, delta, interval, pessimistic=True),
        }
    if method == "pld":
        accountant = pld.PLDAccountant(value_discretization_interval=interval)
    else:
        accountant = rdp.RdpAccountant()
    for noise, rate, count in steps:
        accountant.compose(_event(noise, rate), int(count))
    return {"upper": accountant.get_epsilon(delta)}


def curve(steps, delta, highest, points, interval=1e-4):
    """The smallest of so many epsilons whose delta is no larger."""
    accountant = pld.PLDAccountant(value_discretization_interval=interval)
    for noise, rate, count in steps:
        accountant.compose(_event(noise, rate), int(count))
    epsilons = np.linspace(0.0, highest, points)
    return {"upper": epsilons[np.asarray(accountant.get_delta(epsilons)) <= delta].min(initial=math.inf)}


def grid(steps, delta, noises, rates, counts):
    """The epsilon of one plan among all."""
    found = {
        (noise, rate, count): epsilon([(noise, rate, count)], delta)["upper"]
        for noise in noises
        for rate in rates
        for count in counts
    }
    return {"upper": found[tuple(steps[0])]}


def responses(steps, delta, interval=1e-4):
    """Randomised responses under replacement; what stands for the noise is the probability of the truth."""
    ((probability, _, count),) = steps
    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=interval
    )
    # of two answers the truth is given with probability 1 - noise / 2
    accountant.compose(dp_accounting.RandomizedResponseDpEvent(2.0 * (1.0 - probability), 2), int(count))
    return {"upper": accountant.get_epsilon(delta)}


def tuned(steps, delta, mean, method="rdp"):
    """The best of a Poisson number of runs, which its Renyi accountant alone knows."""
    if method != "rdp":
        raise ValueError(f"only the Renyi accountant knows it, not {method!r}")
    accountant = rdp.RdpAccountant()
    events = [dp_accounting.SelfComposedDpEvent(_event(noise, rate), int(count)) for noise, rate, count in steps]
    run = dp_accounting.ComposedDpEvent(events)
    accountant.compose(dp_accounting.dp_event.RepeatAndSelectDpEvent(run, mean, math.inf))
    return {"upper": accountant.get_epsilon(delta)}


def _event(noise, rate):
    gaussian = dp_accounting.GaussianDpEvent(noise)
    return gaussian if rate == 1.0 else dp_accounting.PoissonSampledDpEvent(rate, gaussian)


def _by_hand(steps, delta, interval, *, pessimistic, merge=True):
    total = None
    for noise, rate, count in steps:
        merged = merge and rate == 1.0  # as the library's own accountant does: Gaussians compose to a Gaussian
        distribution = pld.privacy_loss_distribution.from_gaussian_mechanism(
            standard_deviation=noise / math.sqrt(count) if merged else noise,
            sampling_prob=rate,
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
        )
        if not merged and count > 1:
            distribution = distribution.self_compose(int(count))
        total = distribution if total is None else total.compose(distribution)
    return total.get_epsilon_for_delta(delta)


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("dp-accounting", "numpy", "scipy")}
