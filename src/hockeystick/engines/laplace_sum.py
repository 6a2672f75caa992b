"""The curve of Laplace steps of any scales, alone or beside few discrete outcomes: a sum of polynomials.

Let m_j be the largest loss of a step, in nats, taken k_j times, K = sum k_j, and y = sum k_j m_j - eps. Then

    delta(eps) = 1 + 2 e^{-y/2} 2^-K sum_n prod_j binom(k_j, n_j) p_n((y - 2 sum_j n_j m_j) / 2),  n = sum_j n_j < K,

over all ``n_j = 0 .. k_j`` with a positive argument, p_n polynomials of degree below K, derived in
docs/derivations/laplace-sums.md. The terms cancel, so they are summed in decimal arithmetic of as many digits as it
takes. There every operation is correctly rounded, and the m_j, quotients of two floats, and epsilon are exact
fractions: the error is at most a small number of units in the last digit of 2^K. Discrete outcomes of loss l_i and
mass p_i beside them shift epsilon:

    delta(eps) = P(L = inf) + sum_i p_i h(eps - l_i),      h the curve above.

Guarantee: lower and upper are certified, rounding included. Cost: K products of some tens of digits for each term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, product
from typing import Self, final

import numpy as np

from hockeystick.engines.contour.root_bracket import Beginnings
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.enumeration.outcomes import Outcomes, number_of_outcomes, outcomes_of_all
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, TINY, U, down, downs, exps_down, exps_up, up, ups

_MOST_WORK = 1 << 14  # products for one epsilon: 5 ms, and 0.2 s for that of a delta
_SLOW = (80, 66.0)  # steps, or nats of all, from which on the contour answers epsilon to 1e-11, in 5 ms
_MOST_LOSS = 1e4  # nats
_SPARE = 20  # digits beyond those of a float
_DEPTHS = (12, 40, 120, 360)  # digits for small deltas, tried in turn
_SECANTS = 20  # at most: 1 to 9 do
_LEAST_SLOPE = 0.1  # of these logarithms: 1 next to the largest loss, and mostly more away from it
_CLOSE = 3e-3  # of the distance from the largest loss, that the last secant moves
_NEAREST = 0.1  # of the deviation, from the largest loss: where a normal loss would be larger
_LEAST_SPREAD = 3e-4  # of the distance


@final
class LaplaceSum:
    """Sides of the curve.

    Parameters
    ----------
    noise : tuple of (Fraction, int)
        The largest loss of each kind of Laplace step (nats), and how often it is taken.
    outcomes : Outcomes
        Of the steps beside them; of none, loss 0.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    """

    method, error = "closed form of Laplace steps", "rounding"
    step = 1e-12
    tells = is_joint = True

    def __init__(
        self, noise: tuple[tuple[Fraction, int], ...], outcomes: Outcomes, at_infinity: tuple[float, float]
    ) -> None:
        self._noise, self._at_infinity = _Noise(noise), at_infinity
        losses, off = outcomes.loss, outcomes.loss_error
        exact = not off.any()
        self._shifts = (losses, losses) if exact else (downs(losses - off), ups(losses + off))
        most = np.minimum(outcomes.log_p + outcomes.error, 0.0)
        self._masses = exps_down(outcomes.log_p - outcomes.error), exps_up(most)

    @classmethod
    def of(cls, parts: Sequence[tuple[Pair, int]]) -> Self | None:
        """The sides of a composition; None where it is not of this kind."""
        noise: dict[Fraction, int] = {}
        rest = []
        for pair, count in parts:
            loss = pair.laplace_loss
            if loss is None or not loss.has_atoms:
                rest.append((pair, count))
            else:
                noise[loss.largest] = noise.get(loss.largest, 0) + count
        steps, largest = sum(noise.values()), sum((loss * count for loss, count in noise.items()), Fraction(0))
        if not noise or largest > _MOST_LOSS or (steps > _SLOW[0] and largest > _SLOW[1]):
            return None
        work = steps * math.prod(count + 1 for count in noise.values())
        if work > _MOST_WORK or number_of_outcomes(rest, _MOST_WORK // work) is None:
            return None
        return cls(tuple(sorted(noise.items())), outcomes_of_all(tuple(rest)), composed_infinity(parts))

    def guesses(self, deltas: Array) -> Array:
        """The largest finite loss, or 0: from there on down epsilon is looked for."""
        return np.full(deltas.size, max(up(float(self._noise.largest)) + float(self._shifts[1].max()), 0.0))

    def beginnings(self, deltas: Array, guesses: Array) -> Beginnings:
        """By secants between the logarithms of delta's odds and of the distance from the largest loss, the guess."""
        at_zero = deltas >= self._noise.at_zero
        if at_zero.any():
            at_zero &= self._at_zero <= deltas
        asked = np.flatnonzero((deltas > self._at_infinity[1]) & (deltas >= 1e-300) & ~at_zero)
        pairs = zip(deltas[asked].tolist(), guesses[asked].tolist(), strict=True)
        found = np.array([self._beginning(*pair) for pair in pairs]).reshape(-1, 4)
        told = np.isfinite(found[:, 0])
        return Beginnings(at_zero, asked[told], *found[told].T)

    @cached_property
    def _at_zero(self) -> float:
        """The lower side of delta(0)."""
        return self._at(0.0)[0]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """About the mean of the loss, and its deviation."""
        losses, masses = self._shifts[1], self._masses[1]
        mean = float(losses @ masses)
        own, square = self._noise.moments
        return own + mean, math.sqrt(square + max(float(losses * losses @ masses) - mean * mean, TINY))

    def _beginning(self, delta: float, largest: float) -> tuple[float, float, float, float]:
        """About where delta is taken, its spread, the slope of its logarithm, the distance from the largest loss."""
        least = self._at_infinity[0]
        goal, gap = delta - least, math.inf
        odds = goal / (1.0 - delta)
        share = goal / max(math.ldexp(float(self._masses[0][self._shifts[1].argmax()]), -self._noise.steps), goal)
        low, high, slope = -math.inf, math.log(largest), 1.0
        if share < 1.0:  # the mass at the largest loss alone has delta = 1 - e^-distance of it
            at = high = min(math.log(-math.log1p(-share)), high)
        else:  # of a normal loss
            mean, deviation = self._moments
            from statistics import NormalDist  # slow to load, for what few answers need

            far = -NormalDist().inv_cdf(goal)
            at = min(math.log(max(largest - mean - far * deviation, _NEAREST * deviation)), high)
            slope = max(math.exp(at) * far / deviation, slope)
        before = at
        for _ in range(_SECANTS):
            found = self._at(largest - math.exp(at))[0]
            value = (found - least) / (1.0 - found) / odds
            if value <= 0.0:
                break
            last, gap = gap, math.log(value)
            slope = (gap - last) / (at - before) if at != before else slope
            # where little is left of one, it falls about as an exponential of the distance
            slope = max(slope, -0.5 * math.log1p(-found), _LEAST_SLOPE)
            move = gap / slope
            if abs(move) <= _CLOSE:
                distance = math.exp(at - move)
                spread, slope = max(0.2 * abs(move), _LEAST_SPREAD) * distance, slope * (1.0 - delta) / distance
                return largest - distance, spread, slope, distance
            low, high = (at, high) if gap < 0.0 else (low, at)
            before, at = at, at - move
            if not low < at < high:
                at = 0.5 * (low + high)
        return math.nan, math.nan, math.nan, math.nan

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        """Certified sides of delta."""
        found = np.array([self._at(epsilon) for epsilon in epsilons.tolist()])
        return found[:, 0], found[:, 1]

    def _at(self, epsilon: float) -> tuple[float, float]:
        at, (least, most) = Fraction(epsilon), self._at_infinity
        shifts = zip(*(side.tolist() for side in self._shifts), strict=True)
        own = [(self._noise.delta(at - Fraction(low)), low, high) for low, high in shifts]
        below = np.array([sides[0] for sides, _, _ in own])
        above = np.array(
            [sides[1] if low == high else self._noise.delta(at - Fraction(high))[1] for sides, low, high in own]
        )
        error, lost = (len(own) + 4) * U, SUBNORMAL * len(own)
        lower, upper = float((below * self._masses[0]).sum()), float((above * self._masses[1]).sum())
        if not above.any():  # not a sum that underflows
            return least, most
        return max(down(lower - lost + least, error), 0.0), min(up(upper + lost + most, error), 1.0)


