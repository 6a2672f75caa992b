"""The configurations of the search for a counterexample to 003's Conjecture 12, their brackets, and its state.

A *configuration* is a noise multiplier, a sampling rate, a number of steps and an epsilon; `PER_CURVE` of them share
the first three. The curves are numbered, and curve i is the i-th point of a Kronecker sequence: it covers its box
evenly however far the search has come, and the number alone says where to go on. The box, coordinate by coordinate:

- noise multiplier s: its logarithm uniform between `NOISES`;
- rate g: its logit uniform between `LOGITS`, so that both ends, near 0 and near 1, are looked at closely;
- steps k >= 2 (for one step the claim is a theorem): its logarithm uniform up to where the composed loss has a variance
  of `LARGEST_VARIANCE`, beyond which both deltas are 1 to many digits.

The epsilons lie between 0 and the largest loss of adding, ``-k ln(1 - g)``, beyond which its delta is 0 and nothing is
left to compare, or `_REACH` standard deviations above the mean loss, if that is less; they are denser near 0, where
both curves meet.

A configuration is *for* the conjecture if the bracket of the remove curve lies above that of the add curve, *against*
it if below, else *undecided*. Few steps of skewed losses are accounted on lattices, coarsely first; the others, whose
curves are closer, on the contour.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants import Accountant, Certified, Contour
from hockeystick.bound import Bound
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.errors import PrecisionError
from hockeystick.laws import GaussianPair, Pair
from reproduce.bounds import bound_of

__all__ = ["PER_CURVE", "Curve", "Least", "State", "accountants_for", "curve", "search"]

PER_CURVE = 32

NOISES = (0.3, 20.0)
LOGITS = (-7.0, 4.0)
LARGEST_VARIANCE = 60.0
MOST_STEPS = 100_000
SKEWED_STEPS = 2000  # of losses too skewed for the contour

VERSION = 1
_PLASTIC = 1.2207440846057596  # the root of x^4 = x + 1: powers of its inverse make the sequence in three dimensions
_KEPT = 100  # undecided configurations
_REACH = 4.5  # standard deviations above the mean loss
_FAR = 0.9  # an add curve below this share of the remove curve needs no bracket of its own
_SKEWED = 0.1  # Berry and Esseen's distance from a normal loss above which a lattice is the quicker engine

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One noise multiplier, rate and number of steps, and the epsilons to compare at (nats).

    ``skewed`` is Berry and Esseen's distance of the composed loss from a normal one, by which the engine is chosen.
    """

    number: int
    base: Pair
    noise: float
    rate: float
    steps: int
    epsilons: Array
    skewed: float

    @property
    def pair(self) -> Pair:
        """The remove pair of one step."""
        return self.base.subsampled(self.rate)


def curve(number: int) -> Curve:
    """The curve of a number: the same on every machine and in every run.

    Parameters
    ----------
    number : int
        At least 0.
    """
    u = [math.fmod((number + 1) * _PLASTIC ** -(j + 1) + 0.5, 1.0) for j in range(3)]
    noise = math.exp(_between(math.log(NOISES[0]), math.log(NOISES[1]), u[0]))
    rate = 1.0 / (1.0 + math.exp(-_between(LOGITS[0], LOGITS[1], u[1])))
    one = CumulantWindow(((GaussianPair(noise).subsampled(rate), 1),)).at(0.0)
    distance = 0.56 * one.absolute_third / one.variance**1.5  # of one step; falls as 1 / sqrt(k)
    most = min(max(LARGEST_VARIANCE / one.variance, 2.0), MOST_STEPS)
    steps = round(math.exp(_between(math.log(2.0), math.log(most), u[2])))
    if distance / math.sqrt(steps) > _SKEWED:
        steps = min(steps, SKEWED_STEPS)
    top = min(-steps * math.log1p(-rate), max(steps * one.mean, 0.0) + _REACH * math.sqrt(steps * one.variance))
    epsilons = top * ((np.arange(PER_CURVE) + 0.5) / PER_CURVE) ** 1.5
    return Curve(number, GaussianPair(noise), noise, rate, steps, epsilons, distance / math.sqrt(steps))


def _between(low: float, high: float, share: float) -> float:
    return low + share * (high - low)


@dataclass(frozen=True)
class Least:
    """The smallest proved margin of one curve, ``1 - delta(add) / delta(remove)``, and where it is."""

    margin: float
    noise: float
    rate: float
    steps: int
    epsilon: float


