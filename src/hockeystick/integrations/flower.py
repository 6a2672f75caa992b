"""Flower: an accountant of its protocol, for client-level privacy, whose epsilon and delta are certified.

What an event is, by the sampling method of the configuration:

- ``poisson``, add or remove: Gaussian noise on a Poisson sample of the clients;
- ``without-replacement``, replace: Gaussian noise on a fixed number of them, of which one replaced moves the sum by 2;
- ``no-amplification``, add or remove: where all clients take part, a client more moves the sum by 1. Where a fixed
  number of them does, a client more pushes another out and moves it by 2: the noise counts half. (Flower's own
  accountant takes 1 there, which is not proved for the fixed numbers of clients that its strategies draw.) The number
  of clients in a round, which the strategies divide the sum by, is taken as public.

Guarantee: `HockeystickAccountant.get_epsilon` and `get_delta` are at least the certified upper side.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from typing import Any, final

from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, PrivacySpent, SamplingMethod

from hockeystick.account import account
from hockeystick.composition import Composition, Step, compose, directions
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import check_count, check_epsilon, check_inside, check_positive
from hockeystick.mechanisms import Gaussian
from hockeystick.numerics.rationals import float_beside

_NAME = "hockeystick"
_VERSION = 1
_RELATIONS = {NeighboringRelation.ADD_OR_REMOVE_ONE: "add-remove", NeighboringRelation.REPLACE_ONE: "substitute"}


@final
class HockeystickAccountant:
    """An accountant of the protocol ``flwr.serverapp.PrivacyAccountant``.

    Parameters
    ----------
    config : PrivacyConfig
        The population, the relation, how clients are sampled, and the budget.

    Examples
    --------
    >>> poisson = SamplingMethod.POISSON
    >>> accountant = HockeystickAccountant(PrivacyConfig(1e-5, 1000, NeighboringRelation.ADD_OR_REMOVE_ONE, poisson))
    >>> accountant.compose(GaussianPrivacyEvent(noise_multiplier=1.0, sample_size=10, population_size=1000), 2000)
    >>> f"{accountant.get_epsilon(1e-5):.4f}"
    '2.5838'
    """

    def __init__(self, config: PrivacyConfig) -> None:
        self._config = config
        self._compositions: list[tuple[GaussianPrivacyEvent, int]] = []

    @property
    def config(self) -> PrivacyConfig:
        """The privacy configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """Releases so far."""
        return sum(count for _, count in self._compositions)

    @property
    def composition(self) -> Composition:
        """The releases so far, to ask anything else of them; ``ValueError`` before the first."""
        return compose([(self._step(event), count) for event, count in self._compositions])

    @property
    def curve(self) -> PrivacyCurve:
        """The privacy curve of the releases so far, with brackets."""
        return account(self.composition, self._relation)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Record one or more releases; ``ValueError`` for what is no event of this configuration."""
        self._compositions = [*self._compositions, self._checked(event, count)]

    def get_epsilon(self, delta: float) -> float:
        """The certified upper side of epsilon at a delta (nats)."""
        if isinstance(delta, bool):
            raise ValueError(f"delta must be a number, got {delta!r}")  # as Flower's own accountant
        at = check_inside("delta", delta)
        return float(self.curve.epsilon(at).sides[1]) if self._compositions else 0.0

    def get_delta(self, epsilon: float) -> float:
        """The certified upper side of delta at an epsilon."""
        check_epsilon(epsilon)
        return float(self.curve.delta(epsilon).sides[1]) if self._compositions else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """What was spent so far, at the configuration's delta or another."""
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, _NAME)

    def would_exceed(self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether further releases are not proved to stay within a budget; records nothing."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon must be supplied either in PrivacyConfig or to would_exceed().")
        planned = copy(self)
        planned.compose(event, count)
        return planned.get_epsilon(self._config.target_delta) > check_positive("max_epsilon", limit)

    def state_dict(self) -> dict[str, object]:
        """The state as JSON holds it."""
        return {
            "schema_version": _VERSION,
            "backend": _NAME,
            "config": _written(self._config),
            "compositions": [{"event": dict(vars(event)), "count": count} for event, count in self._compositions],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from a state of `state_dict`; ``ValueError`` for another configuration or a damaged state."""
        if state.get("schema_version") != _VERSION or state.get("backend") != _NAME:
            raise ValueError(
                f"accountant state must be of backend {_NAME!r} and schema version {_VERSION}, got"
                f" {state.get('backend')!r} and {state.get('schema_version')!r}"
            )
        if state.get("config") != _written(self._config):
            raise ValueError("accountant state has another privacy configuration than this accountant")
        given: Any = state.get("compositions")
        try:
            self._compositions = [self._checked(GaussianPrivacyEvent(**one["event"]), one["count"]) for one in given]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"accountant state has an invalid composition: {error}") from error

    def _checked(self, event: GaussianPrivacyEvent, count: int) -> tuple[GaussianPrivacyEvent, int]:
        if event.population_size != self._config.population_size:
            raise ValueError(
                f"population_size of the event, {event.population_size}, is not that of the configuration,"
                f" {self._config.population_size}"
            )
        try:
            times = check_count("count", count)
        except TypeError as error:
            raise ValueError(str(error)) from error  # as Flower's own accountant
        for direction in directions(self._relation):
            self._step(event).pair(direction)  # what has no pair is refused before it is recorded
        return event, times

    @property
    def _relation(self) -> str:
        return _RELATIONS[self._config.neighboring_relation]

    def _step(self, event: GaussianPrivacyEvent) -> Step:
        sample, population = event.sample_size, event.population_size
        match self._config.sampling_method:
            case SamplingMethod.POISSON:
                return Gaussian(event.noise_multiplier).poisson(float_beside(Fraction(sample, population), up=True))
            case SamplingMethod.WITHOUT_REPLACEMENT:
                return Gaussian(event.noise_multiplier).without_replacement(batch_size=sample, population=population)
            case SamplingMethod.NO_AMPLIFICATION:
                return Gaussian(event.noise_multiplier if sample == population else event.noise_multiplier / 2.0)
            case other:
                raise ValueError(f"unsupported sampling method: {other!r}")


def _written(config: PrivacyConfig) -> dict[str, object]:
    return {name: getattr(value, "value", value) for name, value in vars(config).items()}
