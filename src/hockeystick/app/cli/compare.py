"""One run under several accountants, relations and sampling schemes.

The same run under several accountants, neighbouring relations and sampling schemes, in one table. Every combination is
a row; where no theorem covers one, the row says so.

  hockeystick compare spec.toml
  hockeystick compare spec.toml --adjacencies all --samplings none,poisson
  hockeystick compare spec.toml --accountants automatic,lattice:spacing=1e-3
"""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, final

from hockeystick.app.cli.answer import opening, print_json, status_of, table
from hockeystick.app.cli.options import add_specification, in_file
from hockeystick.app.cli.parsing import WIDTH, CommandError, Parser, Status, delta, epsilon, option
from hockeystick.app.report.numbers import bracket, nearest, plain, result_document, rounded_up
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.reader import accountant_of
from hockeystick.app.spec.registry import AUTOMATIC, accountants, samplings, schemes
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import ADJACENCIES
from hockeystick.errors import HockeystickError, check_choice, one_line
from hockeystick.progress import Progress, is_terminal

_SIMULATION = "monte-carlo"
_SIZES = {"rate", "batch_size", "population"}
"""What a scheme may ask for that can be known from another one's parameters."""


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    methods = (
        "accountants, separated by commas, with parameters after a colon; where one has several parameters, commas"
        " stand between those and semicolons between accountants: monte-carlo:samples=1000,seed=1;moments. The default,"
        f" all, is every one that needs no parameters, but {_SIMULATION}, which may take"
        f" minutes, has to be named. Known: {AUTOMATIC}, {', '.join(accountants())}"
    )
    ways = (
        "sampling schemes, separated by commas, or all; parameters of their own after a colon, such as"
        f" cut-batches:largest_batch=600. Known: none, {', '.join(samplings())}"
    )
    relations = f"relations, separated by commas, or all: {', '.join(ADJACENCIES)}"
    parser.add_argument("--accountants", metavar="A;A", help=methods)
    parser.add_argument("--adjacencies", metavar="R,R", help=relations)
    parser.add_argument("--samplings", metavar="S,S", help=ways)
    asked = parser.add_mutually_exclusive_group()
    option(asked, "--delta", delta, "D", "compare epsilon at this delta")
    option(asked, "--epsilon", epsilon, "E", "compare delta at this epsilon")


def run(options: argparse.Namespace) -> Status:
    """Account every combination and print the table."""
    specification = in_file(options.specification)
    quantity, level = _asked(options, specification)
    combinations = list(_combinations(options, specification, (level,) if quantity == "epsilon" else ()))
    keys = [(one.adjacency, name, one.accountant.text) for name, one in combinations]
    alike = [column for column in (0, 1) if len({key[column] for key in keys}) == 1]  # said once, above the table
    above = [*dict.fromkeys(opening(one.broken) for _, one in combinations), _title(keys, alike, quantity, level)]
    as_they_come = not options.json and is_terminal(sys.stdout)
    rows = _Rows(keys, alike, quantity)
    lines = []
    with Progress("comparing") as progress:
        for name, one in progress.each(combinations):
            progress.doing(f"comparing, now {one.accountant.text}")
            lines.append(_line(name, one, quantity, level))
            if as_they_come:
                with progress.aside():
                    print("".join(above if len(lines) == 1 else ()) + rows.next(lines[-1]), flush=True)
    if options.json:
        print_json({"quantity": quantity, "at": level, "rows": list(map(_document, lines))})
        return status_of(*(one for _, one in combinations))
    if not as_they_come:
        print("".join(above) + _folded(_heads(quantity), [_row(line) for line in lines], alike))
    for reason in dict.fromkeys(line["reason"] for line in lines if line["reason"]):
        print("\n" + textwrap.fill(reason, WIDTH, initial_indent="- ", subsequent_indent="  "))
    return status_of(*(one for _, one in combinations))


def _heads(quantity: str) -> tuple[str, ...]:
    return "relation", "sampling", "accountant", quantity, "bracket", "worth", "time"


def _title(keys: Sequence[Sequence[str]], alike: Sequence[int], quantity: str, level: float) -> str:
    said = "".join(f", {_heads(quantity)[column]} {keys[0][column]}" for column in alike)
    return f"{quantity} at {'delta' if quantity == 'epsilon' else 'epsilon'} {plain(level)}{said}\n\n"


