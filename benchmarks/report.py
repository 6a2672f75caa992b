"""Comparisons as tables to read and as JSON to compute with. Tables are Markdown, aligned."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.summary import Comparison, Row

HEADER = (
    "method",
    "lower",
    "upper",
    "width",
    "above truth",
    "time",
    "x ours",
    "processor",
    "x ours",
    "peak MiB",
    "verdict",
)
LONGEST_MESSAGE = 64


def table(comparison: Comparison) -> str:
    """One case: what was asked, the truth, and a line for each method."""
    case = comparison.case
    truth = f"{case.truth.value:.12g} ± {case.truth.radius:.1g}"
    lines = [cells(comparison, row) for row in comparison.rows]
    return f"### {case.name}: {case.why}\n\n{question(comparison)}; true epsilon {truth}\n\n{aligned([HEADER, *lines])}"


def question(comparison: Comparison) -> str:
    """The case in words."""
    if comparison.case.question in {"allocated", "responses"}:  # whose steps are not sampled Gaussians
        return comparison.case.words
    steps, first = comparison.case.steps, comparison.case.steps[0]
    if len(steps) > 1:
        noise = f"noise {first.noise_multiplier:g} to {steps[-1].noise_multiplier:g} ({len(steps)} distinct)"
    else:
        noise = f"noise {first.noise_multiplier:g}"
    rate = "no sampling" if first.rate == 1.0 else f"rate {first.rate:g}"
    count = f"{sum(step.count for step in steps):,} steps"
    asked = f"; {comparison.case.words}" if comparison.case.words else ""
    return f"{noise}, {rate}, {count}, delta {comparison.case.delta:g}, add-remove{asked}"


def cells(comparison: Comparison, row: Row) -> tuple[str, ...]:
    """One line of the table; an estimate without bounds stands in the upper column with a ~."""
    answer, truth, ratio = row.answer, comparison.case.truth, comparison.ratio(row)
    upper = number(answer.upper, "10.9g") if answer.upper is not None else number(answer.estimate, "10.9g", "~")
    return (
        row.method.label,
        number(answer.lower, "10.9g"),
        upper,
        number(row.width, ".1e"),
        number(row.excess(truth), "+.1e"),
        seconds(row.seconds),
        number(ratio, ".3g"),
        seconds(row.processor_seconds),
        number(comparison.processor_ratio(row), ".3g"),
        number(row.peak_mib, ".0f"),
        shortened(row.verdict(truth)),
    )


def shortened(message: str) -> str:
    """A message that leaves the table legible; the JSON file has all of it."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."


def number(value: float | None, form: str, prefix: str = "") -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else prefix + format(value, form).strip()


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return "-"
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up; text to the left, numbers to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    last = len(widths) - 1
    rows = []
    for line in lines:
        padded = [
            text.ljust(width) if i in {0, last} else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        rows.append("| " + " | ".join(padded) + " |")
    rule = [("-" * width) if i in {0, last} else ("-" * (width - 1) + ":") for i, width in enumerate(widths)]
    return "\n".join([rows[0], "| " + " | ".join(rule) + " |", *rows[1:]])


def findings(comparisons: Iterable[Comparison]) -> str:
    """The two things a reader should not have to search for: who beats us, and whose number is below the truth."""
    faster, wrong = [], []
    for comparison in comparisons:
        name, truth = comparison.case.name, comparison.case.truth
        for row in comparison.faster_peers():
            ratio, excess = comparison.ratio(row), row.excess(truth)
            faster.append(f"{name}: {row.method.label} takes {ratio:.2g} of our time, {excess:+.2g} from the truth")
        wrong += [
            f"{name}: {row.method.label} {row.verdict(truth)}" for row in comparison.rows if row.under_reports(truth)
        ]
    return "\n\n".join([bullets("Where a peer is faster than we are", faster), bullets("Below the truth", wrong)])


def bullets(title: str, items: Sequence[str]) -> str:
    """A titled list, which says so when it is empty."""
    return f"### {title}\n\n" + "\n".join(f"- {item}" for item in items or ["nowhere"])


def write_json(comparisons: Sequence[Comparison], path: Path) -> None:
    """Every run of every method, with the versions that ran."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"python": platform.python_version(), "cases": [as_json(comparison) for comparison in comparisons]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def as_json(comparison: Comparison) -> dict[str, object]:
    """One case as plain values."""
    results = [
        {
            "method": row.key,
            "options": dict(row.method.options),
            "median_seconds": row.seconds,
            "median_processor_seconds": row.processor_seconds,
            "times_ours": comparison.ratio(row),
            "processor_times_ours": comparison.processor_ratio(row),
            "verdict": row.verdict(comparison.case.truth),
            "runs": [outcome.as_json() for outcome in row.outcomes],
        }
        for row in comparison.rows
    ]
    return {**asdict(comparison.case), "results": results}
