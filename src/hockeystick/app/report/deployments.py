"""A receipt as a draft record for the OpenDP deployments registry, in YAML.

Fields and their order follow ``schemas/deployments-schema.yaml`` of opendp/deployments-registry-data (2026). What
accounting does not know stands as ``TO FILL IN``, or as a value of the schema with a comment that says to check it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hockeystick.app.report.cautions import verdict
from hockeystick.app.report.content import Content
from hockeystick.app.report.numbers import nearest, number, rounded_up
from hockeystick.app.report.words import tuning_words

_UNKNOWN = "TO FILL IN"
_CHECK = "check"
_Field = tuple[int, str, Any, str]  # depth, name, value (None: a table follows), comment


def deployment_record(receipt: Mapping[str, Any]) -> str:
    """The receipt as a draft record."""
    content = Content(receipt)
    fields = [
        (0, "url_slug", re.sub(r"[^a-z0-9]+", "-", content.title.lower()).strip("-"), ""),
        (0, "status", "Draft", ""),
        (0, "tier", 3, ""),
        (0, "deployment", None, ""),
        *_basic(receipt, content),
        *_privacy(content),
        *_model(),
        *_accounting(receipt, content),
    ]
    return "".join(_line(*field) for field in fields)


def _basic(receipt: Mapping[str, Any], content: Content) -> list[_Field]:
    return [
        (1, "basic", None, ""),
        (2, "name", content.title, ""),
        (2, "data_curators", [_UNKNOWN], ""),
        (2, "intended_use", _UNKNOWN, ""),
        (2, "data_product_type", "Machine learning model", _CHECK),
        (2, "data_product_region", _UNKNOWN, ""),
        (2, "description", content.specification.circumstances.notes or _UNKNOWN, ""),
        (2, "publication_date", receipt["created"], "the day of the receipt; check"),
    ]


def _privacy(content: Content) -> list[_Field]:
    first, *others = content.results
    rows = {row.name: row.text for row in content.guarantee()}
    level = number(next(iter(first["at"].values())))
    pure = first["quantity"] == "epsilon" and level == 0.0
    value = float(rounded_up(number(first["upper"])) if first["certified"] else nearest(number(first["value"])))
    epsilon, delta = (value, level) if first["quantity"] == "epsilon" else (level, value)
    details = [content.bracket(first), *(content.figure(result) for result in others)]
    if content.broken:
        details = [verdict(content.broken), *(words.rstrip(".") for words in content.broken), *details]
    worth = content.worth(first) if content.broken else ""
    parameters = [(3, "epsilon", epsilon, worth)] + ([] if pure else [(3, "delta", delta, "")])
    return [
        (1, "dp_variant", None, ""),
        (2, "variant_name", "Pure DP" if pure else "Approximate DP", ""),
        (2, "unprotected_quantities", _UNKNOWN, ""),
        (1, "privacy_loss", None, ""),
        (2, "privacy_unit", content.specification.unit, ""),
        (2, "privacy_unit_details", f"{rows['Relation']}. {rows['Unit of privacy']}", ""),
        (2, "privacy_parameters", None, ""),
        *parameters,
        (2, "privacy_parameters_details", ". ".join(details), ""),
    ]


def _model() -> list[_Field]:
    return [
        (1, "deployment_model", None, ""),
        (2, "model_name", "Central", _CHECK),
        (2, "release_type", "One release", _CHECK),
        (2, "data_source_type", "Static", _CHECK),
        (2, "access_type", "Non-interactive", _CHECK),
    ]


def _accounting(receipt: Mapping[str, Any], content: Content) -> list[_Field]:
    method = " ".join(f"{row.name}: {row.text}." for row in content.accounting()[:2])
    steps = " ".join(f"{row.name} {row.text}" for row in content.steps())
    sampling = "".join(f" {row.name}: {row.text}" for row in content.guarantee() if row.name == "Sampling")
    tuning = tuning_words(content.specification) or content.stated("tuning") or _UNKNOWN
    return [
        (1, "accounting", None, ""),
        (2, "post_processing", _UNKNOWN, ""),
        (2, "composition", f"{steps} Composed numerically, each direction apart. {method}", ""),
        (1, "implementation", None, ""),
        (2, "preprocessing_and_hyperparameter_tuning", tuning, ""),
        (2, "mechanisms", f"{steps}{sampling} Libraries and their safeguards: {_UNKNOWN}", ""),
        (2, "justification", _UNKNOWN, ""),
        (1, "administrative", None, ""),
        (2, "notes", f"Accounted by {content.versions()}; receipt {receipt['checksum']}", ""),
        (2, "registry_authors", [_UNKNOWN], ""),
    ]


def _line(depth: int, name: str, value: Any, comment: str) -> str:
    """One field; texts are written as JSON has them, which YAML reads alike."""
    if value is None:
        written = ""
    elif isinstance(value, float):
        written = " .inf" if value == float("inf") else f" {_decimal(value)}"
    else:
        written = " " + json.dumps(value, ensure_ascii=False)
    return f"{'  ' * depth}{name}:{written}{'  # ' + comment if comment else ''}\n"


def _decimal(value: float) -> str:
    """A float that YAML reads as a number: it must have a point, and a sign before the exponent."""
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{int(exponent):+03d}" if exponent else mantissa