@final
class _Noise:
    """Laplace steps alone."""

    def __init__(self, noise: tuple[tuple[Fraction, int], ...]) -> None:
        self._kinds = noise
        self.steps = sum(count for _, count in noise)
        self.largest = sum((loss * count for loss, count in noise), Fraction(0))
        choices = product(*(range(count + 1) for _, count in noise))
        self._terms = sorted(self._term(choice) for choice in choices if sum(choice) < self.steps)

    @cached_property
    def at_zero(self) -> float:
        """At most delta(0): what it is of the step of largest loss alone."""
        return max(down(-math.expm1(-0.5 * float(max(loss for loss, _ in self._kinds))), 4.0 * ELEMENTARY), 0.0)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """About the mean of the loss, and its variance."""
        mean = variance = 0.0
        for loss, count in self._kinds:  # the square is at least that of both ends
            m, rest = float(loss), math.exp(-float(loss))
            one = m + math.expm1(-m)
            square = max(m * m - 2.0 * m * (1.0 + rest) + 4.0 * (1.0 - rest), 0.5 * m * m * (1.0 + rest))
            mean += count * one
            variance += count * (square - one * one)
        return mean, variance

    def _term(self, choice: tuple[int, ...]) -> tuple[Fraction, int, int]:
        """How far a term begins below the largest loss; n; how often it is there."""
        reach = sum((2 * loss * n for (loss, _), n in zip(self._kinds, choice, strict=True)), Fraction(0))
        ways = math.prod(math.comb(count, n) for (_, count), n in zip(self._kinds, choice, strict=True))
        return reach, sum(choice), ways

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds on delta."""
        if epsilon >= self.largest:
            return 0.0, 0.0
        if epsilon <= -self.largest:
            most = -math.expm1(float(epsilon))
            return down(most, 2.0 * ELEMENTARY), min(up(most, 2.0 * ELEMENTARY), 1.0)
        for depth in _DEPTHS:
            lower, upper = self._sum(self.largest - epsilon, depth)
            if upper - lower <= 4.0 * U * lower:
                break
        return max(down(lower), 0.0), min(up(upper), 1.0)

    def _sum(self, y: Fraction, depth: int) -> tuple[float, float]:
        """Bounds but for a rounding, by sums of so many digits more than those that cancel and a float's."""
        # of a term 3 K roundings and a few more, of the sum one for each, of the exponential y / 2: each 2^K at most
        roundings = 4 * self.steps + len(self._terms) + math.ceil(y) + 40
        lost = math.ceil(math.log10(2.0) * self.steps + math.log10(roundings)) + 2
        with localcontext(_context(lost + _SPARE + depth)) as context:
            rows = _polynomials(self.steps, context.prec)
            total = sum((ways * _at(rows[n], (y - reach) / 2) for reach, n, ways in self._until(y)), Decimal(0))
            value = 1 + 2 * total * (-_decimal(y / 2)).exp() / 2**self.steps
            error = Decimal(10) ** -(_SPARE + depth)
            return float(value - error), float(value + error)

    def _until(self, y: Fraction) -> Iterator[tuple[Fraction, int, int]]:
        for term in self._terms:
            if term[0] >= y:
                return
            yield term


