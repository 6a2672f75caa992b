"""Gaussian mixtures of one width: M(z) by the trapezoidal rule, every error enclosed.

In units of sigma, ``P = sum_k w_k N(c_k, 1)``, ``Q = sum_k v_k N(d_k, 1)``, N the standard density,

    M(z) = integral of N(x) p(x)^{1+z} q(x)^{-z} dx,    p(x) = sum_k w_k e^{c_k x - c_k^2/2},    q likewise.

Poisson subsampling of the Gaussian, both directions, and group and substitution pairs are all of this form. The
integrand is analytic for ``|Im x| < pi / max(spreads)``; on the strip of half-width a the rule with step eta errs by at
most ``2 B / (e^{2 pi a / eta} - 1)``, B a bound on the integral of the modulus over either edge. The terms left out
beyond either end are below a geometric series. Proofs: docs/derivations/exact.md, section 3.

Cost: 100 to 300 nodes in x; a point of the line costs one complex product for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

from flint import acb, arb

from hockeystick.exact.balls import LOW_BITS, ball, precision, working_bits
from hockeystick.exact.integrand import Integrand, LiftedCells
from hockeystick.exact.layers import Layers
from hockeystick.exact.logsum import LogSum
from hockeystick.exact.transform import POWERS, Decay, Line, Sketch, Transform, turned

_FAR = 30.0  # in standard deviations of the loss: where shifted lines begin to be the better bound


@final
@dataclass(frozen=True)
class _Rule:
    """A trapezoidal rule on the line ``Im x = height``: nodes ``k step + i height``, first <= k <= last.

    ``error`` bounds what it and the terms left out beyond both ends are off by.
    """

    step: Fraction
    height: Fraction
    first: int
    last: int
    error: arb


@final
@dataclass(frozen=True)
class MixtureTransform(Transform):
    """``M(z)`` of two Gaussian mixtures given by ``p`` and ``q``, centres in units of sigma."""

    p: LogSum
    q: LogSum

    @cached_property
    def direction(self) -> int:
        """1 where the loss increases with x, -1 where it decreases: a pair's loss does one of the two."""
        low, high = min(self.p.low, self.q.low), max(self.p.high, self.q.high)
        rising = self.p.weight_at(high) * self.q.weight_at(low) - self.p.weight_at(low) * self.q.weight_at(high)
        return 1 if rising > 0 else -1

    def loss_limit(self) -> arb | None:
        """The supremum of the loss, the ratio of the outermost weights where the outermost centres agree."""
        return _outer_ratio(self.p, self.q, upper=self.direction > 0)

    def reversed_loss_limit(self) -> arb | None:
        """The supremum of the negative of the loss."""
        return _outer_ratio(self.q, self.p, upper=self.direction < 0)

    @lru_cache(maxsize=32)  # noqa: B019 - frozen and hashable; rules, sketches and bounds ask for the same few
    def _integrand(self, theta: Fraction) -> Integrand:
        return Integrand(self.p, self.q, theta)

    @lru_cache(maxsize=1024)  # noqa: B019 - frozen and hashable; the same sketch is asked for again and again
    def sketch(self, theta: float) -> Sketch:
        """Estimates at one tilt."""
        integrand = self._integrand(Fraction(theta))
        left, right = integrand.extent(40.0)
        step = 0.35 * integrand.scale
        points = [integrand.estimate(left + i * step) for i in range(math.ceil((right - left) / step) + 1)]
        return Sketch.of(points, step / math.sqrt(2.0 * math.pi))

    def _rule(self, integrand: Integrand, reach: Fraction) -> _Rule:
        """A rule whose errors are about an ulp of ``M(theta)`` at the working precision, for ``0 <= Im z <= reach``."""
        target = working_bits() * math.log(2.0) + 4.0
        low, high = integrand.strip(target, float(reach))
        height, width = (low + high) / 2, (high - low) / 2
        edges = (low, high) if reach else (high,)  # at s = 0 both sides are alike
        modulus = sum((integrand.lifted_cells(y, reach).bound(arb(0), ball(reach)) for y in edges), arb(0))
        modulus *= 2 // len(edges)
        with precision(LOW_BITS):
            growth = float(modulus.log()) - self.sketch(integrand.tilt).log_moment
        longest = 2.0 * math.pi * float(width) / (target + max(0.0, growth))
        scale = Fraction(2) ** (math.floor(math.log2(longest)) - 12)
        step = math.floor(Fraction(longest) / scale) * scale
        left, right = integrand.extent(target + 8.0 + max(0.0, growth))
        first, last = math.floor(left / step), math.ceil(right / step)
        rest = integrand.left_out(height, reach, (first * step, last * step), step).bound(arb(0), ball(reach))
        with precision(LOW_BITS):
            error = modulus / ((2 * arb.pi() * ball(width) / ball(step)).exp() - 1) + rest
            return _Rule(step, height, first, last, error.upper())

    def _points(self, theta: Fraction, rule: _Rule) -> tuple[list[acb], list[acb]]:
        """Terms of the rule for ``M(theta)``, and i times the losses, at its nodes."""
        p, q, tilt = self.p.terms(), self.q.terms(), ball(theta)
        weight = ball(rule.step) / (2 * arb.pi()).sqrt()
        values, losses = [], []
        for k in range(rule.first, rule.last + 1):
            x = acb(ball(k * rule.step), ball(rule.height))
            g = self.p.value_at(p, x)
            loss = g - self.q.value_at(q, x)
            losses.append(acb(-loss.imag, loss.real))
            values.append((g + loss * tilt - x * x / 2).exp() * weight)
        return values, losses

    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)`` at the points of a line."""
        rule = self._rule(self._integrand(line.theta), line.reach)
        blur = acb(arb(0, rule.error), arb(0, rule.error))
        with precision(working_bits() + math.ceil(0.75 * float(rule.height) ** 2) + (POWERS if line.nodes else 0)):
            values, losses = self._points(line.theta, rule)
            first = acb((sum(values, acb(0)) + blur).real)  # M is real on the real line
            return [first, *(one + blur for one in turned(values, losses, line))]

    def decay(self, theta: Fraction) -> Decay:
        """Rectangles under the density of the tilted loss, and shifted lines where s is large."""
        integrand, log_moment = self._integrand(theta), self.log_moment(theta)
        variance = self.sketch(float(theta)).variance
        reach = _FAR / math.sqrt(variance) if variance > 0.0 else math.inf
        return MixtureDecay(integrand, log_moment, integrand.layers(log_moment), reach)


def _outer_ratio(over: LogSum, under: LogSum, *, upper: bool) -> arb | None:
    """``ln`` of the ratio of the weights of the highest (lowest) centres, None where these differ."""
    i = -1 if upper else 0  # centres are increasing
    if over.centres[i] != under.centres[i]:
        return None
    return ball(over.weights[i] / under.weights[i]).log()


@final
@dataclass(frozen=True)
class MixtureDecay(Decay):
    """The smaller of two bounds on ``|phi|``: rectangles everywhere, shifted lines beyond ``far``.

    Where the phase of ``p/q`` on a line ``Im x = y`` is nowhere negative, the modulus of the integrand falls with s, so
    its integral over that line, an upper bound on ``|M(theta + i s)|``, is monotone.
    """

    integrand: Integrand
    log_moment: arb
    layers: Layers
    far: float

    @cached_property
    def _lines(self) -> tuple[LiftedCells, ...]:
        p, q = self.integrand.p, self.integrand.q
        sign = 1 if p.low >= q.high else -1 if p.high <= q.low else 0
        widest = math.pi / float(max(p.spread, q.spread, Fraction(1, 10)))
        heights = {min(widest * share, 12.0) for share in (0.1, 0.25, 0.5, 0.8)} if sign else set()
        return tuple(self.integrand.lifted_cells(sign * Fraction(y), Fraction(0)) for y in sorted(heights))

    def bound(self, s: arb) -> arb:
        """At least ``|phi(t)|`` for all ``t >= s``."""
        best = self.layers.bound(s)
        if s > self.far:
            with precision(LOW_BITS):
                scale = (-self.log_moment).exp()
                for line in self._lines:
                    other = line.bound(s, arb.pos_inf()) * scale
                    best = best.min(other) if other.is_finite() else best
        return best.upper()
