"""What notebooks show: every side rounded outward, nothing that HTML could take for markup, no colours of its own."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.decimals import rounded_down, rounded_up

RUN = hs.Gaussian(1.0).poisson(0.01) * 2000


class Reader(HTMLParser):
    """The text of a page, and a check that every tag is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def text(value: Any) -> str:
    reader = Reader()
    page = value._repr_html_()
    reader.feed(page)
    assert reader.open == []
    assert len(page) < 6000, "small"
    assert not re.search(r"background:(?!none)|[^-]color:(?!inherit)|#[0-9a-f]{3}|<script|<img", page), (
        "the page's colours"
    )
    return "\n".join(reader.text)


def odometer() -> hs.Odometer:
    live = hs.Odometer(delta=1e-5)
    live.step(hs.Gaussian(1.0).poisson(0.01), 100)
    return live


def test_a_bracket_shows_both_sides_rounded_outward() -> None:
    bound = hs.account(RUN).epsilon(1e-5)
    assert f"[{rounded_down(bound.lower, 6)}, {rounded_up(bound.upper, 6)}]" in text(bound)
    assert bound.method in text(bound)


def test_markup_in_a_note_stays_text() -> None:
    bound = hs.Bound(0.0, 1.0, "<b>method</b>", notes=("a < b & <script>",))
    assert "<b>method</b>" in text(bound)
    assert "a < b & <script>" in text(bound)


def test_long_values_say_how_many_more_there_are() -> None:
    many = hs.account(hs.Gaussian(1.0)).epsilon(np.logspace(-9, -1, 50))
    assert "and 42 more" in text(many)
    steps = hs.compose([hs.Gaussian(1.0 + k) for k in range(20)])
    assert "and 12 more" in text(steps)
    assert "..." in text(hs.DiscretePair([1 / 1000] * 1000, [1 / 1000] * 1000) * 2)


def test_an_estimate_is_not_shown_as_a_bracket() -> None:
    estimate = hs.account(RUN, accountant=hs.accountants.GaussianLimit()).epsilon(1e-5)
    assert "not proved" in text(estimate)
    assert "[" not in text(estimate)
    assert re.search(r"estimated error\s+unknown", text(estimate))


def test_a_curve_shows_epsilon_where_that_is_quick() -> None:
    shown = text(hs.account(RUN, "substitute"))
    for part in ("epsilon at delta 1e-9", "substitute", "2,000 x", "Poisson("):
        assert part in shown
    assert "epsilon at" not in text(hs.account(RUN, accountant=hs.accountants.Exact()))


def test_a_calibration_and_an_odometer_show_what_they_found() -> None:
    found = hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10_000, rate=0.001)
    shown = text(found)
    assert repr(found.value) in shown
    assert repr(found.unsafe) in shown
    live = odometer()
    bound = live.epsilon()
    assert f"[{rounded_down(bound.lower, 6)}, {rounded_up(bound.upper, 6)}]" in text(live)
    assert "fixed in advance" in text(live)


def test_counts_of_any_size_are_shown() -> None:
    assert "2,000 x" in text(RUN)
    assert "1e+100 x" in text(hs.Gaussian(1.0) * 10**100)


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"hockeystick\[pandas\]"):
        hs.account(RUN).epsilon(1e-5).to_pandas()
