"""The explorer's page in a real browser: every control moves the curve, and nothing leaves this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the explorer needs its extra: pip install '.[explore]'")
pytest.importorskip("selenium", reason="the browser is driven by selenium")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no browser: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)
WAIT = "arguments[arguments.length - 1]"
CONTROLS = {
    "noise_multiplier": "1.3",
    "steps": "3000",
    "delta": "1e-6",
    "rate": "0.02",
    "adjacency": "substitute",
    "given": "batch",
    "batch_size": "700",
    "examples": "60000",
    "duration": "epochs",
    "epochs": "15",
    "sampling": "without-replacement",
    "batches": "shuffled",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "hockeystick", "explore", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        assert found is not None
        yield found.group()
        server.terminate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    profile: Path = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(DRIVER)) as driver:
        driver.set_script_timeout(60)
        yield driver


def settled(browser: Any) -> Any:
    """The answer that is drawn, once the page waits for none."""
    return browser.execute_async_script(
        f"const done = {WAIT}, look = () => answers.first.answer && !$('claim').classList.contains('waiting')"
        " ? done(answers.first.answer) : setTimeout(look, 5); look();"
    )


def put(browser: Any, name: str, value: str) -> Any:
    kind = "change" if name in {"adjacency", "given", "duration", "sampling", "batches"} else "input"
    browser.execute_script(
        f"const control = $('{name}'); control.value = '{value}'; control.dispatchEvent(new Event('{kind}'));"
    )
    return settled(browser)


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
    assert "NOT CERTIFIED" in browser.find_element("id", "verdict").text
    assert browser.find_element("id", "stamp-curve").is_displayed()
    assert put(browser, "batches", "")["verdict"] is None
    assert not browser.find_element("id", "stamp-curve").is_displayed()

    put(browser, "sampling", "poisson")  # answered sooner
    slider = browser.find_element("id", "noise_multiplier-slider")
    slider.send_keys("\ue014" * 20)  # the right arrow key
    moved = settled(browser)
    assert moved["noise_multiplier"] > 1.3
    assert moved["curve"] != seen["curve"]

    browser.find_element("id", "lock").click()
    locked = settled(browser)
    assert locked["met"]["delta"]["upper"] <= 1e-6
    assert float(browser.find_element("id", "noise_multiplier").get_property("value")) == locked["noise_multiplier"]

    browser.find_element("id", "keep").click()
    put(browser, "target_epsilon", "1")
    assert "Second run" in browser.find_element("id", "second").text
    plot = browser.find_element("id", "plot-curve")
    plot.send_keys("\ue012" * 5)  # the left arrow key
    assert re.search(
        r"epsilon [\d.]+: delta in \[\S+, \S+\]; second run", browser.find_element("id", "read-curve").text
    )

    shared, headline = browser.current_url, browser.find_element("id", "headline").text
    browser.get(shared)
    settled(browser)
    assert browser.find_element("id", "headline").text == headline

    put(browser, "delta", "2")
    assert browser.find_element("id", "headline").text == "No answer"
    assert "delta must be" in browser.find_element("id", "problem").text

    errors = [entry["message"] for entry in browser.get_log("browser") if " 400 " not in entry["message"]]
    assert not errors
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert asked
    assert all(name.startswith((address, "data:", "blob:")) for name in asked)
