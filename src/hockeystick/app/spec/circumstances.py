"""What accounting cannot see but a reader must know: each thing that a file may state, and what may stand for it.

The same of the guarantee that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, final

from hockeystick.composition import ADJACENCIES
from hockeystick.errors import check_choice, check_count, check_fields, check_positive
from hockeystick.sampling import SCHEMES

BATCHES = tuple(scheme.batches for scheme in SCHEMES)
"""How batches are drawn in fact."""

_TUNING = ("none", "on-public-data", "counted", "not-counted")


@final
@dataclass(frozen=True)
class Kind:
    """What may stand for something: its JSON schema, and the check, which is told the name."""

    schema: dict[str, Any]
    check: Callable[[str, Any], Any]


def check_text(name: str, value: Any) -> str:
    """A text that says something, and that UTF-8 can write, which halves of surrogate pairs in JSON are not."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text in quotes, got {value!r}")
    if not value.strip() or re.search("[\ud800-\udfff]", value):
        raise ValueError(f"{name} must be a text in quotes, got {value!r}")
    return value


def one_of(*choices: str) -> Kind:
    """One of a few strings."""
    return Kind({"enum": list(choices)}, partial(check_choice, choices=choices))


COUNT = Kind({"type": "integer", "minimum": 1}, check_count)
TEXT = Kind({"type": "string", "minLength": 1}, check_text)
_COUNT_FROM_0 = Kind({"type": "integer", "minimum": 0}, partial(check_count, minimum=0))
_POSITIVE = Kind({"type": "number", "exclusiveMinimum": 0}, check_positive)


def _may_be(kind: Kind, words: str) -> Any:
    return field(default=None, metadata={"kind": kind, "words": words})


@final
@dataclass(frozen=True)
class Circumstances:
    """What accounting cannot see but a reader must know; None where it is not stated.

    Attributes
    ----------
    examples : int or None
        Number of records in the data.
    batches : str or None
        How batches are drawn in fact, one of `BATCHES`.
    clipping_norm : float or None
        The norm each record's contribution is clipped to.
    tuning : str or None
        Whether hyperparameters were tuned, and if so whether that is in the accounting: "none", "on-public-data",
        "counted" or "not-counted".
    adaptive : str or None
        Whether noise, rate or number of steps depended on earlier outputs: "no" or "yes".
    tuning_runs : int or None
        How many runs on the same data came before this one.
    dataset, owner, contact, purpose : str or None
        Which data, whose, whom to ask, and what the release is for.
    other_releases : str or None
        What else was or will be released of the same data.
    trust_model : str or None
        Who is trusted with the records.
    observers : str or None
        Who sees intermediate results.
    noise_generator, software : str or None
        Where the noise comes from, and what ran.
    notes : str or None
        Anything else.
    """

    examples: int | None = _may_be(COUNT, "Number of records in the data.")
    batches: str | None = _may_be(one_of(*BATCHES), "How batches are drawn in fact.")
    clipping_norm: float | None = _may_be(_POSITIVE, "Norm of a clipped contribution.")
    tuning: str | None = _may_be(one_of(*_TUNING), "Whether hyperparameters were tuned, and on what.")
    adaptive: str | None = _may_be(one_of("no", "yes"), "Whether settings depended on earlier outputs.")
    tuning_runs: int | None = _may_be(_COUNT_FROM_0, "Number of runs on the same data before this one.")
    dataset: str | None = _may_be(TEXT, "Which data.")
    owner: str | None = _may_be(TEXT, "Whose data.")
    contact: str | None = _may_be(TEXT, "Whom to ask.")
    purpose: str | None = _may_be(TEXT, "What the release is for.")
    other_releases: str | None = _may_be(TEXT, "What else is released of the same data.")
    trust_model: str | None = _may_be(TEXT, "Who is trusted with the records.")
    observers: str | None = _may_be(TEXT, "Who sees intermediate results.")
    noise_generator: str | None = _may_be(TEXT, "Where the noise comes from.")
    software: str | None = _may_be(TEXT, "What ran.")
    notes: str | None = _may_be(TEXT, "Anything else a reader must know.")

    def __post_init__(self) -> None:
        given = (one for one in fields(self) if getattr(self, one.name) is not None)
        check_fields(self, **{one.name: one.metadata["kind"].check for one in given})


Kinds = Mapping[str, tuple[Kind, str]]
"""By name, what may stand there, and in a word what it is."""

STATED: Kinds = {one.name: (one.metadata["kind"], one.metadata["words"]) for one in fields(Circumstances)}
GUARANTEE: Kinds = {
    "adjacency": (one_of(*ADJACENCIES), "Which datasets are neighbours."),
    "unit": (TEXT, "What one record is: example, user, ..."),
    "group_size": (COUNT, "Records that change at once, such as a household (default 1)."),
}
