"""Events of dp-accounting as compositions of steps: one row of a table for each event.

An event with a field that is not known here is refused: it may mean something else. What several Gaussian releases on
one sample cost is derived in docs/derivations/events.md.

Guarantee: the composition costs at least what the event does, under the relation given, and exactly that where no
number had to be rounded. What is not proved raises `UnprovedEventError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from hockeystick import mechanisms
from hockeystick.composition import Composition, Step, directions
from hockeystick.errors import UnknownPairError, check_count, check_probability, check_sequence
from hockeystick.integrations.dp_events import releases
from hockeystick.integrations.dp_events.event import Event, UnprovedEventError, taken_apart
from hockeystick.integrations.dp_events.releases import EVERYTHING, NOTHING, Parts, always, unproved
from hockeystick.integrations.dp_events.runs import run_count
from hockeystick.numerics.rationals import root_beside
from hockeystick.sampling import CutBatches, Poisson, RandomAllocation, WithoutReplacement

# noise on a sum: a special record has value 0
_SUMS = (mechanisms.Gaussian, mechanisms.Laplace, mechanisms.DiscreteLaplace, mechanisms.DiscreteGaussian)
# guarantees under one relation
_STATED = (mechanisms.ApproximateDP, mechanisms.ExponentialMechanism, mechanisms.PermuteAndFlip)


def from_dp_event(event: Any, adjacency: str = "add-remove") -> Composition:
    """What an event of dp-accounting releases, as a composition.

    Parameters
    ----------
    event : DpEvent, its named tuple, or a mapping
        A mapping has ``class_name`` and the event's fields, as JSON holds it.
    adjacency : {"add-remove", "substitute", "zero-out"}
        The relation that the event is accounted under: some events mean something under one relation only.

    Raises
    ------
    UnprovedEventError
        Where no pair is proved for a part of the event.

    Examples
    --------
    >>> sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01}
    >>> from_dp_event(sampled | {"event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}})
    Composition(steps=((Poisson(mechanism=Gaussian(noise_multiplier=1.0), rate=0.01), 1),))
    """
    return Composition(parts_of(event, adjacency) or ((NOTHING, 1),))


def parts_of(event: Any, adjacency: str) -> Parts:
    """As `from_dp_event`, with no parts where nothing is released."""
    names = directions(adjacency)
    parts = _read(event, adjacency)
    for step, _ in parts:
        for direction in names:
            try:
                step.pairs(direction)
            except UnknownPairError as error:
                raise UnprovedEventError(event, str(error)) from error
    return parts


def _read(given: Any, adjacency: str) -> Parts:
    name, fields = taken_apart(given)
    row = _ROWS.get(name)
    if row is None:
        raise UnprovedEventError(given, f"an event of this kind is not known; known are {', '.join(_ROWS)}")
    needed, optional, read = row
    unknown, missing = set(fields) - set(needed) - set(optional), set(needed) - set(fields)
    if unknown or missing:
        odd = [f"{one!r} {what}" for what, ones in (("is missing", missing), ("is not known", unknown)) for one in ones]
        raise UnprovedEventError(given, f"a {name} has the fields {[*needed, *optional]}; {', '.join(sorted(odd))}")
    return read(Event(given, name, {**optional, **fields}, adjacency))


def _repeated(event: Event) -> Parts:
    times = check_count("count", event["count"])
    return tuple((step, count * times) for step, count in _read(event["event"], event.adjacency))


def _composed(event: Event) -> Parts:
    return tuple(part for one in check_sequence("events", event["events"]) for part in _read(one, event.adjacency))


def _poisson(event: Event) -> Parts:
    rate = check_probability("sampling_probability", event["sampling_probability"])
    if rate == 0.0:
        return ()
    return _on_sample(event, "add-remove", lambda step: step if rate == 1.0 else Poisson(step, rate))


def _fixed_size(event: Event) -> Parts:
    size = check_count("sample_size", event["sample_size"], minimum=0)
    records = check_count("source_dataset_size", event["source_dataset_size"])
    if size > records:
        raise ValueError(f"sample_size must be at most source_dataset_size, got {size} of {records}")
    if size == 0:
        return ()
    return _on_sample(event, "substitute", lambda step: WithoutReplacement(step, size, records))


def _allocated(event: Event) -> Parts:
    selected = check_count("num_selected", event["num_selected"], minimum=0)
    steps = check_count("num_steps", event["num_steps"])
    if selected > steps:
        raise ValueError(f"num_selected must be at most num_steps, got {selected} of {steps}")
    if 0 < selected < steps:
        return _on_sample(event, "add-remove", lambda step: RandomAllocation(step, steps, selected))
    parts = _on_sample(event, "add-remove", lambda step: step)  # every record is in every step, or none in any
    return tuple((step, 1 if step == EVERYTHING else steps) for step, _ in parts) if selected else ()


def _cut(event: Event) -> Parts:
    """Cut Poisson samples; of two neighbours the larger has dataset_size records, as dp-accounting has it."""
    rate = check_probability("sampling_probability", event["sampling_probability"])
    records = check_count("dataset_size", event["dataset_size"], minimum=0)
    most = check_count("truncated_batch_size", event["truncated_batch_size"], minimum=0)
    parts = releases.gaussian(event)
    if 0 in (rate, records, most) or not parts or parts == ((EVERYTHING, 1),):
        return () if 0 in (rate, records, most) else parts
    ((step, _),) = parts
    if most >= records:  # nothing is ever cut
        return ((step if rate == 1.0 else Poisson(step, rate), 1),)
    return ((WithoutReplacement(step, most, records) if rate == 1.0 else CutBatches(step, rate, most, records), 1),)


def _best(event: Event) -> Parts:
    count = run_count(event)
    parts = _read(event["event"], event.adjacency)
    if count is None or not parts or any(step == EVERYTHING for step, _ in parts):
        return parts if count is None or not parts else ((EVERYTHING, 1),)
    try:
        return ((mechanisms.select_best(Composition(parts), count=count), 1),)
    except UnknownPairError as error:
        raise event.unproved(str(error)) from error


def _on_sample(event: Event, guarantees_under: str, sampled: Callable[[Step], Step]) -> Parts:
    """What is applied to a sample, as one step, sampled."""
    parts = _read(event["event"], event.adjacency)
    if not parts or any(step == EVERYTHING for step, _ in parts):
        return ((EVERYTHING, 1),) if parts else ()
    gaussians = [(step.noise_multiplier, count) for step, count in parts if isinstance(step, mechanisms.Gaussian)]
    if len(gaussians) == len(parts):
        return ((sampled(mechanisms.Gaussian(_as_one(gaussians))), 1),)
    step, count = parts[0]
    if (len(parts), count) != (1, 1):
        raise event.unproved("of several releases on one sample, only Gaussian ones are proved")
    if not isinstance(step, _SUMS) and not (isinstance(step, _STATED) and event.adjacency == guarantees_under):
        raise event.unproved("what is applied to the sample has no pair that is proved for samples")
    return ((sampled(step), 1),)


def _as_one(gaussians: Iterable[tuple[float, int]]) -> float:
    """The noise of one Gaussian release in place of several: sigma^-2 adds up. Rounded down: less noise costs more."""
    square = 1 / sum((Fraction(count) / Fraction(noise) ** 2 for noise, count in gaussians), Fraction(0))
    return root_beside(square, up=False)


_ROWS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any], Callable[[Event], Parts]]] = {
    # the class of an event: its fields, those that may be absent with their values, and what it releases
    "NoOpDpEvent": ((), {}, always(())),
    "NonPrivateDpEvent": ((), {}, always(((EVERYTHING, 1),))),
    "UnsupportedDpEvent": ((), {}, unproved("it stands for what has no description")),
    "EpsilonDeltaDpEvent": (("epsilon", "delta"), {}, releases.stated),
    "GaussianDpEvent": (("noise_multiplier",), {}, releases.gaussian),
    "LaplaceDpEvent": (("noise_multiplier",), {}, releases.laplace),
    "DiscreteLaplaceDpEvent": (("noise_parameter", "sensitivity"), {}, releases.discrete_laplace),
    "DiscreteGaussianDpEvent": (("sigma",), {"sensitivity": 1.0, "dimension": None}, releases.discrete_gaussian),
    "RandomizedResponseDpEvent": (("noise_parameter", "num_buckets"), {}, releases.randomized_response),
    "MixtureOfGaussiansDpEvent": (("standard_deviation", "sensitivities", "sampling_probs"), {}, releases.mixture),
    "SingleEpochTreeAggregationDpEvent": (("noise_multiplier", "step_counts"), {}, releases.tree),
    "SelfComposedDpEvent": (("event", "count"), {}, _repeated),
    "ComposedDpEvent": (("events",), {}, _composed),
    "PoissonSampledDpEvent": (("sampling_probability", "event"), {}, _poisson),
    "SampledWithoutReplacementDpEvent": (("source_dataset_size", "sample_size", "event"), {}, _fixed_size),
    "SampledWithReplacementDpEvent": (
        ("source_dataset_size", "sample_size", "event"),
        {},
        unproved("no pair is proved for samples with replacement: sample without, or by Poisson"),
    ),
    "RandomAllocationDpEvent": (("event", "num_selected", "num_steps"), {}, _allocated),
    "TruncatedSubsampledGaussianDpEvent": (
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"),
        {},
        _cut,
    ),
    "RepeatAndSelectDpEvent": (("event", "mean", "shape"), {}, _best),
    "ZCDpEvent": (("rho",), {"xi": 0.0}, releases.concentrated),
    "ExponentialMechanismDpEvent": (("epsilon",), {}, releases.exponential),
    "PermuteAndFlipDpEvent": (("epsilon",), {}, releases.permute_and_flip),
}
