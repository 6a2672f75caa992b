"""A receipt as a draft record for the OpenDP deployments registry, in YAML.

Fields and their order follow ``schemas/deployments-schema.yaml`` of opendp/deployments-registry-data (2026). What
accounting does not know stands as ``TO FILL IN``, or as a value of the schema with a comment that says to check it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from string import Template
from typing import Any

from hockeystick.app.assets import asset
from hockeystick.app.report.content import Content
from hockeystick.app.report.numbers import asked, claimed, in_quotes, is_pure, quoted
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
    said = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", content.title.lower()).strip("-"),
        "name": content.title,
        "description": content.specification.circumstances.notes or _UNKNOWN,
        "publication_date": receipt["created"],
        "variant_name": variant,
        "privacy_unit": content.specification.unit,
        "privacy_unit_details": f"{guarantee['Relation']}. {guarantee['Unit of privacy']}",
        "details": details,
        "composition": f"{steps} Composed numerically, each direction apart. {method}",
        "tuning": tuning,
        "mechanisms": f"{steps}{sampling} Libraries and their safeguards: {_UNKNOWN}",
        "notes": f"Accounted by {content.versions()}; receipt {receipt['checksum']}",
    }
    written = {name: in_quotes(words) for name, words in said.items()}
    return Template(asset("report/deployment.yaml")).substitute(written, parameters=parameters)


def _privacy(content: Content) -> tuple[str, str, str]:
    """The variant, the lines of its parameters, and what is said of them."""
    first, *others = sorted(content.results, key=lambda result: math.isinf(claimed(result)))  # what says something
    _, level = asked(first)
    value = float(quoted(first))
    epsilon, delta = (value, level) if first["quantity"] == "epsilon" else (level, value)
    details = [content.bracket(first), *(content.figure(result) for result in others)]
    if content.broken:
        details = [verdict(content.broken), *(words.rstrip(".") for words in content.broken), *details]
    worth = content.worth(first)
    lines = [f"      epsilon: {_decimal(epsilon)}" + ("" if worth == "certified" else f"  # {worth}")] + (
        [] if asked(first) == ("delta", 0.0) else [f"      delta: {_decimal(delta)}"]
    )
    return "Pure DP" if is_pure(first) else "Approximate DP", "\n".join(lines), ". ".join(details)


def _decimal(value: float) -> str:
    """A float that YAML reads as a number: it must have a point, and a sign before the exponent."""
    if value == float("inf"):
        return ".inf"
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{int(exponent):+03d}" if exponent else mantissa
