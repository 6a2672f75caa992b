"""Sweeps: the same brackets as one by one, whoever does the work; what refuses is one row; nothing done is lost."""

from __future__ import annotations

import functools
import math
import multiprocessing
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.calibrate.sought import calibrations
from hockeystick.composition import Composition
from hockeystick.exact import exact_delta
from hockeystick.progress import Progress
from hockeystick.sweep import Sweep, plans
from hockeystick.sweep import chunks as chunking
from hockeystick.sweep.grid import Grid
from hockeystick.sweep.plans import plans_of, rows_of
from hockeystick.sweep.workers import Workers, done


def plan(noise: float, rate: float, steps: int) -> Composition:
    return hs.Gaussian(noise).poisson(rate) * steps


def named(name: str, noise: float) -> Composition:
    return hs.Gaussian(noise) * len(name)


GRID: dict[str, Any] = {"noise": [0.7, 1.0, 2.0], "rate": np.array([0.001, 0.01]), "steps": range(500, 2001, 500)}


def swept(**changes: Any) -> Sweep:
    return hs.sweep(plan, **{**GRID, "delta": 1e-5, **changes})


def sides(found: Sweep) -> list[tuple[float, float]]:
    return [(row.lower, row.upper) for row in found.rows]


def alone(noise: float, rate: float, steps: int, *, delta: float = 1e-5) -> tuple[float, float]:
    bound = hs.account(plan(noise, rate, steps)).epsilon(delta)
    assert isinstance(bound, Bound)
    return float(bound.lower), float(bound.upper)


@functools.cache
def expected() -> list[tuple[float, float]]:
    """Of every plan of the grid, alone."""
    return [alone(noise, rate, steps) for noise in (0.7, 1.0, 2.0) for rate in (0.001, 0.01) for steps in GRID["steps"]]


@functools.cache
def plain() -> Sweep:
    """The whole grid, by one worker."""
    return swept()


@pytest.fixture(scope="module")
def rows_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("swept") / "rows.csv"
    assert sides(swept(file=path)) == expected()
    return path


@pytest.fixture
def kept(rows_once: Path, tmp_path: Path) -> Path:
    """The rows of the whole grid, in a file of its own."""
    return Path(shutil.copy(rows_once, tmp_path))


def backwards(work: Callable[[Any], Any], chunks: Iterable[Any]) -> Iterator[Any]:
    """Like map, one chunk after the other, the last one computed first."""
    results = [work(chunk) for chunk in reversed(list(chunks))]
    return reversed(results)


@pytest.mark.parametrize("workers", [1, 2, map, backwards], ids=["one", "two", "map", "backwards"])
def test_every_bracket_is_the_one_of_the_plan_alone_whoever_works(workers: Any) -> None:
    found = swept(workers=workers)
    assert sides(found) == expected()
    assert found.shape == found.bound.lower.shape == (3, 2, 4)  # type: ignore[union-attr]
    assert found.complete


def test_an_executor_does_the_work() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert sides(swept(workers=pool)) == expected()


def test_a_cluster_that_says_how_many_workers_it_has_gets_a_few_chunks_for_each() -> None:
    sizes: list[int] = []

    class Cluster(ThreadPoolExecutor):
        """Asked as a Dask client is."""

        def nthreads(self) -> dict[str, int]:
            return {"one": 1, "two": 1}

        def get_executor(self, *, pure: bool) -> Cluster:
            assert not pure
            return self

        def submit(self, work: Any, chunk: Any) -> Any:  # type: ignore[override]  # as sweeps call it
            sizes.append(len(chunk))
            return super().submit(work, chunk)

    def closed(noise: float, rate: float, steps: int) -> Composition:
        return hs.Gaussian(noise * (1.0 + rate)) * steps

    grid = GRID | {"noise": np.geomspace(10.0, 20.0, 12).tolist(), "delta": 1e-5}
    with Cluster(1) as cluster:
        found = hs.sweep(closed, **grid, workers=cluster)
    assert sizes == [1, 3, *[12] * 7, 8]  # after the first ones, runs of a law stay together
    assert found.rows == hs.sweep(closed, **grid).rows


