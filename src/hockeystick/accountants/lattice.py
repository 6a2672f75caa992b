"""One lattice at a spacing of the caller's choice: one side of the curve, as 000 and its predecessors compute it.

Every loss distribution is put on the lattice by one rounding, composed by tilted FFT, and read with all numerical
errors added on that rounding's side:

- ``connect-the-dots`` (000, Algorithm 1) and ``buckets-up`` give upper bounds;
- ``tangents``, ``algorithm-2`` (000, Algorithm 2) and ``buckets-down`` give lower bounds.

Guarantee: the side computed is certified, rounding included; the other side is the trivial one, 0 or 1 for delta and
0 or infinity for epsilon. For a bracket use the certified accountant, which also chooses the spacing. Cost: two FFTs
a distinct pair and question far from the last one; windows of many points are composed on low frequencies alone where
those are shown to suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts, check_length
from hockeystick.bound import Bound
from hockeystick.engines.lattice.algorithm2 import algorithm_2
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_down, buckets_up
from hockeystick.engines.lattice.compose import TiltedComposition
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.plan import (
    SaddleEstimate,
    saddle_at_least_zero,
    scanned,
    tail_exponents,
    window_around,
)
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.spectral import spectral_curve
from hockeystick.engines.lattice.streaming import RunningCurve
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.errors import PrecisionError, check_choice, check_fields, shown
from hockeystick.laws.base import Pair
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.transforms.cumulants import Cumulants, Scan

Rounding = Literal["connect-the-dots", "tangents", "algorithm-2", "buckets-up", "buckets-down"]
"""How a loss distribution is put on the lattice."""

_RELATIVE = 1e-9  # of delta: what leaving the window may cost
_POINTS = 1 << 24
_LONG = 1 << 16  # points beyond which low frequencies alone are tried first
_NO_INDEX = 2.0**62  # points beyond which there is no integer of 64 bits for each
_APART = 2.0  # nats of delta from one composition to the next
_LAST = 368  # of them: float64 holds no smaller delta
_KEPT = 3

_Composed = TiltedComposition | RunningCurve

_BUILDERS: dict[str, Callable[[Pair, Grid, float], LatticePLD]] = {
    "connect-the-dots": lambda pair, grid, _: connect_the_dots(GridCells.of(pair, grid)),
    "tangents": lambda pair, grid, theta: tangents(pair, grid, tilt=theta),
    "algorithm-2": lambda pair, grid, _: algorithm_2(GridCells.of(pair, grid)),
    "buckets-up": lambda pair, grid, _: buckets_up(bucket_cells(pair, grid, "upper")),
    "buckets-down": lambda pair, grid, _: buckets_down(bucket_cells(pair, grid, "lower")),
}
_UPPER = ("connect-the-dots", "buckets-up")


@final
@dataclass(frozen=True)
class Lattice(Accountant):
    """A one-sided certified bound on a lattice of given spacing.

    Parameters
    ----------
    spacing : float
        Distance of neighbouring lattice points (nats), from 1e-100 to 1e100; 0 is one of them.
    rounding : {"connect-the-dots", "tangents", "algorithm-2", "buckets-up", "buckets-down"}
        How each loss distribution is put on the lattice.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> parts = ((GaussianPair(2.0), 4),)  # as one step of noise 1
    >>> upper = Lattice(0.01).directed(parts).delta(1.0).upper
    >>> lower = Lattice(0.01, rounding="tangents").directed(parts).delta(1.0).lower
    >>> lower < 0.12693673750664397 < upper, upper - lower < 1e-4
    (True, True)
    """

    spacing: float
    rounding: Rounding = "connect-the-dots"

    def __post_init__(self) -> None:
        check_fields(self, spacing=check_length)
        check_choice("rounding", self.rounding, _BUILDERS)

    def directed(self, parts: Parts) -> DirectedCurve:
        return _OneSidedCurve(self, parts)


@final
class _OneSidedCurve(DirectedCurve):
    """One direction; compositions for deltas of a few sizes are kept."""

    def __init__(self, settings: Lattice, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._steps = sum(count for _, count in parts)
        self._upper = settings.rounding in _UPPER
        self._method = f"lattice, {settings.rounding}"
        self._made: dict[int, tuple[SaddleEstimate, _Composed]] = {}

    def delta(self, epsilon: float) -> Bound:
        if math.isinf(epsilon):
            value = self._at_epsilon(0.0)[1].delta_at_infinity
        else:
            value = self._at_epsilon(epsilon)[1].delta(epsilon)
        return self._one_sided(value, 1.0)

    def epsilon(self, delta: float) -> Bound:
        if delta >= 1.0:
            return Bound(0.0, 0.0, self._method)
        if delta == 0.0:
            return self._one_sided(self._largest_loss(), math.inf)
        saddle, made = self._for_size(math.log(delta))
        if not self._upper and delta < made.delta_at_infinity:
            return self._one_sided(math.inf, math.inf)
        step = 1e-6 * max(self._settings.spacing, 1e-3)
        found = one_sided_root(
            made.delta, delta, guess=saddle.epsilon, slope=saddle.theta, step=step, above=self._upper
        )
        return self._one_sided(found, math.inf)

    def _one_sided(self, value: float, largest: float) -> Bound:
        note = f"{self._settings.rounding} bounds one side only: the other is trivial"
        sides = (0.0, value) if self._upper else (value, largest)
        return Bound(*sides, self._method, notes=(note,))

    def _largest_loss(self) -> float:
        """The epsilon from which on this lattice's delta is 0."""
        made = self._at_epsilon(0.0)[1]
        if made.delta_at_infinity > 0.0:
            return math.inf
        highest = math.fsum(
            count * float(pld.losses[pld.log_mass > -math.inf].max(initial=-math.inf)) for pld, count in self._plds(1.0)
        )
        return max(highest + made.slack if self._upper else highest - made.slack, 0.0)

    def _at_epsilon(self, epsilon: float) -> tuple[SaddleEstimate, _Composed]:
        """A composition tilted for about one epsilon, and the lattice's own saddle point there."""
        return self._for_size(self._scanned.log_delta_at(epsilon))

    @cached_property
    def _scanned(self) -> Scan:
        return scanned(self._parts)

    def _for_size(self, log_delta: float) -> tuple[SaddleEstimate, _Composed]:
        """The composition for deltas of about this size.

        It is made for a size that depends on nothing else, so that no answer depends on what was asked before.
        """
        number = min(max(round(-log_delta / _APART), 0), _LAST)
        made = self._made.get(number)
        if made is None:
            delta = math.exp(-_APART * (number or 0.5))
            _, rough = saddle_at_least_zero(self._parts, delta)
            plds = self._plds(rough.theta, *tail_exponents(self._steps, rough, _RELATIVE))
            made = self._composed(plds, saddle_at_least_zero(plds, delta))
            self._made = {number: made, **dict(list(self._made.items())[: _KEPT - 1])}
        return made

    def _composed(
        self, plds: list[tuple[LatticePLD, int]], at: tuple[Cumulants, SaddleEstimate]
    ) -> tuple[SaddleEstimate, _Composed]:
        cumulants, saddle = at
        window = window_around(cumulants, saddle, math.log(_RELATIVE))
        points = (window.high - window.low) / self._settings.spacing
        made: _Composed | None = None
        if _LONG < points < _NO_INDEX:
            made = spectral_curve(plds, window, deviation=math.sqrt(cumulants(window.theta)[2]))
        if made is None and points > _POINTS:
            raise PrecisionError(
                f"spacing {self._settings.spacing!r} makes {points:.2g} lattice points over"
                f" {window.high - window.low:.3g} nats, more than {_POINTS}: use a larger spacing,"
                " or accountants.Certified"
            )
        return saddle, made or TiltedComposition(plds, window)

    def _plds(self, theta: float, below: float = -60.0, above: float = -60.0) -> list[tuple[LatticePLD, int]]:
        """Every pair on the lattice, with about ``e^below`` and ``e^above`` beyond its ends."""
        h, build = self._settings.spacing, _BUILDERS[self._settings.rounding]
        result = []
        for pair, count in self._parts:
            low, high = pair.loss_range(below, above)
            grid = Grid.covering(min(low, -h), max(high, h), h)  # 0 inside: 000, Assumption 5.2
            pld = build(pair, grid, theta)
            if (pld.log_mass == -math.inf).all():
                raise PrecisionError(
                    f"with spacing {h!r} no finite loss of {shown(pair)} keeps its mass: use a smaller spacing, or"
                    " accountants.Certified"
                )
            result.append((pld, count))
        return result
