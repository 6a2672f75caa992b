"""Compositions of plain Laplace pairs, and discrete ones, in closed form: residues, summed exactly.

With m_j = sensitivity / scale, ``zeta = z + 1/2`` and T = sum_j T_j, the transform is a sum of exponentials,

    M(z) = C sum_k prod_j binom(T_j, k_j) e^{zeta X_k} (1 + 1/(2 zeta))^n (1 - 1/(2 zeta))^{T - n},
    C = 2^-T e^{-sum_j m_j T_j / 2},   X_k = sum_j m_j (2 k_j - T_j),   0 <= k_j <= T_j,   n = sum_j k_j,

so the terms with ``x = X_k - eps <= 0`` add nothing to the inversion integral, and each other one its residues at
``zeta = 0`` and, at either end of n, ``zeta = 1/2`` or ``-1/2``:

    R_n(x) = [zeta^{T-1}] (e^{zeta x} G_n(2 zeta)) + 2^T (e^{x/2} [n = T] - e^{-x/2} [n = 0]),
    G_n(u) = -4 * 2^-T (1 + u)^n (u - 1)^{T-n} / (1 - u^2),
    delta = C e^{eps/2} sum_k prod_j binom(T_j, k_j) R_n(x).

R_n is a polynomial of degree T - 1 but for that last term (docs/derivations/exact.md, section 6). Discrete pairs shift
epsilon, outcome by outcome.

Guarantee: an enclosure. Cost: T operations for each k, at a precision of about T / 4 bits more than asked for.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import final

from flint import arb, arb_poly, fmpz_poly

from hockeystick.exact.atomic import AtomicTransform, finite_outcomes
from hockeystick.exact.balls import ball, precision, working_bits
from hockeystick.exact.composite import Composite
from hockeystick.exact.curve import CompositeCurve
from hockeystick.exact.laplace import LaplaceTransform


def laplace_size(composite: Composite) -> float:
    """Number of operations of the closed form; infinite where a part is neither plain Laplace nor discrete."""
    steps, terms, kinds = 0, 1, 1
    for part, count in composite.parts:
        if isinstance(part, LaplaceTransform) and part.is_plain:
            steps += count
            terms *= count + 1
        elif isinstance(part, AtomicTransform):
            kinds *= part.kinds**count if count * math.log(max(2, part.kinds)) < 30 else 10**12
        else:
            return math.inf
    return float(terms * steps * kinds) if steps else math.inf


@lru_cache(maxsize=512)
def _series(n: int, steps: int) -> tuple[int, ...]:
    """Coefficients of ``2^T G_n(u) / 4`` up to ``u^{T-1}``: integers."""
    up, down = fmpz_poly([1, 1]), fmpz_poly([-1, 1])
    if 0 < n < steps:
        coefficients = list(up ** (n - 1) * down ** (steps - n - 1))
        return tuple(int(c) for c in coefficients) + (0,) * (steps - len(coefficients))
    sign = 1 if n else -1  # over 1 - u, or over 1 + u
    total, result = 0, []
    for c in list((up if n else down) ** (steps - 1)):
        total = int(c) + sign * total
        result.append(-sign * total)
    return tuple(result)


@lru_cache(maxsize=512)
def _polynomial(n: int, steps: int, bits: int) -> arb_poly:
    """``2^T [zeta^{T-1}] (e^{zeta x} G_n(2 zeta)) / 4`` as a polynomial in x."""
    with precision(bits):
        series, factorial, coefficients = _series(n, steps), arb(1), []
        for power in range(steps):
            factorial *= max(1, power)
            i = steps - 1 - power
            coefficients.append(arb(series[i]) * arb(2) ** i / factorial)
        return arb_poly(coefficients)


class OfLaplace(CompositeCurve):
    """Laplace noise and discrete pairs, which shift epsilon, outcome by outcome."""

    def __init__(self, composite: Composite) -> None:
        super().__init__(composite)
        self.noise = [(part, count) for part, count in composite.parts if isinstance(part, LaplaceTransform)]
        self._atomic = [(part, count) for part, count in composite.parts if isinstance(part, AtomicTransform)]

    @abstractmethod
    def of_noise(self, epsilon: arb) -> arb:
        """The Laplace pairs' own delta."""

    def formula(self, epsilon: arb) -> arb:
        """Delta at the working precision."""
        shifted = (mass * self.of_noise(epsilon - loss) for loss, mass in finite_outcomes(self._atomic))
        return sum(shifted, self.composite.infinite())


@final
class LaplaceCurve(OfLaplace):
    """The curve of plain Laplace pairs composed with each other and with discrete pairs."""

    def __init__(self, composite: Composite) -> None:
        super().__init__(composite)
        self._laplace = [(part.m, count) for part, count in self.noise]
        self._steps = sum(count for _, count in self._laplace)

    @property
    def spare_bits(self) -> int:
        """The terms cancel to about this depth."""
        return 32 + self._steps // 4

    def of_noise(self, epsilon: arb) -> arb:
        """The Laplace pairs' own delta."""
        limit = ball(sum((m * count for m, count in self._laplace), Fraction(0)))
        if epsilon >= limit:
            return arb(0)
        if epsilon <= -limit:
            return 1 - epsilon.exp()
        total = arb(0)
        for choice in product(*(range(count + 1) for _, count in self._laplace)):
            weight = math.prod(math.comb(count, k) for (_, count), k in zip(self._laplace, choice, strict=True))
            reach = sum((m * (2 * k - count) for (m, count), k in zip(self._laplace, choice, strict=True)), Fraction(0))
            x = ball(reach) - epsilon
            if not x <= 0:
                term = weight * self._residue(sum(choice), x)
                total += term if x > 0 else term.union(arb(0))
        return total * ((epsilon - limit) / 2).exp() / arb(2) ** self._steps

    def _residue(self, n: int, x: arb) -> arb:
        """``R_n(x)``."""
        steps, bits = self._steps, working_bits()
        value = _polynomial(n, steps, bits)(x) * arb(2) ** (2 - steps)
        if n == steps:
            value += arb(2) ** steps * (x / 2).exp()
        if n == 0:
            value -= arb(2) ** steps * (-x / 2).exp()
        return value
