r"""A receipt as a sentence for a paper, in LaTeX, with the entry for its bibliography.

The sentence cites ``\cite{hockeystick}``; the entry stands in comments below it, to be copied to a ``.bib`` file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hockeystick.app.report.content import Content, capital
from hockeystick.app.report.numbers import asked, number, plain, quoted, rounded_down
from hockeystick.app.report.words import alone, change_words, known_of_none
from hockeystick.app.spec.cautions import verdict

_MARKS = {mark: f"\\{mark}" for mark in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}"}


def latex(receipt: Mapping[str, Any]) -> str:
    """The receipt as LaTeX."""
    content = Content(receipt)
    sentences = [_sentence(content, result) for result in content.results]
    releases = " ".join(f"{_escaped(row.name)} {_escaped(row.text)}" for row in content.steps())
    releases = releases.replace(" x ", r" $\times$ ")
    assumed = [row for row in content.guarantee() if row.name in {"Sampling", "Tuning"}]
    return "\n".join(
        [
            f"% {_one_line(content.title)}: privacy receipt of {receipt['created']}, {receipt['checksum']}",
            *([f"{verdict(content.broken)}. {_escaped(' '.join(content.broken))}"] if content.broken else []),
            *sentences,
            f"The releases are: {releases}",
            *(f"{row.name} is assumed as follows. {_escaped(row.text)}" for row in assumed),
            "",
            "% For the bibliography:",
            *(f"% {line}" for line in _entry(receipt)),
            "",
        ]
    )


def _sentence(content: Content, result: Mapping[str, Any]) -> str:
    given, level = asked(result)
    symbols = {"epsilon": r"\varepsilon", "delta": r"\delta"}
    symbol = symbols[result["quantity"]]
    together = f"all releases together{'' if content.specification.tuning is None else ' of the best run'}"
    private = f"$(\\varepsilon, \\delta)$-differentially private{alone(content.specification)}"
    at = f"${symbols[given]} = {_number(plain(level))}$"
    setting = f"where neighbouring datasets differ in that {_escaped(change_words(content.specification))}"
    upper = _number(quoted(result))
    if not result["certified"]:
        return f"We estimate ${symbol} \\approx {upper}$ at {at}, {setting}; this is not a bound \\cite{{hockeystick}}."
    if upper == r"\infty":
        known = known_of_none(number(result["lower"]))
        return f"No finite ${symbol}$ {known} at {at}, {setting} \\cite{{hockeystick}}."
    lower = _number(rounded_down(number(result["lower"])))
    below = "" if lower == "0" else f", and for the stated mechanisms ${symbol} \\ge {lower}$"
    if content.broken:
        return (
            f"If every assumption held, {together} would be {private} with ${symbol} \\le {upper}$ at {at}, {setting};"
            " as it is, nothing is certified \\cite{hockeystick}."
        )
    return (
        f"{capital(together)} are {private} with ${symbol} \\le {upper}$ at {at}, {setting};"
        f" the bound is certified{below} \\cite{{hockeystick}}."
    )


def _number(text: str) -> str:
    """A decimal in mathematics: 1e-6 as a power of ten."""
    if text == "inf":
        return r"\infty"
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else f"{mantissa} \\cdot {power}"


def _entry(receipt: Mapping[str, Any]) -> list[str]:
    version, year = receipt["software"]["hockeystick"], str(receipt["created"])[:4]
    return [
        "@software{hockeystick,",
        "  title = {hockeystick: certified numerical privacy accounting},",
        "  author = {{The hockeystick authors}},",
        f"  version = {{{version}}},",
        f"  year = {{{year}}},",
        f"  note = {{privacy receipt {receipt['checksum']}}},",
        "}",
    ]


def _escaped(words: str) -> str:
    return "".join(_MARKS.get(mark, mark) for mark in _one_line(words))


def _one_line(words: str) -> str:
    return re.sub(r"\s+", " ", words)
