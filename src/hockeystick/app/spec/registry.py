"""What a specification can name: mechanisms, sampling schemes and accountants, found by introspection.

Nothing is listed here by hand. A mechanism is a concrete step exported by `hockeystick.mechanisms`, a sampling scheme
one of `hockeystick.sampling.SCHEMES`, an accountant a concrete class of `hockeystick.accountants`. Names in a file are
the class names in kebab case (``DiscreteGaussian`` is ``discrete-gaussian``), parameters keep their Python names. So a
new mechanism, scheme or accountant can be written in a file the moment it exists.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Union, final

from hockeystick import accountants as accountant_room
from hockeystick import mechanisms as mechanism_room
from hockeystick.accountants.base import AUTOMATIC as AUTOMATIC
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.certified import Certified
from hockeystick.app.spec.problems import meant
from hockeystick.composition import Step
from hockeystick.sampling import SCHEMES, Sampled

Kind = Literal["number", "integer", "string", "boolean", "numbers"]
"""The kind of value a parameter takes in a file."""


@final
@dataclass(frozen=True)
class Parameter:
    """One parameter of an entry.

    Attributes
    ----------
    name : str
        As in Python.
    kind : Kind
        What a file must hold.
    required : bool
        Whether it has no default.
    choices : tuple of str
        What a string may be; empty where anything may stand.
    summary : str
        The parameter's description in the class's docstring.
    """

    name: str
    kind: Kind
    required: bool
    choices: tuple[str, ...] = ()
    summary: str = ""


@final
@dataclass(frozen=True)
class Entry:
    """Something a specification can name, with its parameters.

    Attributes
    ----------
    name : str
        As written in a file.
    summary : str
        The first line of its docstring.
    parameters : tuple of Parameter
        In the order of its signature.
    build : callable
        Makes it from its parameters, by keyword; a sampling scheme takes the step to be sampled first.
    others : tuple of Entry
        The same thing, written with other parameters.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    build: Callable[..., Any]
    others: tuple[Entry, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the parameters without a default."""
        return tuple(parameter.name for parameter in self.parameters if parameter.required)

    def written_with(self, names: Collection[str]) -> Entry:
        """The way of writing it that these names complete, or else the one they fit best."""
        ways = (self, *self.others)
        complete = [way for way in ways if set(way.required) <= set(names)]
        exact = [way for way in complete if set(names) <= set(way.names)]
        if complete:
            return (exact or complete)[0]
        return max(ways, key=lambda way: sum(way.parameter(name) is not None for name in way.meant(names)))

    def meant(self, names: Collection[str]) -> tuple[str, ...]:
        """The names, a misspelt one in the spelling of the parameter it stands for."""
        return tuple(meant(name, self.names) or name for name in names)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


_WIDTH = "Width of the epsilon bracket asked for (nats); for delta its relative width."
_TOLERANCE = Parameter("tolerance", "number", required=False, summary=_WIDTH)
AUTOMATIC_ENTRY = Entry(AUTOMATIC, "The method chosen by hockeystick.account.", (_TOLERANCE,), Certified)
"""The choice left to `hockeystick.account`; its tolerance is checked as the certified accountant checks it."""


def kebab(name: str) -> str:
    """A Python name as files and the command line write it.

    Examples
    --------
    >>> kebab("DiscreteGaussian"), kebab("without_replacement"), kebab("ApproximateDP")
    ('discrete-gaussian', 'without-replacement', 'approximate-dp')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").lower()


@functools.cache
def mechanisms() -> Mapping[str, Entry]:
    """The mechanisms by name; an alias names the entry of its first name."""
    return _Entries(mechanism_room, Step)


@functools.cache
def accountants() -> Mapping[str, Entry]:
    """The accountants by name; `AUTOMATIC` is not among them."""
    return _Entries(accountant_room, Accountant)


@functools.cache
def counts() -> Mapping[str, Entry]:
    """The laws of how often a run is repeated before the best is released, by name: ``PoissonCount`` is ``poisson``."""
    from hockeystick.laws import run_count as count_room  # loaded where runs are tuned

    found = {name.removesuffix("-count"): entry for name, entry in _Entries(count_room, count_room.RunCount).items()}
    return {name: replace(entry, name=name) for name, entry in found.items()}


@functools.cache
def schemes() -> Mapping[str, type[Sampled]]:
    """The sampling schemes by name."""
    return {kebab(scheme.__name__): scheme for scheme in SCHEMES}


@functools.cache
def samplings() -> Mapping[str, Entry]:
    """How the sampling schemes are written, by name."""
    return {name: _entry(name, scheme, _parameters(scheme) or ()) for name, scheme in schemes().items()}


def _entry(name: str, cls: type, parameters: tuple[Parameter, ...]) -> Entry:
    """A class with the other ways of writing it."""
    makers = [getattr(cls, maker) for maker in getattr(cls, "written_as", ())]
    others = tuple(Entry(name, _summary(maker), _parameters(maker) or (), maker) for maker in makers)
    return Entry(name, _summary(cls), parameters, cls, others)


@final
class _Entries(Mapping[str, Entry]):
    """What a room holds of one kind, by name; a class is loaded when it is first asked for."""

    def __init__(self, room: types.ModuleType, base: type) -> None:
        self._room, self._base = room, base
        self._public = {kebab(name): name for name in room.__all__}
        self._known: dict[str, Entry | None] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._known:
            self._known[name] = self._read(getattr(self._room, self._public[name]))
        if (found := self._known[name]) is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._public if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read(self, cls: Any) -> Entry | None:
        if not (inspect.isclass(cls) and issubclass(cls, self._base)) or inspect.isabstract(cls):
            return None
        parameters = _parameters(cls)
        return None if parameters is None else _entry(kebab(cls.__name__), cls, parameters)


def _parameters(owner: Any) -> tuple[Parameter, ...] | None:
    """The parameters of a class or classmethod; None where a required one cannot be written in a file.

    The ``mechanism`` of a sampling scheme stands beside it in a file.
    """
    hints = typing.get_type_hints(owner)
    texts = _parameter_texts(owner.__doc__ or "")
    found: list[Parameter] = []
    for name, parameter in inspect.signature(owner).parameters.items():
        if name == "mechanism":
            continue
        required = parameter.default is inspect.Parameter.empty
        kind, choices = _kind(hints.get(name))
        if kind is None:
            if required:
                return None
            continue
        found.append(Parameter(name, kind, required, choices, texts.get(name, "")))
    return tuple(found)


def _kind(hint: Any) -> tuple[Kind | None, tuple[str, ...]]:
    """What a file must hold for an annotation."""
    simple: dict[Any, Kind] = {float: "number", int: "integer", str: "string", bool: "boolean", Fraction: "number"}
    if hint in simple:
        return simple[hint], ()
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal and all(isinstance(value, str) for value in inside):
        return "string", inside
    if origin in {Union, types.UnionType}:
        kinds = [_kind(part) for part in inside if part is not types.NoneType]
        known = [pair for pair in kinds if pair[0] is not None]
        if ("number", ()) in known:  # a float, or an int, or a fraction: a number
            return "number", ()
        return known[0] if known else (None, ())
    if origin is not None and inspect.isclass(origin) and issubclass(origin, typing.Iterable):
        return ("numbers", ()) if inside and _kind(inside[0])[0] in {"number", "integer"} else (None, ())
    return None, ()


def _summary(owner: Any) -> str:
    return (inspect.getdoc(owner) or "").split("\n\n", 1)[0].replace("\n", " ")


def _parameter_texts(doc: str) -> dict[str, str]:
    """Descriptions in the ``Parameters`` section of a NumPy docstring."""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", inspect.cleandoc(doc), re.DOTALL)
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (section.group(1) if section else "").splitlines():
        head = re.match(r"(\w[\w, ]*?) ?:", line)
        if head and not line.startswith(" "):
            names = [name.strip() for name in head.group(1).split(",")]
            texts.update({name: [] for name in names})
        else:
            for name in names:
                texts[name].append(line.strip())
    return {name: " ".join(lines).strip() for name, lines in texts.items()}
