"""Laplace steps without sampling, of any scales, and discrete ones beside them: one sum of polynomials.

With S integration from below and x_j a shift by 2 m_j, the losses of a step, measured downwards from the largest one,
have the law ``e^{l/2} e^{-m/2} / 2`` times ``(1 + S/2) + x_j (1 - S/2)`` of a point mass at 0. With w = S/2, sinh(y/2)
above 0 is ``2 w^2 / (1 - w^2)`` of it, and ``w^r`` of it is ``(y/2)^{r-1} / (2 (r-1)!)``. With y the largest loss less
epsilon

    delta = 2 e^{-y/2} 2^-K sum_n prod_j binom(k_j, n_j) [w^2 (1 - w)^{n-1} (1 + w)^{K-n-1}](y - 2 sum_j n_j m_j),

K = sum k_j, n = sum n_j, over the terms whose argument is above 0. For n = 0 and n = K the series does not end: from
``w^{K+1}`` on its coefficients are those of ``2^{K-1} / (1 - w)`` and ``2^{K-1} / (1 + w)``, exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from flint import arb, arb_poly, ctx, fmpz_poly

from hockeystick.independent.balls import precision, real


def laplace_delta(noise: Sequence[tuple[Fraction, int]], epsilon: Any) -> Any:
    """Delta of steps of largest losses m_j, each taken k_j times."""
    steps, limit = sum(k for _, k in noise), sum((m * k for m, k in noise), Fraction(0))
    with precision(ctx.prec + 3 * steps + 2 * math.ceil(limit)):  # terms cancel
        y, total = real(limit) - epsilon, arb(0)
        if y <= 0:
            return arb(0)
        for choice in product(*(range(k + 1) for _, k in noise)):
            left = y - real(2 * sum((m * n for (m, _), n in zip(noise, choice, strict=True)), Fraction(0)))
            if not left <= 0:
                ways = math.prod(math.comb(k, n) for (_, k), n in zip(noise, choice, strict=True))
                term = ways * _term(sum(choice), steps, left / 2)
                total += term if left > 0 else term.union(arb(0))
        return 2 * total * (-y / 2).exp() / arb(2) ** steps


def _term(n: int, steps: int, half: Any) -> Any:
    value = _polynomial(n, steps, ctx.prec)(half)
    if n == 0:
        value += arb(2) ** (steps - 1) * half.exp()
    if n == steps:
        value -= arb(2) ** (steps - 1) * (-half).exp()
    return value


@lru_cache(maxsize=512)
def _polynomial(n: int, steps: int, bits: int) -> arb_poly:
    """The part that ends, as a polynomial in half the argument."""
    up, down = fmpz_poly([1, 1]), fmpz_poly([1, -1])
    if 0 < n < steps:
        row = [0, *map(int, down ** (n - 1) * up ** (steps - n - 1))]
    else:
        sign, total, endless = (1 if n == 0 else -1), 0, 2 ** (steps - 1)
        row = [-sign * endless]
        for r, c in enumerate(map(int, (up if n == 0 else down) ** (steps - 1)), start=2):
            total = sign * total + c
            row.append(total - sign**r * endless)
    with precision(bits):
        return arb_poly([arb(c) / math.factorial(r) for r, c in enumerate(row)])
