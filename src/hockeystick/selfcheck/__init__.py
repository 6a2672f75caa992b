"""Self-check: the assumed errors of numpy, scipy and the C library, measured on this machine against ball arithmetic.

Every certified number rests on them. They are measured, not proved: a check that passes has found no argument at which
a bound is exceeded, among those it tried, with the libraries, the processor and the settings of this process.
"""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hockeystick.errors import NoBallArithmeticError, require_ball_arithmetic

if TYPE_CHECKING:
    from hockeystick.selfcheck.assumptions import Assumption

__all__ = ["Measurement", "NoBallArithmeticError", "SelfCheck", "quick_self_check", "self_check"]

_BITS = 160
_SEED = 20240601
_POINTS = {"quick": 120, "full": 6000}


@final
@dataclass(frozen=True)
class Measurement:
    """One assumption and the worst error seen, in the same unit."""

    assumption: Assumption
    worst: float

    @property
    def holds(self) -> bool:
        """Whether the bound was kept at every point."""
        return self.worst <= self.assumption.bound

    @property
    def share(self) -> float:
        """The worst error over the bound."""
        return self.worst / self.assumption.bound


@final
@dataclass(frozen=True)
class SelfCheck:
    """The measurements of one run, and where it ran."""

    measurements: tuple[Measurement, ...]
    points: int

    @property
    def passed(self) -> bool:
        """Whether every bound was kept."""
        return all(measurement.holds for measurement in self.measurements)

    @property
    def failures(self) -> tuple[str, ...]:
        """The primitives that exceeded their bounds."""
        return tuple(measurement.assumption.name for measurement in self.measurements if not measurement.holds)

    def document(self) -> dict[str, Any]:
        """As receipts and ``--json`` hold it."""
        return {
            "passed": self.passed,
            "points": self.points,
            "platform": platform.platform(),
            "processor_features": processor_features(),
            "worst": {m.assumption.name: float(f"{m.share:.3g}") for m in self.measurements},
        }


def self_check(kind: str = "full") -> SelfCheck:
    """Every assumption measured: ``"full"`` in seconds, ``"quick"`` on fewer points in a fraction of one.

    The points are the same at every run.

    Raises
    ------
    NoBallArithmeticError
        Where python-flint is not installed.

    Examples
    --------
    >>> check = self_check("quick")
    >>> check.passed
    True
    """
    require_ball_arithmetic("the self-check")
    from hockeystick.exact.balls import precision
    from hockeystick.selfcheck.assumptions import ASSUMPTIONS, primitive

    count = _POINTS[kind]
    with precision(_BITS):
        found = [
            Measurement(one, one.measure(primitive(one.path), np.random.default_rng(_SEED), count))
            for one in ASSUMPTIONS
        ]
    return SelfCheck(tuple(found), count)


@functools.cache
def quick_self_check() -> SelfCheck:
    """The quick one, made once a process: what a receipt records."""
    return self_check("quick")


def processor_features() -> str:
    """The vector instructions numpy may choose among here: they decide which loops run."""
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except ModuleNotFoundError:  # numpy before 2.0
        features = import_module("numpy.core._multiarray_umath").__cpu_features__
    return " ".join(name for name, present in features.items() if present)
