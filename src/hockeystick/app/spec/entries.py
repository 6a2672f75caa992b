"""The parts of a specification: names with parameters, as a file holds them, and steps made of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from hockeystick.app.spec.registry import kebab, mechanisms, samplings, schemes
from hockeystick.composition import Grouped, Step

if TYPE_CHECKING:
    from hockeystick.laws.run_count import RunCount

Value = float | int | str | bool | tuple[float | int | str, ...]
"""A parameter as a file holds it; in a tuple a string such as ``"1/3"`` is an exact fraction."""


@final
@dataclass(frozen=True)
class Choice:
    """The name of a mechanism, sampling scheme or accountant, with its parameters.

    Examples
    --------
    >>> Choice.of("gaussian", noise_multiplier=1.0).text
    'gaussian(noise_multiplier=1.0)'
    """

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()

    @staticmethod
    def of(name: str, **parameters: Value) -> Choice:
        """A choice from keywords."""
        return Choice(name, tuple(parameters.items()))

    def but(self, **parameters: Value) -> Choice:
        """The same with other values of some parameters."""
        return Choice.of(self.name, **self.mapping | parameters)

    @property
    def mapping(self) -> dict[str, Value]:
        """The parameters by name."""
        return dict(self.parameters)

    @property
    def text(self) -> str:
        """The choice on one line."""
        inside = ", ".join(f"{name}={_shown(value)}" for name, value in self.parameters)
        return f"{self.name}({inside})" if inside else self.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters as Python takes them: fractions made of strings in lists."""
        return {name: _as_python(value) for name, value in self.parameters}


def _shown(value: Value) -> str:
    if isinstance(value, tuple) and len(value) > 6:
        return f"[{', '.join(map(str, value[:5]))}, ... {len(value)} values]"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"{value}"


def _as_python(value: Value) -> Any:
    if isinstance(value, tuple):
        return tuple(Fraction(one) if isinstance(one, str) else one for one in value)
    return value


def described(step: Step) -> Choice:
    """A mechanism or a sampling scheme in the words of a file, its ``mechanism`` apart.

    Raises
    ------
    TypeError
        Where a file cannot hold it.
    """
    if isinstance(step, Grouped):
        raise TypeError(f"a specification states a group's size once: of_run(run, group_size={step.size})")
    name, applied = _name(step), getattr(step, "mechanism", None)
    if name not in mechanisms() and name not in schemes():
        raise TypeError(f"a specification cannot hold {type(step).__name__}: it names mechanisms by their parameters")
    if isinstance(applied, Step) and _name(applied) in schemes():
        raise TypeError(f"a specification holds one sampling scheme a step, got {step!r}")
    return Choice(name, _parameters(step))


def _name(owner: Step | RunCount) -> str:
    return kebab(type(owner).__name__)


def described_count(count: RunCount) -> Choice:
    """A law of the number of runs in the words of a file."""
    return Choice(_name(count).removesuffix("-count"), _parameters(count))


def _parameters(owner: Step | RunCount) -> tuple[tuple[str, Value], ...]:
    """What a file says of it beside its name; of a sampled step, without the mechanism."""
    names = [f.name for f in fields(owner) if f.name != "mechanism"]  # type: ignore[arg-type]  # a dataclass
    return tuple((name, _written(getattr(owner, name))) for name in names)


def _written(value: Any) -> Value:
    if isinstance(value, tuple):
        return tuple(str(item) if isinstance(item, Fraction) else item for item in value)
    if isinstance(value, Fraction):
        if Fraction(float(value)) != value:
            raise TypeError(f"a specification holds single numbers as float64s, and {value} is not one")
        return float(value)
    return value  # type: ignore[no-any-return]  # one of the kinds of a file, as checked


@final
@dataclass(frozen=True)
class StepEntry:
    """One kind of step: a mechanism, how its records are sampled, how often it is applied, what it is called.

    Examples
    --------
    >>> StepEntry(Choice.of("gaussian", noise_multiplier=1.0), Choice.of("poisson", rate=0.01), 2000).step
    Poisson(mechanism=Gaussian(noise_multiplier=1.0), rate=0.01)
    """

    mechanism: Choice
    sampling: Choice | None = None
    count: int = 1
    name: str = ""
    note: str = ""

    @cached_property
    def step(self) -> Step:
        """The step; ``TypeError`` or ``ValueError`` where a parameter is not allowed."""
        known = mechanisms()[self.mechanism.name].written_with(self.mechanism.mapping)
        mechanism: Step = known.build(**self.mechanism.arguments)
        if self.sampling is None:
            return mechanism
        written = samplings()[self.sampling.name].written_with(self.sampling.mapping)
        sampled: Step = written.build(mechanism, **self.sampling.arguments)
        return sampled
