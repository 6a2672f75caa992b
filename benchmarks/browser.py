"""A Chromium without a window, driven by selenium, and the explorer for it to show."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["CHROMIUM", "DRIVER", "QUIET", "chromium", "explorer", "settled"]

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Flags that keep a browser from everything but the page."""

_SETTLED = """
const done = arguments[0];
(function look() {
  const ready = typeof answers !== 'undefined' && answers.first.answer;
  if (ready && !$('claim').classList.contains('waiting')) done(answers.first.answer);
  else setTimeout(look, 5);
})();
"""


@contextmanager
def explorer() -> Iterator[str]:
    """The address of an explorer that runs meanwhile."""
    command = [sys.executable, "-m", "hockeystick", "explore", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline() if server.stdout else "")
            if found is None:
                raise RuntimeError("the explorer did not start")
            yield found.group()
        finally:
            server.terminate()


@contextmanager
def chromium(*flags: str, width: int = 1400, height: int = 1000) -> Iterator[Any]:
    """A driver of a new browser, which keeps the messages of its console."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        own = (f"--window-size={width},{height}", f"--user-data-dir={profile}", "--headless=new")
        for flag in (*QUIET, *own, *flags):
            options.add_argument(flag)
        with webdriver.Chrome(options=options, service=Service(DRIVER)) as driver:
            driver.set_script_timeout(60)
            yield driver


def settled(driver: Any) -> Any:
    """The explorer's answer that is drawn, once the page waits for none."""
    return driver.execute_async_script(_SETTLED)
