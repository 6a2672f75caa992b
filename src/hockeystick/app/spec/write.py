"""Specifications from Python and back into files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hockeystick.app.report.numbers import in_quotes, jsonable
from hockeystick.app.spec.circumstances import Circumstances, check_text
from hockeystick.app.spec.entries import Choice, StepEntry, described, described_count
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.registry import AUTOMATIC
from hockeystick.composition import ADJACENCIES, Composition, Step
from hockeystick.errors import check_choice, check_count, check_delta, check_epsilon, check_positive
from hockeystick.mechanisms.best_of import BestOf
from hockeystick.sampling import Sampled
from hockeystick.state import write_whole


def of_run(
    run: Step | Composition,
    adjacency: str = "add-remove",
    *,
    delta: float | Sequence[float] = (),
    epsilon: float | Sequence[float] = (),
    tolerance: float = 1e-3,
    unit: str = "example",
    title: str = "",
    circumstances: Circumstances | None = None,
    group_size: int = 1,
) -> Specification:
    """The specification of a run that was put together in Python.

    Parameters
    ----------
    run : Step or Composition
        What is released; of the best of many runs (`hockeystick.select_best`) it is the whole.
    adjacency : str
        The neighbouring relation.
    delta, epsilon : float or sequence of float
        Where to read the curve.
    tolerance : float
        Width of the bracket asked for.
    unit : str
        What one record is.
    title : str
        What the run is called.
    circumstances : Circumstances, optional
        What accounting cannot see.
    group_size : int
        How many records neighbouring datasets differ by, at most.

    Raises
    ------
    TypeError
        Where a file cannot hold a step, such as one with the caller's own pair.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(to_toml(of_run(hs.Gaussian(1.0).poisson(0.01) * 2000, delta=1e-5)))
    version = 1
    <BLANKLINE>
    [[steps]]
    mechanism = "gaussian"
    noise_multiplier = 1.0
    sampling = { scheme = "poisson", rate = 0.01 }
    count = 2000
    <BLANKLINE>
    [guarantee]
    adjacency = "add-remove"
    unit = "example"
    delta = 1e-05
    <BLANKLINE>
    [accountant]
    method = "automatic"
    tolerance = 0.001
    <BLANKLINE>
    """
    if not isinstance(run, Step | Composition):
        raise TypeError(f"run must be a step or a composition, got {run!r}")
    stated = Circumstances() if circumstances is None else circumstances
    if not isinstance(stated, Circumstances):
        raise TypeError(f"circumstances must be of type Circumstances, got {circumstances!r}")
    tuned, found = None, (run * 1).steps
    if len(found) == 1 and isinstance(found[0][0], BestOf) and found[0][1] == 1:
        tuned, found = described_count(found[0][0].count), found[0][0].run.steps
    return Specification(
        tuple(_entry(step, count) for step, count in found),
        check_choice("adjacency", adjacency, ADJACENCIES),
        check_text("unit", unit),
        tuple((check_delta(delta).ravel() + 0.0).tolist()),  # -0 is 0
        tuple((check_epsilon(epsilon).ravel() + 0.0).tolist()),
        Choice.of(AUTOMATIC, tolerance=check_positive("tolerance", tolerance)),
        check_text("title", title) if title != "" else "",
        stated,
        tuned,
        check_count("group_size", group_size),
    )


def _entry(step: Step, count: int) -> StepEntry:
    if isinstance(step, Sampled):
        return StepEntry(described(step.mechanism), described(step), count)
    return StepEntry(described(step), None, count)


def save(specification: Specification, path: str | Path) -> None:
    """Write a specification to a file, all of it or nothing: JSON where its name ends in ``.json``, else TOML."""
    if not isinstance(specification, Specification):
        raise TypeError(f"specification must be a Specification, such as of_run makes, got {specification!r}")
    as_json = Path(path).suffix == ".json"
    text = json.dumps(jsonable(specification.document()), indent=2) + "\n" if as_json else to_toml(specification)
    write_whole(path, text)


def to_toml(specification: Specification) -> str:
    """The specification as a TOML file."""
    document = specification.document()
    tables = [("[[steps]]", step) for step in document.pop("steps")]
    tables += [(f"[{name}]", document.pop(name)) for name in [*document] if isinstance(document[name], dict)]
    blocks = [_lines(document), *([head, *_lines(table)] for head, table in tables)]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in table.items()]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return in_quotes(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def from_event(event: Any, adjacency: str = "add-remove", **settings: Any) -> Specification:
    """The specification of an event of dp-accounting, in any form `hockeystick.from_dp_event` takes.

    Other settings are those of `of_run`.
    """
    from hockeystick.integrations.dp_events import from_dp_event  # loaded where events are read

    return of_run(from_dp_event(event, adjacency), adjacency, **settings)