def test_delta_relation_and_target_may_be_axes() -> None:
    found = hs.sweep(plan, noise=1.0, rate=0.01, steps=[100, 1000], adjacency=["add", "remove"], delta=[1e-9, 1e-5])
    assert list(found.grid.axes) == ["steps", "adjacency", "delta"]
    for i, steps in enumerate((100, 1000)):
        for j, relation in enumerate(("add", "remove")):
            curve = hs.account(plan(1.0, 0.01, steps), relation)
            for k, delta in enumerate((1e-9, 1e-5)):
                one = curve.epsilon(delta)
                assert (found.bound.lower[i, j, k], found.bound.upper[i, j, k]) == one.sides  # type: ignore[index]


def test_delta_at_an_axis_of_epsilons_contains_the_exact_truth() -> None:
    found = hs.sweep(plan, noise=[0.9, 1.5], rate=0.02, steps=50, adjacency="remove", epsilon=[0.5, 2.0])
    assert found.quantity == "delta"
    for i, noise in enumerate((0.9, 1.5)):
        for j, epsilon in enumerate((0.5, 2.0)):
            truth = exact_delta(plan(noise, 0.02, 50).pairs("remove"), epsilon, digits=15)
            one = found.bound[i, j]
            assert Fraction(float(one.lower)) <= truth.low <= truth.high <= Fraction(float(one.upper))
            assert float(one.width) < 1e-3 * float(one.upper)


def test_rows_that_refuse_carry_their_reason_and_lose_nothing_else() -> None:
    def mixed(kind: str, rate: float) -> Any:
        return {"Gaussian": hs.Gaussian(1.0), "GaussianDP": hs.GaussianDP(2.0)}[kind].poisson(rate)

    found = hs.sweep(mixed, kind=["Gaussian", "GaussianDP"], rate=[0.1, 1.5], adjacency="substitute", delta=1e-5)
    assert [[bool(reason) for reason in line] for line in found.refused] == [[False, True], [True, True]]
    assert "rate must be in (0, 1], got 1.5" in found.refused[0, 1]
    assert "no dominating pair" in found.refused[1, 0]
    assert found.bound.upper[0, 0] == hs.account(mixed("Gaussian", 0.1), "substitute").epsilon(1e-5).sides[1]  # type: ignore[index]
    assert (found.bound.lower[1, 0], found.bound.upper[1, 0]) == (0.0, math.inf)  # type: ignore[index]
    assert not found.complete


MECHANISMS: dict[str, Any] = {
    "sampled": hs.Gaussian(1.0).poisson(0.01) * 1000,
    "closed form": hs.Gaussian(5.0) * 20,
    "listed": hs.RandomizedResponse(0.75) * 5,
    "mixed": hs.Gaussian(1.0).poisson(0.01) * 500 + hs.Laplace(20.0) * 2,
    "few": hs.Laplace(2.0).poisson(0.1) * 2,
}


def test_plans_of_all_kinds_are_answered_in_one_chunk_as_alone() -> None:
    kinds = [*MECHANISMS, "sampled"]
    grid = Grid.of({"kind": kinds, "adjacency": ["remove", "add-remove"], "epsilon": [0.5, 1e4]})
    rows = rows_of(plans_of(lambda kind: MECHANISMS[kind], grid, "delta", hs.accountants.Certified()))
    for i, kind in enumerate(kinds):
        for j, relation in enumerate(["remove", "add-remove"]):
            for k, epsilon in enumerate([0.5, 1e4]):
                one = hs.account(MECHANISMS[kind], relation).delta(epsilon)
                row = rows[(i * 2 + j) * 2 + k]
                assert (row.lower, row.upper, row.method, row.notes) == (*one.sides, one.method, one.notes)


def test_a_refused_delta_is_at_most_one() -> None:
    found = hs.sweep(lambda size: hs.GaussianDP(size).poisson(0.1), size=[1.0], adjacency="substitute", epsilon=1.0)
    assert sides(found) == [(0.0, 1.0)]


# ---------------------------------------------------------------------------------------------------- calibrations


LEAST: dict[str, Any] = {"find": "noise", "rate": [0.02, 0.03], "steps": 1000, "delta": 1e-6}


