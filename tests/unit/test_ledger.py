"""The ledger: what it admits, what it says of it, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.ledger import Budget, DataSet, Ledger, LedgerError, OverBudgetError, rules
from hockeystick.ledger.desk import CHOSEN

pytest.importorskip("sqlalchemy")

STRICT = Budget(epsilon=1.0, delta=1e-6)
STEP = hs.Gaussian(25.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.create(f"sqlite:///{tmp_path}/ledger.db", who="tester")
    book.add_dataset(DataSet("census", STRICT, unit="household"))
    return book


def test_entries_fixed_in_advance_are_accounted_as_one_run(ledger: Ledger) -> None:
    releases = [
        STEP * 3,
        hs.Laplace(40.0).poisson(0.1) * 5,
        hs.RandomizedResponse(0.51),
        STEP,
        hs.DiscreteGaussian(30.0),
    ]
    for release in releases:
        ledger.spend("census", release, why="a table")
    whole = hs.compose([(STEP, 4), (releases[1].steps[0][0], 5), (releases[2], 1), (releases[4], 1)])  # type: ignore[union-attr]
    for delta in (1e-6, 1e-9):
        found = ledger.total("census", delta=delta)
        expected = hs.account(whole).epsilon(delta)
        assert math.isclose(found.epsilon.upper, expected.upper, rel_tol=1e-12, abs_tol=0.0)  # type: ignore[union-attr]
        assert found.epsilon.lower <= expected.upper  # type: ignore[union-attr]
        assert expected.lower <= found.epsilon.upper  # type: ignore[union-attr]
    assert found.within_budget
    assert found.releases == 11
    assert ledger.verify() == []


def test_a_release_fits_only_where_its_upper_side_does(ledger: Ledger) -> None:
    release = hs.Gaussian(3.0).without_replacement(batch_size=20, population=1000) * 300
    bound = hs.account(release, "substitute").delta(0.8)
    assert isinstance(bound, hs.Bound)
    between = float(np.sqrt(bound.lower * bound.upper))
    assert bound.lower < 0.9 * between < 0.81 * bound.upper
    ledger.add_dataset(DataSet("strict", Budget(epsilon=0.8, delta=between), adjacency="substitute"))
    assert not ledger.would_fit("strict", release)
    ledger.add_dataset(DataSet("enough", Budget(epsilon=0.8, delta=float(bound.upper)), adjacency="substitute"))
    assert ledger.would_fit("enough", release)


def test_far_below_a_budget_no_curve_is_asked(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = [STEP, hs.Laplace(40.0).poisson(0.1) * 5, hs.DiscreteGaussian(30.0), hs.RandomizedResponse(0.501)]
    for release in releases:
        ledger.spend("census", release, why="a table")
    asked: list[tuple[object, ...]] = []
    epsilon = rules._epsilon
    monkeypatch.setattr(rules, "_epsilon", lambda *question: asked.append(question) or epsilon(*question))
    assert all(ledger.would_fit("census", release) for release in releases)
    assert not asked
    assert not ledger.would_fit("census", hs.ApproximateDP(1.0, 9e-7))  # nearly all that is left
    assert asked


def test_what_is_surely_too_much_is_refused_by_one_question(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hs.PrivacyCurve, "delta", lambda *_: pytest.fail("epsilon alone decides"))
    assert not ledger.would_fit("census", hs.Gaussian(0.5).poisson(0.5) * 10)


def test_remaining_is_the_last_number_that_fits(ledger: Ledger) -> None:
    ledger.spend("census", STEP * 2, why="a table")
    left = ledger.remaining("census", STEP)
    assert hs.account(STEP * (2 + left)).delta(1.0).upper <= 1e-6  # type: ignore[union-attr]
    assert hs.account(STEP * (3 + left)).delta(1.0).lower > 1e-6  # type: ignore[union-attr]
    assert ledger.would_fit("census", STEP * left)
    assert not ledger.would_fit("census", STEP * (left + 1))
    ledger.spend("census", STEP * left, why="the rest")
    assert ledger.remaining("census", STEP) == 0
    with pytest.raises(OverBudgetError, match=r"does not fit: 'census' allows \(1, 1e-6\)-DP.*nothing was recorded"):
        ledger.spend("census", STEP, why="one too many")
    assert len(ledger.history("census")) == 3
    ledger.add_dataset(DataSet("wide", Budget(epsilon=10.0, delta=1e-6)))
    faint = hs.Laplace(1e9) * 10  # what is proved of ends with 2^40 steps
    assert ledger.remaining("wide", faint) == (1 << 40) // 10


def test_a_reservation_counts_until_it_is_released(ledger: Ledger) -> None:
    half = STEP * (ledger.remaining("census", STEP) // 2 + 1)
    reservation = ledger.reserve("census", half, why="a run")
    assert not ledger.would_fit("census", half)
    assert [entry.number for entry in ledger.open_reservations("census")] == [1]
    reservation.release(why="it did not start")
    assert ledger.open_reservations("census") == []
    assert ledger.would_fit("census", half)
    with pytest.raises(LedgerError, match="settled by entry 2 already"):
        reservation.commit()
    with ledger.spending("census", half, why="again"):
        assert not ledger.would_fit("census", half)
    assert [entry.action for entry in ledger.history("census")][-2:] == ["reserve", "commit"]
    assert ledger.verify() == []


def test_what_fails_counts_unless_it_was_released(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.spending("census", STEP, why="fails late"):
        raise ZeroDivisionError
    assert ledger.history("census")[-1].why == "ended by ZeroDivisionError"
    assert ledger.total("census").releases == 1
    with pytest.raises(KeyError), ledger.spending("census", STEP, why="fails early") as reservation:  # noqa: PT012
        reservation.release(why="no data was read")
        raise KeyError
    assert ledger.total("census").releases == 1


def test_corrections_stand_beside_what_they_correct(ledger: Ledger) -> None:
    entry = ledger.spend("census", STEP, why="a table")
    ledger.correct("census", entry.number, why="it was noisier", release=hs.Gaussian(50.0))
    assert ledger.runs("census") == {hs.Gaussian(50.0): 1}
    reserved = ledger.reserve("census", STEP, why="a run")
    committed = reserved.commit()
    ledger.correct("census", committed.number, why="it had far less noise", release=hs.Gaussian(1.0))
    found = ledger.total("census")
    assert not found.within_budget
    assert found.statement.startswith("over the budget of (1, 1e-6)-DP")
    assert found.epsilon.contains(float(hs.account(hs.Gaussian(1.0) + hs.Gaussian(50.0)).epsilon(1e-6)))
    assert ledger.verify() == []
    with pytest.raises(OverBudgetError):
        ledger.spend("census", STEP, why="no more")
    with pytest.raises(LedgerError, match=f"settled by entry {entry.number + 1} already"):
        ledger.correct("census", entry.number, why="twice")


@pytest.mark.parametrize(("rule", "step"), [("gaussian-dp", STEP), ("renyi", hs.Gaussian(3.0).poisson(1e-2))])
def test_adaptive_releases_are_admitted_by_a_filter(ledger: Ledger, rule: str, step: hs.Step) -> None:
    ledger.add_dataset(DataSet("adaptive", STRICT, rule=rule))
    room = ledger.remaining("adaptive", step)
    ledger.spend("adaptive", step * room, why="all of it", chosen="adaptively")
    assert not ledger.would_fit("adaptive", step)
    filters = {
        "gaussian-dp": hs.filters.GaussianDPFilter.for_budget(1.0, 1e-6),
        "renyi": hs.filters.RenyiFilter(1.0, 1e-6),
    }
    assert filters[rule].allows(step, room)
    assert not filters[rule].allows(step, room + 1)
    assert room <= ledger.remaining("census", step)
    found = ledger.total("adaptive")
    assert found.statement == filters[rule].statement
    assert float(found.epsilon.upper) == pytest.approx(1.0, rel=1e-6)
    assert found.epsilon.upper >= hs.account(step * room).epsilon(1e-6).lower  # type: ignore[union-attr]


def test_a_filter_promises_nothing_at_a_smaller_delta(ledger: Ledger) -> None:
    ledger.add_dataset(DataSet("adaptive", STRICT, rule="renyi"))
    ledger.spend("adaptive", hs.Gaussian(100.0), why="x", chosen="adaptively")
    assert ledger.total("adaptive", delta=1e-5).epsilon.upper == 1.0
    assert ledger.total("adaptive", delta=1e-7).epsilon.upper == math.inf


def test_a_curve_is_not_promised_to_adaptive_releases(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="admits releases fixed in advance"):
        ledger.spend("census", STEP, why="after looking", chosen=CHOSEN[1])


def test_budgets_of_mu_and_of_curves(ledger: Ledger) -> None:
    ledger.add_dataset(DataSet("mu", Budget(mu=0.5)))
    assert ledger.remaining("mu", hs.Gaussian(10.0)) == 25
    ledger.add_dataset(DataSet("curve", Budget(curve=((1.0, 1e-6), (0.1, 1e-2)))))
    single = [hs.account(STEP * n) for n in range(1, 40)]
    expected = sum(curve.delta(1.0).upper <= 1e-6 and curve.delta(0.1).upper <= 1e-2 for curve in single)  # type: ignore[union-attr]
    assert ledger.remaining("curve", STEP) == expected < ledger.remaining("census", STEP)


class _Frozen(datetime):
    year_now = 2026

    @classmethod
    def now(cls, tz: Any = None) -> _Frozen:
        return cls(cls.year_now, 6, 1, tzinfo=tz)


def test_a_budget_of_pure_privacy_is_spent_to_the_last_step(ledger: Ledger) -> None:
    ledger.add_dataset(DataSet("pure", Budget(epsilon=1.0, delta=0.0)))
    assert ledger.remaining("pure", hs.Laplace(10.0)) == 10
    ledger.spend("pure", hs.Laplace(10.0) * 10, why="a table")  # each of epsilon 1/10
    for more in (hs.Laplace(1e9), hs.Gaussian(1e6)):
        with pytest.raises(OverBudgetError, match=r"epsilon 1 at delta 0 is spent"):
            ledger.spend("pure", more, why="another")
    found = ledger.total("pure")
    assert (found.delta, found.epsilon.upper, found.within_budget) == (0.0, 1.0, True)
    assert found.epsilon.lower >= 1.0 - 1e-12
    for rule in ("gaussian-dp", "renyi"):
        with pytest.raises(ValueError, match=f"the rule {rule} needs a delta above 0"):
            DataSet("other", Budget(epsilon=1.0, delta=0.0), rule=rule)


def test_periods_and_partitions_have_their_own_budgets(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockeystick.ledger.desk.datetime", _Frozen)
    monkeypatch.setattr(_Frozen, "year_now", 2026)
    ledger = Ledger(str(ledger._store.engine.url), who="tester")
    ledger.add_dataset(DataSet("yearly", STRICT, period="year"))
    full = ledger.remaining("yearly", STEP)
    ledger.spend("yearly", STEP * full, why="all of 2026")
    monkeypatch.setattr(_Frozen, "year_now", 2027)
    assert ledger.remaining("yearly", STEP) == full
    assert ledger.total("yearly").releases == 0
    last_year = ledger.total("yearly", period="2026")
    assert last_year.releases == full
    assert last_year.statement == f"{STRICT} under add-remove, all fixed in advance, in 2026 alone"
    assert ledger.total("yearly").statement.endswith(", in 2027 alone")
    monkeypatch.setattr(_Frozen, "year_now", 2025)
    with pytest.raises(LedgerError, match=r"the clock says 2025-06-01.*before the last entry's 2026-06-01"):
        ledger.spend("yearly", STEP, why="yesterday")
    assert ledger.verify() == []


@pytest.mark.parametrize("rule", ["renyi", "gaussian-dp"])
def test_a_filter_that_does_not_admit_a_release_does_not_say_that_its_budget_is_spent(
    ledger: Ledger, rule: str
) -> None:
    ledger.add_dataset(DataSet("polls", STRICT, rule=rule))
    with pytest.raises(
        OverBudgetError, match=f"and its {rule} filter does not admit this one after 0 releases; nothing"
    ):
        ledger.spend("polls", hs.Gaussian(2.0), why="too much", chosen="adaptively")
    ledger.spend("polls", hs.Gaussian(100.0), why="a question", chosen="adaptively")
    with pytest.raises(OverBudgetError, match="does not admit this one after 1 release; nothing was recorded"):
        ledger.spend("polls", hs.Gaussian(2.0), why="too much", chosen="adaptively")
    assert ledger.remaining("polls", hs.Gaussian(100.0)) > 100


@pytest.mark.parametrize("period", ["26", "2026-01", "2026/", "", " 2026", "next", 2026])
def test_a_period_that_is_none_is_refused_rather_than_empty(ledger: Ledger, period: Any) -> None:
    ledger.add_dataset(DataSet("yearly", STRICT, period="year"))
    ledger.spend("yearly", STEP, why="this year")
    with pytest.raises(LedgerError, match=r"has a budget for each year, such as '2[0-9]{3}'; got the period"):
        ledger.total("yearly", period=period)


def test_a_release_is_recorded_in_the_period_whose_budget_it_was_checked_against(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hockeystick.ledger.desk.datetime", _Frozen)
    monkeypatch.setattr(_Frozen, "year_now", 2026)
    ledger.add_dataset(DataSet("yearly", STRICT, period="year"))

    def slowly(*asked: Any) -> bool:
        _Frozen.year_now = 2027
        return rules.fits(*asked)

    monkeypatch.setattr("hockeystick.ledger.desk.fits", slowly)
    ledger.spend("yearly", STEP, why="at midnight")
    assert ledger.total("yearly", period="2026").releases == 1
    assert ledger.total("yearly", period="2027").releases == 0


def test_a_release_about_the_whole_data_counts_in_every_partition(ledger: Ledger) -> None:
    full = ledger.remaining("census", STEP)
    ledger.spend("census", STEP * 3, why="everyone")
    ledger.spend("census", STEP * 4, why="the north", partition="north")
    ledger.spend("census", STEP * 6, why="the south", partition="south")
    assert ledger.remaining("census", STEP, partition="north") == full - 7
    assert ledger.remaining("census", STEP, partition="south") == full - 9
    assert ledger.remaining("census", STEP, partition="west") == full - 3
    assert ledger.remaining("census", STEP) == full - 9
    assert ledger.total("census", partition="north").releases == 7
    assert ledger.total("census").releases == 9
    with pytest.raises(OverBudgetError):
        ledger.spend("census", STEP * (full - 8), why="everyone")
    ledger.spend("census", STEP * (full - 9), why="everyone")
    assert ledger.remaining("census", STEP, partition="north") == 2
    assert ledger.verify() == []


def test_a_partition_needs_records_that_stay(ledger: Ledger) -> None:
    ledger.add_dataset(DataSet("swap", STRICT, adjacency="substitute"))
    with pytest.raises(LedgerError, match="a record may leave one partition for another"):
        ledger.spend("swap", STEP, why="x", partition="north")


def test_specifications_are_releases(ledger: Ledger) -> None:
    text = (
        'version = 1\n[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 25.0\ncount = 3\n'
        '[guarantee]\nadjacency = "{}"\ndelta = 1e-5\nunit = "household"\n'
    )
    ledger.spend("census", hs.spec.read(text.format("add-remove")), why="a table")
    assert ledger.runs("census") == {STEP: 3}
    with pytest.raises(LedgerError, match="counts neighbours by add-remove, the specification by substitute"):
        ledger.spend("census", hs.spec.read(text.format("substitute")), why="a table")
    for_groups = text.format("add-remove") + "group_size = 5\n"
    answers = for_groups.replace("gaussian", "randomized-response").replace(
        "noise_multiplier = 25.0", "probability = 0.6"
    )
    members = hs.spec.read(text.format("add-remove").replace("household", "member of a household"))
    for ask in (ledger.would_fit, ledger.remaining, lambda name, release: ledger.spend(name, release, why="a table")):
        for grouped in map(hs.spec.read, (for_groups, answers)):  # the second: one answer more for each of the group
            with pytest.raises(LedgerError, match="stated for groups of 5: leave out group_size"):
                ask("census", grouped)
        with pytest.raises(LedgerError, match="for each household, the specification's guarantee for each member of"):
            ask("census", members)
        for best in (hs.select_best(run, count=hs.PoissonCount(5.0)) for run in (STEP, STEP.for_group(5))):
            with pytest.raises(TypeError, match="ledgers do not take it: account such a run as a whole"):
                ask("census", best)


BAD: list[tuple[type[Exception], Callable[[Ledger], Any]]] = [
    (LedgerError, lambda book: book.spend("nobody", STEP, why="x")),
    (LedgerError, lambda book: book.total("nobody")),
    (LedgerError, lambda book: book.history("'; drop table ledger_entries; --")),
    (LedgerError, lambda book: book.add_dataset(DataSet("census", STRICT))),
    (LedgerError, lambda book: book.settle("census", 0, action="commit", why="x")),
    (LedgerError, lambda book: book.settle("census", 99, action="commit", why="x")),
    (LedgerError, lambda book: book.settle("census", 10**30, action="commit", why="x")),
    (LedgerError, lambda book: book.correct("census", 2**63, why="x")),
    (LedgerError, lambda book: book.correct("census", 0, why="x")),
    (LedgerError, lambda book: book.total("census", period="2026")),
    (TypeError, lambda book: book.add_dataset("census")),  # type: ignore[arg-type]
    (TypeError, lambda book: book.spend("census", STEP, why="x", partition=0)),  # type: ignore[arg-type]
    (TypeError, lambda book: book.total("census", partition=None)),  # type: ignore[arg-type]
    (LedgerError, lambda book: book.verify("nobody")),
    (ValueError, lambda book: book.settle("census", 1, action="undo", why="x")),
    (ValueError, lambda book: book.spend("census", STEP, why="")),
    (ValueError, lambda book: book.spend("census", STEP, why="x\x00y")),
    (ValueError, lambda book: book.spend("census", STEP, why="x", chosen="later")),
    (TypeError, lambda book: book.spend("census", STEP, why=None)),  # type: ignore[arg-type]
    (TypeError, lambda book: book.spend("census", "gaussian", why="x")),  # type: ignore[arg-type]
    (TypeError, lambda book: book.spend(3, STEP, why="x")),  # type: ignore[arg-type]
    (TypeError, lambda book: book.spend("census", 3, why="x")),  # type: ignore[arg-type]
    (TypeError, lambda book: book.settle("census", "one", action="commit", why="x")),  # type: ignore[arg-type]
    (ValueError, lambda book: book.total("census", delta=-1.0)),
    (ValueError, lambda book: book.total("census", delta=math.nan)),
    (TypeError, lambda book: book.spend("census", hs.UserDefined({}), why="x")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_input_changes_nothing(ledger: Ledger, index: int) -> None:
    ledger.spend("census", STEP, why="a table")
    before = list(ledger.export())
    kind, act = BAD[index]
    with pytest.raises(kind) as caught:
        act(ledger)
    assert str(caught.value)
    assert list(ledger.export()) == before
    assert ledger.verify() == []


def test_five_hundred_bad_budgets_names_and_releases(ledger: Ledger) -> None:
    rng = np.random.default_rng(11)
    numbers = [-1.0, 1.0, math.nan, math.inf, -math.inf, "1", None, [], True, 2.0, -5e-324, 10**400]
    names = ["", " ", "a\nb", "a\x07", "x" * 4001, "\ud800", None, 3, b"census", ["census"]]
    attempts: list[Callable[[Ledger, Any, Any], Any]] = [
        lambda book, bad, _: book.add_dataset(DataSet("new", Budget(epsilon=1.0, delta=bad))),
        lambda book, _, name: book.add_dataset(DataSet(name, STRICT)),
        lambda book, _, name: book.spend("census", STEP, why=name),
        lambda book, _, name: book.spend(name if name != "census" else "", STEP, why="x"),
    ]
    before = list(ledger.export())
    for _ in range(500):
        kind = int(rng.integers(4))
        bad: Any = numbers[int(rng.integers(len(numbers)))]
        name: Any = names[int(rng.integers(len(names)))]
        with pytest.raises((TypeError, ValueError, LedgerError)) as caught:
            attempts[kind](ledger, bad, name)
        assert str(caught.value)
    assert list(ledger.export()) == before


@pytest.mark.parametrize("name", ["O'Brien; drop table x", 'a "quoted" name', "名前", "100%", "{x}", "\\", "a/b"])
def test_any_printable_name_will_do(ledger: Ledger, name: str) -> None:
    ledger.add_dataset(DataSet(name, STRICT, unit="l'unité"))
    ledger.spend(name, STEP, why=name, partition=name)
    assert ledger.total(name, partition=name).releases == 1
    assert ledger.verify(name) == []


def test_counts_are_added_up_exactly_or_refused(ledger: Ledger) -> None:
    """SQLite goes on in floating point beyond 2^63, where counts are lost and none can be read."""
    step = hs.Gaussian(1e12)
    ledger.spend("census", step * 2**62, why="as much as there is room for")
    for count in (1, 2**62):
        with pytest.raises(LedgerError, match=r"2\^62"):
            ledger.spend("census", step * count, why="more")
    assert ledger.runs("census") == {step: 2**62}
    assert ledger.verify() == []


def test_urls_that_hold_no_ledger_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger at .* make one by Ledger\.create"):
        Ledger(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(LedgerError, match=r"cannot open a ledger at 'ledger\.db'"):
        Ledger("ledger.db")
    with pytest.raises(LedgerError, match="SQLite or PostgreSQL"):
        Ledger("mssql+pyodbc://x")
    Ledger.create(f"sqlite:///{tmp_path}/one.db")
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(f"sqlite:///{tmp_path}/one.db")


def test_times_are_in_utc(ledger: Ledger) -> None:
    entry = ledger.spend("census", STEP, why="a table")
    assert datetime.fromisoformat(entry.when).utcoffset() == datetime.now(UTC).utcoffset()


def test_equal_steps_that_are_written_otherwise_add_up(ledger: Ledger) -> None:
    """A probability of 3/4 is 0.75, but the text of it is another."""
    floats = hs.DiscretePair((0.75, 0.25), (0.25, 0.75))
    fractions = hs.DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    assert floats == fractions
    ledger.add_dataset(DataSet("twice", Budget(epsilon=2.5, delta=1e-6)))
    ledger.spend("twice", floats, why="a table")
    ledger.spend("twice", fractions, why="another")
    assert ledger.runs("twice") == {floats: 2}
    assert ledger.total("twice").epsilon.lower > 2.1  # twice ln 3
    for release in (floats, fractions):
        assert not ledger.would_fit("twice", release)
        with pytest.raises(OverBudgetError):
            ledger.spend("twice", release, why="a third")
    assert [float(epsilon.lower) > 2.1 for _, epsilon in ledger.progress("twice")] == [False, True]
    assert ledger.verify() == []
    ledger.correct("twice", 1, why="it was run twice", release=floats * 2)
    assert not ledger.total("twice").within_budget


def test_what_a_partition_holds_is_verified_whatever_its_name(tmp_path: Path) -> None:
    book = Ledger.create(f"sqlite:///{tmp_path}/ledger.db", who="tester")
    book.add_dataset(DataSet("census", Budget(mu=1.0)))
    book.spend("census", hs.GaussianDP(0.9), why="everyone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hockeystick.ledger.desk.fits", lambda *_: True)
        book.spend("census", hs.GaussianDP(0.9), why="the north", partition="north/")
    assert ["'/north/' holds more" in finding.what for finding in book.verify()] == [True]


def test_a_step_that_this_version_does_not_know_is_named(tmp_path: Path) -> None:
    book = Ledger.create(f"sqlite:///{tmp_path}/ledger.db", who="tester")
    book.add_dataset(DataSet("census", Budget(mu=1.0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hockeystick.ledger.records.encode_step", lambda _: {"type": "Laplacian", "mu": 0.5})
        patch.setattr("hockeystick.ledger.desk.fits", lambda *_: True)
        book.spend("census", hs.GaussianDP(0.5), why="by a later version")
    (finding,) = book.verify()
    assert "'/' cannot be recomputed: a step in the ledger cannot be read: 'Laplacian' is not a step" in finding.what
    with pytest.raises(LedgerError, match="'Laplacian' is not a step that this version knows"):
        book.total("census")


@pytest.mark.parametrize("curve", [3, None, "ab", (1, 2), ((1.0,),), ((1.0, 1e-5, 2.0),), ((1.0, 1e-5), None), ("ab",)])
def test_a_curve_that_is_none_is_refused_in_words(curve: Any) -> None:
    with pytest.raises(TypeError, match=r"curve must|epsilon must"):
        Budget(curve=curve)


def test_budgets_hold_floats_whatever_they_were_given_as() -> None:
    """What is printed of a budget is what is kept: 0.1 in 32 bits is more than 0.1."""
    assert str(Budget(epsilon=np.float32(0.1), delta=1e-6)) == "(0.10000000149011612, 1e-6)-DP"  # type: ignore[arg-type]
    points: Any = np.array([[1.0, 1e-5], [2.0, 0.0]])
    assert Budget(curve=points) == Budget(curve=((1.0, 1e-5), (2.0, 0.0)))
    assert Budget(mu=Fraction(1, 2), floor=Fraction(1, 4)).document() == {"mu": 0.5, "floor": 0.25}  # type: ignore[arg-type]
