"""DP-SGD in the words of those who train: how much noise, how many steps, how large a batch.

One step adds Gaussian noise of standard deviation ``noise_multiplier`` times the clipping norm to the sum of clipped
gradients of a sample. Each function answers for a target as `hockeystick.calibrate` takes it, proved from both sides.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from hockeystick.calibrate import Calibration, calibrate
from hockeystick.calibrate.beginning import begun
from hockeystick.calibrate.sought import calibrations
from hockeystick.composition import Composition
from hockeystick.errors import check_choice, check_count, check_rate, check_sequence
from hockeystick.mechanisms import Gaussian, GaussianMixture
from hockeystick.sampling.epochs import batches_in_epoch, steps_in

__all__ = [
    "batch_size_for",
    "batches_in_epoch",
    "noise_multiplier_for",
    "noise_multipliers_for",
    "rate_for",
    "round_steps_for",
    "run",
    "steps_for",
    "steps_in",
    "user_level_run",
]

_OWN = {
    "poisson": None,
    "without-replacement": None,
    "shuffled": None,
    "random-allocation": "round_steps",
    "balls-in-bins": "round_steps",
    "cut-batches": "largest_batch",
    "micro-batches": "micro_batches",
}
"""The schemes, each with what it alone asks for."""

_BY_RATE = ("poisson", "cut-batches", "micro-batches")
_BY_PASSES = ("shuffled", "random-allocation", "balls-in-bins")
_SMALLEST_RATE = 1e-9


def run(
    noise_multiplier: float,
    steps: int,
    *,
    rate: float | None = None,
    batch_size: int | None = None,
    population: int | None = None,
    sampling: str = "poisson",
    round_steps: int | None = None,
    selected: int = 1,
    largest_batch: int | None = None,
    micro_batches: int | None = None,
) -> Composition:
    """A DP-SGD run.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the clipping norm.
    steps : int
        Number of gradient steps; for "shuffled", "random-allocation" and "balls-in-bins" whole passes over the data.
    rate : float, optional
        Probability that an example is in a batch (in a micro-batch, where a step sums several); or, instead:
    batch_size, population : int, optional
        (Expected) batch size and number of examples.
    sampling : str
        How batches are drawn: "poisson", "without-replacement", "shuffled", "random-allocation" (each example in one
        step of a round, afresh in every round), "balls-in-bins" (the same, the places fixed for the run), "cut-batches"
        (Poisson samples cut to a largest batch) or "micro-batches" (a step sums several Poisson samples).
    round_steps, selected : int, optional
        For "random-allocation" and "balls-in-bins": steps in a round, instead of the two sizes; of these, for
        "random-allocation" alone, how many each example takes part in.
    largest_batch : int, optional
        For "cut-batches": the most examples in a batch; it needs ``population``, too.
    micro_batches : int, optional
        For "micro-batches": how many samples a step sums.

    Examples
    --------
    >>> run(1.0, 100, sampling="random-allocation", round_steps=50)
    Composition(steps=((RandomAllocation(mechanism=Gaussian(noise_multiplier=1.0), steps=50, selected=1), 2),))
    """
    scheme = check_choice("sampling", sampling, tuple(_OWN))
    own = {"round_steps": round_steps, "largest_batch": largest_batch, "micro_batches": micro_batches}
    given = {name: value for name, value in own.items() if value is not None}
    sized = batch_size is not None or population is not None
    _check_given(scheme, given, sized=sized)
    if selected != 1 and (scheme != "random-allocation" or round_steps is None):
        raise TypeError("selected is for sampling random-allocation, with round_steps")
    mechanism, count = Gaussian(noise_multiplier), check_count("steps", steps)
    if scheme in _BY_RATE:
        return mechanism.poisson(rate, batch_size=batch_size, population=population, **given) * count
    if rate is not None or (given and sized):
        rounds = "round_steps alone, or " if given else ""
        raise TypeError(f"sampling {scheme} takes {rounds}batch_size and population, and no rate")
    if round_steps is not None:
        return _passes(mechanism, count, scheme, check_count("round_steps", round_steps), selected)
    if batch_size is None or population is None:
        raise TypeError(f"sampling {scheme} needs batch_size and population")
    if scheme == "without-replacement":
        return mechanism.without_replacement(batch_size=batch_size, population=population) * count
    batch = mechanism.shuffled(batch_size=batch_size, population=population)  # as many records in every batch
    if scheme == "shuffled":
        return batch * _whole_passes(count, batch.releases, scheme)
    return _passes(mechanism, count, scheme, batch.releases)


def _check_given(scheme: str, given: Collection[str], *, sized: bool) -> None:
    """Refuse what belongs to another scheme, and ask for what this one alone needs."""
    needed = _OWN[scheme]
    for name in given:
        if name != needed:
            schemes = " or ".join(one for one, asks in _OWN.items() if asks == name)
            raise TypeError(f"{name} is for sampling {schemes}, not for {scheme}")
    if needed is not None and not given and not (needed == "round_steps" and sized):
        raise TypeError(f"sampling {scheme} needs {needed}")


def _whole_passes(steps: int, each: int, scheme: str) -> int:
    """How many passes over the data so many steps are."""
    passes = Fraction(steps, each)
    if passes.denominator != 1:
        raise ValueError(
            f"sampling {scheme} takes whole passes over the data: steps must be a multiple of {each}, got {steps}"
        )
    return int(passes)


def _passes(mechanism: Gaussian, steps: int, scheme: str, each: int, selected: int = 1) -> Composition:
    """Rounds that allocate afresh, or one run on bins that stay fixed."""
    passes = _whole_passes(steps, each, scheme)
    if scheme == "random-allocation":
        return mechanism.random_allocation(steps=each, selected=selected) * passes
    return mechanism.balls_in_bins(bins=each, epochs=passes) * 1


def user_level_run(
    noise_multiplier: float, steps: int, *, rate: float, sample: str, examples_per_user: int | None = None
) -> Composition:
    """A DP-SGD run whose unit is a user with many examples; add, remove and zero-out are of all of a user's examples.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of what is clipped.
    steps : int
        Number of gradient steps.
    rate : float
        Probability that an example, or a user, is in a batch: each independently.
    sample : {"examples", "users"}
        "examples": batches are of examples, whose gradients are clipped one by one; a user has up to
        ``examples_per_user`` of them in the data, and a binomial number of these in a batch. "users": batches are of
        users, and the sum (or mean) of each user's gradients is clipped as one.
    examples_per_user : int, optional
        The most examples that a user has in the data; for sampled examples only.

    Examples
    --------
    >>> import hockeystick as hs
    >>> users = user_level_run(1.0, 100, rate=0.01, sample="users")
    >>> users == run(1.0, 100, rate=0.01)
    True
    >>> examples = user_level_run(4.0, 100, rate=0.01, sample="examples", examples_per_user=4)
    >>> 0.2 < hs.account(examples).epsilon(1e-6).upper < 1.0
    True
    """
    if check_choice("sample", sample, ("examples", "users")) == "users":
        if examples_per_user is not None:
            raise TypeError("examples_per_user is for sampled examples: a sampled user's gradients are clipped as one")
        return run(noise_multiplier, steps, rate=rate)
    if examples_per_user is None:
        raise TypeError("give examples_per_user, the most examples that a user has in the data")
    return GaussianMixture.poisson_group(noise_multiplier, rate=rate, size=examples_per_user) * steps


def noise_multiplier_for(*, steps: int, **settings: Any) -> Calibration:
    """The smallest noise multiplier with which a DP-SGD run is proved to meet a target.

    Parameters
    ----------
    steps : int
        Number of gradient steps.
    **settings
        How batches are drawn, as for `run`, and the target and the settings of `hockeystick.calibrate`: ``epsilon=``
        and ``delta=``, ``mu=``, ``precision=``, ...

    Examples
    --------
    >>> found = noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10_000, rate=0.001)
    >>> f"{found.value:.4f}"
    '0.7876'
    """
    sampler, target = _apart(begun(steps, settings))
    return calibrate(partial(run, steps=steps, **sampler), safe="larger", **target)


def steps_for(*, noise_multiplier: float, **settings: Any) -> Calibration:
    """The largest number of steps a DP-SGD run may take to meet a target (arguments as for `noise_multiplier_for`).

    Where batches are drawn by passes over the data it is a whole number of passes; ``within`` and ``guess`` are then
    numbers of passes, too.

    Examples
    --------
    >>> steps_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, rate=0.001).value
    31117
    """
    sampler, target = _apart(settings)
    each, rounds = 1, sampler.get("round_steps")
    if sampler.get("sampling") in _BY_PASSES:
        sizes = {name: sampler[name] for name in ("batch_size", "population") if name in sampler}
        each = batches_in_epoch(**sizes) if rounds is None else check_count("round_steps", rounds)
        target.setdefault("guess", 10)
    found = calibrate(lambda n: run(noise_multiplier, n * each, **sampler), values="integer", safe="smaller", **target)
    unsafe = None if found.unsafe is None else found.unsafe * each
    notes = found.notes if each == 1 else tuple(f"in passes of {each} steps: {note}" for note in found.notes)
    return replace(found, value=found.value * each, unsafe=unsafe, notes=notes)


def round_steps_for(*, noise_multiplier: float, epochs: int, sampling: str, **target: Any) -> Calibration:
    """The smallest number of steps in a round with which so many passes over the data meet a target.

    The batch size to expect is the number of examples over it. More steps in a round are never less private: the mean
    of more likelihood ratios is smaller in convex order.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the clipping norm.
    epochs : int
        Passes over the data.
    sampling : {"random-allocation", "balls-in-bins"}
        Whether every pass allocates afresh.
    **target
        As for `noise_multiplier_for`.

    Examples
    --------
    >>> round_steps_for(
    ...     epsilon=9.0, delta=1e-5, noise_multiplier=0.7, epochs=1, sampling="balls-in-bins", within=(1, 50)
    ... ).value
    1
    """
    scheme, passes = check_choice("sampling", sampling, _BY_PASSES[1:]), check_count("epochs", epochs)
    target.setdefault("guess", 100)
    return calibrate(
        lambda each: run(noise_multiplier, each * passes, sampling=scheme, round_steps=each),
        values="integer",
        safe="larger",
        **target,
    )


def rate_for(*, noise_multiplier: float, steps: int, **settings: Any) -> Calibration:
    """The largest Poisson sampling rate with which a DP-SGD run meets a target; of cut batches and micro-batches, too.

    Arguments as for `noise_multiplier_for`.

    Examples
    --------
    >>> f"{rate_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000).value:.5f}"
    '0.00173'
    """
    sampler, target = _apart(settings)
    cut = sampler.get("sampling") == "cut-batches"  # then something must be left to chance
    target.setdefault("within", (_SMALLEST_RATE, math.nextafter(1.0, 0.0) if cut else 1.0))
    target.setdefault("guess", 1e-3)
    return calibrate(lambda rate: run(noise_multiplier, steps, rate=rate, **sampler), safe="smaller", **target)


def batch_size_for(*, noise_multiplier: float, steps: int, population: int, **settings: Any) -> Calibration:
    """The largest (expected) batch size with which a DP-SGD run meets a target.

    Arguments as for `noise_multiplier_for`. With `round_steps_for` a round is divided instead.

    Examples
    --------
    >>> batch_size_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000, population=60_000).value
    103
    """
    sampler, target = _apart(settings)
    scheme, most = sampler.get("sampling", "poisson"), check_count("population", population)
    if scheme in _BY_PASSES:
        raise TypeError(f"sampling {scheme} cuts a pass into steps: use round_steps_for")
    # a record must be left out where batches are cut, or the smaller of two neighbours fills one
    left_out = {"cut-batches": 1, "without-replacement": int(target.get("adjacency") != "substitute")}.get(scheme, 0)
    if "within" not in target and most < 2 + left_out:
        raise ValueError(f"population must be at least {2 + left_out}, got {most}: fewer leave no sizes to choose from")
    target.setdefault("within", (1, most - left_out))
    return calibrate(
        lambda size: run(noise_multiplier, steps, batch_size=size, population=population, **sampler),
        values="integer",
        safe="smaller",
        **target,
    )


def _apart(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What says how batches are drawn, and what is the target's."""
    of_run = inspect.signature(run).parameters
    sampler = {name: value for name, value in settings.items() if name in of_run}
    return sampler, {name: value for name, value in settings.items() if name not in of_run}