def test_values_found_are_proved_safe_and_their_neighbours_unsafe() -> None:
    found = hs.sweep(plan, **LEAST, epsilon=[1.0, 3.0], settings={"safe": "larger"})
    assert found.shape == (2, 2)
    assert found.quantity == "noise"
    for i, rate in enumerate(LEAST["rate"]):
        for j, epsilon in enumerate((1.0, 3.0)):
            safe, unsafe = float(found.safe[i, j]), float(found.bound.lower[i, j])  # type: ignore[index]
            assert 0.0 < safe - unsafe <= 1e-5 * safe
            assert safe == found.bound.upper[i, j]  # type: ignore[index]
            for value, met in ((safe, True), (unsafe, False)):
                run = plan(value, rate, 1000)
                truths = (exact_delta(run.pairs(d), epsilon, digits=7) for d in ("remove", "add"))
                if met:
                    assert all(truth.high <= Fraction(1e-6) for truth in truths)
                else:
                    assert any(truth.low > Fraction(1e-6) for truth in truths)


def test_what_is_found_does_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_LINE", 4)
    rates = [0.01 * 1.03**i for i in range(10)]  # of three lines, side by side or not
    one, two = (hs.sweep(plan, **LEAST | {"rate": rates}, epsilon=1.0, workers=workers) for workers in (1, 2))
    assert one.rows == two.rows


def test_a_target_that_cannot_be_met_is_a_refused_row() -> None:
    settings = {"within": (0.5, 1.0), "safe": "larger"}
    found = hs.sweep(plan, find="noise", rate=0.01, steps=[1, 2000], epsilon=1.0, delta=1e-5, settings=settings)
    assert "meets epsilon 1 at delta 1e-5: at the safest one" in found.refused[1]
    assert math.isnan(found.safe[1])
    assert not found.refused[0]


def test_upper_bounds_alone_leave_the_best_value_open() -> None:
    moments = hs.accountants.Moments()
    found = hs.sweep(plan, find="noise", rate=0.01, steps=1000, epsilon=1.0, delta=1e-6, accountant=moments)
    assert sides(found) == [(0.0, math.inf)]
    assert float(found.safe) > 1.0


def test_whole_numbers_and_other_targets_are_found() -> None:
    found = hs.sweep(plan, find="steps", noise=1.0, rate=0.001, epsilon=1.0, delta=1e-6, settings={"values": "integer"})
    assert (found.bound.lower, found.bound.upper, float(found.safe)) == (31117.0, 31118.0, 31117.0)
    scale = hs.sweep(lambda scale: hs.Laplace(scale) * 2, find="scale", advantage=[0.1, 0.2])
    assert scale.safe[0] > scale.safe[1] > 0.0


def test_neighbours_spare_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates: list[float] = []
    from hockeystick.calibrate.search import Search

    alone = Search.estimated
    monkeypatch.setattr(Search, "estimated", lambda self, place: estimates.append(place) or alone(self, place))
    rates = [0.02 * 1.05**i for i in range(9)]
    found = hs.sweep(plan, **LEAST | {"rate": rates}, epsilon=1.0, settings={"safe": "larger"})
    assert not any(row.refused for row in found.rows)
    first = len(estimates)
    hs.sweep(plan, **LEAST | {"rate": rates[:1]}, epsilon=1.0, settings={"safe": "larger"})
    assert first - (len(estimates) - first) <= 8  # what the other eight took, the last of which is far


# ----------------------------------------------------------------------------------------------- files and Ctrl-C


def stopping(after: int) -> Callable[..., Iterator[Any]]:
    """Like map, interrupted after so many chunks."""

    def like_map(work: Callable[[Any], Any], chunks: Iterable[Any]) -> Iterator[Any]:
        for number, chunk in enumerate(chunks):
            if number == after:
                raise KeyboardInterrupt
            yield work(chunk)

    return like_map


def counted(seen: list[int]) -> Callable[..., Iterator[Any]]:
    """Like map, noting how many plans each chunk has."""

    def like_map(work: Callable[[Any], Any], chunks: Iterable[Any]) -> Iterator[Any]:
        for chunk in chunks:
            seen.append(len(chunk))
            yield work(chunk)

    return like_map


