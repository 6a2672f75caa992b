"""The explorer's page in a real browser: every control moves the curve, and nothing leaves this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the explorer needs its extra: pip install '.[explore]'")
pytest.importorskip("selenium", reason="the browser is driven by selenium")

from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.browser import CHROMIUM, DRIVER, chromium, explorer, settled
from hockeystick.sampling.epochs import steps_in
from tests.site.axe import in_colours, serious_faults

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no browser: apt-get install chromium chromium-driver"
)

CONTROLS = {
    "noise_multiplier": "1.3",
    "steps": "3000",
    "delta": "1e-6",
    "rate": "0.02",
    "given": "batch",
    "batch_size": "700",
    "examples": "60000",
    "duration": "epochs",
    "epochs": "15",
    "adjacency": "substitute",  # late: pictures by rate take longest under it
    "batches": "shuffled",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with explorer() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def put(browser: Any, name: str, value: str) -> Any:
    kind = "change" if name in {"adjacency", "given", "duration", "sampling", "batches"} else "input"
    browser.execute_script(
        f"const control = $('{name}'); control.value = '{value}'; control.dispatchEvent(new Event('{kind}'));"
    )
    return settled(browser)


def rested(browser: Any) -> str:
    """The headline once the noise for the target is no longer that of a moving slider."""
    settled(browser)
    WebDriverWait(browser, 20.0).until(lambda b: b.execute_script("return answers.first.answer.met.delta"))
    found: str = browser.find_element("id", "headline").text
    return found


def test_the_page(browser: Any, address: str) -> None:
    """One page load for all claims: every control, the comparison, the lock, the address, the keys, the console."""
    browser.get(address)
    seen = settled(browser)
    assert browser.find_element("id", "headline").text == "(2.5839, 1e-5)-differential privacy, certified"
    for name, value in CONTROLS.items():
        found = put(browser, name, value)
        changed = found["verdict"] if name == "batches" else found["curve"] != seen["curve"]
        if name not in {"given", "duration"}:  # another way to say how long and how large, which has values of its own
            assert changed, name
        seen = found
    # passes over the data are as many steps as on the command line, the last, short batch counted
    assert browser.execute_script("return stepsOf(runs.first)") == steps_in(15, batch_size=700, population=60_000)
    assert "NOT CERTIFIED" in browser.find_element("id", "verdict").text
    assert browser.find_element("id", "stamp-curve").is_displayed()
    assert put(browser, "batches", "")["verdict"] is None
    assert not browser.find_element("id", "stamp-curve").is_displayed()
    seen = put(browser, "adjacency", "add-remove")  # whose sets of fixed size are answered soonest
    assert put(browser, "sampling", "without-replacement")["curve"] != seen["curve"]

    put(browser, "sampling", "poisson")  # answered sooner
    slider = browser.find_element("id", "noise_multiplier-slider")
    slider.send_keys("\ue014" * 20)  # the right arrow key
    moved = settled(browser)
    assert moved["noise_multiplier"] > 1.3
    assert moved["curve"] != seen["curve"]

    browser.find_element("id", "lock").click()
    locked = settled(browser)
    assert locked["epsilon"]["upper"] <= 2.0
    # a finer answer may follow between two commands
    assert browser.execute_script(
        "return Number($('noise_multiplier').value) === answers.first.answer.noise_multiplier"
    )

    browser.find_element("id", "keep").click()
    put(browser, "target_epsilon", "1")
    assert "Second run" in browser.find_element("id", "second").text
    for scheme in ("light", "dark"):
        in_colours(browser, scheme)
        assert not serious_faults(browser), scheme
    plot = browser.find_element("id", "plot-curve")
    plot.send_keys("\ue012" * 5)  # the left arrow key
    assert re.search(
        r"epsilon [\d.]+: delta in \[\S+, \S+\]; second run", browser.find_element("id", "read-curve").text
    )

    shared, headline = browser.current_url, rested(browser)
    browser.get(shared)
    assert rested(browser) == headline

    values = "return charts.steps.axes[1].values(null, [0, 2, 1.5e7, 2.5e7, 5e-10, 1.5e-9])"
    assert browser.execute_script(values) == ["0", "2", "1.5e7", "2.5e7", "5e-10", "1.5e-9"]
    assert browser.execute_script("return charts.steps.axes[0].filter(null, [1, 2, 5])") == [1, 2, 5]
    put(browser, "adjacency", "add")  # has no trade-off, of which nothing is then proved
    assert not browser.find_element("id", "values-trade_off").is_displayed()
    put(browser, "epochs", "-1")
    assert "steps must be" in browser.find_element("id", "problem").text
    put(browser, "epochs", "15")
    put(browser, "delta", "2")
    assert browser.find_element("id", "headline").text == "No answer"
    assert "delta must be" in browser.find_element("id", "problem").text

    messages = [entry["message"] for entry in browser.get_log("browser")]
    assert not [message for message in messages if not re.search(" (400|503) ", message)]  # refused, and no time for it
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert asked
    assert all(name.startswith((address, "data:", "blob:")) for name in asked)
