"""The privacy curve: what an accounted composition answers.

The curve is the pointwise maximum over the directions of the neighbouring relation, taken after composing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hockeystick.accountants.base import Accountant, DirectedCurve
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition
from hockeystick.errors import check_delta, check_epsilon

__all__ = ["PrivacyCurve"]


@final
class PrivacyCurve:
    """Epsilon and delta of a composition, under one neighbouring relation, by one accountant.

    Made by `hockeystick.account`.

    Attributes
    ----------
    composition : Composition
        What was accounted.
    adjacency : str
        The neighbouring relation.
    accountant : Accountant
        The method, with its settings.
    directed : mapping of str to DirectedCurve
        The curve of each direction.
    """

    def __init__(
        self, composition: Composition, adjacency: str, accountant: Accountant, directed: Mapping[str, DirectedCurve]
    ) -> None:
        self.composition = composition
        self.adjacency = adjacency
        self.accountant = accountant
        self.directed = dict(directed)

    def __repr__(self) -> str:
        return (
            f"PrivacyCurve({self.composition.total_steps} steps, adjacency={self.adjacency!r}, "
            f"accountant={self.accountant!r})"
        )

    def epsilon(self, delta: ArrayLike) -> Bound | Estimate:
        """The smallest epsilon with ``delta(epsilon) <= delta`` (nats).

        Parameters
        ----------
        delta : float or array_like
            In [0, 1].

        Returns
        -------
        Bound or Estimate
            Of the shape of ``delta``; a ``Bound`` from a certified accountant.

        Examples
        --------
        >>> import hockeystick as hs
        >>> curve = hs.account(hs.Gaussian(noise_multiplier=2.0))
        >>> f"{curve.epsilon(delta=1e-5):.4f}"
        '[2.0203, 2.0203]'
        """
        return _mapped(check_delta(delta), lambda value: self._worst(lambda curve: curve.epsilon(value)))

    def delta(self, epsilon: ArrayLike) -> Bound | Estimate:
        """delta at the given epsilon.

        Parameters
        ----------
        epsilon : float or array_like
            At least 0, infinity included (nats).

        Returns
        -------
        Bound or Estimate
            Of the shape of ``epsilon``, within [0, 1].

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.account(hs.Gaussian(noise_multiplier=1.0)).delta(epsilon=1.0).contains(0.12693673750664397)
        True
        """
        return _mapped(check_epsilon(epsilon), lambda value: self._worst(lambda curve: curve.delta(value)))

    def _worst(self, ask: Callable[[DirectedCurve], Bound | Estimate]) -> Bound | Estimate:
        answers = {direction: ask(curve) for direction, curve in self.directed.items()}
        return worst(answers)


def worst(answers: Mapping[str, Bound | Estimate]) -> Bound | Estimate:
    """The maximum over directions: of each side of bounds, or of estimates.

    The direction that decides is named in the notes where there are several.
    """
    bounds = {direction: answer for direction, answer in answers.items() if isinstance(answer, Bound)}
    if len(bounds) < len(answers):
        values = {d: float(a.upper if isinstance(a, Bound) else a.value) for d, a in answers.items()}
        direction = max(values, key=values.__getitem__)
        chosen = answers[direction]
        note = _decided(direction, answers)
        if isinstance(chosen, Bound):
            width = float(chosen.upper) - float(chosen.lower) if math.isfinite(float(chosen.upper)) else 0.0
            return Estimate(chosen.upper, width, chosen.method, (*chosen.notes, *note))
        return Estimate(chosen.value, chosen.error, chosen.method, (*chosen.notes, *note))
    direction = max(bounds, key=lambda d: float(bounds[d].upper))
    chosen = bounds[direction]
    lower = max(float(bound.lower) for bound in bounds.values())
    return Bound(lower, chosen.upper, chosen.method, (*chosen.notes, *_decided(direction, answers)), chosen.errors)


def _decided(direction: str, answers: Mapping[str, Bound | Estimate]) -> tuple[str, ...]:
    return (f"direction: {direction}",) if len(answers) > 1 else ()


def _mapped(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], answer: Callable[[float], Bound | Estimate]) -> Bound | Estimate:
    """One answer a value, gathered into one result of the same shape."""
    if values.ndim == 0:
        return answer(float(values))
    results = [answer(float(value)) for value in values.ravel()]
    methods = "; ".join(dict.fromkeys(result.method for result in results)) or "no value asked for"
    notes = tuple(dict.fromkeys(note for result in results for note in result.notes))
    if all(isinstance(result, Bound) for result in results):
        bounds = [result for result in results if isinstance(result, Bound)]
        names = dict.fromkeys(name for bound in bounds for name in bound.errors)
        return Bound(
            np.array([bound.lower for bound in bounds], dtype=np.float64).reshape(values.shape),
            np.array([bound.upper for bound in bounds], dtype=np.float64).reshape(values.shape),
            methods,
            notes,
            {name: max(bound.errors.get(name, 0.0) for bound in bounds) for name in names},
        )
    estimates = [r if isinstance(r, Estimate) else Estimate(r.upper, r.width, r.method, r.notes) for r in results]
    return Estimate(
        np.array([estimate.value for estimate in estimates], dtype=np.float64).reshape(values.shape),
        np.array([estimate.error for estimate in estimates], dtype=np.float64).reshape(values.shape),
        methods,
        notes,
    )
