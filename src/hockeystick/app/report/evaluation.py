"""A receipt in the order of NIST SP 800-226, as an evaluator asks: from the number down to what it rests on.

Headings in our words after the publication's pyramid (March 2025): parameters and unit of privacy; mechanism,
correctness, utility; trust and queries; security and collection of the data. What accounting cannot see is named so.
"""

from __future__ import annotations

from hockeystick.app.report.content import Content, Row
from hockeystick.app.report.numbers import is_pure
from hockeystick.app.report.words import tuning_words

_NOT_HERE = "Not covered here; ask whoever ran it"


def evaluation(content: Content) -> list[Row]:
    """One row a question, in the publication's order."""
    guarantee = {row.name.split(" (")[0]: row.text for row in content.guarantee()}
    figures = "; ".join(content.figure(result) for result in content.results)
    pure = all(is_pure(result) for result in content.results)
    worth = "proved, the sides and every error included" if content.certified else "an estimate, not proved"
    if content.certified and content.broken:
        worth = content.worth(content.results[0])
    stated = f"stated: {words}" if (words := content.stated("tuning")) else "not stated"
    return [
        Row("Privacy parameters", f"{figures} ({worth})"),
        Row("Variant", f"{'pure' if pure else 'approximate'} differential privacy; the whole curve is above"),
        Row("Unit of privacy", guarantee["Unit of privacy"]),
        Row("Neighbouring datasets", guarantee["Relation"]),
        Row("Mechanisms and sensitivity", f"{_listed(content.steps())} {guarantee['Normalisation']}"),
        Row("Amplification by sampling", guarantee.get("Sampling", "None: every record takes part in every step")),
        Row("Composition", _listed(content.accounting()[:2])),
        Row("Hyperparameter tuning", f"counted: {words}" if (words := tuning_words(content.specification)) else stated),
        Row("Implementation", "Noise is taken as ideal: its generator, floating point and timing are not covered here"),
        Row("Utility and bias", _NOT_HERE),
        Row("Query and trust model", f"{_NOT_HERE}: who holds the data, who may ask, who sees what before noise"),
        Row("Security and access", f"{_NOT_HERE}: storage, access and side channels around the data"),
        Row("Data collection", f"{_NOT_HERE}: what was collected from whom, and kept how long"),
    ]


def _listed(rows: list[Row]) -> str:
    return " ".join(f"{row.name}: {row.text.rstrip('.')}." for row in rows)
