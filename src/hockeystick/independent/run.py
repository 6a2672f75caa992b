"""The curve of a run in one direction, enclosed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from flint import acb, arb, arb_poly, ctx

from hockeystick.independent.atoms import MOST_DEGREE, Atoms
from hockeystick.independent.balls import UnreachedError, normal_tail, precision, real
from hockeystick.independent.laplace import laplace_delta
from hockeystick.independent.laws import Laplace, Law, Mixture
from hockeystick.independent.steps import SampledStep

_MOST_NODES = 1200
_MOST_OUTCOMES = 60_000
_MOST_TERMS = 1_000_000
_TILTS = tuple(Fraction(round(2 ** (12 + k / 4)), 2**12) for k in range(-36, 92))


class Run:
    """The curve of a composition in one direction."""

    def __init__(self, steps: Sequence[SampledStep]) -> None:
        merged: dict[SampledStep, int] = {}
        for step in steps:
            key = replace(step, count=1)
            merged[key] = merged.get(key, 0) + step.count
        self.steps = tuple(replace(step, count=n) for step, n in merged.items())
        self.count = sum(step.count for step in self.steps)
        self._laws = lru_cache(8)(self._built)
        self._moment = lru_cache(1 << 16)(self._product)
        self._outcomes = lru_cache(4)(self._convolved)
        self._sizes = lru_cache(4096)(self._moduli)
        self._beyond = lru_cache(4096)(self._bound)

    def _built(self, bits: int) -> list[tuple[Law, int]]:
        if ctx.prec != bits:
            raise ValueError(f"laws of {bits} bits were asked for at {ctx.prec}")
        return [(step.law(), step.count) for step in self.steps]

    def laws(self) -> list[tuple[Law, int]]:
        """The laws at the working precision, with their counts."""
        return self._laws(ctx.prec)

    def infinite(self) -> Any:
        """The mass at loss infinity."""
        masses = [(law.infinite, n) for law, n in self.laws() if law.infinite != 0]
        if sum(n for _, n in masses) <= 64 and all(isinstance(mass, Fraction) for mass, _ in masses):
            return 1 - math.prod(((1 - mass) ** n for mass, n in masses), start=Fraction(1))
        logs = (n * (-real(mass)).log1p() if mass != 1 else real(0).neg_inf() for mass, n in masses)
        return -sum(logs, real(0)).expm1()

    def limit(self) -> Any:
        """The supremum of the finite losses; None where it is infinite."""
        limits = [(law.limit, n) for law, n in self.laws()]
        if any(limit is None for limit, _ in limits):
            return None
        if all(isinstance(limit, Fraction | int) for limit, _ in limits):
            return sum((limit * n for limit, n in limits), Fraction(0))
        return sum((real(limit) * n for limit, n in limits), real(0))

    def delta(self, epsilon: Fraction, goal: int, hint: float) -> tuple[Any, Any]:
        """Enclosures of delta without and of the mass at infinity; hint: about ln delta, for the precision.

        An exact 0 for the first where no finite loss exceeds epsilon.
        """
        with precision(goal + 34 + self.count.bit_length() + math.ceil(float(abs(epsilon))).bit_length()):
            limit = self.limit()
            at = epsilon if isinstance(limit, Fraction) else real(epsilon)
            if limit is not None and at >= limit:
                return arb(0), self.infinite()
            deep = ctx.prec + math.ceil(max(0.0, -hint) / math.log(2.0)) + 20
            exact = [(way, deep) for way in (self._gaussian, self._single, self._listed)]
            for way, bits in (*exact, (self._contour, ctx.prec)):
                ctx.prec = bits
                try:
                    found = way(epsilon, goal)
                except (OverflowError, ValueError):
                    raise UnreachedError("its plan is beyond the range of float64") from None
                if found is not None and found.is_finite():
                    ctx.prec = deep
                    return found, self.infinite()
            raise UnreachedError("no enclosure of the transform was found")

    def _gaussian(self, epsilon: Fraction, goal: int) -> Any:
        """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), mu^2 the sum of the squared shifts."""
        shifts = [(law.shift, n) for law, n in self.laws() if isinstance(law, Mixture) and law.shift is not None]
        if len(shifts) < len(self.steps):
            return None
        mu = real(sum((n * shift**2 for shift, n in shifts), Fraction(0))).sqrt()
        e = real(epsilon)
        return normal_tail(e / mu - mu / 2) - e.exp() * normal_tail(e / mu + mu / 2)

    def _single(self, epsilon: Fraction, goal: int) -> Any:
        return self.laws()[0][0].one_step(real(epsilon)) if self.count == 1 else None

    # ------------------------------------------------------------------------------------------------- discrete steps

    def _listed(self, epsilon: Fraction, goal: int) -> Any:
        """Discrete steps outcome by outcome, alone or beside Laplace noise."""
        noise = [(law.shift, n) for law, n in self.laws() if isinstance(law, Laplace) and law.is_plain]
        atoms = [law for law, _ in self.laws() if isinstance(law, Atoms)]
        found = self._outcomes(ctx.prec) if len(noise) + len(atoms) == len(self.steps) else None
        terms = math.prod(n + 1 for _, n in noise) * (sum(n for _, n in noise) + 1)
        if found is None or (noise and terms * len(found) > _MOST_TERMS):
            return None
        total, e = arb(0), real(epsilon)
        for p, loss in found:
            over = loss - epsilon if isinstance(loss, Fraction) else loss - e
            if noise:
                total += p * laplace_delta(noise, -real(over))
            elif not over <= 0:
                term = -p * (-real(over)).expm1()
                total += term if over > 0 else term.max(arb(0))
        missing = sum((real(law.missing) * n for law, n in self.laws() if isinstance(law, Atoms)), arb(0))
        return total + arb(0, missing.upper())

    def _convolved(self, bits: int) -> list[tuple[Any, Any]] | None:
        """All outcomes of the discrete steps with their losses; None where there are too many."""
        laws = [(law, n) for law, n in self._laws(bits) if isinstance(law, Atoms)]
        parts: list[list[tuple[Any, Any]]] = []
        lattices: dict[Any, list[tuple[Atoms, list[int], int]]] = {}
        for law, n in laws:
            if law.indices is not None:
                key = law.unit if isinstance(law.unit, Fraction) else id(law)
                lattices.setdefault(key, []).append((law, law.indices, n))
            elif math.comb(n + len(law.atoms) - 1, n) > _MOST_OUTCOMES:
                return None
            else:
                parts.append(list(_multinomial(law.atoms, n)))
        for group in lattices.values():
            if sum(n * (max(indices) - min(indices)) for _, indices, n in group if indices) > MOST_DEGREE:
                return None
            parts.append(_powers(group))
        nothing: list[tuple[Any, Any]] = [(arb(1), Fraction(0))]
        if math.prod(map(len, parts)) > 8 * _MOST_OUTCOMES:
            return None
        return reduce(lambda a, b: [(p * q, _sum(x, y)) for p, x in a for q, y in b], parts, nothing)

    # -------------------------------------------------------------------------------------------------------- contour

    def _product(self, theta: Fraction, step: Fraction, m: int, bits: int) -> Any:
        """M at theta + i m step."""
        total = acb(1)
        sizes = self._sizes(theta, bits) if m else [1] * len(self.steps)
        for (law, n), size in zip(self.laws(), sizes, strict=True):
            total *= law.moment(acb(real(theta), real(step * m)), size) ** n
        return total

    def _moduli(self, theta: Fraction, bits: int) -> list[Any]:
        """The steps' moments at a real point."""
        return [abs(law.moment(acb(real(theta)))) for law, _ in self._laws(bits)]

    def _log_moment(self, theta: Fraction) -> Any:
        """ln M(theta), to a few digits."""
        with precision(40):
            sizes = self._sizes(theta, 40)
            return sum((n * x.log() for x, (_, n) in zip(sizes, self.laws(), strict=True)), real(0))

    def _plan(self, epsilon: Fraction, goal: int) -> tuple[Fraction, Fraction, Fraction, float]:
        """Tilt, step, the tilt of Chernoff's bound, ln of the error asked for: estimates, which prove nothing."""

        @lru_cache(None)
        def height(i: int) -> float:
            t = _TILTS[i]
            value = self._log_moment(t)
            return float(value) - float(t * epsilon) if value.is_finite() else math.inf

        def peak(i: int) -> float:
            return height(i) - math.log(_TILTS[i] * (1 + _TILTS[i]))

        i = 36
        while i + 1 < len(_TILTS) and peak(i + 1) < peak(i):
            i += 1
        while i > 0 and peak(i - 1) <= peak(i):
            i -= 1
        theta = _TILTS[i]
        error = min(peak(i), 0.0) - goal * math.log(2.0) - 3.0
        limit = self.limit()
        reach = math.inf if limit is None else float(real(limit)) - float(epsilon) + 1e-9
        right, tilt = reach, _TILTS[min(i + 1, len(_TILTS) - 1)]
        for j in range(i + 1, min(i + 28, len(_TILTS))):
            if height(j) == math.inf:
                break
            needed = (height(j) - error) / float(_TILTS[j] - theta)
            if needed > 1.2 * right:
                break
            if needed < right:
                right, tilt = needed, _TILTS[j]
        if right == math.inf:
            raise UnreachedError("no tilt that was tried bounds the copies of the curve")
        period = max(-error / float(theta), right)
        k = math.floor(8 * math.log2(2 * math.pi / period))
        step = Fraction(round(2 ** (k % 8 / 8) * 2**20), 2**20) * Fraction(2) ** (k // 8)  # shared by near epsilons
        return theta, step, tilt, error

    def _bound(self, theta: Fraction, s: Fraction) -> Any:
        """At least |M(theta + it)| for all t >= s."""
        return math.prod((law.tail(theta, real(s)) ** n for law, n in self.laws()), start=real(1))

    def _nodes(self, theta: Fraction, step: Fraction, epsilon: Fraction, error: float) -> tuple[int, Any]:
        best, k, n = None, math.floor(3 * math.log2(4 * float(step))), 0
        with precision(64):
            while n <= _MOST_NODES:
                s = Fraction(round(2 ** (k % 3 / 3) * 2**10), 2**10) * Fraction(2) ** (k // 3)  # near epsilons share it
                n = math.ceil(s / step)
                beyond = self._beyond(theta, s) * (real(theta) / real(s)).atan() / (arb.pi() * real(theta))
                beyond *= (-real(theta * epsilon)).exp()
                if beyond.is_finite():
                    best = n, beyond.upper()
                    if beyond == 0 or float(beyond.log()) < error:
                        break
                k += 1
        if best is None:
            raise UnreachedError("the transform has no bound beyond the last node")
        return best

    def _contour(self, epsilon: Fraction, goal: int) -> Any:
        theta, step, tilt, error = self._plan(epsilon, goal)
        nodes, beyond = self._nodes(theta, step, epsilon, error)
        e, t, h = real(epsilon), real(theta), real(step)
        total = arb(0)
        for m in range(nodes + 1):
            z = acb(t, h * m)
            term = (self._moment(theta, step, m, ctx.prec) * (-z * e).exp() / (z * (1 + z))).real
            total += term / 2 if m == 0 else term
        total *= h / arb.pi()
        period, x = 2 * arb.pi() / h, real(tilt)
        aliased = 1 / (t * period).expm1()
        limit = self.limit()
        if limit is None or not e + period > real(limit):
            ratio = (-(x - t) * period).exp()
            chernoff = self._log_moment(tilt) + x * x.log() - (1 + x) * (1 + x).log() - x * e
            aliased += chernoff.exp() * ratio / (1 - ratio)
        return total + arb(0, beyond) - arb(0).union(aliased)


def _sum(x: Any, y: Any) -> Any:
    return x + y if isinstance(x, Fraction) == isinstance(y, Fraction) else real(x) + real(y)


def _multinomial(atoms: list[tuple[Any, Any]], n: int) -> Iterator[tuple[Any, Any]]:
    """Outcomes of n steps: every way to share n among the atoms, with its mass and its loss."""
    (p, loss), *others = atoms
    if n == 1 or not others:
        yield from ((q**n, loss * n) for q, loss in atoms)
        return
    for k in range(n + 1):
        own, gained = p**k * math.comb(n, k), loss * k
        for mass, rest in _multinomial(others, n - k):
            yield own * mass, _sum(gained, rest)


def _powers(group: list[tuple[Atoms, list[int], int]]) -> list[tuple[Any, Any]]:
    """Outcomes of steps whose losses are multiples of one unit: the coefficients of a product of polynomials."""
    total, start, unit = arb_poly([1]), 0, group[0][0].unit
    for law, indices, n in group:
        low = min(indices, default=0)
        row = [arb(0)] * (max(indices, default=0) - low + 1)
        for (p, _), k in zip(law.atoms, indices, strict=True):
            row[k - low] += p
        total *= arb_poly(row) ** n
        start += low * n
    return [(p, (start + j) * unit) for j, p in enumerate(total.coeffs()) if not p.is_zero()]