@final
class _Rows:
    """The table as its rows come, on a terminal: one for each relation and sampling, as wide as answers mostly are."""

    def __init__(self, keys: Sequence[Sequence[str]], alike: Sequence[int], quantity: str) -> None:
        self._widths = (max(len("accountant"), *(len(key[2]) for key in keys)), 10, 18, 10, 0)
        self._left = [column for column in (0, 1) if column not in alike]
        self._heads = _heads(quantity)[2:]
        self._name: str | None = None

    def next(self, line: dict[str, Any]) -> str:
        """One more row, under what begins with it."""
        row = _row(line)
        name, above = ", ".join(row[column] for column in self._left), ""
        if name != self._name:
            blank = "" if self._name is None else "\n"
            above = blank + "".join(f"{text}\n" for text in (name, self._aligned(self._heads)) if text)
            self._name = name
        return above + self._aligned(row[2:])

    def _aligned(self, cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)).rstrip()


def _folded(heads: Sequence[str], rows: Sequence[Sequence[str]], alike: Sequence[int]) -> str:
    """The table without what is said above it; where that is too wide, a table for each relation and sampling."""
    left = [column for column in range(len(heads)) if column not in alike]
    whole = table([heads[column] for column in left], [[row[column] for column in left] for row in rows])
    if max(map(len, whole.splitlines())) <= WIDTH:
        return whole
    parts: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        parts.setdefault(", ".join(row[column] for column in left if column < 2), []).append(row[2:])
    return "\n\n".join(f"{name}\n{table(heads[2:], part)}".lstrip("\n") for name, part in parts.items())


def _asked(options: argparse.Namespace, specification: Specification) -> tuple[str, float]:
    if options.delta is not None:
        return "epsilon", options.delta
    if options.epsilon is not None:
        return "delta", options.epsilon
    if specification.questions:
        return specification.questions[0]
    raise CommandError(f"{options.specification}: error: no delta and no epsilon: give --delta or --epsilon")


def _combinations(
    options: argparse.Namespace, specification: Specification, deltas: tuple[float, ...]
) -> Iterator[tuple[str, Specification]]:
    for adjacency in _adjacencies(options.adjacencies, specification):
        for name, sampled in list(_sampled(options.samplings, specification)):
            for accountant in _accountants(options.accountants, specification):
                yield name, replace(sampled, adjacency=adjacency, accountant=accountant, deltas=deltas)


def _adjacencies(given: str | None, specification: Specification) -> list[str]:
    if given is None:
        return [specification.adjacency]
    names = ADJACENCIES if given == "all" else map(str.strip, given.split(","))
    return [check_choice("--adjacencies", name, ADJACENCIES) for name in names]


def _accountants(given: str | None, specification: Specification) -> list[Choice]:
    """The accountants asked for; all that need no parameters and no simulation where nothing is."""
    if given is not None and given != "all":
        return [accountant_of(part, "--accountants") for part in _listed(given)]
    own = specification.accountant
    apart = {own.name, _SIMULATION} | ({"certified"} if own.name == AUTOMATIC else set())  # what automatic chooses
    known = [entry for entry in accountants().values() if entry.name not in apart]
    return [own, *(Choice(entry.name) for entry in known if not entry.required)]


def _listed(given: str) -> list[str]:
    """Names with their parameters, separated by semicolons where one has several, else by commas."""
    by_semicolon = ";" in given or "," in given.partition(":")[2]
    parts = [part.strip() for part in given.split(";" if by_semicolon else ",")]
    return [part for part in parts if part] or parts[:1]


def _sampled(given: str | None, specification: Specification) -> Iterator[tuple[str, Specification]]:
    """The specification with every step that is sampled at all sampled in another way."""
    if given is None:
        own = ("none" if entry.sampling is None else entry.sampling.name for entry in specification.steps)
        yield "+".join(dict.fromkeys(own)), specification
        return
    of_sizes = [name for name, scheme in samplings().items() if set(scheme.required) <= _SIZES]
    for written in ["none", *of_sizes] if given == "all" else _listed(given):
        name, _, own_values = written.partition(":")
        check_choice("--samplings", name, ("none", *samplings()))
        more = _own_parameters(name, own_values)
        steps = tuple(_resampled(entry, name, specification, more) for entry in specification.steps)
        yield written, replace(specification, steps=steps)


def _refused(reason: str) -> CommandError:
    return CommandError(f"hockeystick compare: error: {reason}")


