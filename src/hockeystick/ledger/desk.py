"""What happens inside one transaction: entries are looked up, checked and added, and the totals follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, final

from hockeystick.composition import Composition, Step
from hockeystick.decimals import plain, rounded_up
from hockeystick.errors import check_choice, check_count
from hockeystick.ledger.errors import LedgerError, OverBudgetError
from hockeystick.ledger.records import (
    GENESIS,
    PERIODS,
    SETTLES,
    DataSet,
    Entry,
    Release,
    broken_details,
    check_text,
    composition_of,
    kind_of,
)
from hockeystick.ledger.rules import Total, added, fits, total
from hockeystick.ledger.store import Rows

CHOSEN = ("in-advance", "adaptively")
"""Whether a release was fixed before any result was seen."""


@final
class Desk:
    """A ledger's rows in one transaction, with who writes in it."""

    def __init__(self, rows: Rows, who: str) -> None:
        self.rows, self._who = rows, who

    def dataset(self, name: str) -> DataSet:
        """A data set, from its first entry."""
        if not isinstance(name, str):
            raise TypeError(f"dataset must be a name, got {name!r}")
        first = self.rows.entry(name, 0)
        if first is None:
            known = ", ".join(self.rows.names()) or "none"
            raise LedgerError(f"there is no data set {name!r}; known are {known}")
        return DataSet.read(first.details)

    def accounts(self, known: DataSet, partition: str, period: str | None = None) -> list[tuple[str, ...]]:
        """The accounts that a record may be in at once: that of the whole data, with that of its partition.

        A release about the whole data concerns the records of every partition.
        """
        if partition != "":
            check_text("partition", partition, most=200)
            if known.adjacency == "substitute":
                raise LedgerError(
                    "under substitution a record may leave one partition for another, so that both count: partitions"
                    " need add, remove, add-remove or zero-out"
                )
        whole = f"{_present(known) if period is None else _stated(known, period)}/"
        if partition:
            return [(whole, f"{whole}{partition}")]
        parts = [name for name in self.rows.accounts(known.name) if name.startswith(whole)]
        return [(whole, part) for part in parts if part != whole] or [(whole,)]

    def broken(self, known: DataSet, accounts: list[tuple[str, ...]]) -> tuple[str, ...]:
        """What releases that count in some accounts said of themselves is not as accounted, with their entries."""
        concerned = {account for one in accounts for account in one}
        found = []
        for number in self.rows.holding(known.name, '"broken":['):
            entry = self._at(known.name, number)
            if entry.account in concerned and self._counts(entry):
                found += [f"entry {number}: {text}" for text in entry.details.get("broken", ())]
        return tuple(found)

    def _counts(self, entry: Entry) -> bool:
        """Whether what an entry recorded was neither given back nor corrected."""
        by = self.rows.settled_by(entry.dataset, entry.number)
        if by is None:
            return True
        later = self._at(entry.dataset, by)
        return later.action == "commit" and self._counts(later)

    def held(self, known: DataSet, accounts: list[tuple[str, ...]]) -> list[dict[Step, int]]:
        """What counts for a record, in each partition that is concerned."""
        return [self.rows.steps(merged(self.rows.totals(known.name, one) for one in own)) for own in accounts]

    def open(self, dataset: DataSet, why: str) -> Entry:
        """Add a data set."""
        if not isinstance(dataset, DataSet):
            raise TypeError(f"a data set is opened by a DataSet, with its budget, got {dataset!r}")
        if self.rows.head(dataset.name) is not None:
            raise LedgerError(f"there is a data set {dataset.name!r} already")
        return self._write(dataset.name, None, "open", why, details=dataset.document())

    def admit(self, action: str, dataset: str, release: Release, why: str, chosen: str, partition: str) -> Entry:
        """Add a release, if it fits."""
        check_text("why", why)
        check_choice("chosen", chosen, CHOSEN)
        known, head = self.dataset(dataset), self._locked(dataset)
        if chosen == "adaptively" and known.rule == "in-advance":
            raise LedgerError(
                f"the data set {dataset!r} admits releases fixed in advance: its total is not proved for adaptive"
                " ones. Open a data set with the rule gaussian-dp or renyi for them"
            )
        run = composition_of(release, known)
        kinds, counts = _kinds(run)
        accounts = self.accounts(known, partition)  # once: a period may end while the question is answered
        held = self.held(known, accounts)
        if not all(fits(added(runs, run), known.budget, known.rule, known.adjacency) for runs in held):
            raise OverBudgetError(
                f"the release does not fit: {dataset!r} allows {known.budget}, and {_taken(known, held)}; nothing was"
                " recorded"
            )
        account = accounts[0][-1 if partition else 0]
        self.rows.remember(kinds)
        details = {"chosen": chosen, "partition": partition, **broken_details(release, known)}
        entry = self._write(dataset, head, action, why, account=account, runs=counts, details=details)
        self.rows.count(dataset, account, counts)
        return entry

    def settle(self, dataset: str, number: int, action: str, why: str) -> Entry:
        """Commit or release a reservation."""
        check_choice("action", action, ("commit", "release"))
        head, target = self._locked(dataset), self._unsettled(dataset, number, action)
        entry = self._write(dataset, head, action, why, refers=target.number, account=target.account)
        if action == "release":
            self.rows.count(dataset, target.account, target.runs, -1)
        return entry

    def correct(self, dataset: str, number: int, why: str, release: Release | None) -> Entry:
        """Let what took place stand in place of what was recorded."""
        known, head = self.dataset(dataset), self._locked(dataset)
        target = self._unsettled(dataset, number, "correct")
        counted = target.runs
        if target.action == "commit" and target.refers is not None:
            counted = self._at(dataset, target.refers).runs
        kinds, counts = _kinds(composition_of(release, known)) if release is not None else ({}, {})
        self.rows.remember(kinds)
        more: dict[str, Any] = {"refers": target.number, "account": target.account}
        more["details"] = broken_details(release, known)
        entry = self._write(dataset, head, "correct", why, runs=counts, **more)
        self.rows.count(dataset, target.account, counted, -1)
        self.rows.count(dataset, target.account, counts)
        return entry

    def _write(self, dataset: str, head: tuple[int, str] | None, action: str, why: str, **more: Any) -> Entry:
        number, previous = (head[0] + 1, head[1]) if head else (0, GENESIS)
        entry = Entry(dataset, number, action, self._who, _now(), check_text("why", why), previous, **more)
        self.rows.append(entry)
        return entry

    def _locked(self, dataset: str) -> tuple[int, str]:
        """The last entry's number and hash, which no other writer can move now."""
        head = self.rows.head(dataset, lock=True)
        if head is None:
            raise LedgerError(f"there is no data set {dataset!r}")
        last, time = self._at(dataset, head[0]), _now()
        if time < last.when:
            raise LedgerError(f"the clock says {time}, before the last entry's {last.when}: set it right and try again")
        return head

    def _at(self, dataset: str, number: int) -> Entry:
        entry = self.rows.entry(dataset, number)
        if entry is None:
            raise LedgerError(f"the data set {dataset!r} has no entry {number}")
        return entry

    def _unsettled(self, dataset: str, number: int, action: str) -> Entry:
        """An entry that an action may refer to, once."""
        target = self._at(dataset, check_count("number", number, minimum=0))
        if target.action not in SETTLES[action]:
            meant = " or ".join(SETTLES[action])
            raise LedgerError(
                f"{action} needs an entry of the kind {meant}; entry {number} of {dataset!r} is {target.action!r}"
            )
        by = self.rows.settled_by(dataset, number)
        if by is not None:
            raise LedgerError(f"entry {number} of {dataset!r} is settled by entry {by} already")
        return target


