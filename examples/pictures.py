"""The pictures of the documentation, drawn again: ``python examples/pictures.py``.

The privacy curve comes from the demo. The receipt is `receipt.toml`, and the explorer is itself, as a headless Chromium
shows them; without Chromium these pictures are left as they are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import choose
import demo

import hockeystick as hs
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.spec import load

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "docs" / "images"
TWO_RUNS = "noise_multiplier=1&rate=0.01&steps=2000&second=noise_multiplier%3D0.8%26rate%3D0.01%26steps%3D2000"


def main() -> None:
    """Draw them all."""
    run = hs.Gaussian(noise_multiplier=demo.NOISE).poisson(rate=demo.BATCH / demo.EXAMPLES) * demo.STEPS
    demo.draw(run, IMAGES / "privacy_curve.png")
    print("docs/images/privacy_curve.png")
    choose.draw(IMAGES / "choose.svg")
    print("docs/images/choose.svg")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: the receipt and the explorer are left as they are")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "receipt.html"
        path.write_text(page(receipt(load(HERE / "receipt.toml"))), encoding="utf-8")
        shoot(browser, path.as_uri(), IMAGES / "receipt.png", "--window-size=860,1040", scale=1.5)
    print("docs/images/receipt.png")
    with explorer() as address:
        for name, dark in (("explore", 1), ("explore-dark", 0)):
            seen = (
                "--window-size=1400,1025",
                f"--blink-settings=preferredColorScheme={dark}",
                "--virtual-time-budget=20000",
            )
            shoot(browser, f"{address}?{TWO_RUNS}", IMAGES / f"{name}.png", *seen, scale=1.0)
            print(f"docs/images/{name}.png")


@contextmanager
def explorer() -> Iterator[str]:
    """The address of an explorer that runs meanwhile."""
    command = [sys.executable, "-m", "hockeystick", "explore", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - arguments of our own
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline() if server.stdout else "")
            if found is None:
                raise RuntimeError("the explorer did not start")
            yield found.group()
        finally:
            server.terminate()


def shoot(browser: str, address: str, picture: Path, *seen: str, scale: float) -> None:
    """Show a page in a browser without a window, and keep what is seen."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
    offline = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with tempfile.TemporaryDirectory() as profile:
        own = [f"--user-data-dir={profile}", f"--screenshot={picture}", f"--force-device-scale-factor={scale}"]
        command = [browser, *quiet, *offline, *own, *seen, address]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 - arguments of our own


if __name__ == "__main__":
    main()
