"""The curve of a composition of rarely large losses: what the largest add in closed form, and a line for the rest.

With ``A`` the transform of a step below the lower cut and ``B`` of one between the cuts, the line sums

    D(z) = (A(z) + B(z))^T - A(z)^T,

the transform of the runs in which no step is above the upper cut and some step is above the lower one. It falls as B
does, however slowly A falls.

Guarantee: both sides certified, rounding included (`docs/derivations/rare-losses.md`). Cost: a complex product for each
node in the loss and each frequency.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.planned import few_bit_steps
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.engines.rare.excess import least_excess, log_excess
from hockeystick.engines.rare.losses import RISEN, Array, RareLosses, raised
from hockeystick.engines.rare.pieces import Piece
from hockeystick.engines.rare.plan import RarePlan, plan
from hockeystick.numerics.rounding import U

__all__ = ["RareLine", "difference", "pieces_of", "rare_line", "transform"]

Complex = NDArray[np.complex128]

MOST_FREQUENCIES = 1 << 14
MOST_WORK = 60_000_000
"""Products of frequencies and nodes that a line may take: about a fifth of a second."""

_GAP = 1.0  # from one cut to the next, in the base loss
_LEAST_ANGLE = 2.0  # of the largest frequency, below which losses share a piece
_CHUNK = 64
_SMALL = 50_000  # complex products of one matrix product: below that no linear algebra library starts threads
_POINTS = 64  # at which the curve is looked at, to find an epsilon
_LEAST = 1e-280  # covers what falls below the range of float64
_MOST_EXPONENT = 600.0


@final
@dataclass(frozen=True, eq=False)
class RareLine:
    """A line for one epsilon, which brackets delta wherever it is asked.

    Attributes
    ----------
    losses : RareLosses
        The law.
    found : RarePlan
        Where the cuts lie.
    small, large : tuple of Piece
        Below the lower cut, and between both.
    step : float
        h, of 21 bits.
    frequencies : int
        M.
    power : float
        Of the bound on the excess.
    planned : float
        The epsilon.
    """

    losses: RareLosses
    found: RarePlan
    small: tuple[Piece, ...]
    large: tuple[Piece, ...]
    step: float
    frequencies: int
    power: float
    planned: float

    def bracket(self, epsilon: Array) -> LogBracket:
        """``ln`` of the sides of delta, of the shape of epsilon."""
        lower, upper = self.sides(epsilon.ravel())
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(lower, 0.0)), np.log(np.maximum(upper, 0.0))
        low, high = (log.reshape(epsilon.shape) for log in logs)
        return LogBracket(low - _log_error(low), high + _log_error(high))

    def epsilon(self, log_delta: float) -> float:
        """About the epsilon of a delta, within a factor of 2.5."""
        near = self.planned
        for span in (2.5, 1.04):
            points = near * np.geomspace(1.0 / span, span, _POINTS)
            with np.errstate(over="ignore", invalid="ignore"):
                logs = np.log(np.maximum(self._sum(points)[0] + self._largest(points)[0], _LEAST))
            near = float(np.interp(-log_delta, -np.minimum.accumulate(logs), points))
        return near

    def sides(self, epsilon: Array) -> tuple[Array, Array]:
        """Certified sides of delta, shape (E,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = self._sides(epsilon)
        held = self.found.tilt * epsilon < _MOST_EXPONENT  # beyond, factors of what is small would be 0
        return (
            np.where(held & np.isfinite(lower), lower, -np.inf),
            np.where(held & np.isfinite(upper), upper, np.inf),
        )

    def _sides(self, epsilon: Array) -> tuple[Array, Array]:
        value, error = self._sum(epsilon)
        least, most = self._largest(epsilon)
        right, left = self._aliasing(epsilon)
        rest = self._excess(epsilon) + self._smallest(epsilon) + self._lost
        beyond = self._beyond * np.exp(-self.found.tilt * epsilon) * RISEN
        slack = 8.0 * U * (np.abs(value) + np.abs(least) + np.abs(most))
        lower = least + value - (error + beyond + right + left) * RISEN - slack
        return lower, most + value + (error + beyond + rest) * RISEN + slack

    def _largest(self, epsilon: Array) -> tuple[Array, Array]:
        """``P(H) - e^eps Q(H)``, H the event that the upper cut takes a step away."""
        sides = []
        for mass, error in self.losses.cut_off(self.found.high):
            chance = -math.expm1(self.losses.steps * math.log1p(-mass))
            sides.append((chance, 1.02 * (error + 16.0 * U) * chance))
        (p, p_error), (q, q_error) = sides
        grown = np.exp(epsilon)
        own = p_error + (q_error + 8.0 * U * q) * grown
        return p - grown * q - own, p - grown * q + own

    def _excess(self, epsilon: Array) -> Array:
        return _exp(self._log_excess + self.power * epsilon)

    @cached_property
    def _log_excess(self) -> Array:
        return log_excess(self.losses, self.found.high, np.array([self.power]))

    @cached_property
    def _lost(self) -> float:
        """Upper bound on the mass of the runs with a step beyond the ends of its piece."""
        return self.losses.steps * math.fsum(piece.lost for piece in (*self.small, *self.large)) * RISEN

    def _smallest(self, epsilon: Array) -> Array:
        """Upper bound on delta of the runs in which no step is above the lower cut."""
        return _exp(self._log_smallest - self.found.dropping * epsilon)

    @cached_property
    def _log_smallest(self) -> float:
        tilt = self.found.dropping
        moment = math.fsum(piece.moment(1.0 + tilt) for piece in self.small) * RISEN
        log = self.losses.steps * math.log(moment) + float(log_constant(np.array(tilt)))
        return log + 1e-9 * (1.0 + abs(log))

    def _aliasing(self, epsilon: Array) -> tuple[Array, float]:
        """Upper bounds on what the periods above and those below add."""
        tilt, above = self.found.tilt, self.found.above
        period = 2.0 * math.pi / self.step * (1.0 - 4.0 * U)
        apart = (above - tilt) * period
        right = _exp(self._log_above - above * epsilon - apart) / -math.expm1(-apart) * RISEN
        (mass, error), _ = self.losses.cut_off(self.found.low)
        chance = -math.expm1(self.losses.steps * math.log1p(-mass * (1.0 + error))) if mass < 0.5 else 1.0
        return right, chance * math.exp(-tilt * period) / -math.expm1(-tilt * period) * RISEN

    @cached_property
    def _log_above(self) -> float:
        """``ln`` of an upper bound on ``c(t) D(t)`` at the tilt above."""
        above = self.found.above
        small, large = (math.fsum(piece.moment(1.0 + above) for piece in own) for own in (self.small, self.large))
        return _log_difference(small, large, self.losses.steps) + float(log_constant(np.array(above)))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Upper bounds on A and B at the tilt of the line."""
        exponent = 1.0 + self.found.tilt
        small, large = (math.fsum(piece.moment(exponent) for piece in own) * RISEN for own in (self.small, self.large))
        return small, large

    @cached_property
    def _beyond(self) -> float:
        """Upper bound on the terms beyond the last frequency, over ``e^{-theta eps}``."""
        tilt, last = self.found.tilt, self.step * (self.frequencies - 1)
        b, exponent = self.found.half_width, 1.0 + self.found.tilt
        faded = math.fsum(raised(piece.log_faded(exponent, last, b)) for piece in self.large)
        log = math.log(self.losses.steps * faded)
        log += (self.losses.steps - 1.0) * math.log(sum(self._moments))
        log += math.log(float(np.arctan2(tilt, last)) / (math.pi * tilt))
        return raised(log)

    @cached_property
    def _terms(self) -> tuple[Complex, float, float]:
        """``D(z) / (z (1 + z))``, halved at 0, with bounds on the sum of their errors and on that of ``s |term|``."""
        tilt, steps = self.found.tilt, self.losses.steps
        a, a_error = transform(self.small, tilt, self.step, self.frequencies)
        b, b_error = transform(self.large, tilt, self.step, self.frequencies)
        value, rounding = difference(a, b, steps)
        small, large = self._moments
        most = small + large + a_error + b_error
        power = raised((steps - 2.0) * math.log(most))
        inner = steps * power * (most * b_error + (steps - 1.0) * (large + b_error) * a_error) * RISEN
        s = self.step * np.arange(float(self.frequencies))
        z = tilt + 1j * s
        half = np.where(s > 0.0, 1.0, 0.5)
        size = half / np.sqrt((tilt * tilt + s * s) * ((1.0 + tilt) ** 2 + s * s))
        term = half * value * np.reciprocal(z * (1.0 + z))
        error = size * (inner + rounding + 64.0 * U * np.abs(value))
        own = np.abs(term)
        fixed = float(error.sum()) + (self.frequencies + 16) * U * float(own.sum())
        return term, fixed * RISEN, float((s * own).sum()) * RISEN

    def _sum(self, epsilon: Array) -> tuple[Array, Array]:
        """The sum on the line, and a bound on the errors of its terms."""
        term, fixed, turning = self._terms
        s = self.step * np.arange(float(self.frequencies))
        phase = epsilon[:, None] * s
        found = (np.cos(phase) * term.real + np.sin(phase) * term.imag).sum(axis=1)
        scale = self.step / math.pi * np.exp(-self.found.tilt * epsilon)
        value = scale * found
        own = scale * (fixed + 2.0 * U * np.abs(epsilon) * turning) * RISEN
        return value, own + U * (16.0 + 3.0 * self.found.tilt * np.abs(epsilon)) * np.abs(value)


def rare_line(losses: RareLosses, epsilon: float, log_error: float) -> RareLine:
    """A line that brackets delta at and near an epsilon to about ``e^log_error``.

    Raises
    ------
    ContourRefusal
        Where losses of all sizes are frequent, or a line would be too long.
    """
    if not 0.0 < epsilon < math.inf:
        raise ContourRefusal("tail", "no line showed where to look")
    found = plan(losses, epsilon, log_error)
    step = float(few_bit_steps(np.array(2.0 * math.pi / found.period)))
    frequencies = math.ceil(found.reach / step) + 1
    if frequencies > MOST_FREQUENCIES:
        raise ContourRefusal("tail", f"{frequencies} frequencies would be needed: losses of many sizes")
    small, large = pieces_of(losses, found)
    nodes = sum(piece.last - piece.first + 1 for piece in (*small, *large))
    if nodes * frequencies > MOST_WORK:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: losses of many sizes")
    power = least_excess(losses, found.high, epsilon)[0]
    return RareLine(losses, found, small, large, step, frequencies, power, epsilon)


def pieces_of(losses: RareLosses, found: RarePlan) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The pieces below the lower cut, and between both."""
    exponent, gap = 1.0 + found.tilt, found.high - found.low
    number = max(math.ceil(gap / _GAP - 0.3), 1)
    cuts = [found.high - gap * k / number for k in range(number)] + [found.low]
    log_target = found.log_error - math.log(losses.steps) - (losses.steps - 1.0) * found.log_moment - 5.0
    # an error of A counts as often as B may stand beside it
    log_small = log_target - math.log(losses.steps) - found.log_part + found.log_moment
    bottom = found.low
    bulk = -0.5 * losses.shift**2 + losses.shift
    lower = [bottom]
    while bottom - _GAP > bulk and found.reach * float(losses.posterior(np.array([bottom]))[0]) > _LEAST_ANGLE:
        bottom -= _GAP
        lower.append(bottom)
    lower.append(-math.inf)

    def between(edges: Sequence[float], log_accuracy: float) -> tuple[Piece, ...]:
        return tuple(
            Piece.planned(losses, below, above, exponent=exponent, frequency=found.reach, log_accuracy=log_accuracy)
            for above, below in itertools.pairwise(edges)
        )

    return between(lower, min(log_small, log_target)), between(cuts, log_target)


def transform(pieces: Sequence[Piece], tilt: float, step: float, frequencies: int) -> tuple[Complex, float]:
    """The transform at ``tilt + i m step``, and a bound on its errors at all of them."""
    last = step * (frequencies - 1)
    exponent = 1.0 + tilt
    weight = np.concatenate([piece.weights(exponent) for piece in pieces])
    loss = np.concatenate([piece.loss for piece in pieces])
    slip = np.concatenate([piece.loss_error for piece in pieces])
    relative = np.concatenate([piece.relative_error(exponent) for piece in pieces])
    missing = -weight.size % _CHUNK
    chunks = (weight.size + missing) // _CHUNK
    padded_weight, padded_loss = (np.concatenate((one, np.zeros(missing))) for one in (weight, loss))
    rows = math.isqrt(frequencies - 1) + 1
    needed = -(-frequencies // rows)
    groups = -(-needed * rows * _CHUNK // _SMALL)
    group = -(-needed // groups)
    blocks = groups * group
    shape = (chunks, 1, _CHUNK)
    w, y = padded_weight.reshape(shape), padded_loss.reshape(shape)
    near = np.exp(1j * (y * (step * np.arange(float(rows)))[:, None]))
    far = w * np.exp(1j * (y * (step * rows * np.arange(float(blocks)))[:, None]))
    grouped = far.reshape(chunks, groups, group, _CHUNK)
    value = np.matmul(grouped, near.transpose(0, 2, 1)[:, None]).sum(axis=0).ravel()[:frequencies]
    # a phase is off by the error of the loss and two roundings of products; a table's entry by its sine and cosine
    own = relative + last * (slip + 3.0 * U * np.abs(loss)) + (40.0 + 3.0 * (_CHUNK + chunks)) * U
    rounding = float((weight * own).sum()) * 1.01
    logs = [piece.log_error(exponent, last) for piece in pieces]
    return value, rounding + math.fsum(raised(log) for log in logs) * RISEN


def difference(a: Complex, b: Complex, steps: float) -> tuple[Complex, Array]:
    """``(a + b)^T - a^T`` and a bound on what its evaluation loses."""
    size = np.abs(a) + _LEAST
    share = np.abs(b) / size
    rare = (share < 0.5) & (size > 1e-100)  # elsewhere a is lost, and both powers count as an error
    ratio = np.where(rare, b, 0.0) * np.reciprocal(np.where(rare, a, 1.0))
    real, imaginary = ratio.real, ratio.imag
    grown = steps * 0.5 * np.log1p(2.0 * real + (real * real + imaginary * imaginary))
    turned = steps * np.arctan2(imaginary, 1.0 + real)
    log_a, turn = np.log(size), np.arctan2(a.imag, a.real)
    whole = np.exp(steps * log_a)
    half = np.sin(0.5 * turned)
    inner = np.expm1(grown) * np.cos(turned) - 2.0 * half * half + 1j * (np.exp(grown) * np.sin(turned))
    value = whole * np.exp(1j * (steps * turn)) * inner
    power_error = U * (steps * (32.0 + 4.0 * np.abs(log_a) + 4.0 * np.abs(turn)) + 64.0)
    inner_error = U * np.exp(np.maximum(grown, 0.0)) * (200.0 * steps * share + 64.0 * (np.abs(grown) + np.abs(turned)))
    rounding = whole * (1.0 + power_error) * (np.abs(inner) * power_error + inner_error) * 1.01
    lost = 2.0 * np.exp(steps * (np.log(size * (1.0 + share)) + 1e-9))
    return np.where(rare, value, 0.0), np.where(rare, rounding, lost) + _LEAST


def _log_error(log: Array) -> Array:
    """What a logarithm and a sum lose."""
    return np.asarray(8.0 * U * (1.0 + np.where(np.isfinite(log), np.abs(log), 0.0)))


def _log_difference(a: float, b: float, steps: float) -> float:
    """Upper bound on ``ln ((a + b)^T - a^T)``."""
    more = steps * math.log1p(b / a)
    log = steps * math.log(a) + (math.log(math.expm1(more)) if more < 30.0 else more)
    return log + 1e-9 * (1.0 + abs(log))


def _exp(log: Array) -> Array:
    """``e^log``, rounded up, of logarithms that are sums of a few terms."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log + 1e-9 * (1.0 + np.abs(log))))
