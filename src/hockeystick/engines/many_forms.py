"""Closed forms asked together: many compositions of Gaussian pairs are one, each question that of its own.

Their tails are evaluated in one pass, whatever the noise and the number of steps; every answer is the same to the bit
as that of its composition alone.

Guarantee: lower and upper are certified. Cost: arithmetic on arrays in place of a call for each composition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from hockeystick.engines.closed_form import METHOD, ClosedForm, GaussianForm, SmoothSides, guess_at
from hockeystick.laws.gaussian import GaussianPair, GaussianTails
from hockeystick.laws.one_step import least_one_step_deltas, one_step_deltas
from hockeystick.numerics.columns import Array, Places


def forms_together(asked: Sequence[ClosedForm]) -> Iterator[tuple[ClosedForm, Places]]:
    """The forms that answer questions asked of one each, and which questions every one answers."""
    alike: dict[ClosedForm | None, list[int]] = {}
    several = len({form for form in asked if isinstance(form, GaussianForm)}) > 1
    for row, form in enumerate(asked):
        alike.setdefault(None if several and isinstance(form, GaussianForm) else form, []).append(row)
    for one, rows in alike.items():
        gaussians = [form for form in (asked[row] for row in rows) if isinstance(form, GaussianForm)]
        yield GaussianForms(gaussians) if one is None else one, np.array(rows, dtype=np.intp)


@final
class GaussianForms(ClosedForm):
    """Closed forms of compositions of Gaussian pairs alone, one for each question."""

    def __init__(self, forms: Sequence[GaussianForm]) -> None:
        self._runs = _GaussianRuns([form.pairs for form in forms])
        super().__init__(self._runs)

    def _at(self, points: Array, rows: Places) -> tuple[Array, Array]:
        lower, upper = self._runs.sides_of(np.repeat(rows, points.shape[1]), points.ravel())
        return lower.reshape(points.shape), upper.reshape(points.shape)


@final
class _GaussianRuns(SmoothSides):
    """The sides between two pairs of unit noise each, a question of every one."""

    method = METHOD

    def __init__(self, pairs: Sequence[tuple[GaussianPair, GaussianPair]]) -> None:
        self._pairs = pairs
        self._below, self._above = np.array([[pair.shift for pair in both] for both in pairs]).T

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        return self.sides_of(np.arange(epsilons.size), epsilons)

    def sides_of(self, rows: Places, epsilons: Array) -> tuple[Array, Array]:
        """Both at an epsilon of each of some questions."""
        return one_step_deltas(GaussianTails(self._below[rows]), epsilons, above=GaussianTails(self._above[rows]))

    def least_at(self, points: Array, rows: Places) -> Array:
        below = GaussianTails(np.repeat(self._below[rows], points.shape[1]))
        return least_one_step_deltas(below, points.ravel()).reshape(points.shape)

    def guesses(self, deltas: Array) -> Array:
        asked = zip(self._pairs, deltas.tolist(), strict=True)
        return np.array([guess_at(above, delta) for (_, above), delta in asked])
