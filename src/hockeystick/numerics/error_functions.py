"""The error functions of `scipy.special`, which is loaded with the first of them.

It is half of a cold start, and most answers need none.
"""

from __future__ import annotations

from typing import Any


def erf(x: Any) -> Any:
    """``2 / sqrt(pi)`` times the integral of ``e^{-t^2}`` from 0 to x."""
    from scipy import special

    return special.erf(x)


def erfcx(x: Any) -> Any:
    """``e^{x^2} (1 - erf(x))``."""
    from scipy import special

    return special.erfcx(x)
