"""Where a computed, nonincreasing function such as delta(epsilon) crosses a target, on the side asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

_STEPS = 150
_PATIENCE = 4  # steps, of which one bisects
_LEAST = 1e-300  # a sign, where two logarithms are the same


def one_sided_root(
    delta: Callable[[float], float], target: float, *, guess: float, slope: float, step: float, above: bool
) -> float:
    """A point of at least 0 beyond the crossing, by no more than about ``step``.

    Parameters
    ----------
    delta : callable
        A nonincreasing function of epsilon.
    target : float
        Above 0.
    guess, slope : float
        Where to start, and about ``-d ln(delta) / d epsilon`` there.
    step : float
        How far beyond the crossing the answer may lie (nats).
    above : bool
        True: the answer satisfies ``delta(answer) <= target`` (and is ``inf`` where none was found). False: it
        satisfies ``delta(answer) >= target``, or is 0.

    Notes
    -----
    The condition is verified by evaluation at the answer itself, whatever the function's shape: by comparing delta
    with the target, not their rounded logarithms, which only say where to look next.
    """
    log_target = math.log(target)

    def excess(point: float) -> float:
        value = delta(point)
        if value == target:
            return 0.0
        log_ratio = math.log(value) - log_target if value > 0.0 else -math.inf
        return max(log_ratio, _LEAST) if value > target else min(log_ratio, -_LEAST)

    at = max(guess, 0.0)
    value = excess(at)
    low, high = -math.inf, math.inf  # known to be before and beyond the crossing
    f_low, f_high = math.inf, -math.inf
    reach = step  # how far to go where there is nothing to foretell by
    raised = False  # whether the last step moved the lower end
    for count in range(_STEPS):
        before = value > 0.0 or (value == 0.0 and not above)
        if before:
            f_high *= 0.5 if raised else 1.0  # an end that stays draws the secant too near (the Illinois rule)
            low, f_low = at, value
        else:
            f_low *= 1.0 if raised else 0.5
            high, f_high = at, value
        raised = before
        if at == 0.0 and value <= 0.0:
            return 0.0
        if high - low <= step:
            break
        reach *= 2.0
        if count % _PATIENCE == _PATIENCE - 1 and math.isfinite(high - low):
            at = 0.5 * (low + high)  # whatever the shape, the bracket shrinks
        else:
            at = _next(low, high, f_low, f_high, slope=slope, step=step, reach=reach)
        value = excess(at)
    return max(high if above else low, 0.0)


def crossings(
    lower: Callable[[float], float],
    upper: Callable[[float], float],
    target: float,
    *,
    guess: float,
    slope: float,
    step: float,
) -> tuple[float, float]:
    """A point before the crossing of one function, and one beyond that of another: of the two sides of a curve."""
    find = partial(one_sided_root, target=target, guess=guess, slope=slope, step=step)
    return find(lower, above=False), find(upper, above=True)


def crossings_of(
    sides: Callable[[float], tuple[float, float]], target: float, *, guess: float, slope: float, step: float
) -> tuple[float, float]:
    """The same, of both sides of a curve at once: each point is asked for once."""
    seen: dict[float, tuple[float, float]] = {}

    def value(side: int, point: float) -> float:
        if point not in seen:
            seen[point] = sides(point)
        return seen[point][side]

    return crossings(partial(value, 0), partial(value, 1), target, guess=guess, slope=slope, step=step)


def _next(low: float, high: float, f_low: float, f_high: float, *, slope: float, step: float, reach: float) -> float:
    """Where to look next: just beyond or just before the root that a Newton or secant step foretells."""
    if math.isinf(high):
        ahead = f_low / slope if math.isfinite(f_low) else reach
        return low + max(ahead, 0.1 * reach) * (1.0 + 1e-3) + 0.4 * step
    if math.isinf(low):
        back = -f_high / slope if math.isfinite(f_high) else reach
        return max(high - max(back, 0.1 * reach) * (1.0 + 1e-3) - 0.4 * step, 0.0)
    width = high - low
    if math.isinf(f_high) or math.isinf(f_low):
        return 0.5 * (low + high)
    root = low + width * f_low / (f_low - f_high)
    aimed = root + 0.4 * step if high - root > 0.8 * step else root - 0.4 * step
    margin = min(0.02 * width, 0.1 * step)
    inside = low + margin < aimed < high - margin
    return aimed if inside else 0.5 * (low + high)
