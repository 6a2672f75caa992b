"""The accessibility checker axe in a driven browser."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

__all__ = ["in_colours", "serious_faults"]

_RUN = "const done = arguments[0]; axe.run().then((found) => done(found.violations), (error) => done([String(error)]));"


def in_colours(driver: Any, scheme: str) -> None:
    """Prefer "light" or "dark", and no motion: colours on their way to others have no contrast to speak of."""
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def serious_faults(driver: Any) -> list[str]:
    """Faults of the page shown that axe calls serious or critical, with the first element of each."""
    driver.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = driver.execute_async_script(_RUN)
    return [
        f"{fault['id']}: {fault['help']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found
        if fault["impact"] in {"serious", "critical"}
    ]
