"""A receipt as a draft record for the OpenDP deployments registry, in YAML.

Fields and their order follow ``schemas/deployments-schema.yaml`` of opendp/deployments-registry-data (2026). What
accounting does not know stands as ``TO FILL IN``, or as a value of the schema with a comment that says to check it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from hockeystick.app.report.content import Content
from hockeystick.app.report.numbers import asked, claimed, is_pure, quoted
from hockeystick.app.report.words import tuning_words
from hockeystick.app.spec.cautions import verdict

_UNKNOWN = "TO FILL IN"


def deployment_record(receipt: Mapping[str, Any]) -> str:
    """The receipt as a draft record."""
    content = Content(receipt)
    guarantee = {row.name: row.text for row in content.guarantee()}
    steps = " ".join(f"{row.name} {row.text}" for row in content.steps())
    method = " ".join(f"{row.name}: {row.text}." for row in content.accounting()[:2])
    sampling = f" Sampling: {guarantee['Sampling']}" if "Sampling" in guarantee else ""
    tuning = tuning_words(content.specification) or content.stated("tuning") or _UNKNOWN
    variant, parameters, details = _privacy(content)
    return f"""\
url_slug: {_text(re.sub(r"[^a-z0-9]+", "-", content.title.lower()).strip("-"))}
status: "Draft"
tier: 3
deployment:
  basic:
    name: {_text(content.title)}
    data_curators: ["TO FILL IN"]
    intended_use: "TO FILL IN"
    data_product_type: "Machine learning model"  # check
    data_product_region: "TO FILL IN"
    description: {_text(content.specification.circumstances.notes or _UNKNOWN)}
    publication_date: {_text(receipt["created"])}  # the day of the receipt; check
  dp_variant:
    variant_name: {_text(variant)}
    unprotected_quantities: "TO FILL IN"
  privacy_loss:
    privacy_unit: {_text(content.specification.unit)}
    privacy_unit_details: {_text(f"{guarantee['Relation']}. {guarantee['Unit of privacy']}")}
    privacy_parameters:
{parameters}
    privacy_parameters_details: {_text(details)}
  deployment_model:
    model_name: "Central"  # check
    release_type: "One release"  # check
    data_source_type: "Static"  # check
    access_type: "Non-interactive"  # check
  accounting:
    post_processing: "TO FILL IN"
    composition: {_text(f"{steps} Composed numerically, each direction apart. {method}")}
  implementation:
    preprocessing_and_hyperparameter_tuning: {_text(tuning)}
    mechanisms: {_text(f"{steps}{sampling} Libraries and their safeguards: {_UNKNOWN}")}
    justification: "TO FILL IN"
  administrative:
    notes: {_text(f"Accounted by {content.versions()}; receipt {receipt['checksum']}")}
    registry_authors: ["TO FILL IN"]
"""


def _privacy(content: Content) -> tuple[str, str, str]:
    """The variant, the lines of its parameters, and what is said of them."""
    first, *others = sorted(content.results, key=lambda result: math.isinf(claimed(result)))  # what says something
    _, level = asked(first)
    value = float(quoted(first))
    epsilon, delta = (value, level) if first["quantity"] == "epsilon" else (level, value)
    details = [content.bracket(first), *(content.figure(result) for result in others)]
    worth = ""
    if content.broken:
        details = [verdict(content.broken), *(words.rstrip(".") for words in content.broken), *details]
        worth = f"  # {content.worth(first)}"
    lines = [f"      epsilon: {_decimal(epsilon)}{worth}"] + (
        [] if asked(first) == ("delta", 0.0) else [f"      delta: {_decimal(delta)}"]
    )
    return "Pure DP" if is_pure(first) else "Approximate DP", "\n".join(lines), ". ".join(details)


def _text(words: str) -> str:
    """Written as JSON has it, which YAML reads alike."""
    return json.dumps(words, ensure_ascii=False)


def _decimal(value: float) -> str:
    """A float that YAML reads as a number: it must have a point, and a sign before the exponent."""
    if value == float("inf"):
        return ".inf"
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{int(exponent):+03d}" if exponent else mantissa