def test_searches_beside_others_take_their_direction_from_these() -> None:
    """The same values, for estimates that tell which are safer of the first of each line alone."""
    rates = np.geomspace(0.005, 0.02, 12).tolist()
    asked: dict[str, Any] = {"find": "noise", "rate": rates, "steps": 1000, "epsilon": 1.0, "delta": 1e-6}
    told = hs.sweep(plan, settings={"safe": "larger"}, **asked)
    with pytest.MonkeyPatch.context() as patch:
        module = sys.modules[calibrations.__module__]
        detected: list[float] = []
        known = module.detected  # type: ignore[attr-defined]
        patch.setattr(module, "detected", lambda search, start: detected.append(start) or known(search, start))
        found = hs.sweep(plan, **asked)
    assert sides(found) == sides(told)
    assert 0 < len(detected) <= 2


def test_a_search_finds_its_own_direction_where_another_one_holds_beside_it() -> None:
    def turned(x: float, kind: float) -> Composition:
        return plan(x if kind < 1.5 else 1.0 / x, 0.01, 1000)

    kinds = [1.0, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9, 2.0, 2.2]
    asked: dict[str, Any] = {"find": "x", "epsilon": 1.0, "delta": 1e-6}
    for places in (kinds, [1.0, 2.0]):
        found = hs.sweep(turned, kind=places, **asked)
        for kind, row in zip(places, found.rows, strict=True):
            assert row.lower < row.upper < row.lower * (1.0 + 1e-5), kind
            assert row.safe == (row.upper if kind < 1.5 else row.lower)


def test_an_interrupted_sweep_keeps_what_is_done() -> None:
    with pytest.warns(RuntimeWarning, match="interrupted: 5 of 24 plans are done"):
        found = swept(workers=stopping(5))
    assert sides(found)[:5] == expected()[:5]
    assert found.refused.ravel()[5] == "not asked: the sweep was interrupted"
    assert sides(found)[5:] == [(0.0, math.inf)] * 19


@pytest.mark.parametrize(
    ("seconds", "sizes"),
    [(0.0, [1, 4, 16, 30]), (0.125, [1, 4, 16, 30]), (1.5, [1, 2, 2]), (9.0, [1, 1, 1])],
)
def test_chunks_grow_while_they_take_little_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, sizes: list[int]
) -> None:
    """Of plans that take so many seconds each, in two laws, and in two lines, none of which is cut; one is known."""
    clock = [0.0]
    monkeypatch.setattr(chunking, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for whole in (False, True):
        taken = []
        for chunk in chunking.Chunks([range(3000), range(3000, 3001)], 30, whole=whole).missing({0}):
            clock[0] += seconds * len(chunk)
            taken.append(chunk)
        assert [len(chunk) for chunk in taken][: len(sizes)] == ([3000, 1] if whole else sizes)
        assert [number for chunk in taken for number in chunk] == list(range(0 if whole else 1, 3001))


def test_lines_are_taken_together_as_soon_as_one_took_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "time", SimpleNamespace(monotonic=lambda: 0.0))
    lines = [range(17 * line, 17 * line + 17) for line in range(12)]
    taken = chunking.Chunks(lines, 512, whole=True).missing(set())
    assert [len(chunk) for chunk in taken] == [17, 4 * 17, 7 * 17]


