"""DP-SGD in the words of those who train: how much noise, how many steps, how large a batch.

One step adds Gaussian noise of standard deviation ``noise_multiplier`` times the clipping norm to the sum of
the clipped gradients of a sample. Each function answers for a target as `hockeystick.calibrate` takes it,
proved from both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hockeystick.calibrate import Calibration, calibrate
from hockeystick.calibrate.neighbours import ahead
from hockeystick.composition import Composition
from hockeystick.errors import check_choice, check_count, check_rate
from hockeystick.mechanisms import Gaussian, GaussianMixture
from hockeystick.sampling.epochs import batches_in_epoch, steps_in

__all__ = [
    "batch_size_for",
    "batches_in_epoch",
    "noise_multiplier_for",
    "noise_multipliers_for",
    "rate_for",
    "run",
    "steps_for",
    "steps_in",
    "user_level_run",
]

_SCHEMES = ("poisson", "without-replacement")
_SMALLEST_RATE = 1e-9


def run(
    noise_multiplier: float,
    steps: int,
    *,
    rate: float | None = None,
    batch_size: int | None = None,
    population: int | None = None,
    sampling: str = "poisson",
) -> Composition:
    """A DP-SGD run.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the clipping norm.
    steps : int
        Number of gradient steps.
    rate : float, optional
        Probability that an example is in a batch; or, instead:
    batch_size, population : int, optional
        (Expected) batch size and number of examples.
    sampling : {"poisson", "without-replacement"}
        How batches are drawn; without replacement needs batch_size and population.

    Examples
    --------
    >>> run(1.0, 100, rate=0.01) == run(1.0, 100, batch_size=6, population=600)
    True
    """
    scheme = check_choice("sampling", sampling, _SCHEMES)
    mechanism = Gaussian(noise_multiplier)
    if scheme == "poisson":
        return mechanism.poisson(rate, batch_size=batch_size, population=population) * steps
    if rate is not None or batch_size is None or population is None:
        raise TypeError("sampling without replacement needs batch_size and population instead of rate")
    return mechanism.without_replacement(batch_size=batch_size, population=population) * steps


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


def noise_multiplier_for(
    *,
    steps: int,
    rate: float | None = None,
    batch_size: int | None = None,
    population: int | None = None,
    sampling: str = "poisson",
    **target: Any,
) -> Calibration:
    """The smallest noise multiplier with which a DP-SGD run is proved to meet a target.

    Parameters
    ----------
    steps, rate, batch_size, population, sampling
        The run, as for `run`.
    **target
        The target and the settings of `hockeystick.calibrate`: ``epsilon=`` and ``delta=``, ``mu=``,
        ``precision=``, ...

    Examples
    --------
    >>> found = noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10_000, rate=0.001)
    >>> f"{found.value:.4f}"
    '0.7876'
    """
    return calibrate(
        lambda noise: run(noise, steps, rate=rate, batch_size=batch_size, population=population, sampling=sampling),
        safe="larger",
        **target,
    )


def steps_for(
    *,
    noise_multiplier: float,
    rate: float | None = None,
    batch_size: int | None = None,
    population: int | None = None,
    sampling: str = "poisson",
    **target: Any,
) -> Calibration:
    """The largest number of steps a DP-SGD run may take to meet a target (arguments as for `noise_multiplier_for`).

    Examples
    --------
    >>> steps_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, rate=0.001).value
    31117
    """
    return calibrate(
        lambda steps: run(
            noise_multiplier, steps, rate=rate, batch_size=batch_size, population=population, sampling=sampling
        ),
        values="integer",
        safe="smaller",
        **target,
    )


def rate_for(*, noise_multiplier: float, steps: int, **target: Any) -> Calibration:
    """The largest Poisson sampling rate with which a DP-SGD run meets a target.

    Arguments as for `noise_multiplier_for`.

    Examples
    --------
    >>> f"{rate_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000).value:.5f}"
    '0.00173'
    """
    target.setdefault("within", (_SMALLEST_RATE, 1.0))
    target.setdefault("guess", 1e-3)
    return calibrate(lambda rate: run(noise_multiplier, steps, rate=rate), safe="smaller", **target)


def batch_size_for(
    *, noise_multiplier: float, steps: int, population: int, sampling: str = "poisson", **target: Any
) -> Calibration:
    """The largest (expected) batch size with which a DP-SGD run meets a target.

    Arguments as for `noise_multiplier_for`.

    Examples
    --------
    >>> batch_size_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000, population=60_000).value
    103
    """
    target.setdefault("within", (1, check_count("population", population)))
    return calibrate(
        lambda size: run(noise_multiplier, steps, batch_size=size, population=population, sampling=sampling),
        values="integer",
        safe="smaller",
        **target,
    )


def noise_multipliers_for(
    *, steps: int, rates: Sequence[float] | None = None, batch_sizes: Sequence[int] | None = None, **settings: Any
) -> list[Calibration]:
    """Noise multipliers for a range of sampling rates or batch sizes, each search started from its neighbour's answer.

    Parameters
    ----------
    steps : int
        Number of gradient steps.
    rates, batch_sizes : sequence, one of the two
        In order, so that neighbours are alike.
    **settings
        As for `noise_multiplier_for`.

    Examples
    --------
    >>> found = noise_multipliers_for(epsilon=1.0, delta=1e-6, steps=1000, rates=[0.001, 0.002, 0.004])
    >>> [f"{one.value:.3f}" for one in found]
    ['0.697', '0.785', '0.927']
    """
    if (rates is None) == (batch_sizes is None):
        raise TypeError("give either rates or batch_sizes")
    name, check = ("rate", check_rate) if rates is not None else ("batch_size", check_count)
    places = [check(name, place) for place in (rates if rates is not None else batch_sizes or ())]
    found: list[Calibration] = []
    guess = settings.pop("guess", None)
    for place in places:
        near = guess if not found else ahead(list(zip(places, map(float, found), strict=False)), place)
        one: dict[str, Any] = {name: place}
        found.append(noise_multiplier_for(steps=steps, guess=near, **one, **settings))
    return found