def _own_parameters(name: str, written: str) -> dict[str, float | int]:
    """What stands after the colon: whole numbers and rates that a scheme alone asks for."""
    found: dict[str, float | int] = {}
    for item in filter(None, written.split(",")):
        key, _, value = item.partition("=")
        parameter = samplings()[name].parameter(key.strip()) if name != "none" else None
        if parameter is None:
            raise _refused(f"--samplings {name} has no parameter {key.strip()!r}")
        try:
            found[parameter.name] = int(value) if parameter.kind == "integer" else float(value)
        except ValueError:
            kind = "an integer, in digits" if parameter.kind == "integer" else "a number"
            raise _refused(f"--samplings {name}: {parameter.name} must be {kind}, got {value!r}") from None
    return found


def _resampled(entry: StepEntry, name: str, specification: Specification, more: dict[str, float | int]) -> StepEntry:
    """A step with another sampling scheme of the same rate."""
    if entry.sampling is None or (entry.sampling.name == name and not more):
        return entry
    total = entry.count * entry.step.releases
    if name == "none":
        return replace(entry, sampling=None, count=total)
    known = _sizes(entry.sampling, specification) | more
    if schemes()[name].step_is_run and "bins" in known and total % int(known["bins"]) == 0:
        known["epochs"] = total // int(known["bins"])
    needed = [one.name for one in samplings()[name].parameters if one.required or one.name in {*more, "epochs"}]
    missing = [parameter for parameter in needed if parameter not in known]
    if missing:
        own = f", or {missing[0]} after a colon: {name}:{missing[0]}=..." if len(missing) == 1 else ""
        raise _refused(
            f"--samplings {name} needs {' and '.join(missing)}: give batch_size and population under sampling, or"
            f" examples under [circumstances]{own}"
        )
    sampled = replace(entry, sampling=Choice(name, tuple((parameter, known[parameter]) for parameter in needed)))
    try:
        releases = sampled.step.releases
    except ValueError as error:
        raise _refused(f"--samplings {name}: {error}") from None
    # the same number of releases: a step of one scheme may be an epoch of another's
    count = Fraction(total, releases)
    if count.denominator != 1:
        raise _refused(
            f"{total} steps are not a whole number of epochs of {releases} batches each, which {name} sampling needs"
        )
    return replace(sampled, count=int(count))


def _sizes(sampling: Choice, specification: Specification) -> dict[str, float | int]:
    """Every name under which a scheme may ask for the rate, the batch size or the number of records."""
    values = {name: value for name, value in sampling.parameters if isinstance(value, int | float)}
    records = values.get("population", specification.circumstances.examples)
    batch, chance = values.get("batch_size"), values.get("rate")
    each = values.get("steps", values.get("bins"))
    if records is not None:
        if batch is None and chance is not None and float(chance * records).is_integer():
            batch = int(chance * records)
        if chance is None and batch is not None:
            chance = batch / records
        if each is None and batch is not None and records % batch == 0:
            each = int(records // batch)
    if chance is None and each is not None:
        chance = 1.0 / each
    found = {"rate": chance, "batch_size": batch, "population": records, "steps": each, "bins": each}
    return {name: value for name, value in found.items() if value is not None}


def _line(name: str, specification: Specification, quantity: str, level: float) -> dict[str, Any]:
    """What came of a combination, as JSON holds it but for the result."""
    start = time.perf_counter()
    reason, result = "", None
    try:
        result = getattr(specification.curve, quantity)(level)
    except (HockeystickError, ValueError, ModuleNotFoundError) as error:
        reason = one_line(error)
    return {
        "broken_assumptions": list(specification.broken),
        "adjacency": specification.adjacency,
        "sampling": name,
        "accountant": specification.accountant.text,
        "result": result,
        "reason": reason,
        "seconds": time.perf_counter() - start,
    }


def _document(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"result": None if line["result"] is None else result_document(line["result"])}


def _row(line: dict[str, Any]) -> tuple[str, ...]:
    head = (line["adjacency"], line["sampling"], line["accountant"])
    seconds = f"{line['seconds'] * 1e3:.0f} ms"
    result: Bound | Estimate | None = line["result"]
    if result is None:
        return (*head, "-", "-", "no answer (below)", seconds)
    if isinstance(result, Bound):
        worth = "broken (above)" if line["broken_assumptions"] else "certified"
        return (*head, rounded_up(float(result.upper)), bracket(result), worth, seconds)
    error = float(result.error)
    width = "-" if math.isnan(error) else f"+- {nearest(error, 2)}"  # NaN: no error is known
    return (*head, nearest(float(result.value)), width, "estimate", seconds)
