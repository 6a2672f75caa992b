"""The integrand of M(z) for two Gaussian mixtures, bounded cell by cell.

    t(x) = N(x) p(x)^{1+theta} q(x)^{-theta},   |t(x + iy) e^{is(L(x+iy) - L(x))}| on a shifted line

(see ``mixture``). The logarithm of t has the derivative ``-x + (1+theta) g_p' - theta g_q'``, g_p' and g_q' increasing,
so two evaluations enclose it on a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import arb

from hockeystick.exact.balls import ball, precision
from hockeystick.exact.layers import Layers, rectangles
from hockeystick.exact.logsum import LogSum

__all__ = ["Integrand", "LiftedCells"]

_LOW_BITS = 64
_CELLS = 250
_DENSITY_CUTOFF = 9.0


@final
@dataclass(frozen=True)
class Integrand:
    """``t`` at one tilt ``theta > -1``."""

    p: LogSum
    q: LogSum
    theta: Fraction

    def fall(self, x: arb, side: int) -> arb:
        """Lower bound on how fast ``ln t`` falls outwards, at x and everywhere beyond it; ``side`` is -1 or 1.

        It is also a lower bound on ``fall(x') - |x' - x|`` there: beyond x the fall grows at least like the distance.
        """
        theta = ball(self.theta)
        edge_p = ball(self.p.high if side > 0 else self.p.low)
        if self.theta < 0:
            slope_q = ball(self.q.high if side > 0 else self.q.low)
        else:
            slope_q = self.q.slope(self.q.terms(), x)  # it increases with x: beyond x it only helps
        return side * (x - (1 + theta) * edge_p + theta * slope_q)

    def _fall_estimate(self, x: float, side: int) -> float:
        edge_p = float(self.p.high if side > 0 else self.p.low)
        if self.theta < 0:
            slope_q = float(self.q.high if side > 0 else self.q.low)
        else:
            slope_q = self.q.slope_estimate(x)
        return side * (x - (1.0 + self.tilt) * edge_p + self.tilt * slope_q)

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

    @cached_property
    def scale(self) -> float:
        """About the shortest length on which t changes (estimate)."""
        spread = max(float(self.p.spread), float(self.q.spread))
        bend = 1.0 + 0.25 * max(0.0, float(self.theta)) * float(self.q.spread) ** 2
        return min(1.0, 2.0 / spread if spread > 0 else 1.0) / math.sqrt(bend)

    # ------------------------------------------------------------------------------------------------------- estimates

    @cached_property
    def tilt(self) -> float:
        """``theta`` as a float."""
        return float(self.theta)

    def estimate(self, x: float) -> tuple[float, float]:
        """``ln t(x) + ln sqrt(2 pi)`` and the loss, in floats."""
        g, f = self.p.estimate(x), self.q.estimate(x)
        return -0.5 * x * x + g + self.tilt * (g - f), g - f

    @cached_property
    def peak(self) -> float:
        """About the largest value of ``ln t + ln sqrt(2 pi)``."""
        low, high = self.core
        count = math.ceil((high - low) / (0.5 * self.scale))
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

    def strip(self, target: float, reach: float) -> tuple[Fraction, Fraction]:
        """The strip ``low < Im x < high`` that allows about the longest step for errors of ``e^-target`` (estimate)."""
        widest = math.pi / max(float(self.p.spread), float(self.q.spread), 1e-9)
        widest = min(widest, 3.0 * math.sqrt(2.0 * target))
        left, right = self.extent(30.0)
        wild = math.sqrt(2.0 * reach * widest * float(self.p.spread + self.q.spread))
        step = max(0.8 * self.scale, (right - left + 2.0 * wild) / 160.0)
        count = math.ceil((right - left + 2.0 * wild) / step)
        points = [left - wild + i * step for i in range(count + 1)]
        heights = [self.estimate(x)[0] - self.peak for x in points]
        edges = [widest * share for share in (0.0, 0.04, 0.08, 0.15, 0.25, 0.37, 0.5, 0.63, 0.76, 0.88)]
        growth = {y: self._growth(y, reach, points, heights) for edge in edges for y in {edge, -edge}}
        low, high = max(
            ((-low, high) for low in edges for high in edges if low + high > 0.0),
            key=lambda e: (e[1] - e[0]) / (target + max(growth[e[0]], growth[e[1]]) + 0.125 * (e[1] + e[0]) ** 2),
        )
        if not reach:
            low = -high
        return Fraction(math.floor(low * 2.0**30), 2**30), Fraction(math.floor(high * 2.0**30), 2**30)

    def _growth(self, y: float, reach: float, points: list[float], heights: list[float]) -> float:
        """``ln`` of the largest modulus on the line ``Im x = y`` over that of t on the real line (estimate)."""
        offset, power, sign = y * float(self.p.low - self.q.low), max(0.0, self.tilt), math.copysign(1.0, y)
        most = -1e9
        for x, height in zip(points, heights, strict=True):
            if height + reach * abs(y) * float(self._cross) + power * 40.0 < most:
                continue
            _, phase_p = self.p.lifted_estimate(x, abs(y))
            ratio_q, phase_q = self.q.lifted_estimate(x, abs(y))
            turned = max(0.0, -reach * (offset + sign * (phase_p - phase_q)))
            most = max(most, height + turned - power * ratio_q)
        return most + 0.5 * y * y

    @cached_property
    def _cross(self) -> Fraction:
        """The largest rate at which the phases of p and q can part."""
        return max(self.p.high - self.q.low, self.q.high - self.p.low)

    # ------------------------------------------------------------------------------------------------------ enclosures

    def _cells(self, step: Fraction, first: int, last: int) -> list[_Cell]:
        """Bounds on the cells ``[k step, (k+1) step]``, at the working precision."""
        p, q, tilt, half = self.p.terms(), self.q.terms(), ball(self.theta), ball(step) / 2
        points = [ball(step * k) for k in range(first, last + 1)]
        d_p, d_q = [self.p.slope(p, x) for x in points], [self.q.slope(q, x) for x in points]
        cells = []
        for i in range(last - first):
            x = ball(step * (first + i)) + half
            slope_p, slope_q = d_p[i].union(d_p[i + 1]), d_q[i].union(d_q[i + 1])
            whole = points[i].union(points[i + 1])
            drift = (whole - (1 + tilt) * slope_p + tilt * slope_q).abs_upper() * half
            middle = -x * x / 2 + (1 + tilt) * self.p.value(p, x) - tilt * self.q.value(q, x)
            cells.append(_Cell(whole, middle - drift, middle + drift, slope_p - slope_q))
        return cells

    def lifted_cells(self, y: Fraction, reach: Fraction) -> LiftedCells:
        """Bounds on the integrand over cells of the line ``Im x = y``, for imaginary parts of z up to ``reach``."""
        rate = max(Fraction(0), -y * (self.p.low - self.q.high), -y * (self.p.high - self.q.low))  # of falling phase
        left, right = self.extent(60.0)
        wild = math.sqrt(2.0 * float(reach * rate) + 160.0)
        left, right = min(left, self.core[0] - wild), max(right, self.core[1] + wild)
        step = Fraction(math.ceil(max(0.3 * self.scale, (right - left) / 1000.0) * 1024.0), 1024)
        first, last = math.floor(left / step), math.ceil(right / step)
        with precision(_LOW_BITS):
            height, tilt = ball(abs(y)), ball(max(self.theta, Fraction(0)))
            p, q, offset = self.p.terms(), self.q.terms(), ball(y * (self.p.low - self.q.low))
            secant, slowest = (height * ball(self.q.spread) / 2).cos(), -ball(rate)
            constant = height * height / 2 - (2 * arb.pi()).log() / 2
            logs, phases = [], []
            for cell in self._cells(step, first, last):
                _, phase_p = self.p.lifted(p, cell.x, height)
                ratio_q, phase_q = self.q.lifted(q, cell.x, height)
                turn = phase_p - phase_q if y >= 0 else phase_q - phase_p
                phases.append((offset + turn).lower().max(slowest) if turn.is_finite() else slowest)
                shrunk = secant.max(ratio_q.lower()) if ratio_q.is_finite() else secant
                logs.append(cell.log_high - tilt * shrunk.log() + ball(step).log() + constant)
            for x, side in ((ball(first * step), -1), (ball(last * step), 1)):
                t = -x * x / 2 + (1 + ball(self.theta)) * self.p.value(p, x) - ball(self.theta) * self.q.value(q, x)
                logs.append(t - tilt * secant.log() - self.fall(x, side).log() + constant)
                phases.append(slowest)
            return LiftedCells(tuple(logs), tuple(phases))

    def layers(self, log_moment: arb) -> Layers:
        """Rectangles under the density ``t(x) / (M(theta) |L'(x)|)`` of the tilted loss."""
        step, first, last = self._bulk()
        with precision(_LOW_BITS):
            scale = (-log_moment).exp() / (2 * arb.pi()).sqrt()
            p, q = self.p.terms(), self.q.terms()
            points = [ball(step * k) for k in range(first, last + 1)]
            losses = [self.p.value(p, x) - self.q.value(q, x) for x in points]
            middle = losses[len(losses) // 2].mid()
            losses = [loss - middle for loss in losses]
            edges = [float(loss) for loss in losses]
            error = max(float(loss.rad()) + abs(edge) * 2.0**-52 for loss, edge in zip(losses, edges, strict=True))
            heights = []
            for cell in self._cells(step, first, last):
                if cell.speed.contains(0):
                    heights.append(0.0)
                else:
                    height = (cell.log_low.exp() * scale / cell.speed.abs_upper()).lower()
                    heights.append(max(0.0, float(height)) * (1.0 - 2.0**-50))
        return Layers.of(rectangles(edges, heights), error)

    def _bulk(self) -> tuple[Fraction, int, int]:
        """Step and indices of cells over all but a thousandth or so of the tilted mass."""
        left, right = self.extent(_DENSITY_CUTOFF + 3.0)
        step = 0.25 * self.scale
        points = [left + i * step for i in range(math.ceil((right - left) / step) + 1)]
        floor = self.peak - _DENSITY_CUTOFF
        inside = [x for x in points if self.estimate(x)[0] > floor]
        low, high = inside[0], inside[-1]
        cell = Fraction(max(1, math.floor((high - low) / _CELLS * 2**30)), 2**30)
        return cell, math.floor(low / cell), math.ceil(high / cell)


@final
@dataclass(frozen=True)
class LiftedCells:
    """On each cell the integrand is at most ``e^{log - s phase}`` over the cell's length, s = Im z."""

    logs: tuple[arb, ...]
    phases: tuple[arb, ...]

    def bound(self, low: arb, high: arb) -> arb:
        """Upper bound on the integral of the modulus over the line, for every s in ``[low, high]``."""
        with precision(_LOW_BITS):
            total = arb(0)
            for log, phase in zip(self.logs, self.phases, strict=True):
                total += (log - (low if phase >= 0 else high) * phase).exp()
            return total.upper()


@final
@dataclass(frozen=True)
class _Cell:
    """A cell of x: its ball, bounds on ``ln t + ln sqrt(2 pi)``, and an enclosure of the loss's derivative."""

    x: arb
    log_low: arb
    log_high: arb
    speed: arb
