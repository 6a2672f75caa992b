"""The number that ``hockeystick calibrate`` looks for: where it stands in a specification, and what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

from hockeystick.app.cli.sampler import IN_ROUNDS
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.registry import mechanisms, samplings, schemes
from hockeystick.composition import Composition

ROUND = dict(zip(IN_ROUNDS, ("steps", "bins"), strict=True))
"""What a scheme calls the steps of a round."""

_MOST_RECORDS = 10**12
_MOST_EPOCHS = 50  # on fixed bins, of noise 1: beyond, epsilon is above 30 in any case


@final
@dataclass(frozen=True)
class Unknown:
    """The place in a specification of the number to find."""

    specification: Specification
    step: int
    part: str  # "mechanism", "sampling" or "count"
    name: str

    @property
    def values(self) -> str:
        """Whether it is real or an integer."""
        if self.part == "count" or self.name == "batch_size":
            return "integer"
        if self.part == "sampling":
            known = samplings()[self._sampling.name].written_with(self._sampling.mapping)
        else:
            known = mechanisms()[self._entry.mechanism.name]
        parameter = known.parameter(self.name)
        return "integer" if parameter is not None and parameter.kind == "integer" else "real"

    @property
    def safe(self) -> str:
        """Which values are safer, where that is a theorem."""
        if self.part == "count" or self.name in {"rate", "batch_size", "epochs"} or self._is_truth:
            return "smaller"
        larger = self.name == "noise_multiplier" or self.is_round
        return "larger" if larger or (self.name == "population" and "batch_size" in self._sizes) else "detect"

    @property
    def within(self) -> tuple[float, float] | None:
        """The range allowed, where there is one."""
        sizes = self._sizes
        cut = "largest_batch" in sizes
        if self._is_truth:
            categories: Any = self._entry.mechanism.mapping.get("categories", 2)
            return 1.0 / int(categories), 1.0
        if self.name == "rate":
            return 1e-9, math.nextafter(1.0, 0.0) if cut else 1.0
        if self.name == "batch_size":
            return 1, self._records - cut
        if self.name == "largest_batch":
            return 1, self._records
        if self.name == "epochs":
            noise: Any = self._entry.mechanism.mapping.get("noise_multiplier", 1.0)
            return 1, max(2, int(_MOST_EPOCHS * float(noise) ** 2))
        if self.name == "population" and sizes:
            return sizes["largest_batch" if cut else "batch_size"] + 1, _MOST_RECORDS
        return None

    @property
    def guess(self) -> float | None:
        """What the specification says, where the family takes long far from there."""
        return self._sizes[self.name] if self.name == "epochs" or self.is_round else None

    @property
    def settings(self) -> dict[str, Any]:
        """How it is sought, as `hockeystick.calibrate` takes it."""
        own = {name: getattr(self, name) for name in ("values", "safe", "within", "guess")}
        return {**own, "adjacency": self.specification.adjacency, "accountant": self.specification.method}

    @property
    def noun(self) -> str:
        """What it is called in a sentence."""
        if self.is_round:
            return "steps in a round"
        if self.part == "count":
            sampling = self._entry.sampling
            return "passes over the data" if sampling and schemes()[sampling.name].step_is_epoch else "steps"
        return self.name.replace("_", " ")

    @property
    def is_round(self) -> bool:
        """Whether it is the number of steps in a round."""
        return self.part == "sampling" and self.name in {"steps", "bins"}

    @property
    def _is_truth(self) -> bool:
        """Whether it is how often a randomised response is true: from that of a guess on, less often is safer."""
        return self.name == "probability" and self._entry.mechanism.name == "randomized-response"

    @property
    def _entry(self) -> StepEntry:
        return self.specification.steps[self.step]

    @property
    def _sampling(self) -> Choice:
        return self._entry.sampling or Choice("none")

    @property
    def _sizes(self) -> dict[str, Any]:
        return self._sampling.mapping if self.part == "sampling" else {}

    @property
    def _records(self) -> int:
        stated = self.specification.circumstances.examples
        return int(self._sizes.get("population", 2 if stated is None else stated))

    def at(self, value: float) -> Specification:
        """The specification with a value in the place; a batch size is a rate where the scheme is written by rate."""
        entry = self._entry
        if self.part == "count":
            changed = replace(entry, count=int(value))
        elif self.part == "mechanism":
            changed = replace(entry, mechanism=entry.mechanism.but(**{self.name: value}))
        elif self.name == "batch_size" and "batch_size" not in self._sizes:
            changed = replace(entry, sampling=self._sampling.but(rate=int(value) / self._records))
        else:
            changed = replace(entry, sampling=self._sampling.but(**{self.name: value}))
        steps = (*self.specification.steps[: self.step], changed, *self.specification.steps[self.step + 1 :])
        return replace(self.specification, steps=steps)

    def family(self, value: float) -> Composition:
        """The runs to choose from."""
        return self.at(value).composition
