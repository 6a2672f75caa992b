"""Receipts: what they state, that they verify, and that no single number in them can be changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.report import verification
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.numbers import jsonable
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import checksum, receipt, stated
from hockeystick.app.report.verification import NoReceiptError, open_receipt, verify
from hockeystick.app.spec import Specification, from_document, read
from hockeystick.app.spec.cautions import cautions
from hockeystick.bound import Bound
from hockeystick.decimals import rounded_up
from tests.closed_forms import composed_mu, gaussian_epsilon

RUN = """\
title = "one release"
[[steps]]
mechanism = "gaussian"
noise_multiplier = 2.0
[guarantee]
delta = 1e-5
epsilon = 1.0
[circumstances]
examples = 1000
clipping_norm = 0.5
"""

WIDE = """\
[[steps]]
mechanism = "gaussian"
noise_multiplier = 2.0
[guarantee]
delta = 1e-5
[accountant]
method = "certified"
engine = "lattice"
tolerance = 0.1
"""

Keys = tuple[str | int, ...]


@pytest.fixture(scope="module")
def specification() -> Specification:
    return read(RUN)


@pytest.fixture(scope="module")
def made(specification: Specification) -> dict[str, Any]:
    return receipt(specification, created="2030-01-02")


@pytest.fixture(scope="module")
def kept() -> dict[tuple[Specification, str], bytes]:
    """The receipts that were computed, by what they are of."""
    return {}


@pytest.fixture
def computed_once(kept: dict[tuple[Specification, str], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification that computes each distinct specification only once, for tests with hundreds of edits."""

    def remembered(specification: Specification, *, created: str) -> dict[str, Any]:
        key = (specification, created)
        if key not in kept:
            kept[key] = pickle.dumps(receipt(specification, created=created))
        made: dict[str, Any] = pickle.loads(kept[key])  # noqa: S301 - made here
        return made

    monkeypatch.setattr(verification, "receipt", remembered)