def _context(digits: int) -> Context:
    """That of the sums, whatever the caller's own is."""
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6, clamp=0, traps=traps)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _at(row: Sequence[Decimal], place: Fraction) -> Decimal:
    """A polynomial, highest power first."""
    x, total = _decimal(place), row[0]
    for coefficient in row[1:]:
        total = total * x + coefficient
    return total


@lru_cache(maxsize=8)
def _polynomials(steps: int, digits: int) -> tuple[tuple[Decimal, ...], ...]:
    """p_n for n = 0 .. K - 1, each rounded once, highest power first."""
    with localcontext(_context(digits)):
        return tuple(
            tuple(Decimal(c) / math.factorial(r) for r, c in reversed(tuple(enumerate(_coefficients(n, steps)))))
            for n in range(steps)
        )


def _coefficients(n: int, steps: int) -> list[int]:
    """r! times those of p_n, lowest power first: of ``w (1 - w)^{n-1} (1 + w)^{K-n-1}``, less ``2^{K-1} / (1 - w)``."""
    rising = [math.comb(steps - n - 1, i) for i in range(steps - n)]
    if n == 0:  # over 1 - w: running sums, whose end without end is 2^{K-1}
        return [total - 2 ** (steps - 1) for total in accumulate(rising, initial=0)]
    row = [0] * steps
    for (i, a), j in product(enumerate(rising), range(n)):
        row[i + j + 1] += (-1) ** j * math.comb(n - 1, j) * a
    return row
