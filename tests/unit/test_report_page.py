"""The receipt's page: valid HTML, complete, and in need of nothing from outside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.report.content import Content
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.figures import privacy_chart, standalone
from hockeystick.app.report.latex import latex
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.markup import tag
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.verification import open_receipt, verify
from hockeystick.app.spec import from_document, read
from hockeystick.readouts.outline import sampled

RUN = """\
title = "a <b>bold</b> title & </script><!-- more"
[[steps]]
mechanism = "gaussian"
noise_multiplier = 2.0
[guarantee]
delta = 1e-5
unit = "user </td>"
[circumstances]
examples = 10
tuning = "not-counted"
notes = "see https://example.org/?a=1&b=2"
"""
VOID = {"meta", "link", "br", "hr"}


class Checker(HTMLParser):
    """Balanced tags, unique ids, no attribute that would fetch anything."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.seen: list[str] = []
        self.problems: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.problems.append(f"<{tag}> repeats an attribute")
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"src", "href", "data", "action", "poster", "srcset", "xlink:href"} or name.startswith("on"):
                self.problems.append(f"<{tag}> has {name}={value!r}")
            if name == "aria-labelledby":
                self.references += (value or "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"style", "script"}:
            self.text += data


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return receipt(read(RUN), created="2030-01-02")


@pytest.fixture(scope="module")
def html(made: dict[str, Any]) -> str:
    return page(made)


@pytest.fixture(scope="module")
def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    return checker


def test_tags_are_balanced_and_ids_unique(checked: Checker) -> None:
    assert not checked.problems
    assert not checked.open
    assert len(set(checked.ids)) == len(checked.ids)
    assert set(checked.references) <= set(checked.ids)


def test_a_broken_page_is_seen(html: str) -> None:
    for broken in (
        html.replace("</table>", "", 1),
        html.replace("<h1>", '<h1 id="receipt">'),
        html.replace("<p>", '<p><img src="x">', 1),
    ):
        checker = Checker()
        checker.feed(broken)
        assert checker.problems or checker.open or len(set(checker.ids)) != len(checker.ids)


def test_nothing_comes_from_outside(html: str, checked: Checker) -> None:
    css = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
    assert "url(" not in css
    assert "@import" not in css
    assert not {"img", "link", "iframe", "object", "embed", "base"} & set(checked.seen)
    assert re.findall(r"<script([^>]*)>", html) == [' type="application/json" id="receipt"']


def test_one_document_with_a_language_a_title_and_one_heading(html: str, checked: Checker) -> None:
    assert html.startswith("<!DOCTYPE html>")
    assert '<html lang="en">' in html
    for once in ("html", "head", "body", "h1", "main"):
        assert checked.seen.count(once) == 1
    assert html.count("<title>") == 1 or "svg" in checked.seen
    assert 'name="viewport"' in html
    assert "@media print" in html


def test_text_from_the_file_is_escaped(html: str, checked: Checker) -> None:
    assert "a <b>bold</b> title & </script><!-- more" in checked.text
    assert "<b>" not in html.split("<script", maxsplit=1)[0]


@pytest.mark.parametrize(
    "said",
    [
        "epsilon = ",
        "certified",
        "add-remove",
        "user </td>",
        "NOT CERTIFIED",
        "a vector of norm at most C",
        "aliasing|rounding",
        "numpy",
        "noise_multiplier",
        "hockeystick verify",
        "sha256:",
        "not included",
        "2030-01-02",
        "scipy",
    ],
)
def test_everything_needed_to_check_is_there(checked: Checker, said: str) -> None:
    assert re.search(said, checked.text)


def test_both_figures_are_drawn_with_words_for_them(checked: Checker) -> None:
    assert checked.seen.count("svg") == 2
    assert checked.seen.count("title") == 3
    assert {"curve-title", "curve-desc", "tradeoff-title", "tradeoff-desc", "receipt"} == set(checked.ids)


def test_no_figure_is_not_a_number(html: str) -> None:
    assert not re.search(r'points="[^"]*(nan|inf)', html)


def test_the_page_carries_its_receipt(html: str, made: dict[str, Any]) -> None:
    assert open_receipt(html) == json.loads(json.dumps(made))
    assert verify(open_receipt(html), shown=html).holds


def test_a_number_changed_in_what_is_shown_is_found(html: str, made: dict[str, Any]) -> None:
    shown = re.search(r"epsilon = ([0-9.]+) at", html)
    assert shown
    changed = html.replace(shown.group(0), shown.group(0).replace(shown.group(1), "0.1"), 1)
    found = verify(open_receipt(changed), shown=changed)
    assert not found.holds
    assert any(finding.startswith("page:") for finding in found.findings)


def test_markdown_says_the_same(made: dict[str, Any], checked: Checker) -> None:
    text = markdown(made)
    figure = re.search(r"epsilon = [0-9.]+ at delta = 1e-5", text)
    assert figure
    assert figure.group(0) in checked.text
    for said in ("# a \\<b\\>bold", "NOT CERTIFIED", "## How it was computed", "```json", "sha256:"):
        assert said in text


def test_markup_escapes_text_and_attributes() -> None:
    assert tag("p", "<", tag("i", "&"), class_='"') == '<p class="&quot;">&lt;<i>&amp;</i></p>'


def test_a_curve_without_finite_epsilon_is_not_drawn() -> None:
    document = read(RUN).document()
    document["steps"] = [{"mechanism": "laplace", "scale": 1e130}]
    assert page(receipt(from_document(document))).count("<svg") == 1  # the trade-off is


def test_a_chart_stands_alone_as_a_file() -> None:
    drawn = privacy_chart(sampled(hs.account(hs.Gaussian(1.0)), 3.0, least=1e-3), 1e-3)
    assert drawn is not None
    text = standalone(drawn)
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "<style>" in text


def test_an_estimate_is_shown_as_no_bound() -> None:
    made = receipt(read(RUN + '[accountant]\nmethod = "gaussian-limit"\n'))
    for shown in (page(made), markdown(made)):
        before_json = shown.split("<script", maxsplit=1)[0].lower()
        assert "estimate" in before_json
        assert "no error is known" in before_json
        for claim in ("bracket", "epsilon at most", "is at most", "nowhere above", ": no attack", "nan"):
            assert claim not in before_json, claim
    assert verify(made, shown=page(made)).holds


def test_a_shuffled_epoch_counts_as_its_batches() -> None:
    run = RUN.replace("2.0", "2.0\nsampling = {scheme = 'shuffled', batch_size = 5, population = 10}\ncount = 2")
    made = receipt(read(run.replace("[guarantee]", '[guarantee]\nadjacency = "zero-out"')))
    statement = made["results"][0]["statement"]
    assert "all 4 releases together" in statement  # two batches an epoch
    assert "by a null record (or back) changes the probability" in statement


def test_a_step_that_adds_no_noise_has_nothing_to_normalise() -> None:
    def normalisation(*mechanisms: str) -> str:
        steps = "".join(f"[[steps]]\nmechanism = {mechanism}\n" for mechanism in mechanisms)
        content = Content(receipt(read(f"{steps}[guarantee]\ndelta = 1e-5\n")))
        return next(row.text for row in content.guarantee() if row.name == "Normalisation")

    noisy, response = '"gaussian"\nnoise_multiplier = 5', '"randomized-response"\nprobability = 0.6'
    assert "nothing to normalise" not in normalisation(noisy)
    assert normalisation(response).startswith("Nothing to normalise")
    both = normalisation(noisy, response)
    assert both.startswith("Each example adds a vector of norm at most C")
    assert both.endswith("have nothing to normalise.")


OFFICE = """\
[[steps]]
mechanism = "discrete-laplace"
scale = 10.0
sensitivity = 3
count = 2
[[steps]]
mechanism = "discrete-gaussian"
sigma = 20.0
values = "counts"
[guarantee]
adjacency = "substitute"
unit = "person"
delta = 1e-8
[circumstances]
examples = 1_000_000
dataset = "Register of commuters"
owner = "Statistical office"
contact = "privacy@office.example"
purpose = "Tables by municipality"
other_releases = "Population statistics"
trust_model = "The office holds the records"
observers = "Two employees"
noise_generator = "Exact sampler"
tuning_runs = 3
software = "tables 3.2"
"""


@pytest.fixture(scope="module")
def office() -> str:
    return page(receipt(read(OFFICE))).split("<pre>", maxsplit=1)[0]


def test_integer_noise_is_normalised_as_the_mechanism_says(office: str) -> None:
    assert "Each person adds an integer between -3 and 3 to a sum" in office
    assert "Replacing one person changes the sum by up to 6." in office
    assert "Each person adds 0 or 1 to a sum" in office
    assert "Replacing one person changes the sum by up to 1." in office
    assert "[-1, 1]" not in office


def test_an_office_finds_what_it_states_and_what_it_did_not(office: str) -> None:
    for said in ("Register of commuters", "privacy@office.example", "Two employees", "tables 3.2", "1,000,000 people"):
        assert said in office
    assert "Not stated" in office
    assert "tuning on the same data</td>" in office
    assert "Signature" in page(receipt(read(OFFICE)))


def test_nothing_is_said_of_batches_nor_of_engines_where_an_office_reads(office: str) -> None:
    above = office.partition("How it was computed")[0]
    for word in ("batch", "noise, rate", "contour", "lattice", "floating-point", "took part", "persons", "_"):
        assert word not in above.split("<main>")[1].replace("class_", ""), word
    assert "which of two people is in the data" in above


def test_the_plain_words_hold_what_the_trade_off_proves() -> None:
    for adjacency, words in (("substitute", "names it correctly in at most"), ("add-remove", "recognises at most")):
        made = receipt(read(OFFICE.replace('"substitute"', f'"{adjacency}"')))
        found = re.search(words + r" ([0-9.]+)%", Content(made).plainly())
        assert found
        claimed = float(found.group(1)) / 100.0
        missed = float(made["tradeoff"]["false_negative"][0]["lower"])
        assert made["tradeoff"]["false_positive"][0] == 0.001
        assert 1.0 - missed <= claimed <= 1.02 * (1.0 - missed)


def test_the_plain_words_of_zero_out_are_about_null_records() -> None:
    made = receipt(read(OFFICE.replace('"substitute"', '"zero-out"')))
    assert "1 in 1,000 of the people that null records stand for to be in the data" in Content(made).plainly()
    assert "outside" not in Content(made).plainly()


def of(mechanism: str, guarantee: str, more: str = "") -> dict[str, Any]:
    return receipt(read(f"[[steps]]\nmechanism = {mechanism}\n[guarantee]\n{guarantee}\n{more}"), created="2026-11-25")


def test_where_none_is_proved_none_is_said_to_hold() -> None:
    sampling = "sampling = {scheme = 'shuffled', batch_size = 10, population = 100}"
    made = of(f'"approximate-dp"\nepsilon = 1.0\ndelta = 1e-6\n{sampling}', "adjacency = 'substitute'\ndelta = 1e-7")
    assert made["results"][0]["lower"] == 0.0
    for shown in (page(made), markdown(made)):
        assert "no finite epsilon is proved at delta = 1e-7" in shown
        assert "no finite epsilon at" not in shown


def test_where_no_epsilon_is_finite_nothing_is_called_a_guarantee() -> None:
    made = of('"gaussian"\nnoise_multiplier = 1.0', "delta = 0")
    for shown in (page(made), markdown(made), latex(made)):
        assert "epsilon = inf" not in shown
        assert "between inf" not in shown
        assert "pure differential privacy" not in shown
    assert "no finite epsilon holds at delta = 0" in page(made)
    assert '<span class="badge refuted">no guarantee</span>' in page(made)
    assert "The true epsilon is infinite." in markdown(made)
    assert "No finite $\\varepsilon$ holds" in latex(made)
    assert "Pure DP" not in deployment_record(made)
    assert "pure differential privacy" in markdown(of('"laplace"\nscale = 2.0', "delta = 0"))
    assert "Pure DP" in deployment_record(of('"laplace"\nscale = 2.0', "delta = 0"))


def test_a_sentence_for_a_paper_says_of_which_of_many_runs_it_is() -> None:
    tuning = "[tuning]\nruns = 'poisson'\nmean = 10"
    for more, of_all in ((tuning, "All"), (f"{tuning}\n[circumstances]\nadaptive = 'yes'", "all")):
        sentence = latex(of('"gaussian"\nnoise_multiplier = 2.0', "delta = 1e-5", more))
        assert f"{of_all} releases together of the best run " in sentence
        assert "Tuning is assumed as follows. The best of a Poisson number of runs, 10 on average" in sentence


def test_a_sentence_for_a_paper_says_that_it_is_of_one_direction_alone() -> None:
    one_way = latex(of('"gaussian"\nnoise_multiplier = 2.0', "adjacency = 'add'\ndelta = 1e-5"))
    assert "-differentially private in the direction add alone with $" in one_way
    assert "direction" not in latex(of('"gaussian"\nnoise_multiplier = 2.0', "delta = 1e-5"))


def test_a_record_states_a_finite_epsilon_where_there_is_one() -> None:
    record = deployment_record(of('"gaussian"\nnoise_multiplier = 1.0', "delta = [0, 1e-5]"))
    assert "epsilon: 4.3772\n      delta: 1.0e-05" in record


def test_what_says_nothing_of_an_attack_is_left_out() -> None:
    made = of('"gaussian"\nnoise_multiplier = 0.1\ncount = 100', "delta = 1e-5", '[accountant]\nmethod = "moments"')
    assert "In plain words" not in page(made)


def test_a_delta_that_was_found_is_to_be_compared_with_the_number_of_records() -> None:
    made = of('"gaussian"\nnoise_multiplier = 1.0', "epsilon = 0.1", "[circumstances]\nexamples = 50_000")
    assert any("well below 1/n = 2e-5" in text for text in Content(made).unstated)


def test_names_are_written_as_the_field_writes_them() -> None:
    made = markdown(of('"approximate-dp"\nepsilon = 0.5\ndelta = 1e-9', "delta = 1e-6"))
    assert "Approximate DP, epsilon 0.5" in made
