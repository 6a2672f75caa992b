"""The receipt of a data set: what a ledger has admitted to it, entry by entry, what that adds up to, and a picture."""

from __future__ import annotations

import json
import math
from typing import final

from hockeystick.app.report.charts import Axis, Points, Series, chart
from hockeystick.app.report.content import Row, capital
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.markup import Markup, tag, text
from hockeystick.app.report.numbers import count_text, jsonable, number_of, plain, rounded_down, rounded_up
from hockeystick.app.report.page import document, items, rows, said_broken, table
from hockeystick.app.report.receipt import receipt, software, today
from hockeystick.app.report.releases import releases
from hockeystick.app.report.words import IF_HELD, known_of_none, relation
from hockeystick.app.spec.circumstances import Circumstances
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.write import of_run
from hockeystick.composition import compose
from hockeystick.ledger import DataSet, Ledger, LedgerError
from hockeystick.ledger.rules import promise

_SHOWN = 60  # entries in the picture, and rows of the history
_HEADS = ("Entry", "When (UTC)", "Who", "What", "Releases", "For what")


@final
class Account:
    """What a ledger says of one data set, read once.

    Parameters
    ----------
    ledger : Ledger
        Where it is.
    name : str
        Of the data set.
    period, partition : str
        As `Ledger.total` takes them.
    """

    def __init__(self, ledger: Ledger, name: str, *, period: str | None = None, partition: str = "") -> None:
        self.total = ledger.total(name, period=period, partition=partition)  # refuses a data set that there is not
        self.known: DataSet = next(one for one in ledger.datasets() if one.name == name)
        self.runs = ledger.runs(name, period=period, partition=partition)
        self.progress = ledger.progress(name, period=period, partition=partition, most=_SHOWN)
        self.entries = ledger.history(name)
        self.open = ledger.open_reservations(name)
        self.where = "".join(f", {words}" for words in (self.total.period, partition) if words)

    @property
    def adaptive(self) -> bool:
        """Whether releases may depend on results, so that a filter admits them."""
        return self.known.rule != "in-advance"

    def specification(self) -> Specification:
        """Everything that counts as one run; under a filter, the guarantee of its budget."""
        known = self.known
        if self.adaptive and not self.total.within_budget:
            raise LedgerError(f"{known.name!r} is over its budget: its filter proves nothing any more")
        if not self.runs:
            raise LedgerError(f"nothing was released of {known.name!r}: there is nothing to account")
        notes = [f"Of {self.total.period} alone: each {known.period} has a budget of its own."] if known.period else []
        if self.adaptive:
            private = "all together are as private as this step"
            notes.append(f"A {known.rule} filter admits releases, chosen adaptively: {private}")
        return of_run(
            promise(known.budget, known.rule, known.adjacency) if self.adaptive else compose(list(self.runs.items())),
            known.adjacency,
            delta=[delta for _, delta in known.budget.points] or known.budget.delta_read,
            unit=known.unit,
            title=known.name,
            circumstances=Circumstances(adaptive="no", dataset=known.name, notes=" ".join(notes) or None),
        )

    def guarantee(self) -> list[Row]:
        """What is promised."""
        known = self.known
        rule = f"chosen adaptively, through a {known.rule} filter" if self.adaptive else "all are fixed in advance"
        return [
            Row(f"Proved, {IF_HELD}" if self.total.broken else "Proved", self.total.statement),
            Row("Budget", f"{known.budget} for each {known.unit}"),
            Row("It holds", f"for each {known.period} alone" if known.period else "for all time"),
            Row("Relation", relation(known.adjacency, f"one {known.unit}", "a null record")),
            Row("How releases are chosen", rule),
        ]

    def kinds(self) -> list[Row]:
        """What was released, and how often."""
        if not self.runs:
            return [Row("Nothing", "so far")]
        run = of_run(compose(list(self.runs.items())), self.known.adjacency, unit=self.known.unit)
        return [
            Row(one.times, "; ".join(filter(None, (one.noise, f"sampling: {one.sampling}", one.kinds))))
            for one in releases(run)
        ]

    def history(self) -> list[tuple[str, ...]]:
        """The last entries, newest first."""
        lines: list[tuple[str, ...]] = []
        for entry in reversed(self.entries[-_SHOWN:]):
            action = entry.action if entry.refers is None else f"{entry.action} of {entry.refers}"
            counted = count_text(sum(entry.runs.values())) if entry.runs else ""
            when = entry.when[:16].replace("T", " ")
            lines.append((str(entry.number), when, entry.who, action, counted, entry.why))
        return lines


def data_set_page(account: Account) -> str:
    """The receipt as one HTML page that needs nothing else."""
    name, entries = account.known.name, account.entries
    parts = [
        tag("header", tag("p", f"Privacy receipt of a data set, {today()}"), tag("h1", name)),
        *said_broken(account.total.broken),
        _claim(account),
        *_open(account),
        tag("h2", "What is promised, to whom"),
        rows(account.guarantee()),
        *_picture(account),
        tag("h2", "What was released"),
        rows(account.kinds()),
        tag("h2", "History"),
        table(_HEADS, account.history()),
    ]
    if len(entries) > _SHOWN:
        parts.append(tag("p", f"The last {_SHOWN} of {count_text(len(entries))} entries."))
    parts += [
        tag("h2", "Check it"),
        tag(
            "p",
            text("Run ", tag("code", "hockeystick ledger verify"), " on the ledger: every entry is compared with its"),
            " hash, and every total is computed again. Nothing was cut off at the end if the last hash is still:",
        ),
        tag("p", tag("code", entries[-1].hash), class_="sum"),
        tag("footer", tag("p", f"Made with {', '.join(f'{tool} {version}' for tool, version in software().items())}.")),
    ]
    return document(f"{name}: privacy receipt of a data set", parts)