def _present(known: DataSet) -> str:
    """The name of the present period."""
    return datetime.now(UTC).strftime(PERIODS[known.period])


def _stated(known: DataSet, period: str) -> str:
    """The name of a period, if it is one of this data set."""
    if not known.period:
        raise LedgerError(f"the data set {known.name!r} has one budget for all time: ask without a period")
    try:
        named = datetime.strptime(period, form := PERIODS[known.period]).strftime(form) == period
    except (ValueError, TypeError):
        named = False
    if not named:
        raise LedgerError(
            f"the data set {known.name!r} has a budget for each {known.period}, such as {_present(known)!r}; got the"
            f" period {period!r}"
        )
    return period


def merged(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of kinds, added up."""
    whole: Counter[str] = Counter()
    for part in parts:
        whole.update(part)
    return whole


def worst(known: DataSet, held: list[dict[Step, int]], delta: float | None) -> tuple[dict[Step, int], Total]:
    """What counts in the partition in which a record has spent most, and its total."""
    found = [(runs, total(runs, known.budget, known.rule, known.adjacency, delta)) for runs in held]
    return max(found, key=lambda each: (not each[1].within_budget, float(each[1].epsilon.upper)))


def _taken(known: DataSet, held: list[dict[Step, int]]) -> str:
    """Why no more fits: of a filter the total is its whole budget from the first release on, spent or not."""
    spent = worst(known, held, None)[1]
    if known.rule != "in-advance":
        many = "1 release" if spent.releases == 1 else f"{spent.releases} releases"
        return f"its {known.rule} filter does not admit this one after {many}"
    return f"epsilon {rounded_up(float(spent.epsilon.upper))} at delta {plain(spent.delta)} is spent"


def _kinds(run: Composition) -> tuple[dict[str, str], dict[str, int]]:
    """The texts of a composition's kinds, and how often each counts."""
    texts: dict[str, str] = {}
    counts: dict[str, int] = {}
    for step, count in run.steps:
        name, text = kind_of(step)
        texts[name] = text
        counts[name] = counts.get(name, 0) + count
    return texts, counts


def _now() -> str:
    """The time as entries hold it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
