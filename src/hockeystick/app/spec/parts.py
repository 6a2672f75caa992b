"""The parts of a specification's document, each checked, with every problem noted at its line.

What a mechanism, a sampling scheme or an accountant allows is not repeated here: it is built, and its own refusal goes
to the line of the parameter it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from hockeystick.app.report.numbers import is_number
from hockeystick.app.spec.circumstances import GUARANTEE, STATED, Circumstances, Kinds, check_text
from hockeystick.app.spec.entries import Choice, StepEntry, Value, described
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.positions import Lines, Path, line_of
from hockeystick.app.spec.problems import Problem, meant, suggestion
from hockeystick.app.spec.registry import AUTOMATIC, AUTOMATIC_ENTRY, Entry, accountants, counts, mechanisms, samplings
from hockeystick.errors import check_count, check_delta, check_epsilon, whole

T = TypeVar("T")
_Check = Callable[[str, Any], Any]

_OF_STEP = ("sampling", "count", "name", "note")
_FRACTION = re.compile(r"[0-9]{1,4300}(/(?!0+$)[0-9]{1,4300})?")  # Python reads no longer whole number
_TOP = ("version", "title", "steps", "tuning", "guarantee", "accountant", "circumstances")


@dataclass
class DocumentReader:
    """Turns a parsed document into a specification, collecting problems as it goes.

    Attributes
    ----------
    lines : Lines
        Where everything stands.
    problems : list of Problem
        What is wrong.
    """

    lines: Lines
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: Path, message: str) -> None:
        """Note a problem at the line of a path."""
        self.problems.append(Problem(line_of(self.lines, path), message))

    def table(self, path: Path, value: object) -> Mapping[str, Any] | None:
        """The value if it is a table."""
        if isinstance(value, dict):
            return value
        self.problem(path, f"{_named(path)} must be a table, got {_kind(value)}")
        return None

    def unknown(
        self, path: Path, table: Mapping[str, Any], known: tuple[str, ...], possible: tuple[str, ...] = ()
    ) -> None:
        """Note every key that is neither known nor possible."""
        for key in table:
            if key not in {*known, *possible}:
                close = meant(key, (*known, *possible))
                hint = f"; did you mean {close!r}?" if close else ("" if possible else suggestion(key, known))
                self.problem((*path, key), f"unknown key {key!r} in {_named(path)}{hint}")

    def checked(self, path: Path, check: Callable[[str, Any], T], value: object) -> T | None:
        """The value if the check, which is told its name, passes; else None and a problem."""
        try:
            return check(str(path[-1]), value)
        except (TypeError, ValueError) as error:
            self.problem(path, str(error))
            return None

    # ------------------------------------------------------------------------------------------------------- the parts

    def specification(self, document: object) -> Specification | None:
        """The whole document; None where there are problems."""
        table = self.table((), document)
        if table is None:
            return None
        self.unknown((), table, _TOP)
        if table.get("version", 1) != 1 or isinstance(table.get("version", 1), bool):
            self.problem(("version",), f"version must be 1, got {table['version']!r}; this is what this release reads")
        title = self.checked(("title",), check_text, table["title"]) if "title" in table else ""
        steps = self.steps(table)
        tuning = self.tuning(table["tuning"]) if "tuning" in table else None
        guarantee = self.guarantee(table.get("guarantee", {}))
        accountant = self.accountant(table.get("accountant", {}))
        circumstances = self.circumstances(table.get("circumstances", {}))
        if self.problems:
            return None
        found = Specification(steps, title=title or "", accountant=accountant, circumstances=circumstances, **guarantee)
        return replace(found, tuning=tuning)

    def steps(self, table: Mapping[str, Any]) -> tuple[StepEntry, ...]:
        """The list of steps."""
        listed = table.get("steps")
        if listed is None:
            self.problem((), "steps are missing: begin one with [[steps]] and name its mechanism")
            return ()
        if not isinstance(listed, list) or not listed:
            self.problem(("steps",), "steps must be a list of at least one table: begin each with [[steps]]")
            return ()
        found = [self.step(("steps", number), entry) for number, entry in enumerate(listed)]
        return tuple(entry for entry in found if entry is not None)

    def step(self, path: Path, value: object) -> StepEntry | None:
        """One step; None where there are problems."""
        table = self.table(path, value)
        if table is None:
            return None
        mechanism = self.choice(path, table, "mechanism", mechanisms(), _OF_STEP)
        built = StepEntry(mechanism or _PROBE)
        if mechanism is not None and not self.builds(path, mechanism, lambda: built.step):
            mechanism, built = None, StepEntry(_PROBE)
        elif mechanism is not None and not set(mechanism.mapping) <= set(mechanisms()[mechanism.name].names):
            mechanism = described(built.step)  # written in another way
        count = self.checked((*path, "count"), check_count, table.get("count", 1))
        sampling = self.sampling((*path, "sampling"), table.get("sampling", "none"))
        sampled = None if sampling == _UNSAMPLED else sampling
        whole_step = replace(built, sampling=sampled)
        if sampled is not None and not self.builds((*path, "sampling"), sampled, lambda: whole_step.step):
            sampling = None
        texts = {key: self.checked((*path, key), check_text, table[key]) for key in ("name", "note") if key in table}
        if mechanism is None or count is None or sampling is None:
            return None
        return StepEntry(mechanism, sampled, count, **{key: text or "" for key, text in texts.items()})

    def builds(self, path: Path, choice: Choice, build: Callable[[], object]) -> bool:
        """Whether the library accepts the parameters; its refusal goes to the line of the parameter it names."""
        try:
            build()
        except (TypeError, ValueError, ZeroDivisionError) as error:
            named = next((name for name in choice.mapping if str(error).startswith(name)), None)
            self.problem(path if named is None else (*path, named), str(error))
            return False
        return True

    def choice(
        self, path: Path, table: Mapping[str, Any], key: str, known: Mapping[str, Entry], others: tuple[str, ...] = ()
    ) -> Choice | None:
        """What a table names under a key, with its parameters, where it can be made; the table may hold other keys."""
        others = (key, *others)
        entry = self.entry((*path, key), table.get(key), known)
        if entry is None:  # what it allows is not known: only what nothing allows is noted
            ways = [way for each in known.values() for way in (each, *each.others)]
            self.unknown(path, table, others, tuple(name for way in ways for name in way.names))
            return None
        whole, entry = entry, entry.written_with(table.keys() - set(others))
        given = [name for name in table if name not in (*others, *entry.names)]
        beside = {name: way for way in (whole, *whole.others) for name in given if name in way.names}
        for way in dict.fromkeys(beside.values()):
            one, other = (" and ".join(each.required) for each in (entry, way))
            self.problem(path, f"{_named(path)} says the same in two ways: give {one}, or {other}, not both")
        self.unknown(path, table, (*others, *entry.names, *beside))
        found: dict[str, Value] = {}
        for parameter in entry.parameters:
            if parameter.name in table:
                value = self.value((*path, parameter.name), table[parameter.name], parameter.kind, parameter.choices)
                if value is not None:
                    found[parameter.name] = value
            elif parameter.required and parameter.name not in entry.meant(table):
                self.problem(path, f"{parameter.name} is missing for {entry.name!r}: {parameter.summary or 'required'}")
        return Choice.of(entry.name, **found) if set(entry.required) <= found.keys() else None

    def named(self, path: Path, value: object, key: str, known: Mapping[str, Entry]) -> Choice | None:
        """What a table names under a key, where it can be made and the library accepts it."""
        table = self.table(path, value)
        choice = None if table is None else self.choice(path, table, key, known)
        if choice is None or not self.builds(path, choice, lambda: known[choice.name].build(**choice.arguments)):
            return None
        return choice

    def entry(self, path: Path, name: object, known: Mapping[str, Entry]) -> Entry | None:
        """The entry of that name, or the one that a misspelt name stands for, so that its parameters are checked."""
        what = path[-1]
        if name is None:
            self.problem(path, f"{what} is missing; allowed: {', '.join(known)}")
        elif not isinstance(name, str):
            self.problem(path, f"{what} must be a name in quotes, got {name!r}")
        elif name not in known:
            self.problem(path, f"unknown {what} {name!r}{suggestion(name, known)}")
            return known.get(meant(name, known) or "")
        else:
            return known[name]
        return None

    def value(self, path: Path, value: object, kind: str, choices: tuple[str, ...]) -> Value | None:
        """A parameter's value if it is of the right kind."""
        value = _unquoted_infinity(value, kind)
        allowed, is_allowed = _KINDS[kind]
        value = whole(value) if kind == "integer" and whole(value) is not None else value
        if not is_allowed(value) or (choices and value not in choices):
            allowed = f"one of {', '.join(map(repr, choices))}" if choices else allowed
            self.problem(path, f"{path[-1]} must be {allowed}, got {value!r}")
            return None
        return tuple(value) if isinstance(value, list) else cast("Value", value)

    def sampling(self, path: Path, value: object) -> Choice | None:
        """A sampling scheme, as a name or a table; `UNSAMPLED` for none."""
        if isinstance(value, str):
            value = {"scheme": value}
        if value == {"scheme": "none"}:
            return _UNSAMPLED
        table = self.table(path, value)
        return None if table is None else self.choice(path, table, "scheme", samplings())

    def tuning(self, value: object) -> Choice | None:
        """How often the steps are run before the best run is released."""
        return self.named(("tuning",), value, "runs", counts())

    def guarantee(self, value: object) -> dict[str, Any]:
        """The guarantee asked for, as keywords of `Specification`."""
        path: Path = ("guarantee",)
        table = self.table(path, value) or {}
        self.unknown(path, table, (*GUARANTEE, "delta", "epsilon"))
        found = self.stated(path, table, GUARANTEE)
        for key, plural, check in (("delta", "deltas", check_delta), ("epsilon", "epsilons", check_epsilon)):
            if key in table:
                found[plural] = self.levels((*path, key), table[key], check)
        return found

    def levels(self, path: Path, value: object, check: Callable[[Any], Any]) -> tuple[float, ...]:
        """One number or a list of them."""
        many = isinstance(value, list)
        found: list[float] = []
        for number, given in enumerate(value if isinstance(value, list) else [value]):
            place: Path = (*path, number) if many else path
            item = _unquoted_infinity(given, "number")
            if not is_number(item):
                self.problem(place, f"{path[-1]} must be a number or a list of numbers, got {item!r}")
                continue
            level = self.checked(place, lambda _, value: check(value), item)
            if level is not None:
                found.append(float(level) + 0.0)  # -0 is 0
        if many and not value:
            self.problem(path, f"{path[-1]} is an empty list; give at least one number")
        return tuple(found)

    def accountant(self, value: object) -> Choice:
        """The accountant, as a name or a table."""
        if isinstance(value, str):
            value = {"method": value}
        given = {"method": AUTOMATIC, **value} if isinstance(value, dict) else value
        found = self.named(("accountant",), given, "method", {AUTOMATIC: AUTOMATIC_ENTRY, **accountants()})
        return found or Choice(AUTOMATIC)

    def circumstances(self, value: object) -> Circumstances:
        """What accounting cannot see."""
        path: Path = ("circumstances",)
        table = self.table(path, value) or {}
        self.unknown(path, table, tuple(STATED))
        return Circumstances(**self.stated(path, table, STATED))

    def stated(self, path: Path, table: Mapping[str, Any], kinds: Kinds) -> dict[str, Any]:
        """What a table says of things of known kinds."""
        found: dict[str, Any] = {}
        for key in filter(kinds.__contains__, table):
            found[key] = self.checked((*path, key), kinds[key][0].check, table[key])
        return found


_UNSAMPLED = Choice("none")
_PROBE = Choice.of("gaussian", noise_multiplier=1.0)  # in place of a mechanism that cannot be made

_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "number": ("a number", is_number),
    "integer": ("an integer", lambda value: is_number(value) and isinstance(value, int)),
    "string": ("a text in quotes", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "numbers": (
        'a list of numbers, or of fractions such as "1/3"',
        lambda value: isinstance(value, list) and all(map(_is_number_or_fraction, value)),
    ),
}
"""What stands for a kind of parameter: in words, and whether a value does."""


def _named(path: Path) -> str:
    """A path as a person writes it: ``steps[1].sampling`` (counted from 1), or the file's top level."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "the top level"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return f"{value!r}" if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"


def _unquoted_infinity(value: object, kind: str) -> object:
    """JSON cannot hold infinity: there it is the text ``"inf"``."""
    return float(value) if kind == "number" and isinstance(value, str) and value in {"inf", "-inf", "nan"} else value


def _is_number_or_fraction(item: object) -> bool:
    return is_number(item) or (isinstance(item, str) and _FRACTION.fullmatch(item) is not None)