def data_set_json(account: Account) -> str:
    """The same as data."""
    known, total = account.known, account.total
    contents = {
        "broken_assumptions": total.broken,
        "dataset": known.document(),
        "statement": total.statement,
        "within_budget": total.within_budget,
        "delta": total.delta,
        "epsilon": {"lower": float(total.epsilon.lower), "upper": float(total.epsilon.upper)},
        "history": [{"number": entry.number, **json.loads(entry.content)} for entry in account.entries],
        "progress": [{"number": entry.number, "upper": float(bound.upper)} for entry, bound in account.progress],
        "head": account.entries[-1].hash,
    }
    return json.dumps(jsonable(contents), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def data_set_record(account: Account) -> str:
    """A draft record for the OpenDP deployments registry."""
    if account.total.broken:
        raise LedgerError(
            f"{account.known.name!r} is not certified, and a record would say that it is: {account.total.broken[0]}"
            " Correct that entry first: hockeystick ledger correct"
        )
    return deployment_record(receipt(account.specification()))


def _claim(account: Account) -> Markup:
    total = account.total
    high, low = rounded_up(float(total.epsilon.upper)), rounded_down(float(total.epsilon.lower))
    releases = number_of(total.releases, "release")
    kind, worth = ("proved", "certified") if total.within_budget else ("refuted", "over budget")
    if total.broken:
        kind, worth = "refuted", f"{'not certified' if total.within_budget else worth}, true only {IF_HELD}"
    none = f"no finite epsilon {known_of_none(float(total.epsilon.lower))}"
    figure = f"epsilon = {high}" if math.isfinite(float(total.epsilon.upper)) else none
    in_advance = "had all releases been fixed in advance" if account.adaptive else ""
    assumed = "".join(f"{words}, " for words in (IF_HELD if total.broken else "", in_advance) if words)
    lies = f"{'would' if assumed else 'is proved to'} lie between {low} and {high}"
    if math.isinf(float(total.epsilon.lower)):
        lies = "would be infinite" if assumed else "is infinite"
    together = f"all releases {f'in {total.period}' if total.period else 'together'}"
    words = f"{assumed}the true epsilon of {together} {lies}."
    if account.adaptive and total.within_budget:
        words = "a filter promises its whole budget from the first release on: what is left is for later releases."
    promised = f"{IF_HELD}, {total.statement}" if total.broken else total.statement
    badge = tag("span", worth, class_=f"badge {kind}")
    return tag(
        "section",
        tag("p", f"{figure} at delta = {plain(total.delta)} ", badge, class_="figure"),
        tag("blockquote", f"{releases} so far{account.where}. {capital(promised)}."),
        tag("p", capital(words), class_="worth"),
        class_=f"claim {kind}",
    )


def _open(account: Account) -> list[Markup]:
    """Runs of which nobody has said how they ended."""
    if not account.open:
        return []
    said = [f"entry {entry.number}, {entry.who}, {entry.when[:10]}: {entry.why}" for entry in account.open]
    return [tag("h2", "Reserved, and neither committed nor released"), items(said, class_="caution")]


def _picture(account: Account) -> list[Markup]:
    """Epsilon against entries: stairs where every change is in it, else dots."""
    found = [(float(entry.number), float(bound.upper)) for entry, bound in account.progress]
    finite = [epsilon for _, epsilon in found if math.isfinite(epsilon)]
    if not finite:
        return []
    delta, last = account.known.budget.delta_read, account.entries[-1].number + 1.0
    whole = len(account.progress) < _SHOWN
    limits = [epsilon for epsilon, at in account.known.budget.points if at == delta]
    top = 1.1 * max(finite + limits) or 1.0
    found = [(number, min(epsilon, top)) for number, epsilon in found]  # at the top edge where it is infinite
    series = [Series(_stairs(found, last) if whole else found, "line" if whole else "mark")]
    series += [Series([(0.0, limit), (last, limit)], "guide") for limit in limits]
    drawn = chart(
        "spent",
        Axis("entry", 0.0, last),
        Axis("epsilon", 0.0, top),
        series,
        title="What the releases add up to",
        description=f"epsilon at delta {plain(delta)} after each entry",
    )
    words = f"Epsilon at delta {plain(delta)} after {'each entry' if whole else 'some of the entries'}, rounded up"
    words += ", had all releases been fixed in advance: not what the filter promises." if account.adaptive else "."
    words = f"{capital(IF_HELD)}: {words[0].lower()}{words[1:]}" if account.total.broken else words
    words += " The dashed line is the budget." if limits else ""
    words += " At the top edge no finite epsilon is proved." if len(finite) < len(found) else ""
    return [tag("h2", "Entry by entry"), tag("figure", drawn, tag("figcaption", words))]


def _stairs(points: Points, last: float) -> Points:
    """A line that is level between entries."""
    stairs, height = [(0.0, 0.0)], 0.0
    for at, value in points:
        stairs += [(at, height), (at, value)]
        height = value
    return [*stairs, (last, height)]
