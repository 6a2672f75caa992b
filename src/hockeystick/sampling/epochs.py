"""How many batches a pass over the data has, and how many steps so many epochs take."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hockeystick.errors import check_count, check_positive, check_rate


def batches_in_epoch(*, rate: float | None = None, batch_size: int | None = None, population: int | None = None) -> int:
    """How many batches a pass over the data has: the last, short one counts, as it does for most data loaders.

    Parameters
    ----------
    rate : float, optional
        Probability that an example is in a batch; or, instead:
    batch_size, population : int, optional
        (Expected) batch size and number of examples.

    Examples
    --------
    >>> batches_in_epoch(batch_size=256, population=60_000), batches_in_epoch(rate=1 / 235)
    (235, 235)
    """
    if batch_size is not None and population is not None and rate is None:
        return -(-check_count("population", population) // check_count("batch_size", batch_size))
    if rate is None or batch_size is not None or population is not None:
        raise TypeError("give either rate, or batch_size and population")
    batches = 1.0 / check_rate("rate", rate)
    return math.ceil(batches * (1.0 - 2.0**-50))  # a rate such as 1/235 is rounded


def steps_in(epochs: float, **sizes: Any) -> int:
    """How many steps so many epochs take, rounded up; the sizes as for `batches_in_epoch`.

    With the rate ``batch_size / population`` this accounts for at least what is run, whether or not the last batch of
    an epoch is dropped.

    Examples
    --------
    >>> steps_in(30, batch_size=256, population=60_000)
    7050
    """
    return math.ceil(Fraction(check_positive("epochs", epochs)) * batches_in_epoch(**sizes))
