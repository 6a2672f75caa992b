"""The pictures of the documentation, drawn again: ``python examples/pictures.py``.

The privacy curve comes from the demo. The receipt is `receipt.toml` as a headless Chromium shows it; without Chromium
that picture is left as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import demo

import hockeystick as hs
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.spec import load

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "docs" / "images"
WINDOW = "860,1040"


def main() -> None:
    """Draw both."""
    run = hs.Gaussian(noise_multiplier=demo.NOISE).poisson(rate=demo.BATCH / demo.EXAMPLES) * demo.STEPS
    demo.draw(run, IMAGES / "privacy_curve.png")
    print("docs/images/privacy_curve.png")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: docs/images/receipt.png is left as it is")
        return
    shoot(browser, page(receipt(load(HERE / "receipt.toml"))), IMAGES / "receipt.png")
    print("docs/images/receipt.png")


def shoot(browser: str, html: str, picture: Path) -> None:
    """Show a page in a browser without a window, and keep what is seen."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
    offline = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "receipt.html"
        path.write_text(html, encoding="utf-8")
        seen = [f"--user-data-dir={folder}/profile", f"--screenshot={picture}", f"--window-size={WINDOW}"]
        command = [browser, *quiet, *offline, *seen, "--force-device-scale-factor=1.5", path.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 - arguments of our own


if __name__ == "__main__":
    main()
