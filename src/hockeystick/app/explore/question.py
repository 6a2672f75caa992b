"""A question of the page: one DP-SGD run, checked field by field, and the specification it stands for.

Whatever does not fit the table of fields is refused before anything is computed, which bounds the work of a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from hockeystick.app.report.numbers import is_number, plain
from hockeystick.app.spec.circumstances import BATCHES, Circumstances
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.registry import AUTOMATIC, samplings, schemes
from hockeystick.composition import ADJACENCIES

MOST_BYTES = 4096
"""The size of a request."""

RANGES: Mapping[str, tuple[float, float]] = {
    "noise_multiplier": (0.1, 1000.0),
    "target_epsilon": (0.001, 100.0),
    "rate": (1e-7, 1.0),
    "batch_size": (1, 10**9),
    "examples": (1, 10**10),
    "steps": (1, 10**7),
    "delta": (1e-100, 0.1),
}
"""What each number may be."""

TOLERANCE = 1e-3  # as the command and Python have it by default
_WHOLE = frozenset({"batch_size", "examples", "steps"})
_DETAILS = ("live", "fine")
_NEEDED = ("sampling", "steps", "delta", "adjacency")
_SIZES = frozenset({"rate", "batch_size", "population"})  # that a sampler may be told
_MOST_SHOWN = 60


class BadQuestionError(ValueError):
    """A request that is no question of the page."""


def choices() -> dict[str, tuple[str, ...]]:
    """What each choice may be: of the samplers those that draw a batch a step, told by what a question holds."""
    by_batch = (name for name, scheme in schemes().items() if not scheme.step_is_epoch)
    told = tuple(name for name in by_batch if _SIZES.issuperset(samplings()[name].written_with(_SIZES).required))
    return {"sampling": told, "adjacency": tuple(ADJACENCIES), "batches": BATCHES, "detail": _DETAILS}


@final
@dataclass(frozen=True, kw_only=True)
class Question:
    """One run, as the page describes it; None where a field is not given."""

    sampling: str
    steps: int
    delta: float
    adjacency: str
    noise_multiplier: float | None = None
    target_epsilon: float | None = None
    rate: float | None = None
    batch_size: int | None = None
    examples: int | None = None
    batches: str | None = None
    detail: str = "fine"

    def specification(self, noise_multiplier: float) -> Specification:
        """What the command line makes of the same options."""
        known = {"rate": self.rate, "batch_size": self.batch_size}
        known |= {"examples": self.examples, "population": self.examples}
        given = {name: value for name, value in known.items() if value is not None}
        needed = samplings()[self.sampling].written_with(given).required
        if not set(needed) <= given.keys():
            raise BadQuestionError(f"sampling {self.sampling} needs batch_size and examples instead of rate")
        sampler = Choice(self.sampling, tuple((name, given[name]) for name in needed))
        return Specification(
            steps=(StepEntry(Choice.of("gaussian", noise_multiplier=noise_multiplier), sampler, self.steps),),
            adjacency=self.adjacency,
            deltas=(self.delta,),
            accountant=Choice.of(AUTOMATIC, tolerance=TOLERANCE),
            circumstances=Circumstances(examples=self.examples, batches=self.batches),
        )


def question(body: bytes) -> Question:
    """The question in the body of a request.

    Raises
    ------
    BadQuestionError
        Which says what is wrong with it.
    """
    try:
        document = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise BadQuestionError("the body must be JSON") from None
    if not isinstance(document, dict):
        raise BadQuestionError("the body must be a JSON object")
    allowed = choices()
    unknown = sorted(document.keys() - RANGES.keys() - allowed.keys())
    if unknown:
        raise BadQuestionError(f"unknown field {_shown(unknown[0])}")
    fields = {name: value for name, value in document.items() if value is not None}
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise BadQuestionError(f"{missing[0]} is missing")
    checked: dict[str, Any] = {
        n: _choice(n, v, allowed[n]) if n in allowed else _number(n, v) for n, v in fields.items()
    }
    _agree(checked)
    return Question(**checked)


def _agree(fields: Mapping[str, Any]) -> None:
    if ("noise_multiplier" in fields) == ("target_epsilon" in fields):
        raise BadQuestionError("give either noise_multiplier or target_epsilon")
    if ("rate" in fields) == ("batch_size" in fields):
        raise BadQuestionError("give either rate, or batch_size with examples")
    size, examples = fields.get("batch_size"), fields.get("examples")
    if size is not None and examples is None:
        raise BadQuestionError("batch_size needs examples")
    if size is not None and size > examples:
        raise BadQuestionError("batch_size must be at most examples")
    if size is not None and size / examples < RANGES["rate"][0]:
        raise BadQuestionError(f"batch_size over examples must be at least {plain(RANGES['rate'][0])}")


def _number(name: str, value: object) -> float:
    low, high = RANGES[name]
    allowed = f"{name} must be {'a whole number' if name in _WHOLE else 'a number'} from {low:g} to {high:g}"
    if not is_number(value) or not low <= value <= high or (name in _WHOLE and not isinstance(value, int)):
        raise BadQuestionError(allowed)
    return value if name in _WHOLE else float(value)


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise BadQuestionError(f"{name} must be one of {', '.join(allowed)}")
    return value


def _no_number(text: str) -> float:
    raise ValueError(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "...")
