"""The methods: which adapter, in which environment, with which options.

The methods of `EVERYWHERE` meet every case that asks for one epsilon; the others only the cases that name them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from benchmarks.cases import Case

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = ROOT / ".venv-peers"
ADAPTERS = HERE / "peers"


@dataclass(frozen=True)
class Method:
    """One way to get an answer: ``adapter`` run by ``interpreter`` with ``options``."""

    label: str
    adapter: Path
    interpreter: Path
    options: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({}))


def ours(label: str, **options: str | float) -> Method:
    """Our own library, in the environment that runs the benchmark."""
    return Method(label, ADAPTERS / "with_hockeystick.py", Path(sys.executable), MappingProxyType(options))


def peer(label: str, adapter: str, environment: str = "main", **options: str | float) -> Method:
    """Another library, in an environment made for it."""
    interpreter = PEERS / environment / "bin" / "python"
    return Method(label, ADAPTERS / f"{adapter}.py", interpreter, MappingProxyType(options))


OURS = "hockeystick"

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        OURS: ours("hockeystick"),
        "hockeystick-1e-6": ours("hockeystick, tolerance 1e-6", tolerance=1e-6),
        "dp-accounting": peer("dp-accounting PLD", "with_dp_accounting"),
        "dp-accounting-1e-5": peer("dp-accounting PLD, grid 1e-5", "with_dp_accounting", interval=1e-5),
        "dp-accounting-1e-7": peer("dp-accounting PLD, grid 1e-7", "with_dp_accounting", interval=1e-7),
        "dp-accounting-both": peer("dp-accounting PLD, both roundings", "with_dp_accounting", method="both-roundings"),
        "dp-accounting-self": peer("dp-accounting PLD, self_compose", "with_dp_accounting", method="self-compose"),
        "dp-accounting-rdp": peer("dp-accounting RDP", "with_dp_accounting", method="rdp"),
        "dp-accounting-replace": peer("dp-accounting PLD, replace one", "with_dp_accounting"),
        "opake": peer("opake-accounting", "with_opake", "opake"),
        "pld-accounting": peer("PLD_accounting", "with_pld_accounting"),
        "riskcal": peer("riskcal", "with_riskcal"),
        "gdpnum": peer("gdpnum", "with_gdpnum"),
        "prv-accountant": peer("prv-accountant, eps_error 1e-3", "with_prv_accountant"),
        "opacus": peer("Opacus PRV", "with_opacus"),
        "opacus-0.1": peer("Opacus PRV, eps_error 0.1", "with_opacus", eps_error=0.1),
        "opacus-rdp": peer("Opacus RDP", "with_opacus", method="rdp"),
        "autodp": peer("autodp RDP", "with_autodp", "autodp"),
        "autodp-fourier": peer("autodp Fourier", "with_autodp", "autodp", method="fourier"),
    }
)
EVERYWHERE = (OURS, "dp-accounting", "opake", "prv-accountant", "opacus", "autodp")


def methods_for(case: Case) -> dict[str, Method]:
    """The methods of a case, in the order of the table `METHODS`."""
    asked = {*(EVERYWHERE if case.plain else (OURS,)), *case.also}
    return {key: method for key, method in METHODS.items() if key in asked}
