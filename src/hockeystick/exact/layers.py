"""A bound on |phi(s)| that is monotone in s, from rectangles under the density of the loss.

If the law of the tilted loss has a part with density at least ``sum_k c_k 1_{I_k}``, I_k intervals of length l_k, then

    |phi(s)| <= 1 - sum_k m_k + sum_k m_k |sinc(s l_k / 2)|,   m_k = c_k l_k,   sinc x = sin x / x,

and replacing ``|sinc|`` by its nonincreasing majorant S gives a bound that holds for every larger s as well. It has
the right curvature at 0 (many steps) and falls like 1/s (bounded variation) where s is large. See
docs/derivations/exact.md, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from flint import arb

from hockeystick.exact.balls import LOW_BITS, precision
from hockeystick.exact.transform import Decay

# |sin x| / x beyond its first zero is largest at tan x = x = 4.49340...: 0.217233...
_RIPPLE = arb(0.21724)
_SLACK = 2.0**-40  # relative, larger than all float roundings of rectangles and masses together


def rectangles(edges: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    """Rectangles (height, width) that fill a histogram, cut at its level sets: each as wide as it can be.

    Parameters
    ----------
    edges : sequence of float, length n + 1
        Monotone cell edges.
    heights : sequence of float, length n
        Heights, at least 0.
    """
    result: list[tuple[float, float]] = []
    open_at: list[tuple[int, float]] = []  # (first cell, height), heights increasing
    for cell, height in enumerate([*heights, 0.0]):
        start = cell
        while open_at and open_at[-1][1] > height:
            start, top = open_at.pop()
            floor = max(height, open_at[-1][1] if open_at else 0.0)
            result.append((top - floor, abs(edges[cell] - edges[start])))
        if height > 0.0 and (not open_at or open_at[-1][1] < height):
            open_at.append((start, height))
    return result


@final
@dataclass(frozen=True)
class Layers(Decay):
    """The bound of the module header, for lower bounds ``masses`` and ``widths`` (floats)."""

    masses: tuple[float, ...]
    widths: tuple[float, ...]

    @classmethod
    def of(cls, layers: Sequence[tuple[float, float]], edge_error: float) -> Layers:
        """From rectangles (height, width) whose edges may each be ``edge_error`` off; heights are lower bounds."""
        shrunk = [(c, l * (1.0 - _SLACK) - 2.0 * edge_error) for c, l in layers]
        kept = [(c * l * (1.0 - _SLACK), l) for c, l in shrunk if c > 0.0 and l > 0.0]
        return cls(tuple(m for m, _ in kept), tuple(l for _, l in kept))

    def bound(self, s: arb) -> arb:
        """At least ``|phi(t)|`` for all ``t >= s``."""
        with precision(LOW_BITS):
            half = s.lower() / 2
            total = arb(1)
            for m, l in self._balls:
                total -= m * (1 - _majorant(half * l))
            return total

    @cached_property
    def _balls(self) -> list[tuple[arb, arb]]:
        """Masses and widths as balls, exactly."""
        return [(arb(m), arb(l)) for m, l in zip(self.masses, self.widths, strict=True)]


def _majorant(x: arb) -> arb:
    """``sup |sin y| / y`` over ``y >= x``, from above: sinc falls on [0, pi], and is below the ripple at 3."""
    if x < 3:
        return x.sinc().max(_RIPPLE)
    return (1 / x).min(_RIPPLE)
