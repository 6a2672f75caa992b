"""dp-accounting: a privacy accountant whose epsilon and delta are certified.

It takes every event of `hockeystick.integrations.dp_events`, of this release of dp-accounting and of later ones; what
is not proved under its relation it reports as unsupported, as dp-accounting's own do. jax-privacy takes it where it
asks for an ``accountant_fn``.

Guarantee: `get_epsilon` and `get_delta` are at least the certified upper side.
"""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import dp_event, privacy_accountant

from hockeystick.account import account
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import check_delta, check_epsilon, check_positive
from hockeystick.integrations.dp_events import UnprovedEventError, parts_of
from hockeystick.integrations.dp_events.releases import EVERYTHING, NOTHING

_Relation = privacy_accountant.NeighboringRelation

RELATIONS = {
    _Relation.ADD_OR_REMOVE_ONE: "add-remove",
    _Relation.REPLACE_ONE: "substitute",
    _Relation.REPLACE_SPECIAL: "zero-out",
}
"""The relations of dp-accounting by our names."""


class HockeystickAccountant(privacy_accountant.PrivacyAccountant):
    """An accountant of dp-accounting's interface.

    Parameters
    ----------
    neighboring_relation : NeighboringRelation
        By default a record added or removed.
    tolerance : float
        Width of the epsilon bracket asked for (nats).

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> accountant = HockeystickAccountant()
    >>> _ = accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 2000)
    >>> f"{accountant.get_epsilon(1e-5):.4f}"
    '2.5838'
    >>> f"{accountant.curve.epsilon(1e-5):.3f}"
    '[2.583, 2.584]'
    """

    def __init__(
        self,
        neighboring_relation: privacy_accountant.NeighboringRelation = _Relation.ADD_OR_REMOVE_ONE,
        *,
        tolerance: float = 1e-3,
    ) -> None:
        super().__init__(neighboring_relation)
        if neighboring_relation not in RELATIONS:
            raise ValueError(f"neighboring_relation must be a NeighboringRelation, got {neighboring_relation!r}")
        self._adjacency = RELATIONS[neighboring_relation]
        self._tolerance = check_positive("tolerance", tolerance)
        self._counts: dict[Step, int] = {}

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:  # noqa: FBT001 - theirs
        try:
            parts = parts_of(event, self._adjacency)
        except UnprovedEventError as error:
            return self.CompositionErrorDetails(invalid_event=error.event, error_message=error.reason)
        if do_compose:
            for step, own in parts:
                self._counts[step] = self._counts.get(step, 0) + own * count
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """The certified upper side of epsilon (nats)."""
        check_delta(target_delta)
        if EVERYTHING in self._counts:
            return math.inf
        return float(self.curve.epsilon(target_delta).sides[1]) if self._counts else 0.0

    def get_delta(self, target_epsilon: float) -> float:
        """The certified upper side of delta."""
        check_epsilon(target_epsilon)
        if EVERYTHING in self._counts:
            return 1.0
        return float(self.curve.delta(target_epsilon).sides[1]) if self._counts else 0.0

    @property
    def composition(self) -> Composition:
        """All events so far as a composition, to ask anything else of it."""
        return Composition(tuple(self._counts.items()) or ((NOTHING, 1),))

    @property
    def curve(self) -> PrivacyCurve:
        """The privacy curve of all events so far, with brackets."""
        return account(self.composition, self._adjacency, tolerance=self._tolerance)