def numbers(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """The places of all numbers of a document."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from numbers(inside, (*path, key))
    elif isinstance(value, list):
        for place, inside in enumerate(value):
            yield from numbers(inside, (*path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def edited(document: dict[str, Any], path: Keys, change: Callable[[Any], Any]) -> dict[str, Any]:
    """The document with another value in one place; the rest of it is shared."""
    changed = copy.copy(document)
    holder: Any = changed
    for key in path[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    holder[path[-1]] = change(holder[path[-1]])
    return changed


def texts(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """The places of all texts and truth values of a document."""
    if isinstance(value, dict | list):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(inside, (*path, key))
    elif isinstance(value, str | bool):
        yield path


def restated(document: dict[str, Any], **sides: float) -> dict[str, Any]:
    """A receipt whose first result has other sides in every direction, with the words that go with these."""
    ((_, level),) = document["results"][0]["at"].items()

    def change(result: dict[str, Any]) -> dict[str, Any]:
        directions = {name: own | sides for name, own in result["directions"].items()}
        low, high = (max(own[side] for own in directions.values()) for side in ("lower", "upper"))
        bound = Bound(low, high, result["method"], tuple(result["notes"]), result["errors"])
        said = stated(from_document(document["specification"]), result["quantity"], level, bound)
        return {**result, **jsonable(said), "directions": directions}

    return signed_anew(edited(document, ("results", 0), change))


def signed_anew(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"checksum": checksum(document)}


def test_a_receipt_holds(made: dict[str, Any]) -> None:
    found = verify(open_receipt(json.dumps(made)))
    assert found.holds, found.findings
    assert found.checked > 100


def test_a_receipt_contains_the_truth(made: dict[str, Any]) -> None:
    truth = hs.account(hs.Gaussian(2.0)).epsilon(1e-5)
    assert isinstance(truth, hs.Bound)
    result = made["results"][0]
    assert result["certified"] is True
    assert result["lower"] <= float(truth.upper)
    assert result["upper"] >= float(truth.lower)


@pytest.mark.usefixtures("computed_once")
def test_every_edited_number_is_rejected(made: dict[str, Any]) -> None:
    places = list(numbers(made))
    assert len(places) > 120
    for path in places:
        changed = edited(made, path, lambda x: x + 1 if isinstance(x, int) else x * 1.000001 + 1e-9)
        try:
            found = verify(open_receipt(json.dumps(changed)))
        except NoReceiptError:
            continue  # an edited format version is no receipt at all
        assert not found.holds, path


@pytest.mark.usefixtures("computed_once")
def test_a_new_checksum_does_not_save_an_edited_result(made: dict[str, Any]) -> None:
    places = [path for path in numbers(made) if path[0] in {"results", "curve", "drawn", "tradeoff"}]
    places += [path for path in numbers(made) if path[:2] == ("specification", "steps")]
    assert len(places) > 100
    for path in places:
        found = verify(signed_anew(edited(made, path, lambda x: x * 1.001 + 1e-3)))
        assert not found.holds, path


def test_a_finding_about_a_long_list_counts_its_values(made: dict[str, Any]) -> None:
    places: Keys = ("drawn", "epsilon")
    found = verify(edited(made, places, lambda drawn: drawn[1:])).findings
    many = len(made["drawn"]["epsilon"])
    assert f"drawn.epsilon: the receipt has {many - 1} values, computed again there are {many}" in found
    noisier = edited(made, ("specification", "steps", 0, "noise_multiplier"), lambda noise: noise + 0.5)
    found = verify(noisier).findings
    assert any(finding.startswith("drawn.") for finding in found)
    assert max(map(len, found)) < 600  # the longest is a statement, said twice


@pytest.mark.usefixtures("computed_once")
@pytest.mark.parametrize("key", ["statement", "guarantee", "method"])
def test_an_edited_text_is_rejected(made: dict[str, Any], key: str) -> None:
    changed = edited(made, ("results", 0, key), lambda text: text.replace("2", "1") + " indeed")
    assert not verify(changed).holds
    assert not verify(signed_anew(changed)).holds


@pytest.mark.usefixtures("computed_once")
def test_a_dropped_caution_is_rejected(made: dict[str, Any]) -> None:
    assert made["cautions"]
    assert not verify(signed_anew(edited(made, ("cautions",), lambda found: found[1:]))).holds


@pytest.fixture(scope="module")
def wide() -> dict[str, Any]:
    """Of shuffled batches: known datasets show far less than what is proved."""
    text = "[[steps]]\nmechanism = 'approximate-dp'\nepsilon = 1.0\n"
    text += "sampling = {scheme = 'shuffled', batch_size = 10, population = 100}\n"
    made = receipt(read(f"{text}[guarantee]\nadjacency = 'zero-out'\ndelta = 1e-5\n"), created="2030-01-02")
    return signed_anew(edited(made, ("software", "numpy"), lambda _: "0.0"))


def _moved(found: Any, side: Any, to: Any) -> Any:
    """Two sides, one of them put where the other one is."""
    changed = copy.deepcopy(found)
    changed[side] = copy.deepcopy(found[to])
    return changed


class TestOtherVersions:
    """Receipts made with other versions: brackets must be provable, digits may differ."""

    @pytest.fixture
    def foreign(self, made: dict[str, Any]) -> dict[str, Any]:
        return signed_anew(edited(made, ("software", "numpy"), lambda _: "0.0"))

    def test_it_holds_and_says_so(self, foreign: dict[str, Any]) -> None:
        found = verify(foreign)
        assert found.holds, found.findings
        assert "numpy 0.0" in found.remarks[0]

    def test_slightly_different_digits_hold(self, foreign: dict[str, Any]) -> None:
        wider = restated(foreign, upper=foreign["results"][0]["upper"] * (1 + 1e-7))
        assert verify(wider).holds

    @pytest.mark.usefixtures("computed_once")
    def test_nothing_else_that_is_said_can_be_changed(self, foreign: dict[str, Any]) -> None:
        of_maker = {"receipt", "created", "software", "selfcheck", "checksum", "method", "notes", "errors"}
        of_run = {"title", "clipping_norm", "examples"}  # another run with the same figures
        said = [p for p in (*texts(foreign), *numbers(foreign)) if not (of_maker | of_run) & set(p)]
        sides = {path for path in said if path[0] in {"curve", "drawn", "tradeoff"} and path[-1] != "delta"}
        assert {path[0] for path in set(said) - sides} > {"specification", "results", "curve", "cautions", "relation"}
        for path in said:
            if path not in sides or path[-1] in {"lower", "certified", "least", "direction"}:
                changed = edited(foreign, path, lambda x: f"{x} x" if isinstance(x, str) else (not x or 3 * x + 1))
                assert not verify(signed_anew(changed)).holds, path

    def test_one_direction_cannot_claim_less(self, foreign: dict[str, Any]) -> None:
        for direction in ("remove", "add"):
            path = ("results", 0, "directions", direction, "upper")
            for less in (0.99, 1.0 - 1e-10):
                assert not verify(signed_anew(edited(foreign, path, lambda upper, less=less: less * upper))).holds

    def test_a_curve_whose_deltas_are_smaller_is_rejected(self, foreign: dict[str, Any]) -> None:
        assert not verify(signed_anew(edited(foreign, ("curve", 2, "delta"), lambda delta: 1e-3 * delta))).holds

    @pytest.mark.parametrize("key", ["drawn", "tradeoff", "cautions", "not_included", "relation"])
    def test_what_is_left_out_is_missed(self, foreign: dict[str, Any], key: str) -> None:
        assert not verify(signed_anew({name: inside for name, inside in foreign.items() if name != key})).holds

    def test_what_a_page_shows_is_compared(self, foreign: dict[str, Any]) -> None:
        assert verify(foreign, shown=page(foreign)).holds
        figure = rounded_up(foreign["results"][0]["upper"])
        assert not verify(foreign, shown=page(foreign).replace(figure, "0.1")).holds

    @pytest.mark.parametrize("factor", [0.999, 0.5])
    def test_a_smaller_claim_is_rejected(self, foreign: dict[str, Any], factor: float) -> None:
        result = foreign["results"][0]
        assert not verify(restated(foreign, **{side: factor * result[side] for side in ("upper", "lower")})).holds

    def test_a_claim_that_only_the_lower_side_meets_is_rejected(self) -> None:
        """A wide bracket whose upper side is moved down to its lower: it meets the new one, and is not proved."""
        document = read(WIDE).document()
        made = receipt(from_document(document), created="2030-01-02")
        lower, upper = made["results"][0]["lower"], made["results"][0]["upper"]
        truth = float(gaussian_epsilon(composed_mu(2.0, 1), 1e-5))
        assert lower < truth < upper
        made = signed_anew(edited(made, ("software", "numpy"), lambda _: "0.0"))
        assert verify(made).holds
        for claim in (lower, 0.5 * (lower + truth)):
            assert not verify(restated(made, upper=claim)).holds

    def test_a_claim_beside_the_truth_is_rejected(self, foreign: dict[str, Any]) -> None:
        result = foreign["results"][0]
        assert not verify(restated(foreign, **{side: 1.01 * result[side] for side in ("upper", "lower")})).holds

    @pytest.mark.parametrize("factor", [0.5, 2.0])
    def test_a_point_of_the_curve_beside_the_truth_is_rejected(self, foreign: dict[str, Any], factor: float) -> None:
        for side in ("upper", "lower"):
            foreign = edited(foreign, ("curve", 3, side), lambda value: value * factor)
        assert not verify(signed_anew(foreign)).holds

    @pytest.mark.parametrize(
        ("holder", "sides"),
        [
            (("results", 0, "directions", "zero-out"), ("lower", "upper")),
            (("curve", 3), ("lower", "upper")),
            (("drawn", "directions", "zero-in"), (0, 1)),
            (("tradeoff", "false_negative", 1), ("lower", "upper")),
        ],
    )
    def test_a_side_moved_to_the_other_of_a_bracket_that_stays_wide_is_rejected(
        self, wide: dict[str, Any], holder: Keys, sides: tuple[Any, Any]
    ) -> None:
        assert verify(wide).holds
        for moved, to in (sides, sides[::-1]):
            claimed = edited(wide, holder, lambda found, moved=moved, to=to: _moved(found, moved, to))
            findings = verify(signed_anew(claimed)).findings
            assert any("could not be proved again" in finding for finding in findings), (moved, findings)

    @pytest.mark.parametrize("path", [("drawn", "directions", "remove", 1, 3), ("drawn", "directions", "add", 0, 5)])
    def test_a_picture_drawn_beside_the_truth_is_rejected(self, foreign: dict[str, Any], path: Keys) -> None:
        other = edited(foreign, (*path[:3], 1 - int(path[3]), path[4]), lambda value: value * 0.9)
        assert not verify(signed_anew(edited(other, path, lambda value: value * 0.9))).holds

    @pytest.mark.usefixtures("computed_once")
    @pytest.mark.parametrize(
        ("path", "junk"),
        [
            (("results", 0), None),
            (("curve", 0), 1.0),
            (("tradeoff", "false_negative", 1), None),
            (("drawn", "directions"), None),
            (("drawn", "directions", "add"), []),
            (("drawn", "epsilon", 0), "nan"),
        ],
    )
    def test_figures_that_are_none_are_findings(self, foreign: dict[str, Any], path: Keys, junk: Any) -> None:
        found = verify(signed_anew(edited(foreign, path, lambda _: junk)))
        assert any(finding.startswith("figures: ") for finding in found.findings)

    @pytest.mark.parametrize("path", [("results", 0, "at"), ("specification", "steps")])
    def test_an_answer_to_another_question_is_rejected(self, foreign: dict[str, Any], path: Keys) -> None:
        other = {"delta": 2e-5} if path[0] == "results" else []
        assert not verify(signed_anew(edited(foreign, path, lambda _: other))).holds

    def test_an_estimate_passed_off_as_certified_is_rejected(self, foreign: dict[str, Any]) -> None:
        assert not verify(signed_anew(edited(foreign, ("results", 0, "certified"), lambda _: False))).holds


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"receipt": 1}', '{"receipt": 99, "specification": {}}', "<html></html>"]
)
def test_what_is_no_receipt_is_said_to_be_none(text: str) -> None:
    with pytest.raises(NoReceiptError):
        open_receipt(text)


def test_a_broken_specification_inside_is_a_finding(made: dict[str, Any]) -> None:
    broken = edited(made, ("specification", "steps", 0, "noise_multiplier"), lambda _: -1)
    found = verify(broken)
    assert not found.holds
    assert any("noise_multiplier" in finding for finding in found.findings)


def test_a_receipt_needs_a_guarantee() -> None:
    with pytest.raises(ValueError, match="give delta or epsilon"):
        receipt(read('[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 1\n'))


def test_infinite_epsilon_can_be_stated() -> None:
    made = receipt(read('[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 1\n[guarantee]\ndelta = 0\n'))
    assert made["results"][0]["upper"] == "inf"
    assert "No guarantee" in made["results"][0]["statement"]
    assert verify(json.loads(json.dumps(made))).holds
    assert "inf" in page(made)


def test_an_estimate_says_it_is_none_of_ours_to_quote() -> None:
    document = read(RUN).document() | {"accountant": {"method": "gaussian-limit"}}
    made = receipt(from_document(document))
    assert made["results"][0]["certified"] is False
    assert "not a guarantee" in made["results"][0]["statement"]
    for shown in (page(made), markdown(made)):
        assert "not proved" in shown
        assert "both sides are proved" not in shown
    assert verify(made).holds


@pytest.mark.parametrize(
    ("change", "name", "broken"),
    [
        ('batches = "shuffled"', "shuffled-accounted-as-poisson", True),
        ('batches = "fixed-size"', "fixed-size-accounted-as-poisson", True),
        ('batches = "poisson"', "sampler-unstated", None),
        ("", "sampler-unstated", False),
        ("examples = 100_000", "delta-above-one-over-n", True),
        ("examples = 100_001", "delta-above-one-over-n", True),
        ("examples = 99_999", "delta-above-one-over-n", None),
        ("", "examples-unstated", False),
        ('adaptive = "yes"', "adaptive-parameters", True),
        ("", "adaptive-unstated", False),
        ('tuning = "not-counted"', "tuning-not-counted", True),
        ('tuning = "none"', "tuning-unstated", None),
        ("", "tuning-unstated", False),
    ],
)
def test_cautions(change: str, name: str, broken: bool | None) -> None:
    text = RUN.split("[circumstances]", maxsplit=1)[0].replace("epsilon = 1.0\n", "")
    text = text.replace("noise_multiplier = 2.0", 'noise_multiplier = 2.0\nsampling = {scheme = "poisson", rate = 0.5}')
    found = {caution.name: caution.broken for caution in cautions(read(f"{text}[circumstances]\n{change}\n"))}
    assert found.get(name) is broken


def test_relation_with_one_direction_is_cautioned_and_has_no_tradeoff(specification: Specification) -> None:
    document = specification.document()
    document["guarantee"]["adjacency"] = "add"
    made = receipt(from_document(document))
    assert made["tradeoff"] is None
    assert "one-direction" in {caution["name"] for caution in made["cautions"]}


def test_the_worst_direction_is_stated_whichever_it_is() -> None:
    for p, q in (("[0.5, 0.5, 0.0]", "[0.45, 0.5, 0.05]"), ("[0.45, 0.5, 0.05]", "[0.5, 0.5, 0.0]")):
        run = f'[[steps]]\nmechanism = "discrete-pair"\np = {p}\nq = {q}\n[guarantee]\nepsilon = [0.5, 3.0]\n'
        for result in receipt(read(run), created="2030-01-02")["results"]:
            sides = [directed["upper"] for directed in result["directions"].values()]
            assert len(sides) == 2
            assert result["upper"] == max(sides) > min(sides)
