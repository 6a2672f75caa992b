"""The strategy of a calibration: which value to evaluate next, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from hockeystick.calibrate.problem import FARTHEST
from hockeystick.calibrate.result import UnreachableTargetError
from hockeystick.calibrate.search import ASIDE, Evaluation, Search
from hockeystick.decimals import plain, rounded_down
from hockeystick.errors import PrecisionError, one_line

_PROBES = 60
_SECANTS = 10  # evaluations after which every other one halves the interval
_DISTANT, _STRIDE = 3.0, 0.02  # an excess that shows the estimates to be wrong, and the first step then, in ln
_LEAP = 0.5  # the farthest a secant is followed, in ln
_BEYOND = 2.0  # the farthest out of what cannot be decided, in ln
_HALVINGS = 40
_LOOSEST = 0.1  # tolerance of the ends of what cannot be decided
_SETTLED = 1e-3  # relative distance below which the ends of what cannot be decided are not sought
_REFINED = 3  # times a value may be asked again at a tenth of the tolerance
_OTHERWISE = 30.0  # times the tolerance, that a wider bracket is wide for other reasons


@final
@dataclass(frozen=True)
class Bracket:
    """Both sides of the answer.

    Attributes
    ----------
    safe : Evaluation
        The least safe value proved safe.
    unsafe : Evaluation or None
        The safest proved unsafe (or not proved safe by an accountant that proves none unsafe); None where the whole
        range is safe.
    notes : tuple of str
        Why they are further apart than asked for.
    """

    safe: Evaluation
    unsafe: Evaluation | None
    notes: tuple[str, ...] = ()


def either_side(search: Search, root: float) -> list[float]:
    """The values to either side of where the excess seems to vanish, the unsafe one first: neighbours."""
    axis, step = search.axis, ASIDE * search.axis.precision
    if axis.whole:
        safe = axis.value(root)
        return list(dict.fromkeys((axis.beyond(safe), safe)))
    return list(dict.fromkeys((axis.value(root + step), axis.value(root - step))))


def is_settled(search: Search) -> bool:
    """Whether a safe and an unsafe value are neighbours, or the whole range is safe."""
    safe, unsafe, axis = search.safe, search.unsafe, search.axis
    return safe is not None and (
        safe.value == axis.end or (unsafe is not None and axis.close(safe.value, unsafe.value))
    )


def is_astray(search: Search) -> bool:
    """Whether all evaluations so far are too far from the answer to tell where it is."""
    return bool(search.history) and min(abs(one.excess) for one in search.history) > _DISTANT


def refined(search: Search, root: float) -> float:
    """Where the excess seems to vanish, by the evaluations where these are near enough to tell."""
    return _root(search, search.history[-1], root) if search.history and not is_astray(search) else root


def narrow(search: Search, root: float) -> Bracket:
    """Evaluate, from where the excess seems to vanish, until a safe and an unsafe value are neighbours.

    Raises
    ------
    UnreachableTargetError
        Where the safest value is proved unsafe.
    PrecisionError
        Where no value could be proved safe.
    """
    try:
        return _narrowed(search, root)
    except PrecisionError as refusal:
        if search.safe is None:
            raise
        return Bracket(search.safe, search.unsafe, (f"the accountant refuses to decide closer: {one_line(refusal)}",))


def _narrowed(search: Search, root: float) -> Bracket:
    axis = search.axis
    undecided = [one for one in search.history if not (one.safe or one.unsafe or one.unproved)]
    root = refined(search, root)
    for count in range(_PROBES):
        safe, unsafe = search.safe, search.unsafe
        if safe is not None and is_settled(search):
            return Bracket(safe, None if safe.value == axis.end else unsafe, _ends(search, safe, unsafe))
        if safe is None and any(one.value == axis.start and not one.unsafe for one in search.history):
            return _as_far_as_known(search)  # where the safest value is not proved safe, no other is
        if unsafe is not None and unsafe.value == axis.start:
            raise _unreachable(search, unsafe)
        if safe is not None and unsafe is not None and any(safe.place < one.place < unsafe.place for one in undecided):
            note = (
                f"between the two the accountant cannot decide (for one, at {undecided[-1].value:.17g} it finds"
                f" {undecided[-1].bound:.12g})"
            )
            _settle(search)
            return Bracket(search.safe or safe, search.unsafe or unsafe, (note,))
        hopeless = search.left > 0.0 and not search.history
        value = axis.start if hopeless else _proposal(search, root, undecided, count)
        if value is None:
            break
        found = _decided(search, value, _tolerance(search, undecided))
        root = _root(search, found, root)
        if not (found.safe or found.unsafe or found.unproved):
            undecided.append(found)
    if undecided:
        _settle(search)
    return _as_far_as_known(search)


def _unreachable(search: Search, unsafe: Evaluation) -> UnreachableTargetError:
    """What is raised where the safest value is proved unsafe."""
    axis, target, least = search.axis, search.problem.target, float(unsafe.bound.lower)
    size = "infinite" if math.isinf(least) else f"already {rounded_down(least, 6)} or more"
    return UnreachableTargetError(
        f"no value from {plain(axis.low)} to {plain(axis.high)} meets {target.words}: at the safest one,"
        f" {plain(unsafe.value)}, {target.quantity} is {size}; allow safer values or a weaker target",
        value=unsafe.value,
        bound=unsafe.bound,
    )


def _settle(search: Search) -> None:
    """Find the ends of what cannot be decided: the upper side alone tells safe values, the lower one unsafe ones."""
    axis = search.axis
    for sign, end in ((-1.0, axis.start), (1.0, axis.end)):
        for count in range(_HALVINGS):
            known = search.safe if sign < 0.0 else search.unsafe
            others = [one for one in search.history if not (one.safe if sign < 0.0 else one.unsafe)]
            other = min(others, key=lambda one: sign * -one.place)  # the nearest to what is known
            if known is None and other.value == end:
                break
            if known is None:
                least = 1.1 / other.value if axis.whole else 0.0  # to the next whole number at least
                value = axis.value(other.place + sign * max(_away(search, other, sign), _STRIDE * 2.0**count, least))
            else:
                value = axis.value(_between(search, known, other, sign, halved=count % 3 == 2))
                if axis.whole:
                    low, high = sorted((int(known.value), int(other.value)))
                    value = min(max(int(value), low + 1), high - 1)
            near = known is not None and abs(known.place - other.place) <= max(axis.precision, _SETTLED)
            if value in {one.value for one in search.history} or (near and not axis.whole):
                break
            search.evaluate(value, _tolerance(search, search.history))


def _tolerance(search: Search, undecided: Sequence[Evaluation]) -> float:
    """At which a value is evaluated: no finer than the ends of what cannot be decided need, where that is much."""
    needed = 0.1 * _SETTLED * search.slope if any(map(_is_apart, undecided)) else 0.0
    return max(search.tolerance(), min(needed, _LOOSEST))


def _is_apart(one: Evaluation) -> bool:
    """Whether it is not the tolerance that leaves both sides so far from each other."""
    lower, upper = float(one.bound.lower), float(one.bound.upper)
    return not (one.safe or one.unsafe) and upper - lower > _OTHERWISE * one.tolerance * upper


def _excess(search: Search, one: Evaluation, *, safe: bool) -> float:
    """That of the side that tells safe values, or of the one that tells unsafe ones."""
    return search.problem.excess(float(one.bound.upper if safe else one.bound.lower))


def _away(search: Search, one: Evaluation, outward: float) -> float:
    """How far from what cannot be decided the next value that can be seems to be: a safe one, or an unsafe one."""
    return 1.1 * min(abs(_excess(search, one, safe=outward < 0.0)) / search.slope, _BEYOND)


def _between(search: Search, known: Evaluation, other: Evaluation, sign: float, *, halved: bool) -> float:
    """Where the side that tells what is known crosses the target: by a line, and a little towards the farther value."""
    here, there = (_excess(search, one, safe=sign < 0.0) for one in (known, other))
    if halved or max(abs(here), abs(there)) >= FARTHEST or here == there:
        return 0.5 * (known.place + other.place)
    place = known.place + here / (here - there) * (other.place - known.place)
    farther = max((known.place, other.place), key=lambda end: abs(end - place))
    aside = 0.6 / float(known.value) if search.axis.whole else 0.4 * _SETTLED
    return place + math.copysign(min(aside, abs(farther - place)), farther - place)


def _decided(search: Search, value: float, tolerance: float) -> Evaluation:
    """An evaluation at a value, asked again more sharply while that may help."""
    found = search.evaluate(value, tolerance)
    for _ in range(_REFINED):
        if found.safe or found.unsafe or found.unproved or not search.problem.adapts or _is_apart(found):
            break
        before = float(found.bound.upper) - float(found.bound.lower)
        tolerance *= 0.1
        found = search.evaluate(value, tolerance)
        if float(found.bound.upper) - float(found.bound.lower) > 0.7 * before:
            break
    return found


def _root(search: Search, latest: Evaluation, root: float) -> float:
    """Where the excess vanishes, from the evaluations: the slope by secant, the offset by the nearest one."""
    others = [p for p in search.history if p.place != latest.place and abs(p.excess) < 3.0]
    if others and abs(latest.excess) < 3.0:
        nearest = min(others, key=lambda p: abs(p.excess))
        slope = (latest.excess - nearest.excess) / (latest.place - nearest.place)
        apart = abs(latest.excess - nearest.excess)
        if slope > 0.0 and apart > 10.0 * latest.noise:
            search.slope = slope
    best = min(search.history, key=lambda p: abs(p.excess))
    if abs(best.excess) >= 40.0:
        return root
    return best.place - min(max(best.excess / search.slope, -_LEAP), _LEAP)


def _proposal(search: Search, root: float, undecided: list[Evaluation], count: int) -> float | None:
    """The next value to evaluate; None where there is none left."""
    axis, safe, unsafe = search.axis, search.safe, search.unsafe
    if safe is not None and unsafe is not None:
        # where the quantity jumps, no line through its values leads to the root
        lost = not axis.whole and not safe.place < root < unsafe.place
        value = axis.value(0.5 * (safe.place + unsafe.place))
        if value != safe.value and (lost or (count >= _SECANTS and count % 2)):
            return value
    if axis.whole:
        value = _whole_proposal(search, root, undecided)
    else:
        value = _real_proposal(search, root, undecided)
    return None if any(value == one.value for one in search.history) else value


def _real_proposal(search: Search, root: float, undecided: list[Evaluation]) -> float:
    axis, safe, unsafe = search.axis, search.safe, search.unsafe
    step = ASIDE * axis.precision
    known = unsafe is not None and any(one.place < unsafe.place for one in undecided)  # as far as it can be for now
    if unsafe is None or (unsafe.place - root > 1.2 * step and not known):  # first: one direction may prove it
        place, outward = root + step, 1.0
    elif safe is None or root - safe.place > 1.2 * step:
        place, outward = root - step, -1.0
    else:
        place, outward = 0.5 * (safe.place + unsafe.place), -1.0 if len(undecided) % 2 else 1.0
    for one in undecided:  # move out of what cannot be decided, further each time
        if (place - one.place) * outward < step:
            place = one.place + outward * max(_away(search, one, outward), 2.0 * step)
    if safe is None or unsafe is None:  # all on one side: go further with every evaluation
        least = _further(search, step)
        if safe is not None:
            place = max(place, safe.place + least)
        elif unsafe is not None:
            place = min(place, unsafe.place - least)
    if safe is not None and place <= safe.place:
        place = 0.5 * (safe.place + unsafe.place) if unsafe is not None else safe.place + step
    if unsafe is not None and place >= unsafe.place:
        place = 0.5 * (safe.place + unsafe.place) if safe is not None else unsafe.place - step
    return axis.value(place)


def _further(search: Search, step: float) -> float:
    """A step out of the decided range, growing with every evaluation; a stride where the target is far."""
    count = len(search.history)
    least = step * 4.0 ** (count - 3)
    far = min((abs(one.excess) for one in search.history), default=0.0) > _DISTANT
    return max(least, _STRIDE * 2.0 ** (count - 1)) if far else least


def _whole_proposal(search: Search, root: float, undecided: list[Evaluation]) -> float:
    axis, safe, unsafe = search.axis, search.safe, search.unsafe
    value = axis.value(root)
    tried = {one.value for one in search.history}
    if value not in tried and _inside(search, value):
        return value
    if undecided and safe is not None and unsafe is None:
        farthest = max(undecided, key=lambda one: one.place)
        return axis.value(farthest.place + max(_away(search, farthest, 1.0), 1.1 / float(farthest.value)))
    if safe is not None and unsafe is None:
        if value not in tried or len(tried) <= 3:
            return axis.beyond(safe.value)
        return axis.value(axis.place(safe.value) + 4.0 ** (len(search.history) - 3) / max(float(safe.value), 1.0))
    if unsafe is not None and safe is None:
        back = unsafe.value - axis.sign * max(1, round(4.0 ** (len(tried) - 3)))
        return axis.value(axis.place(max(back, axis.low)))
    if safe is not None and unsafe is not None:
        near = axis.beyond(safe.value)
        if abs(axis.place(value) - safe.place) <= abs(axis.place(value) - unsafe.place) and near not in tried:
            return near
        before = int(unsafe.value) - axis.sign
        return before if before not in tried else int(0.5 * (safe.value + unsafe.value))
    return value


def _inside(search: Search, value: float) -> bool:
    place, safe, unsafe = search.axis.place(value), search.safe, search.unsafe
    return (safe is None or place > safe.place) and (unsafe is None or place < unsafe.place)


def _ends(search: Search, safe: Evaluation, unsafe: Evaluation | None) -> tuple[str, ...]:
    if safe.value == search.axis.end:
        return ("every value allowed meets the target",)
    if unsafe is not None and unsafe.unproved:
        return (f"the accountant has upper bounds alone: it proves {unsafe.value:.17g} neither safe nor unsafe",)
    return ()


def _as_far_as_known(search: Search) -> Bracket:
    """Both sides as far as they are known, or an error with the best bound."""
    safe, unsafe, target = search.safe, search.unsafe, search.problem.target
    if safe is None:
        best = min(search.history, key=lambda p: float(p.bound.upper))
        raise PrecisionError(
            f"no value could be proved to meet {target.words}: at {plain(best.value)} the accountant finds"
            f" {target.quantity} in {best.bound:.6g}; allow safer values or a sharper accountant",
            best.bound,
        )
    return Bracket(
        safe, unsafe, ("the precision asked for was not reached: the accountant does not decide any closer",)
    )
