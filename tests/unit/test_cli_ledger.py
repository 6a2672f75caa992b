"""``hockeystick ledger``: a year of a statistics office, from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.data_set import Account, data_set_page
from hockeystick.app.report.numbers import rounded_up
from hockeystick.ledger import Budget, DataSet, Ledger

pytest.importorskip("sqlalchemy")

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> str:
    monkeypatch.setenv("HOCKEYSTICK_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    path = tmp_path / "table.toml"
    path.write_text(
        'version = 1\n[[steps]]\nmechanism = "discrete-gaussian"\nsigma = 30.0\ncount = 20\n'
        '[guarantee]\nadjacency = "add-remove"\ndelta = 1e-6\nunit = "household"\n'
    )
    assert main(["ledger", "init"]) == 0
    assert main(["ledger", "add-dataset", "census", "--epsilon", "1", "--delta", "1e-6", "--unit", "household"]) == 0
    capsys.readouterr()
    return str(path)


def test_a_year_of_releases(table: str, capsys: Capture) -> None:
    assert main(["ledger", "would-fit", "census", table]) == 0
    assert main(["ledger", "remaining", "census", table]) == 0
    assert capsys.readouterr().out == "fits\n2\n"
    assert main(["ledger", "spend", "census", table, "--why", "Table 3"]) == 0
    assert main(["ledger", "reserve", "census", table, "--why", "Table 4"]) == 0
    assert "hockeystick ledger commit census 2" in capsys.readouterr().out
    assert main(["ledger", "would-fit", "census", table]) == 1
    assert main(["ledger", "spend", "census", table, "--why", "one too many"]) == 1
    assert "does not fit" in capsys.readouterr().err
    assert main(["ledger", "release", "census", "2", "--why", "it did not start"]) == 0
    assert main(["ledger", "total", "census", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert found["releases"] == 20
    assert 0.608 < found["lower"] <= found["upper"] < 0.609
    assert main(["ledger", "total", "census"]) == 0
    assert "epsilon between 0.608" in capsys.readouterr().out
    assert main(["ledger", "correct", "census", "1", "--why", "never published"]) == 0
    assert main(["ledger", "history", "census"]) == 0
    assert "it did not start" in capsys.readouterr().out
    assert main(["ledger", "history", "census", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["number"] for entry in entries] == list(range(len(entries)))
    assert main(["ledger", "migrate"]) == 0
    assert "was of version 2" in capsys.readouterr().out
    assert main(["ledger", "verify"]) == 0
    assert main(["ledger", "export"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]


def test_the_receipt_of_a_data_set_draws_its_history(table: str, capsys: Capture, tmp_path: Path) -> None:
    page, data = str(tmp_path / "census.html"), str(tmp_path / "census.json")
    assert main(["ledger", "report", "census", "-o", page]) == 0
    assert "so far" in Path(page).read_text()
    for why in ("Table <3>", "Table 4"):
        assert main(["ledger", "spend", "census", table, "--why", why]) == 0
    assert main(["ledger", "report", "census", "-o", page]) == 0
    shown = Path(page).read_text()
    assert "Table &lt;3&gt;" in shown
    assert "<polyline" in shown
    assert 'class="badge proved"' in shown
    assert main(["ledger", "report", "census", "-o", data]) == 0
    found = json.loads(Path(data).read_text())
    once, twice = (hs.account(hs.DiscreteGaussian(30.0) * (20 * n)).epsilon(1e-6).upper for n in (1, 2))  # type: ignore[union-attr]
    assert [one["upper"] for one in found["progress"]] == [once, twice]
    assert found["epsilon"]["upper"] == twice
    assert found["head"] in shown
    assert main(["ledger", "correct", "census", "2", table, "--why", "it ran twice"]) == 0
    assert main(["ledger", "correct", "census", "1", table.replace("table", "more"), "--why", "x"]) == 2
    capsys.readouterr()
    assert main(["ledger", "export", "census", "--format", "opendp"]) == 0
    record = capsys.readouterr().out
    assert "40 times Discrete Gaussian" in record
    assert 'privacy_unit: "household"' in record
    assert main(["ledger", "export", "--format", "opendp"]) == 2
    assert "name it" in capsys.readouterr().err


def test_what_holds_for_a_year_alone_says_so(table: str, capsys: Capture, tmp_path: Path) -> None:
    page = tmp_path / "yearly.html"
    budget = ["--epsilon", "1", "--delta", "1e-6", "--unit", "household", "--period", "year"]
    assert main(["ledger", "add-dataset", "yearly", *budget]) == 0
    assert "for each household, each year alone" in capsys.readouterr().out
    assert main(["ledger", "spend", "yearly", table, "--why", "Table 3"]) == 0
    assert main(["ledger", "report", "yearly", "-o", str(page)]) == 0
    shown = page.read_text()
    assert re.search(r"20 releases so far, 2\d{3}\. .*, in 2\d{3} alone\.", shown)
    assert re.search(r"The true epsilon of all releases in 2\d{3} is proved", shown)
    capsys.readouterr()
    assert main(["ledger", "export", "yearly", "--format", "opendp"]) == 0
    assert re.search(r'description: "Of 2\d{3} alone: each year has a budget', capsys.readouterr().out)


def test_the_receipt_says_what_a_filter_promises_and_what_is_over_budget(tmp_path: Path, capsys: Capture) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    book = Ledger.create(url, who="amy")
    book.add_dataset(DataSet("polls", Budget(mu=1.0), rule="gaussian-dp"))
    for query in range(70):
        book.spend("polls", hs.Gaussian(20.0), why=f"query {query}", chosen="adaptively")
    assert main(["ledger", "report", "polls", "--ledger", url]) == 0
    shown = capsys.readouterr().out
    assert "not what the filter promises" in shown
    assert "some of the entries" in shown
    assert f"epsilon = {rounded_up(float(hs.account(hs.GaussianDP(1.0)).epsilon(1e-6).upper))} " in shown  # type: ignore[union-attr]
    progress = book.progress("polls", most=7)
    assert [entry.number for entry, _ in progress] == [1, 13, 24, 35, 47, 59, 70]
    assert main(["ledger", "export", "polls", "--format", "opendp", "--ledger", url]) == 0
    assert "A gaussian-dp filter admits" in capsys.readouterr().out
    book.correct("polls", 1, why="less noise than said", release=hs.Gaussian(0.5))
    assert main(["ledger", "report", "polls", "--ledger", url]) == 1
    assert "over budget" in capsys.readouterr().out
    assert main(["ledger", "export", "polls", "--format", "opendp", "--ledger", url]) == 2
    assert "proves nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ledger"], "ACTION"),
        (["ledger", "total", "nowhere"], "there is no data set 'nowhere'; known are census"),
        (["ledger", "report", "nowhere"], "there is no data set 'nowhere'; known are census"),
        (["ledger", "export", "nowhere", "--format", "opendp"], "there is no data set 'nowhere'; known are census"),
        (["ledger", "add-dataset", "census", "--mu", "1"], "there is a data set 'census' already"),
        (["ledger", "add-dataset", "other"], "a budget is epsilon and delta, or mu"),
        (["ledger", "add-dataset", "other", "--epsilon", "1"], "epsilon and delta go together"),
        (["ledger", "commit", "census", "7"], "has no entry 7"),
        (["ledger", "init"], "there is a ledger at"),
        (["ledger", "verify", "--ledger", "nonsense"], "cannot open a ledger at 'nonsense'"),
    ],
)
def test_bad_input_is_one_line(table: str, arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_a_ledger_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.delenv("HOCKEYSTICK_LEDGER", raising=False)
    assert main(["ledger", "verify"]) == 2
    assert "give --ledger URL, or set HOCKEYSTICK_LEDGER" in capsys.readouterr().err


def test_a_release_that_is_not_as_accounted_is_told_so(table: str, capsys: Capture) -> None:
    Path(table).write_text(Path(table).read_text() + '[circumstances]\nadaptive = "yes"\n')
    for action in (["would-fit"], ["remaining"], ["spend", "--why", "a"]):
        assert main(["ledger", action[0], "census", table, *action[1:]]) == Status.NOT_CERTIFIED
        assert capsys.readouterr().out.startswith("NOT CERTIFIED")


def test_a_budget_whose_delta_is_not_below_one_over_n_is_told_so(table: str, capsys: Capture, tmp_path: Path) -> None:
    stated = Path(table).read_text().replace("[guarantee]", "[circumstances]\nexamples = 1000\n[guarantee]")
    Path(table).write_text(stated)
    assert main(["ledger", "spend", "census", table, "--why", "at delta 1e-6"]) == 0
    assert main(["ledger", "add-dataset", "loose", "--epsilon", "1", "--delta", "1e-3", "--unit", "household"]) == 0
    capsys.readouterr()
    opening = "NOT CERTIFIED: an assumption of the accounting is broken\n  - "
    for action in (["would-fit"], ["remaining"], ["spend", "--why", "a"]):
        assert main(["ledger", action[0], "loose", table, *action[1:]]) == Status.NOT_CERTIFIED
        assert capsys.readouterr().out.startswith(f"{opening}delta 0.001 is not below 1/n = 0.001 for n = 1,000")
    assert main(["ledger", "total", "loose"]) == Status.NOT_CERTIFIED  # as account says of the same at this delta
    assert capsys.readouterr().out.startswith(f"{opening}entry 1: delta 0.001 is not below 1/n")
    assert main(["ledger", "correct", "loose", "1", "--why", "more of it", table]) == 0
    assert main(["ledger", "total", "loose"]) == Status.NOT_CERTIFIED
    assert f"{opening}entry 2: delta 0.001" in capsys.readouterr().out


def test_a_budget_of_mu_holds_at_every_delta_and_is_judged_at_none(table: str, capsys: Capture) -> None:
    stated = Path(table).read_text().replace("1e-6", "1e-9")
    Path(table).write_text(stated.replace("[guarantee]", "[circumstances]\nexamples = 10_000_000\n[guarantee]"))
    assert main(["ledger", "add-dataset", "mu", "--mu", "1", "--unit", "household"]) == 0
    capsys.readouterr()
    assert main(["ledger", "would-fit", "mu", table]) == Status.REFUTED
    assert capsys.readouterr().out == "does not fit\n"  # totals read epsilon at 1e-6, which is above 1e-7


def test_what_took_place_may_stand_after_the_options(table: str, capsys: Capture) -> None:
    assert main(["ledger", "spend", "census", table, "--why", "Table 3"]) == 0
    assert main(["ledger", "correct", "census", "1", "--why", "it ran as planned", table]) == 0
    assert main(["ledger", "correct", "census", "2", "--why", "it did not run"]) == 0
    assert main(["ledger", "export", "--format", "opendp", "census"]) == 2  # nothing counts any more
    assert "nothing was released of 'census'" in capsys.readouterr().err
    assert main(["ledger", "correct", "census", table, "2", "--why", "x"]) == 2
    assert main(["ledger", "correct", "census", "2", "--why", "x", table, table]) == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def test_an_answer_about_a_partition_names_it(table: str, capsys: Capture, tmp_path: Path) -> None:
    assert main(["ledger", "spend", "census", table, "--why", "Table 3", "--partition", "north"]) == 0
    capsys.readouterr()
    assert main(["ledger", "total", "census", "--partition", "north"]) == 0
    assert capsys.readouterr().out.endswith(", all fixed in advance, for records of 'north'\n")
    assert main(["ledger", "total", "census", "--partition", "nroth", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statement"].endswith(", for records of 'nroth'")
    for name in ("north.html", "north.json"):
        assert main(["ledger", "report", "census", "--partition", "north", "-o", str(tmp_path / name)]) == 0
        assert re.search("for records of (&#39;|&#x27;|')north", (tmp_path / name).read_text())


def test_a_total_remembers_what_releases_said_of_themselves(table: str, capsys: Capture, tmp_path: Path) -> None:
    page, planned = str(tmp_path / "census.html"), Path(table).read_text()
    total, report = ["ledger", "total", "census"], ["ledger", "report", "census", "-o", page]
    assert main(["ledger", "spend", "census", table, "--why", 'as planned: "broken":[]']) == 0
    Path(table).write_text(planned + '[circumstances]\nbatches = "shuffled"\n')
    assert main(["ledger", "reserve", "census", table, "--why", "Table 4"]) == Status.NOT_CERTIFIED
    assert main(["ledger", "release", "census", "2", "--why", "not yet"]) == 0
    assert main(total) == 0
    assert main(["ledger", "reserve", "census", table, "--why", "Table 4"]) == Status.NOT_CERTIFIED
    assert main(["ledger", "commit", "census", "4"]) == 0
    capsys.readouterr()
    for asked in (total, report):
        assert main(asked) == Status.NOT_CERTIFIED
        said = capsys.readouterr().out
        assert said.startswith("NOT CERTIFIED: an assumption of the accounting is broken\n  - entry 4: Batches are")
    assert main([*report[:-1], str(tmp_path / "census.pdf")]) == Status.BAD_INPUT
    assert "-o must end in .html or .json" in capsys.readouterr().err
    other = str(tmp_path / "other.toml")
    Path(other).write_text(planned)
    for action, status in (("would-fit", Status.REFUTED), ("remaining", Status.NOT_CERTIFIED)):
        assert main(["ledger", action, "census", other]) == status
        said = capsys.readouterr().out
        assert said.startswith("NOT CERTIFIED: an assumption of the accounting is broken\n  - entry 4: Batches are")
    assert main([*total, "--json"]) == Status.NOT_CERTIFIED
    (found,) = json.loads(capsys.readouterr().out)["broken_assumptions"]
    assert found in Path(page).read_text()
    assert "certified, true only if every assumption held" in Path(page).read_text()
    assert main(["ledger", "export", "census", "--format", "opendp"]) == Status.BAD_INPUT
    assert "Correct that entry first" in capsys.readouterr().err
    Path(table).write_text(planned)
    assert main(["ledger", "correct", "census", "5", table, "--why", "they are all taken"]) == 0
    assert main(total) == 0
    assert main(report) == 0
    assert "NOT CERTIFIED" not in Path(page).read_text()


def test_what_is_beyond_a_filter_is_said_to_hold_only_for_releases_fixed_in_advance(tmp_path: Path) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path}/book.db")
    ledger.add_dataset(DataSet("a", Budget(epsilon=1.0, delta=1e-6), rule="gaussian-dp"))
    ledger.spend("a", hs.Gaussian(20.0), why="as planned", chosen="adaptively")
    ledger.correct("a", 1, why="with less noise", release=hs.Gaussian(1.0))
    shown = data_set_page(Account(ledger, "a"))
    assert "over budget" in shown
    assert "Had all releases been fixed in advance, the true epsilon of all releases together would lie" in shown
    assert "is proved to lie" not in shown


def test_an_infinite_epsilon_is_drawn_at_the_top_and_none_at_all_as_a_line(tmp_path: Path) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path}/book.db")
    ledger.add_dataset(DataSet("a", Budget(epsilon=1.0, delta=1e-6)))
    ledger.spend("a", hs.Laplace(10.0), why="as planned")
    ledger.correct("a", 1, why="it failed at times", release=hs.ApproximateDP(1.0, 1e-3))
    assert "no finite epsilon holds at delta = 1e-6" in data_set_page(Account(ledger, "a"))
    ledger.correct("a", 2, why="it did not", release=hs.Laplace(10.0))
    assert "At the top edge no finite epsilon is proved." in data_set_page(Account(ledger, "a"))
    ledger.add_dataset(DataSet("b", Budget(mu=1.0)))
    ledger.spend("b", hs.Gaussian(1e6), why="nothing to see")
    assert "epsilon = 0 at delta" in data_set_page(Account(ledger, "b"))