def noise_multipliers_for(
    *, steps: int, rates: Sequence[float] | None = None, batch_sizes: Sequence[int] | None = None, **settings: Any
) -> list[Calibration]:
    """Noise multipliers for a range of sampling rates or batch sizes, each search started from its neighbours' answers.

    Parameters
    ----------
    steps : int
        Number of gradient steps.
    rates, batch_sizes : sequence, one of the two
        In order.
    **settings
        As for `noise_multiplier_for`.

    Examples
    --------
    >>> found = noise_multipliers_for(epsilon=1.0, delta=1e-6, steps=1000, rates=[0.001, 0.002, 0.004])
    >>> [f"{one.value:.3f}" for one in found]
    ['0.697', '0.785', '0.927']
    """
    name, check = ("rate", check_rate) if rates is not None else ("batch_size", check_count)
    if (rates is None) == (batch_sizes is None) or name in settings:
        raise TypeError(f"give either rates or batch_sizes, and no {name} beside them")
    places = [check(name, place) for place in check_sequence(f"{name}s", batch_sizes if rates is None else rates)]
    first = {"guess": settings.pop("guess", None)}
    every = [{"safe": "larger", **settings, name: place} for place in places]
    every[:1] = [begun(steps, one | first) for one in every[:1]]
    found = calibrations([(partial(run, steps=steps, **own), target) for own, target in map(_apart, every)], places)
    if refused := [one for one in found if not isinstance(one, Calibration)]:
        raise refused[0]
    return [one for one in found if isinstance(one, Calibration)]