@dataclass(frozen=True)
class State:
    """How far a search has come; what is saved between runs.

    Attributes
    ----------
    curves : int
        Curves done: the next has this number.
    counts : dict of str to int
        Configurations "for", "against" and "undecided".
    least : tuple of Least
        The smallest proved margin of every curve that has one.
    against : tuple of dict
        Every counterexample, with both brackets.
    undecided : tuple of dict
        The first hundred undecided configurations, with both brackets.
    """

    curves: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"for": 0, "against": 0, "undecided": 0})
    least: tuple[Least, ...] = ()
    against: tuple[dict[str, Any], ...] = ()
    undecided: tuple[dict[str, Any], ...] = ()

    @property
    def configurations(self) -> int:
        """Configurations done."""
        return sum(self.counts.values())

    @property
    def closest(self) -> Least | None:
        """The smallest proved margin of all."""
        return min(self.least, key=lambda one: one.margin, default=None)

    def save(self, path: Path) -> None:
        """Write the state so that a reader finds the old one or the new one, never a part."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.part")
        content = {"version": VERSION, "search": _settings(), **asdict(self)}
        fresh.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        fresh.replace(path)

    @classmethod
    def load(cls, path: Path) -> State:
        """The state of a file; a new one where there is none, or where it is of another version or another search."""
        if not path.exists():
            return cls()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is not a state of this search; move it away to begin anew") from error
        if content.get("version") != VERSION or content.get("search") != _settings():
            return cls()
        return cls(
            content["curves"],
            content["counts"],
            tuple(Least(**one) for one in content["least"]),
            tuple(content["against"]),
            tuple(content["undecided"]),
        )


def _settings() -> dict[str, Any]:
    """What numbers the configurations: a state of other settings is of another search."""
    return {
        "per_curve": PER_CURVE,
        "noises": list(NOISES),
        "logits": list(LOGITS),
        "largest_variance": LARGEST_VARIANCE,
        "most_steps": MOST_STEPS,
        "skewed_steps": SKEWED_STEPS,
        "reach": _REACH,
    }


def search(state: State, at: Curve, accountants: tuple[Accountant, ...]) -> State:
    """The state after one more curve.

    Parameters
    ----------
    state : State
        Before.
    at : Curve
        What to compare.
    accountants : tuple of Accountant
        Asked in this order, each at what the one before left undecided.
    """
    counts, margins = dict(state.counts), []
    against, undecided = list(state.against), list(state.undecided)
    for epsilon, (remove, add) in zip(at.epsilons, _brackets(at, accountants), strict=True):
        if add.upper <= remove.lower:
            counts["for"] += 1
            if remove.lower > 0.0:
                margin = 1.0 - float(add.upper) / float(remove.lower)
                margins.append(Least(margin, at.noise, at.rate, at.steps, float(epsilon)))
            continue
        where = {
            "noise": at.noise,
            "rate": at.rate,
            "steps": at.steps,
            "epsilon": float(epsilon),
            "add": (float(add.lower), float(add.upper)),
            "remove": (float(remove.lower), float(remove.upper)),
        }
        if add.lower > remove.upper:
            counts["against"] += 1
            against.append(where)
        else:
            counts["undecided"] += 1
            undecided = [*undecided, where][:_KEPT]
    least = (min(margins, key=lambda one: one.margin),) if margins else ()
    return State(at.number + 1, counts, (*state.least, *least), tuple(against), tuple(undecided))


def _brackets(at: Curve, accountants: tuple[Accountant, ...]) -> list[tuple[Bound, Bound]]:
    """Brackets of the remove and the add curve at every epsilon, by the first accountant that tells them apart."""
    found = [(Bound(0.0, 1.0, "none"), Bound(0.0, 1.0, "none"))] * at.epsilons.size
    for accountant in accountants:
        remove_curve, add_curve = (accountant.directed(((pair, at.steps),)) for pair in (at.pair, at.pair.reversed()))
        before = Bound(0.0, 1.0, "none")  # of the add curve, at a smaller epsilon
        for i, epsilon in enumerate(at.epsilons):
            if _told_apart(*found[i]):
                continue
            try:
                remove = bound_of(remove_curve.delta(float(epsilon)))
                # the add curve falls: what bounds it at a smaller epsilon bounds it here
                far_below = float(before.upper) <= _FAR * float(remove.lower)
                add = (
                    Bound(0.0, before.upper, before.method) if far_below else bound_of(add_curve.delta(float(epsilon)))
                )
            except PrecisionError:
                continue  # the next accountant, or undecided
            before, found[i] = add, (remove, add)
        if all(_told_apart(*pair) for pair in found):
            break
    return found


def _told_apart(remove: Bound, add: Bound) -> bool:
    return bool(add.upper <= remove.lower or add.lower > remove.upper)


def accountants_for(at: Curve) -> tuple[Accountant, ...]:
    """The engines for a curve, the quickest first."""
    lattices = tuple(Certified(tolerance=tolerance, engine="lattice") for tolerance in (0.03, 3e-3, 1e-4, 1e-6))
    return (*lattices[:3], Contour(), lattices[3]) if at.skewed > _SKEWED else (Contour(), *lattices[2:])
