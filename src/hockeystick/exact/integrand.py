"""The integrand of M(z) for two Gaussian mixtures, bounded cell by cell on the real line and on lines beside it.

    t(x) = N(x) p(x)^{1+theta} q(x)^{-theta},    p = e^{g_p}, q = e^{g_q}

(see ``mixture``). ``ln t`` has the derivative ``-x + (1+theta) g_p' - theta g_q'`` with g_p', g_q' increasing, so that
two evaluations enclose it on a cell. At ``x + iy`` the integrand of ``M(theta + is)`` has the modulus

    t(x) e^{y^2/2} |p(x+iy) / p(x)|^{1+theta} |q(x+iy) / q(x)|^{-theta} e^{-s (arg p(x+iy) - arg q(x+iy))}.

Proofs: docs/derivations/exact.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, final

from flint import arb

from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.layers import Layers, rectangles
from hockeystick.exact.logsum import LogSum

_CELLS = 250
_DENSITY_CUTOFF = 9.0
_MARGIN = 1.15  # what a cell may lose: phase and height are taken at different ends of it
_SHARES = (0.0, 0.04, 0.08, 0.15, 0.25, 0.37, 0.5, 0.63, 0.76, 0.88)  # of the widest strip


@final
@dataclass(frozen=True)
class Integrand:
    """``t`` at one tilt ``theta > -1``."""

    p: LogSum
    q: LogSum
    theta: Fraction

    # ------------------------------------------------------------------------------------------------------- estimates

    @cached_property
    def tilt(self) -> float:
        """``theta`` as a float."""
        return float(self.theta)

    @cached_property
    def estimate(self) -> Callable[[float], tuple[float, float]]:
        """``ln t`` + ``ln sqrt(2 pi)`` and the loss, in floats."""
        over, under, tilt = self.p.estimate, self.q.estimate, self.tilt

        def at(x: float) -> tuple[float, float]:
            g = over(x)
            loss = g - under(x)
            return -0.5 * x * x + g + tilt * loss, loss

        return at

    @cached_property
    def core(self) -> tuple[float, float]:
        """Beyond these points ``ln t`` falls outwards at a rate of about 1 or more (estimate)."""
        largest = float(max(abs(c) for side in (self.p, self.q) for c in side.centres))
        far = 2.0 + (1.0 + 2.0 * abs(self.tilt)) * largest
        ends = []
        for side in (-1, 1):
            inner, outer = -side * far, side * far
            while abs(outer - inner) > 0.25:
                middle = 0.5 * (inner + outer)
                inner, outer = (inner, middle) if self._fall_estimate(middle, side) > 1.0 else (middle, outer)
            ends.append(outer)
        return ends[0], ends[1]

    def _fall_estimate(self, x: float, side: int) -> float:
        edge_p = float(self.p.high if side > 0 else self.p.low)
        if self.theta < 0:
            slope_q = float(self.q.high if side > 0 else self.q.low)
        else:
            slope_q = self.q.slope_estimate(x)
        return side * (x - (1.0 + self.tilt) * edge_p + self.tilt * slope_q)

    @cached_property
    def peak(self) -> float:
        """About the largest value of ``ln t + ln sqrt(2 pi)``."""
        low, high = self.core
        count = min(400, math.ceil((high - low) / 0.05))
        return max(self.estimate(low + (high - low) * i / count)[0] for i in range(count + 1))

    def extent(self, cutoff: float) -> tuple[float, float]:
        """Where t, beyond its core, has fallen to ``e^-cutoff`` of its peak (estimate)."""
        left, right = self.core
        floor = self.peak - cutoff
        while self.estimate(left)[0] > floor:
            left -= 0.5
        while self.estimate(right)[0] > floor:
            right += 0.5
        return left, right

    @cached_property
    def scale(self) -> float:
        """About the shortest length on which t changes where it is not negligible (estimate)."""
        spread = max(float(self.p.spread), float(self.q.spread))
        widest = min(1.0, 2.0 / spread if spread > 0 else 1.0)
        if self.tilt <= 0.0 or not self.q.spread:
            return widest
        left, right = self.extent(45.0)
        sharpest = max(self.q.bend_estimate(left + (right - left) * i / 60.0) for i in range(61))
        return widest / math.sqrt(1.0 + self.tilt * sharpest)

    def strip(self, target: float, reach: float) -> tuple[Fraction, Fraction]:
        """The strip ``low < Im x < high`` that allows about the longest step for errors of ``e^-target`` (estimate)."""
        widest = math.pi / max(float(self.p.spread), float(self.q.spread), 1e-9)
        edges = [share * min(widest, 3.0 * math.sqrt(2.0 * target)) for share in _SHARES]
        heights = self._heights(edges[-1], reach)
        lower = [-edge for edge in edges] if reach else edges  # at s = 0 both sides are alike
        growth = {y: self._growth(y, reach, heights) for y in {*edges, *lower}}

        def length(low: float, high: float) -> float:
            return (high - low) / (target + max(growth[low], growth[high]) + 0.125 * (high + low) ** 2)

        if reach:
            low, high = max(((a, b) for a in lower for b in edges if b > a), key=lambda pair: length(*pair))
        else:
            low, high = 0.0, max(edges[1:], key=lambda edge: edge / (target + growth[edge]))
        top = Fraction(math.floor(high * 2.0**30), 2**30)
        return Fraction(math.floor(low * 2.0**30), 2**30) if reach else -top, top

    def _heights(self, widest: float, reach: float) -> list[tuple[float, float]]:
        """``ln t`` over its peak at points x where the modulus beside the real line may be large, largest first."""
        left, right = self.extent(30.0)
        points = [left + (right - left) * i / 60.0 for i in range(61)]
        for side in (self.p, self.q):  # where two terms balance, the phase turns and the modulus can vanish
            points += [x + gap * i / 4.0 for x, gap in side.balances for i in range(-16, 17)]
        if reach:
            wild = math.sqrt(2.0 * reach * widest * float(self.p.spread + self.q.spread))
            points += [right + wild * (i / 40.0) ** 2 for i in range(1, 41)]
            points += [left - wild * (i / 20.0) ** 2 for i in range(1, 21)]
        return sorted(((self.estimate(x)[0] - self.peak, x) for x in points), reverse=True)

    def _growth(self, y: float, reach: float, heights: list[tuple[float, float]]) -> float:
        """``ln`` of the largest modulus on the line ``Im x = y`` over that of t on the real line (estimate)."""
        power = max(0.0, self.tilt)
        if not reach and not (power and self.q.spread):
            return 0.5 * y * y
        secant = -math.log(math.cos(0.5 * y * float(self.q.spread)))
        highest = _MARGIN * (reach * abs(y) * float(self.p.spread + self.q.spread) + power * secant)
        most = -math.inf
        for height, x in heights:
            if height + highest < most:
                break
            most = max(most, height + self._lift(y, reach, x))
        return most + 0.5 * y * y

    @cached_property
    def _apart(self) -> float:
        """Distance of the lowest centres."""
        return float(self.p.low - self.q.low)

    def _lift(self, y: float, reach: float, x: float) -> float:
        """``ln`` of the modulus at ``x + iy`` over t(x) but for ``y^2 / 2``, with a margin for cells (estimate)."""
        _, phase_p = self.p.lifted_estimate(x, abs(y))
        ratio_q, phase_q = self.q.lifted_estimate(x, abs(y))
        phase = y * self._apart + math.copysign(1.0, y) * (phase_p - phase_q)
        return _MARGIN * (max(0.0, -reach * phase) - max(0.0, self.tilt) * ratio_q)

    def _end_estimate(self, y: float, reach: float, x: float, side: int) -> float:
        """``ln`` of what is kept for everything beyond x (estimate)."""
        over, under = self.p.rest_estimate(x, side), self.q.rest_estimate(x, side)
        own = y * float(self.p.high - self.q.high if side > 0 else self.p.low - self.q.low)
        most = abs(y) * float(self.p.spread + self.q.spread)
        turn = min(most, 1.6 * (over + under)) - own if abs(own) < most else most
        shrunk = 2.0 * under if under < 0.5 else 40.0
        return self.estimate(x)[0] + reach * max(0.0, turn) + max(0.0, self.tilt) * shrunk

    # ------------------------------------------------------------------------------------------------------ enclosures

    def log_t(self, x: arb) -> arb:
        """``ln t(x) + ln sqrt(2 pi)``."""
        tilt = ball(self.theta)
        return -x * x / 2 + (1 + tilt) * self.p.value(self.p.terms(), x) - tilt * self.q.value(self.q.terms(), x)

    def fall(self, x: arb, side: int) -> arb:
        """Lower bound on how fast ``ln t`` falls outwards at x; d further out it falls faster by at least d.

        ``side`` is -1 or 1.
        """
        theta = ball(self.theta)
        edge_p = ball(self.p.high if side > 0 else self.p.low)
        if self.theta < 0:
            slope_q = ball(self.q.high if side > 0 else self.q.low)
        else:
            slope_q = self.q.slope(self.q.terms(), x)  # it increases with x: beyond x it only helps
        return side * (x - (1 + theta) * edge_p + theta * slope_q)

    def _cells(self, points: list[Fraction]) -> list[_Cell]:
        """Bounds on the cells between the points, at the working precision."""
        p, q, tilt, edges = self.p.terms(), self.q.terms(), ball(self.theta), [ball(x) for x in points]

        def log_t(x: arb, over: arb, under: arb) -> arb:
            return -x * x / 2 + (1 + tilt) * over - tilt * under

        over, under = [self.p.value_and_slope(p, x) for x in edges], [self.q.value_and_slope(q, x) for x in edges]
        ends = [log_t(x, g, f) for x, (g, _), (f, _) in zip(edges, over, under, strict=True)]
        d_p, d_q = [slope for _, slope in over], [slope for _, slope in under]
        cells = []
        for i in range(len(points) - 1):
            slope_p, slope_q = d_p[i].union(d_p[i + 1]), d_q[i].union(d_q[i + 1])  # both slopes are monotone
            whole, length = edges[i].union(edges[i + 1]), edges[i + 1] - edges[i]
            drift = -whole + (1 + tilt) * slope_p - tilt * slope_q
            if drift >= 0:
                low, high = ends[i], ends[i + 1]
            elif drift <= 0:
                low, high = ends[i + 1], ends[i]
            else:
                x, most = (edges[i] + edges[i + 1]) / 2, drift.abs_upper() * length / 2
                middle = log_t(x, self.p.value(p, x), self.q.value(q, x))
                low, high = middle - most, middle + most
            cells.append(_Cell(whole, length, low, high, slope_p - slope_q))
        return cells

    def _inner(self) -> list[Fraction]:
        """Points fine enough where t is not negligible."""
        left, right = self.extent(60.0)
        step = Fraction(math.ceil(max(0.3 * self.scale, (right - left) / 1000.0) * 2.0**14), 2**14)
        return [step * k for k in range(math.floor(left / step), math.ceil(right / step) + 1)]

    def _outer(self, start: Fraction, side: int, y: Fraction, reach: Fraction) -> list[Fraction]:
        """Points from ``start`` outwards to where everything beyond is negligible."""
        width = max(0.3 * self.scale, 0.125 / max(float(self.p.spread), float(self.q.spread), 1.0))
        step = side * Fraction(math.ceil(width * 2.0**14), 2**14)
        points = [start]
        while self._end_estimate(float(y), float(reach), float(points[-1]), side) > self.peak - 60.0:
            points.append(points[-1] + step)
        return points

    @cached_property
    def _inner_cells(self) -> tuple[Fraction, Fraction, list[_Cell]]:
        """Both ends of the inner points, and the cells between them: the same on every line."""
        points = self._inner()
        with precision(LOW_BITS):
            return points[0], points[-1], self._cells(points)

    def lifted_cells(self, y: Fraction, reach: Fraction) -> LiftedCells:
        """Bounds on the integral over the line ``Im x = y``, for imaginary parts of z up to ``reach``."""
        first, last, inner = self._inner_cells
        return self._lifted(self._outer(first, -1, y, reach), inner, self._outer(last, 1, y, reach), y, Fraction(0))

    def left_out(self, y: Fraction, reach: Fraction, ends: tuple[Fraction, Fraction], step: Fraction) -> LiftedCells:
        """Bounds on ``step`` times the sum of the integrand over the lattice points ``x_k + iy`` beyond the ends."""
        low, high = ends
        return self._lifted(self._outer(low, -1, y, reach), [], self._outer(high, 1, y, reach), y, step)

    def _lifted(
        self, left: list[Fraction], inner: list[_Cell], right: list[Fraction], y: Fraction, step: Fraction
    ) -> LiftedCells:
        """Cells on the way out to either side and between them, and what is beyond.

        A cell holds at most ``length / step + 1`` lattice points.
        """
        least = min(Fraction(0), y * (self.p.low - self.q.high), y * (self.p.high - self.q.low))  # no phase is below
        with precision(LOW_BITS):
            height, tilt = ball(abs(y)), ball(max(self.theta, Fraction(0)))
            p, q, offset = self.p.terms(), self.q.terms(), ball(y * (self.p.low - self.q.low))
            constant, lowest, room = height * height / 2 - (2 * arb.pi()).log() / 2, ball(least), ball(step)
            logs, phases = [], []

            def keep(log: arb, over: tuple[arb, arb], under: tuple[arb, arb]) -> None:
                phase = offset + (over[1] - under[1] if y >= 0 else under[1] - over[1])
                logs.append(log + constant - tilt * under[0].lower().log())
                phases.append(phase.lower().max(lowest))

            lifted_p, lifted_q = self.p.lifted(p, height), self.q.lifted(q, height)
            for cell in [*self._cells(left[::-1]), *inner, *self._cells(right)]:
                keep(cell.log_high + (cell.length + room).log(), lifted_p(cell.x), lifted_q(cell.x))
            for x, side in ((ball(left[-1]), -1), (ball(right[-1]), 1)):
                fall = self.fall(x, side)  # the integral beyond x is at most t / fall, the sum one term more
                log = self.log_t(x) + (1 / fall + room).log() if fall > 0 else arb.pos_inf()
                keep(log, self.p.lifted_beyond(p, x, height, side), self.q.lifted_beyond(q, x, height, side))
            return LiftedCells(tuple(logs), tuple(phases))

    def layers(self, log_moment: arb) -> Layers:
        """Rectangles under the density ``t(x) / (M(theta) |L'(x)|)`` of the tilted loss."""
        points = self._bulk()
        with precision(LOW_BITS):
            scale = (-log_moment).exp() / (2 * arb.pi()).sqrt()
            p, q = self.p.terms(), self.q.terms()
            losses = [self.p.value(p, ball(x)) - self.q.value(q, ball(x)) for x in points]
            middle = losses[len(losses) // 2].mid()
            losses = [loss - middle for loss in losses]
            edges = [float(loss) for loss in losses]
            error = max(float(loss.rad()) + abs(edge) * 2.0**-52 for loss, edge in zip(losses, edges, strict=True))
            heights = []
            for cell in self._cells(points):
                if cell.speed.contains(0):
                    heights.append(0.0)
                else:
                    height = (cell.log_low.exp() * scale / cell.speed.abs_upper()).lower()
                    heights.append(max(0.0, float(height)) * (1.0 - 2.0**-50))
        return Layers.of(rectangles(edges, heights), error)

    def _bulk(self) -> list[Fraction]:
        """Edges of equal cells over all but a thousandth or so of the tilted mass."""
        left, right = self.extent(_DENSITY_CUTOFF + 3.0)
        step = min(0.25 * self.scale, (right - left) / 100.0)
        points = [left + i * step for i in range(math.ceil((right - left) / step) + 1)]
        floor = self.peak - _DENSITY_CUTOFF
        inside = [x for x in points if self.estimate(x)[0] > floor]
        low, high = inside[0], inside[-1]
        cell = Fraction(max(1, math.floor((high - low) / _CELLS * 2**30)), 2**30)
        return [cell * k for k in range(math.floor(low / cell), math.ceil(high / cell) + 1)]


@final
@dataclass(frozen=True)
class LiftedCells:
    """The integral of the modulus over a line, cell by cell: at most ``e^{log - s phase}``, s = Im z."""

    logs: tuple[arb, ...]
    phases: tuple[arb, ...]

    def bound(self, low: arb, high: arb) -> arb:
        """Upper bound on the whole, for every s in ``[low, high]``."""
        with precision(LOW_BITS):
            total = arb(0)
            for log, phase in zip(self.logs, self.phases, strict=True):
                total += (log - (low if phase >= 0 else high) * phase).exp()
            return total.upper()


@final
class _Cell(NamedTuple):
    """A cell of x: its ball and length, bounds on ``ln t + ln sqrt(2 pi)``, an enclosure of the loss's derivative."""

    x: arb
    length: arb
    log_low: arb
    log_high: arb
    speed: arb
