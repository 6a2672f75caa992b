"""How many runs a RepeatAndSelect event makes: its mean and shape as a law of the number of runs.

The law is that of Papernot and Steinke (2022), as in `hockeystick.laws.run_count`: Poisson where the shape is infinite,
otherwise truncated negative binomial with eta = shape, geometric for 1 and logarithmic for 0. The event states the mean
m, the law the chance gamma to stop: ``m = (1/gamma - 1) eta / (1 - gamma^eta)``, and ``(1/gamma - 1) / -ln gamma`` for
eta = 0, which falls in gamma. gamma is no float64: the one nearest is taken, and the error that is stated of the law
contains what that changes (docs/derivations/events.md).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

from hockeystick.errors import check_real
from hockeystick.integrations.dp_events.event import Event
from hockeystick.laws.run_count import NegativeBinomialCount, PoissonCount, RunCount


def run_count(event: Event) -> RunCount | None:
    """The law of the number of runs; None for one run.

    Raises
    ------
    UnprovedEventError
        Where the law is outside of what is accounted for.
    """
    mean, shape = check_real("mean", event["mean"]), check_real("shape", event["shape"])
    if shape < 0.0:
        raise ValueError(f"shape must be at least 0, got {event['shape']!r}")
    if mean < 1.0:
        raise ValueError(f"mean must be at least 1, got {event['mean']!r}")
    if mean == 1.0 and shape < math.inf:
        return None
    try:
        return PoissonCount(mean) if shape == math.inf else NegativeBinomialCount(stopping_of(mean, shape), shape)
    except ValueError as error:
        raise event.unproved(f"so many runs are not accounted for: {error}") from error


def stopping_of(mean: float, shape: float) -> float:
    """A float64 next to the gamma of a mean above 1 and a shape of at least 0."""
    with localcontext(Context(traps=[])):  # the caller's context may refuse floats
        wanted = Decimal(mean)
    low, high = 0.0, 1.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        if _mean(middle, shape) > wanted:
            low = middle
        else:
            high = middle
    return low if high == 1.0 else high


def _mean(stopping: float, shape: float) -> Decimal:
    """The mean number of runs, to 60 digits."""
    with localcontext(Context(traps=[])) as context:
        g, eta = Decimal(stopping), Decimal(shape)
        context.prec = 60 - min(0, eta.adjusted())  # a small eta takes as many digits away
        whole = -g.ln()
        return (1 / g - 1) / ((1 - (-eta * whole).exp()) / eta if eta else whole)