def test_an_interrupt_while_workers_are_waited_for_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    others = set(multiprocessing.active_children())
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as workers have it that come of a fork
    results = done(time.sleep, [0.0, 20.0], Workers(2))
    assert next(results) == (0, None)
    signal.signal(signal.SIGTERM, before)
    ours = set(multiprocessing.active_children()) - others
    assert ours
    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        results.close()
    for worker in ours:  # the pool's thread waits for them, too: who comes second is not told that they ended
        assert wait([worker.sentinel], 10.0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"rows.{ending}"
    with pytest.warns(RuntimeWarning):
        swept(workers=stopping(5), file=path)
    asked: list[int] = []
    found = swept(workers=counted(asked), resume=path)
    assert sum(asked) == 19
    assert sides(found) == expected()
    assert found.rows == plain().rows
    again = swept(workers=stopping(0), resume=path)  # all is there: nobody is asked
    assert again.rows == found.rows


def test_values_that_hold_the_end_of_a_line_are_kept(tmp_path: Path) -> None:
    """As names read from a file of another system; a file with such a name was refused as damaged."""
    names = ["plain", "ends\r", "two\r\nlines", "two\nlines", 'said "so", twice']
    kept = str(tmp_path / "rows.csv")
    found = hs.sweep(named, name=names, noise=[10.0, 20.0], delta=1e-5, file=kept)
    written = Path(kept).read_bytes()
    for length in (len(written), written.index(b"\nlines") + 1, written.index(b"\nlines") + 3):
        Path(kept).write_bytes(written[:length])
        assert hs.sweep(named, name=names, noise=[10.0, 20.0], delta=1e-5, resume=kept).rows == found.rows
        assert Path(kept).read_bytes() == written


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_text_that_no_file_can_hold_is_refused_in_words(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ValueError, match=r"cannot hold the text 'half\\ud800'"):
        hs.sweep(named, name=["half\ud800"], noise=10.0, delta=1e-5, file=tmp_path / f"rows.{ending}")


def test_calibrations_go_on_and_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    asked = {**LEAST, "epsilon": [1.0, 2.0]}
    with pytest.warns(RuntimeWarning):
        hs.sweep(plan, **asked, workers=stopping(1), file=path)
    assert hs.sweep(plan, **asked, resume=path).rows == hs.sweep(plan, **asked).rows


def test_a_line_cut_short_is_computed_again(kept: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-40])
    asked: list[int] = []
    assert sides(swept(workers=counted(asked), resume=kept)) == expected()
    assert sum(asked) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_by_pandas(tmp_path: Path, ending: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / f"rows.{ending}"
    found = swept(file=path, steps=[500, 1000])
    frame = (pandas.read_csv if ending == "csv" else pandas.read_parquet)(path).sort_values("plan")
    np.testing.assert_array_equal(frame["epsilon_upper"], np.ravel(found.bound.upper))
    np.testing.assert_array_equal(frame["noise"], found.to_table()["noise"])


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": [0.7, 1.0, 2.1]},
        {"noise": [0.7, 1.0]},
        {"delta": 1e-6},
        {"tolerance": 1e-2},
        {"adjacency": "add"},
        {"steps": 500},
    ],
    ids=str,
)
def test_rows_of_another_sweep_are_refused(kept: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="holds another sweep"):
        swept(resume=kept, **changes)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_another_family_are_refused(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"rows.{ending}"
    hs.sweep(lambda noise: hs.Gaussian(noise) * 2, noise=[1.0, 2.0], delta=1e-5, file=path)
    with pytest.raises(ValueError, match="plan 0 is of another run"):
        hs.sweep(lambda noise: hs.Laplace(noise) * 2, noise=[1.0, 2.0], delta=1e-5, resume=path)


@dataclass(frozen=True, eq=False)
class Kept(hs.Step):
    """A step that keeps its numbers in an array."""

    noise: np.ndarray[Any, Any]

    def pair(self, direction: Any) -> Any:
        return hs.Gaussian(float(self.noise[-1])).pair(direction)


@pytest.mark.parametrize(("size", "other"), [(1, 2.0 + 1e-12), (2000, 3.0)])
def test_numbers_in_an_array_tell_runs_apart(tmp_path: Path, size: int, other: float) -> None:
    path = tmp_path / "rows.csv"
    hs.sweep(lambda steps: Kept(np.full(size, 2.0)) * steps, steps=[1, 2], delta=1e-5, file=path)
    noise = np.full(size, 2.0)
    noise[size // 2] = other
    with pytest.raises(ValueError, match="plan 0 is of another run"):
        hs.sweep(lambda steps: Kept(noise) * steps, steps=[1, 2], delta=1e-5, resume=path)


@pytest.mark.parametrize("text", ["my,own\n1,2\n3,4", "a line of its own", 'noise"'])
def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="holds another sweep"):
        swept(resume=path)
    assert path.read_text(encoding="utf-8") == text


def test_where_no_rows_can_be_kept_is_said_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()
    (tmp_path / "rows.parquet").touch()
    for name, kind in (("rows.csv", "file"), ("rows.parquet", "folder")):
        with pytest.raises(ValueError, match=f"must be a {kind}, and is none"):
            swept(resume=tmp_path / name, workers=lambda *_: pytest.fail("asked"))


def test_a_whole_number_beyond_float64_is_kept_in_its_digits(tmp_path: Path) -> None:
    found = hs.sweep(hs.Gaussian, noise_multiplier=[1.0, 10**400], delta=1e-5, file=tmp_path / "rows.csv")
    assert found.refused[1]
    assert hs.sweep(hs.Gaussian, noise_multiplier=[1.0, 10**400], delta=1e-5, resume=tmp_path / "rows.csv").rows


def test_rows_of_functions_are_not_gone_on_with(tmp_path: Path) -> None:
    """Both functions have one name, and nothing else by which another process could know them."""

    def stated(delta: float) -> Callable[[float], hs.UserDefinedCurve]:
        return lambda _: hs.UserDefinedCurve(lambda _: (delta, delta), infinite=delta)

    path = tmp_path / "rows.csv"
    hs.sweep(stated(0.1), _=[1.0, 2.0], epsilon=1.0, file=path)
    with pytest.raises(ValueError, match="plan 0 has a step that is stated by a Python function"):
        hs.sweep(stated(0.2), _=[1.0, 2.0], epsilon=1.0, resume=path)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="resume="):
        swept(file=path)
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_that_is_not_there_is_told_before_anything_is_computed(tmp_path: Path, ending: str) -> None:
    asked: list[int] = []
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        swept(file=tmp_path / "none" / f"rows.{ending}", workers=counted(asked))
    assert asked == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda rows: rows + b"\0\0\0\n", "is damaged: invalid literal for int"),
        (lambda rows: rows + b"\xff\n", "is damaged: 'utf-8' codec can't decode"),
        (lambda rows: rows + b"1,0.7\n", "is damaged: float"),
        (lambda rows: rows + b'"' + b"x" * 200_000 + b'"\n', "is damaged: field larger"),
    ],
)
def test_a_damaged_row_is_named_with_its_file(kept: Path, change: Callable[[bytes], bytes], what: str) -> None:
    kept.write_bytes(change(kept.read_bytes()))
    with pytest.raises(ValueError, match=rf"rows\.csv {what}"):
        swept(resume=kept)


