"""The receipt as one HTML page that needs nothing else: no network, no script, no font, no picture from outside.

The receipt's JSON travels inside it, so that `hockeystick verify` reads the page as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hockeystick.app.assets import asset
from hockeystick.app.report.content import Content, Row
from hockeystick.app.report.evaluation import evaluation
from hockeystick.app.report.figures import privacy_chart, tradeoff_chart
from hockeystick.app.report.markup import Markup, tag, text
from hockeystick.app.report.numbers import asked, claimed, number
from hockeystick.app.report.words import IF_HELD
from hockeystick.app.spec.cautions import verdict


def page(receipt: Mapping[str, Any]) -> str:
    """The receipt as an HTML document."""
    content = Content(receipt)
    return document(f"{content.title}: privacy receipt", _parts(content), _embedded(receipt))


def document(title: str, parts: Sequence[Markup], *more: Markup) -> str:
    """A page that needs nothing else, with this in its main part and more after it."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="hockeystick"),
        tag("title", title),
        tag("style", Markup(asset("report/page.css"))),
    )
    body = tag("body", tag("main", *parts), *more)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _parts(content: Content) -> list[Markup]:
    parts = [
        tag("header", tag("p", f"Privacy receipt, {content.receipt['created']}"), tag("h1", content.title)),
        *said_broken(content.broken),
        *(_claim(content, result) for result in content.results),
    ]
    if content.plainly():
        parts.append(tag("p", tag("strong", "In plain words: "), content.plainly(), class_="plainly"))
    if content.unstated:
        parts += [tag("h2", "Ask before relying on it"), items(content.unstated, class_="caution")]
    parts += [tag("h2", "About this release"), rows(content.about())]
    parts += [tag("h2", "What was run"), rows(content.steps())]
    parts += [tag("h2", "What is promised, to whom"), rows(content.guarantee())]
    parts += [tag("h2", "What is not included"), items(content.receipt["not_included"])]
    parts += _charts(content)
    parts += [tag("h2", "How it was computed"), rows(content.accounting())]
    parts += [tag("h3", "Each direction"), table(*content.directions())]
    if content.errors():
        parts += [tag("h3", "Errors inside the bracket"), table(("Source", "At most", "Of"), content.errors())]
    parts += [tag("h2", "In the order of NIST SP 800-226"), rows(evaluation(content)), tag("h2", "Check it")]
    return [
        *parts,
        tag(
            "p",
            text("Save this page, or the JSON beside it, and run ", tag("code", "hockeystick verify"), " on it: "),
            "every figure is computed again and compared. The specification below is the whole input; the same run can"
            " be accounted by any other tool.",
        ),
        tag("pre", tag("code", content.specification_text())),
        tag("div", *(tag("p", words) for words in ("Name", "Date", "Signature")), class_="sign"),
        tag(
            "footer",
            tag("p", f"Made with {content.versions()}."),
            tag("p", f"Contents {content.receipt['checksum']}", class_="sum"),
        ),
    ]


def _claim(content: Content, result: Mapping[str, Any]) -> Markup:
    nothing = content.broken or math.isinf(claimed(result))
    kind = "estimated" if not result["certified"] else "refuted" if nothing else "proved"
    badge = tag("span", content.worth(result), class_=f"badge {kind}")
    return tag(
        "section",
        tag("p", content.figure(result), " ", badge, class_="figure"),
        tag("blockquote", result["statement"]),
        tag("p", f"{content.bracket(result)}.", class_="worth"),
        class_=f"claim {kind}",
    )


def said_broken(texts: Sequence[str]) -> list[Markup]:
    """What decides everything below it: which assumptions are broken, if any."""
    if not texts:
        return []
    return [tag("section", tag("p", verdict(texts), class_="figure"), items(texts), class_="caution broken")]


def items(texts: Sequence[str], **attributes: str) -> Markup:
    """Texts, each with a dot before it."""
    return tag("ul", *(tag("li", words) for words in texts), **attributes)


def rows(given: Sequence[Row]) -> Markup:
    """Names and what is said of them."""
    lines = (tag("tr", tag("th", row.name, scope="row"), tag("td", row.text)) for row in given)
    return tag("table", tag("tbody", *lines))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table of figures that scrolls where the screen is narrow."""
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", head, body, class_="figures"), class_="scroll")


def _charts(content: Content) -> list[Markup]:
    drawn = [figure for figure in (_privacy_curve(content), _tradeoff(content)) if figure is not None]
    points = tag("details", tag("summary", "The points of the curve"), table(*content.curve()), open="open")
    return [tag("h2", "The whole curve"), tag("div", *drawn, class_="charts"), points]


def _privacy_curve(content: Content) -> Markup | None:
    marks = [place for place in map(_place, content.results) if math.isfinite(place[0]) and place[1] > 0.0]
    drawn = privacy_chart(content.samples, number(content.receipt["drawn"]["least"]), marks)
    if drawn is None:
        return None
    words = "Privacy curve, estimated: none of it is a guarantee. Dots mark the figures above."
    if content.samples.certified:
        words = (
            "Privacy curve: delta is proved never to lie above the line, and to lie within the band around it. Dots"
            " mark what is claimed."
        )
    return tag("figure", drawn, tag("figcaption", _caption(content, words)))


def _caption(content: Content, words: str) -> str:
    """What a figure shows, under the assumptions that it rests on where one of them is broken."""
    return words.replace(": ", f", {IF_HELD}: ", 1) if content.broken else words


def _place(result: Mapping[str, Any]) -> tuple[float, float]:
    """Epsilon and delta of a result."""
    value = claimed(result)
    _, level = asked(result)
    return (value, level) if result["quantity"] == "epsilon" else (level, value)


def _tradeoff(content: Content) -> Markup | None:
    tradeoff = content.receipt["tradeoff"]
    if tradeoff is None:
        return None
    attack = f"attack that tells {content.attacked}"
    words = f"Trade-off, estimated: an {attack} may get below the line."
    if tradeoff["certified"]:
        words = f"Trade-off: no {attack} gets below the line anywhere, and the best one reaches the band."
    drawn = tradeoff_chart(content.samples, tradeoff["direction"])
    return tag(
        "figure", drawn, tag("figcaption", f"{_caption(content, words)} The dashed line is what guessing reaches.")
    )


def _embedded(receipt: Mapping[str, Any]) -> Markup:
    """The receipt's JSON, with no ``</`` in it, which would end the element early."""
    inside = json.dumps(receipt, ensure_ascii=False, allow_nan=False)
    inside = inside.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    return tag("script", Markup(inside), type="application/json", id="receipt")
