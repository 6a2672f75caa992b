"""Whole training runs from arrays: steps of subsampled Gaussian noise whose parameters change as they go."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick.composition import Composition, Step
from hockeystick.errors import check_reals, public_door
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.sampling import Poisson


@public_door
def compose_arrays(*, noise_multipliers: ArrayLike, rates: ArrayLike, counts: ArrayLike = 1) -> Composition:
    """The composition of Poisson-subsampled Gaussian steps given as arrays, which are broadcast against each other.

    Steps that are equal are found and counted once, in the order in which they first came.

    Parameters
    ----------
    noise_multipliers : float or array_like
        Standard deviations of the noise, in units of the clipping norm; above 0.
    rates : float or array_like
        Probabilities that a record takes part, in (0, 1]; at 1 the step is unsampled.
    counts : int or array_like of int
        How often each step is run, at least 1.

    Returns
    -------
    Composition
        Of as many distinct steps as there are distinct pairs of noise multiplier and rate.

    Examples
    --------
    >>> run = compose_arrays(noise_multipliers=[1.0, 0.8, 1.0], rates=0.01, counts=[100, 50, 200])
    >>> run.total_steps, len(run.steps)
    (350, 2)
    """
    noise = _checked("noise_multipliers", noise_multipliers, 0.0, np.inf, "finite and above 0")
    rate = _checked("rates", rates, 0.0, 1.0, "in (0, 1]: the expected batch size over the number of examples")
    many = np.asarray(counts)
    if many.dtype == np.bool_ or not np.issubdtype(many.dtype, np.integer):
        raise TypeError(f"counts must hold integers of at least 1, got {counts!r}")
    if many.size and int(many.min()) < 1:
        raise ValueError(f"counts must hold integers of at least 1, got {int(many.min())}")
    try:
        columns = np.broadcast_arrays(noise, rate, many)
    except ValueError:
        raise ValueError(
            "noise_multipliers, rates and counts must broadcast to one shape, got"
            f" {noise.shape}, {rate.shape} and {many.shape}"
        ) from None
    noise, rate, many = (column.ravel() for column in columns)
    if noise.size == 0:
        raise ValueError("a run needs at least one step: the arrays are empty")
    _, first, which = np.unique(np.column_stack((noise, rate)), axis=0, return_index=True, return_inverse=True)
    totals = [0] * first.size
    for kind, count in zip(which.ravel().tolist(), many.tolist(), strict=True):
        totals[kind] += count  # Python integers do not overflow
    order = np.argsort(first).tolist()
    return Composition(
        tuple((_step(float(noise[first[kind]]), float(rate[first[kind]])), totals[kind]) for kind in order)
    )


def _step(noise_multiplier: float, rate: float) -> Step:
    mechanism = Gaussian(noise_multiplier)
    return mechanism if rate == 1.0 else Poisson(mechanism, rate)


def _checked(name: str, values: ArrayLike, low: float, high: float, allowed: str) -> NDArray[np.float64]:
    """Real numbers above ``low`` and at most ``high``, finite."""
    array = check_reals(name, values, allowed)
    wrong = ~((array > low) & (array <= high) & np.isfinite(array))
    if wrong.any():
        raise ValueError(f"{name} must be {allowed}, got {float(array[wrong].flat[0])!r}")
    return array
