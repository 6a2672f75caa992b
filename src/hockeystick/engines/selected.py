"""The best of many runs among other steps: a pair above it, made of its certified curve, and a pair below it.

Alone, the best of many runs has the curve of `selection.py`. Composed with other steps it is, from above, a
pair given by that curve: no order of the outputs is above it, whatever came before. From below it is the winner in one
of a few orders of the outputs, as far as some events are proved to be likely. Proof: docs/derivations/selection.md,
section 5.

Guarantee: the curve of `above` is never below that of the best run, whatever its score; `below` is attained by a score.
Cost: some thousand deltas of the best run, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, cast, final

import numpy as np

from hockeystick.bound import Bound, Estimate
from hockeystick.engines.contour.answers import Answers, unknown
from hockeystick.engines.contour.lines import Quantity
from hockeystick.engines.one_run import OneRun
from hockeystick.engines.selection import SelectedCurve
from hockeystick.laws.base import InfiniteMass, Pair, Parts, Selection
from hockeystick.laws.curve import ChordPair
from hockeystick.laws.extent import CertifiedCurve
from hockeystick.laws.vectors import DiscretePair
from hockeystick.numerics.columns import Array, Places


class Answering(Protocol):
    """The curve of one run."""

    def delta(self, epsilon: float) -> Bound | Estimate:
        """delta(epsilon), from 0 to infinity (nats)."""

    def epsilon(self, delta: float) -> Bound | Estimate:
        """epsilon at ``delta`` (nats)."""


class Pass(Protocol):
    """What answers many questions of curves at once."""

    def answers(self, owners: Places, values: Array, quantity: Quantity) -> Answers | None:
        """``quantity`` of the curve ``owners[i]`` at ``values[i]``, where one answers."""


class Method(Protocol):
    """What accounts for one run: frozen, hashable."""

    def __hash__(self) -> int:
        """Curves are kept by their method."""

    @property
    def tolerance(self) -> float:
        """Of an epsilon (nats)."""

    def directed(self, parts: Parts) -> Answering:
        """The curve of one run."""

    def together(self, curves: Sequence[Any]) -> Pass | None:
        """What answers many questions of such curves in one pass."""


@lru_cache(maxsize=8)
def _one_run(method: Method, parts: Parts) -> OneRun:
    """The curve of one of many runs, kept since both directions ask for it."""
    curve = method.directed(parts)
    several = method.together([curve])

    def deltas(at: Array) -> tuple[Array, Array]:
        passed = several.answers(np.zeros(at.size, dtype=np.intp), at, "delta") if several and at.size > 1 else None
        found = unknown(at.size) if passed is None else passed
        for row in np.flatnonzero(~found.known).tolist():
            one = cast("Bound", curve.delta(float(at[row])))
            found.lower[row], found.upper[row] = one.lower, one.upper
        return np.maximum(found.lower, 0.0), found.upper

    return OneRun(deltas, lambda delta: cast("Bound", curve.epsilon(delta)), method.tolerance)


@lru_cache(maxsize=8)
def selected_curve(method: Method, run: Selection) -> SelectedCurve:
    """The curve of the best of many runs, by the curve of one, forward and backward."""
    return SelectedCurve(_one_run(method, run.parts), _one_run(method, _turned(run.parts)), run.count)


def _turned(parts: Parts) -> Parts:
    return tuple((one.reversed(), times) for one, times in parts)


def above(method: Method, pair: Pair) -> Pair:
    """A pair whose curve is above the best run's, in the place of that; any other pair as it is."""
    return pair if pair.selection is None else ChordPair(_WinnersCurve(method, pair.selection))


@lru_cache(maxsize=64)
def below(method: Method, pair: Pair) -> Pair:
    """A pair that the best run attains, in the place of it; any other pair as it is."""
    run = pair.selection
    if run is None or run.share is None:
        return pair
    return DiscretePair(*selected_curve(method, replace(run, share=None)).ranked(run.share))


@final
@dataclass(frozen=True)
class _WinnersCurve(CertifiedCurve):
    """Upper bounds of the best run's curve, as `ChordPair` asks for them."""

    method: Method
    run: Selection

    @property
    def _curve(self) -> SelectedCurve:
        return selected_curve(self.method, self.run)

    def at(self, epsilon: float) -> tuple[float, float]:
        """0, and an upper bound on delta(epsilon), epsilon finite and at least 0 (nats)."""
        return 0.0, self._curve.upper(epsilon)

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same at increasing epsilons, until next to nothing is left."""
        return self.one_by_one(epsilons, self.infinite_mass.high)

    def reversed(self) -> _WinnersCurve:
        """The best of the reversed runs."""
        return _WinnersCurve(self.method, replace(self.run, parts=_turned(self.run.parts)))

    def guess(self, delta: float) -> float:
        """About the epsilon at this delta."""
        return self._curve.guess(delta)

    @property
    def infinite_mass(self) -> InfiniteMass:
        """What may be left at any epsilon; perhaps nothing."""
        high = self._curve.upper(np.inf)
        return InfiniteMass(0.0, high, InfiniteMass.rounded_up(high).log_low, 0.0)
