"""Records of what is in hand: specifications of compositions and events, a sentence, a draft for a registry."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.report.content import Content
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.evaluation import evaluation
from hockeystick.app.report.latex import latex
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.spec.circumstances import Circumstances

RUN = hs.Gaussian(1.0).poisson(0.01) * 2000

WRITABLE: list[hs.Step | hs.Composition] = [
    RUN,
    RUN + hs.Laplace(20.0) * 3,
    hs.Gaussian(2.0).without_replacement(batch_size=3, population=30) * 4,
    hs.Gaussian(2.0).shuffled(batch_size=3, population=30) * 4,
    hs.RandomizedResponse(Fraction(5, 8), 4),
    hs.ApproximateDP(0.5, 1e-9),
    hs.DiscretePair((Fraction(1, 3), Fraction(2, 3)), (0.5, 0.5)) * 5,
    hs.GaussianMixture.poisson_group(1.0, rate=0.1, size=3),
    hs.Binomial(1000, sensitivity=2) + hs.DiscreteGaussian(3.0) + hs.DiscreteLaplace(2.0) + hs.Staircase(1.0),
    hs.GaussianDP(0.3) * 2,
]


@pytest.mark.parametrize("run", WRITABLE, ids=repr)
def test_a_composition_written_to_a_specification_reads_back_as_it_is(run: hs.Step | hs.Composition) -> None:
    made = hs.spec.of_run(run, "zero-out", delta=[1e-5, 1e-6], epsilon=1.0, title="a run", unit="person")
    again = hs.spec.from_document(json.loads(json.dumps(made.document())))
    assert again == made
    assert again.composition == run * 1
    assert (again.deltas, again.epsilons, again.adjacency) == ((1e-5, 1e-6), (1.0,), "zero-out")


@pytest.mark.parametrize(
    "run", [hs.RandomizedResponse(Fraction(1, 3), 3), hs.UserDefined(hs.Gaussian(1.0).pair("add"))]
)
def test_what_no_file_can_name_is_refused(run: hs.Step) -> None:
    with pytest.raises(TypeError, match=r"a specification (holds|cannot hold)"):
        hs.spec.of_run(run, delta=1e-5)


def made(run: Any = RUN, **settings: Any) -> dict[str, Any]:
    return receipt(hs.spec.of_run(run, **({"delta": 1e-5, "title": "A run & more"} | settings)))


def test_an_event_is_imported_accounted_and_refused_where_unproved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01, "event": inner}
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"class_name": "SelfComposedDpEvent", "event": sampled, "count": 2000}))
    assert main(["import", str(event), "--delta", "1e-5,1e-6"]) == 0
    found = hs.spec.from_document(json.loads(capsys.readouterr().out))
    assert found.composition == RUN
    assert found.deltas == (1e-5, 1e-6)
    replaced = {
        "class_name": "SampledWithReplacementDpEvent",
        "source_dataset_size": 9,
        "sample_size": 2,
        "event": inner,
    }
    event.write_text(json.dumps(replaced))
    assert main(["import", str(event)]) == 3
    event.write_text("{")
    assert main(["import", str(event)]) == 2


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ("1e400", "above 1.8e308"),
        ('1.0,\n"noise_multiplier": 3.0', ":2: the key 'noise_multiplier' stands twice"),
        ("3" * 5000, "thousands of digits"),
    ],
)
def test_an_event_is_not_taken_for_another(
    noise: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = tmp_path / "event.json"
    event.write_text(f'{{"class_name": "GaussianDpEvent", "noise_multiplier": {noise}}}')
    assert main(["import", str(event)]) == 2
    assert said in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ a sentence


def test_the_sentence_rounds_the_bracket_outward_and_escapes_the_rest() -> None:
    said = latex(made())
    assert r"$\varepsilon \le 2.5839$ at $\delta = 10^{-5}$" in said
    assert r"$\varepsilon \ge 2.5838$" in said
    assert r"\cite{hockeystick}" in said
    assert "% @software{hockeystick," in said
    text = "\n".join(line for line in said.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[&%#]", text)


def test_a_delta_an_estimate_and_no_guarantee_are_said_as_what_they_are() -> None:
    assert r"$\delta \le 0.00025496$ at $\varepsilon = 2$" in latex(made(delta=(), epsilon=2.0))
    specification = hs.spec.from_document(made()["specification"] | {"accountant": {"method": "gaussian-limit"}})
    assert "this is not a bound" in latex(receipt(specification))
    assert r"No finite $\varepsilon$ holds" in latex(made(hs.Gaussian(1.0), delta=0.0))


# ------------------------------------------------------------------------------------------------ the registry


SCHEMA = {  # opendp/deployments-registry-data, schemas/deployments-schema.yaml, 2026: names, and what is required
    "url_slug": str,
    "status": {"Draft"},
    "tier": {1, 2, 3},
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "intended_use": str,
            "data_product_type": {"TO FILL IN"},  # accounting sees a sum with noise, whatever it is of
            "data_product_region": str,
            "description": str,
            "publication_date": str,
        },
        "dp_variant": {"variant_name": {"Pure DP", "Approximate DP"}, "unprotected_quantities": str},
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": {"TO FILL IN"},
            "release_type": {"One release"},
            "data_source_type": {"Static"},
            "access_type": {"Non-interactive"},
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {"preprocessing_and_hyperparameter_tuning": str, "mechanisms": str, "justification": str},
        "administrative": {"notes": str, "registry_authors": list},
    },
}
OPTIONAL = {"delta"}


def parsed(record: str) -> dict[str, Any]:
    """The YAML that these records use: nested tables, texts and lists as in JSON, floats with a point."""
    top: dict[str, Any] = {}
    stack = [top]
    for line in record.splitlines():
        body = line.strip()
        depth, (name, rest) = (len(line) - len(line.lstrip())) // 2, body.split(":", 1)
        del stack[depth + 1 :]
        value = rest.strip()
        if value and not value.startswith(('"', "[")):
            value = value.split("  #")[0]
        if not value:
            stack[-1][name] = {}
            stack.append(stack[-1][name])
        elif value == ".inf":
            stack[-1][name] = float("inf")
        else:
            stack[-1][name] = json.JSONDecoder().raw_decode(value)[0]
    return top


def assert_fits(found: Any, schema: Any) -> None:
    if isinstance(schema, dict):
        assert set(schema) - OPTIONAL <= set(found) <= set(schema)
        for name, value in found.items():
            assert_fits(value, schema[name])
    elif isinstance(schema, set):
        assert found in schema
    else:
        assert isinstance(found, schema), found


@pytest.mark.parametrize(
    ("run", "settings", "epsilon", "delta"),
    [
        (RUN, {}, 2.5839, 1e-5),
        (RUN, {"delta": 1e-30}, None, 1e-30),
        (RUN, {"delta": (), "epsilon": 2.0}, 2.0, None),
        (hs.Laplace(2.0) * 2, {"delta": 0.0}, 1.0001, 0.0),  # a float above 1 is rounded up
        (hs.Gaussian(1.0), {"delta": 0.0}, float("inf"), 0.0),
    ],
)
def test_a_registry_record_fits_the_schema_and_is_never_smaller(
    run: Any, settings: Any, epsilon: float | None, delta: float | None
) -> None:
    document = made(run, **settings)
    record = parsed(deployment_record(document))
    assert_fits(record, SCHEMA)
    assert record["url_slug"] == "a-run-more"
    stated = record["deployment"]["privacy_loss"]["privacy_parameters"]
    ((_, level),) = document["results"][0]["at"].items()
    upper = float(document["results"][0]["upper"])
    quantity = document["results"][0]["quantity"]
    assert stated[quantity] >= upper
    assert epsilon is None or stated["epsilon"] == epsilon
    assert ("delta" in stated) == (delta != 0.0)
    assert level in (stated["epsilon"], stated.get("delta", 0.0))


# ------------------------------------------------------------------------------------------------ an evaluation


def test_a_receipt_has_the_evaluators_questions_in_order_on_page_and_in_markdown() -> None:
    document = made()
    names = [row.name for row in evaluation(Content(document))]
    assert names[:3] == ["Privacy parameters", "Variant", "Unit of privacy"]
    assert names[-1] == "Data collection"
    for form in (page(document), markdown(document)):
        assert "In the order of NIST SP 800-226" in form
        places = [form.rindex(name) for name in names]
        assert places == sorted(places)
    assert "pure differential privacy" in evaluation(Content(made(hs.Laplace(2.0), delta=0.0)))[1].text


def test_every_question_has_an_answer_and_sampling_is_said_wherever_amplification_is_claimed() -> None:
    document = made(hs.Gaussian(1.0).poisson(0.125) * 8)
    for amplified in (document, made(hs.Gaussian(1.0))):
        assert all(row.text.strip() for row in evaluation(Content(amplified)))
    rows = {row.name: row.text for row in evaluation(Content(document))}
    record = parsed(deployment_record(document))["deployment"]["implementation"]["mechanisms"]
    for said in (rows["Amplification by sampling"], latex(document), record):
        assert "Poisson: every example" in said
        assert "0.125" in said
    assert "Sampling" not in latex(made(hs.Gaussian(1.0)))


@pytest.mark.parametrize("mark", ["\r", "\x0b", "\x7f", "\x85", "\u2028", "\ufeff", "\\", '"', "\n# "])
def test_no_text_ends_what_it_stands_in(mark: str) -> None:
    title = f"A run{mark}# epsilon = 0.1, certified"
    document = made(title=title, circumstances=Circumstances(notes=title))
    record = deployment_record(document)
    assert not re.search("[\x7f\x85\u2028\ufeff]", record), "YAML does not take these as they are"
    basic = parsed(record)["deployment"]["basic"]
    assert basic["name"] == basic["description"] == title
    assert not re.search(r"^# epsilon", markdown(document).replace("\r", "\n"), re.MULTILINE)
    assert latex(document).splitlines()[0].endswith(str(document["checksum"]))


def test_a_draft_says_beside_a_number_that_is_no_certified_one_what_it_is_worth() -> None:
    document = hs.spec.of_run(hs.Gaussian(2.0), delta=1e-5).document()
    estimate = receipt(hs.spec.from_document(document | {"accountant": {"method": "gaussian-limit"}}))
    assert re.search(r"epsilon: 2\.14\d+  # an estimate, not proved\n", deployment_record(estimate))
    assert re.search(r"epsilon: \.inf  # no guarantee\n", deployment_record(made(hs.Gaussian(1.0), delta=0.0)))
    assert re.search(r"epsilon: [\d.]+\n", deployment_record(made(hs.Gaussian(2.0))))
    assert ", the one release is about (2.14" in estimate["results"][0]["statement"]