def test_sides_that_are_no_bracket_are_refused(kept: Path) -> None:
    upper = repr(expected()[3][1])
    kept.write_text(kept.read_text(encoding="utf-8").replace(upper, "nan"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\.csv is damaged: .* is not at most nan"):
        swept(resume=kept)


def test_a_part_that_is_cut_short_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    swept(file=path)
    part = min(path.iterdir())
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(ValueError, match=rf"{part.name} is damaged"):
        swept(resume=path)
    part.unlink()
    assert sides(swept(resume=path)) == expected()


def test_a_line_cut_short_is_taken_out_without_writing_the_others_anew(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-20])
    monkeypatch.setattr(Path, "write_bytes", None)  # which a kill could cut short, with all that was kept
    assert sides(swept(resume=kept)) == expected()
    assert kept.read_bytes() == whole


# ---------------------------------------------------------------------------------------------------------- tables


def test_tables_have_a_row_a_plan() -> None:
    found = swept(rate=0.01)
    table = found.to_table()
    assert list(table)[:5] == ["noise", "steps", "rate", "adjacency", "delta"]
    assert {len(column) for column in table.values()} == {12}
    assert table["epsilon_upper"] == np.ravel(found.bound.upper).tolist()


def test_pandas_and_xarray_label_the_brackets() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    found = plain()
    assert found.to_pandas().to_dict("list") == found.to_table()
    labelled = found.to_xarray()
    assert labelled["epsilon_upper"].dims == ("noise", "rate", "steps")
    one = labelled["epsilon_upper"].sel(noise=1.0, rate=0.01, steps=2000)
    assert float(one) == alone(1.0, 0.01, 2000)[1]
    assert labelled.attrs["delta"] == 1e-5


def test_a_sweep_says_what_it_holds() -> None:
    assert repr(swept(rate=0.01)).startswith("Sweep(epsilon on noise: 3, steps: 4; 12 answered")


def test_progress_is_counted_in_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(Progress, "count", lambda _, done, total: seen.append((done, total)))
    swept()
    assert seen[-1] == (24, 24)
    assert len(seen) > 1


# ------------------------------------------------------------------------------------------------------- bad input


TARGET = {"epsilon": 1.0, "delta": 1e-6}


def needs(noise: float, epsilon: float) -> Any:
    return hs.Gaussian(noise)


def found(**noise: float) -> Any:
    return hs.Gaussian(*noise.values())


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: hs.sweep(3, delta=1e-5), TypeError, "family must be a function"),  # type: ignore[arg-type]
        (lambda: swept(nosie=[1.0]), TypeError, "family has no argument nosie: it takes noise, rate, steps"),
        (lambda: hs.sweep(plan, noise=[1.0], delta=1e-5), TypeError, "give rate, steps"),
        (lambda: hs.sweep(needs, noise=1.0, delta=1e-5), TypeError, "rename the argument epsilon"),
        *(
            (lambda name=name: hs.sweep(found, **{name: 1.0}, delta=1e-5), TypeError, f"rename the argument {name}")
            for name in ("plan", "method", "notes", "refused", "run", "epsilon_lower", "delta_safe")
        ),
        *(
            (lambda family=family: hs.sweep(family, noise=1.0, delta=1e-5), TypeError, "the sweep itself has one")
            for family in (lambda noise, find: found(a=noise, b=find), lambda noise, resume: found(a=noise, b=resume))
        ),
        (lambda: hs.sweep(found, find="s", s_upper=1.0, **TARGET), TypeError, "rename the argument s_upper"),
        (lambda: hs.sweep(plan, find=3, **TARGET), TypeError, "find must be the name"),
        (lambda: hs.sweep(found, find="s", settings=3, **TARGET), TypeError, "settings must be a mapping"),
        (lambda: hs.sweep(found, find="s", settings={"preci": 1}, **TARGET), TypeError, "calibrate (epsilon, delta"),
        (lambda: swept(delta=[[1e-5]]), TypeError, "delta must be one number or a list of numbers"),
        (lambda: swept(noise=[]), ValueError, "noise holds no value"),
        (lambda: swept(noise=np.ones((2, 2))), ValueError, "noise must be one value or a list"),
        (lambda: swept(noise=["a"]), TypeError, "noise_multiplier must be a real number"),
        (lambda: swept(noise=[-1.0, -2.0]), ValueError, "noise_multiplier must be"),
        (lambda: swept(steps=[10.5]), TypeError, "count"),
        (lambda: swept(delta=None), TypeError, "give either delta"),
        (lambda: swept(epsilon=1.0), TypeError, "give either delta"),
        (lambda: swept(delta=[1e-5, 2.0]), ValueError, "delta must be in"),
        (lambda: swept(adjacency=["add", "ad"]), ValueError, "adjacency must be one of"),
        (lambda: swept(workers=0), ValueError, "workers must be an integer"),
        (lambda: swept(workers="two"), TypeError, "workers must be a number of processes"),
        (lambda: swept(settings={"precision": 1e-3}), TypeError, "say what to find"),
        (lambda: swept(find="noise"), TypeError, "it cannot be given as well"),
        (lambda: hs.sweep(plan, **LEAST), TypeError, "epsilon and delta go together"),
        (lambda: hs.sweep(plan, **LEAST, epsilon=[1.0, -1.0]), ValueError, "epsilon must be"),
        (lambda: swept(file="rows.txt"), ValueError, "ends in .csv or .parquet"),
        (lambda: swept(file="a.csv", resume="a.csv"), TypeError, "either file"),
        (lambda: swept(accountant=hs.accountants.SaddlePoint()), TypeError, "returns estimates"),
        (lambda: swept(workers=lambda _, chunks: [None for _ in chunks]), TypeError, "as map does"),
        (lambda: hs.sweep(lambda noise: noise, noise=[1.0], delta=0.1), TypeError, "got 1.0 from noise=1.0"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(ask: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        ask()


def test_a_family_that_cannot_be_sent_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="define the family with def in a module"):
        hs.sweep(lambda noise: hs.Gaussian(noise) * 2, find="noise", epsilon=[1.0] * 160, delta=1e-5, workers=2)
