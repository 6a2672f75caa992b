"""The loss of a rarely sampled Gaussian step, and soft cuts that sort steps by the size of their loss.

In the base loss u, Q is N(-m^2/2, m^2) and the loss is ``l = ln r(u)``, ``r = 1 - g + g e^u`` (g the rate, m the
sensitivity over the noise). A cut at c keeps a step with probability ``erfc((u - c) / w) / 2``.

Guarantee: of each function as stated (`docs/derivations/rare-losses.md`). Cost: a few exponentials a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.laws.sampled_loss import base_losses, sampled_losses
from hockeystick.numerics.columns import Array as Array
from hockeystick.numerics.error_functions import erfcx
from hockeystick.numerics.rounding import U

METHOD: Final = "rare large losses"
"""What answers are said to be by."""

MOST_DRAWN: Final = 9.0
"""Steps of a run that draw the record, on average: of more, there is no piece without large losses."""

MOST_OF_LARGE: Final = 60.0
"""The same where losses are large."""

WIDTH: Final = 0.2
"""w (nats): narrow cuts let little of the larger losses through, and smooth the transform less."""

RISEN: Final = 1.0 + 1e-9
"""A factor on sums of terms of one sign, none of which is off by more than 1e-10 of itself."""

LEAST: Final = 1e-280
"""Covers what falls below the range of float64."""

_MANY = 8  # laws for each rate
_LEAST_LARGE = 0.5  # deviations of the other losses together
_NORMAL = np.arange(-2.0, 38.0, 0.5)  # of the standard normal law
_WEIGHTS = 0.5 * np.exp(-0.5 * _NORMAL**2) / math.sqrt(2.0 * math.pi)
_SMALL_SHIFT = 4.0  # up to which steps without the record have losses that count
_WIDER = 1.25  # times the width, for each unit of the sensitivity over the noise beyond
_ALL = 40.0  # deviations above the mean, beyond which there is nothing
_MOST_SEEN = 200.0  # steps that draw the record
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def kept(x: Array) -> Array:
    """``erfc(x) / 2``, to 30 u (1 + x^2) relative for x >= 0; for x < 0 to 40 u, where x carries two roundings."""
    size = np.abs(x)
    tail = 0.5 * erfcx(size) * np.exp(-size * size)
    return np.asarray(np.where(x < 0.0, 1.0 - tail, tail))


def raised(log: Array) -> Array:
    """``e^log``, rounded up, of logarithms that are sums of a few terms."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log + 1e-9 * (1.0 + np.abs(log))))


@final
@dataclass(frozen=True)
class RareLosses:
    """T steps of the pair ((1 - g) Q + g P, Q), P and Q unit normal laws m apart.

    Attributes
    ----------
    shift : float
        m, one rounding off.
    rate : float
        g, at most a half.
    steps : float
        T, a whole number.
    """

    shift: float
    rate: float
    steps: float

    @property
    def are_large(self) -> bool:
        """Whether a step has a loss worth the name only where it draws the record."""
        return self.shift > _SMALL_SHIFT

    @property
    def width(self) -> float:
        """w, of the soft cuts (nats)."""
        return WIDTH * max(1.0, _WIDER * (self.shift - _SMALL_SHIFT))

    @property
    def largest(self) -> float:
        """The u beyond which there is nothing."""
        return 0.5 * self.shift**2 + _ALL * self.shift

    def loss(self, u: Array) -> Array:
        """``ln r(u)`` (nats)."""
        return sampled_losses(u, self.rate)

    def base(self, loss: float) -> float:
        """About the u of a loss."""
        return float(base_losses(np.array([loss]), self.rate)[0])

    def posterior(self, u: Array) -> Array:
        """``dl / du``: the probability that the record took part, increasing in u."""
        return np.asarray(np.exp(math.log(self.rate) + u - self.loss(u)))

    def log_density(self, u: Array) -> Array:
        """``ln`` of the density of Q."""
        t = u / self.shift + 0.5 * self.shift
        return np.asarray(-0.5 * t * t - (math.log(self.shift) + _LOG_SQRT_2PI))

    def cut_off(self, cut: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The mass of P and of Q that a cut takes away, each with a bound on its relative error.

        The soft cut makes a normal tail of variance ``1 + (w / m)^2 / 2`` of each normal law.
        """
        m, g = self.shift, self.rate
        place = cut / m + 0.5 * m
        scale = math.sqrt(2.0 + (self.width / m) ** 2)
        x = np.array([place, place - m]) / scale
        q, shifted = kept(x).tolist()
        # x is off by at most 8 u (|place| + m), and d ln erfc / dx by at most 2 |x| + 1.2
        error = 64.0 * U * (1.0 + float(np.square(x).max()) + (abs(place) + m) ** 2)
        return ((1.0 - g) * q + g * shifted, error), (q, error)

    def by_number(self, epsilon: Array) -> Array:
        """About delta where losses are large: by how many steps draw the record, as if these alone had losses."""
        from scipy.special import log_ndtr  # half of a cold start, for what few answers need

        m, g, steps = self.shift, self.rate, self.steps
        k = np.arange(1.0, min(steps, _MOST_SEEN) + 1.0)
        log_chance = np.cumsum(np.log((steps - k + 1.0) / k)) + k * math.log(g) + (steps - k) * math.log1p(-g)
        mean, deviation = k * (0.5 * m * m + math.log(g)) + (steps - k) * math.log1p(-g), m * np.sqrt(k)
        x = (epsilon[:, None] - mean) / deviation
        p, q = log_ndtr(-x), log_ndtr(-x - deviation) + deviation * (x + 0.5 * deviation)
        return np.asarray(np.maximum(np.exp(p + log_chance) - np.exp(q + log_chance), 0.0).sum(axis=1))

    def one_large(self, epsilon: Array) -> Array:
        """About delta at epsilons, if all steps but one had no loss."""
        place = base_losses(epsilon, self.rate) / self.shift + 0.5 * self.shift
        q, shifted = kept(np.array([place, place - self.shift]) / math.sqrt(2.0))
        grown = np.exp(np.minimum(epsilon, 700.0))  # beyond, q is 0
        return np.asarray(self.steps * ((1.0 - self.rate) * q + self.rate * shifted - grown * q))

    def small_variance(self, epsilon: Array) -> Array:
        """About the variance of the losses of all steps, none of which is above epsilon."""
        m = self.shift
        place = base_losses(epsilon, self.rate) / m
        one, two, three = kept((m * np.array([[1.5], [0.5], [-0.5]]) - place) / math.sqrt(2.0))
        square = math.exp(m * m) * one - 2.0 * two + three
        return np.asarray(self.steps * self.rate**2 * np.maximum(square, 1e-12))


@final
@dataclass(frozen=True)
class RareSum:
    """The loss of a composition of such steps.

    Attributes
    ----------
    laws : tuple of RareLosses, of length K
        Of large losses there is one law only.
    """

    laws: tuple[RareLosses, ...]

    @cached_property
    def counts(self) -> Array:
        """How often each law is composed, shape (K,)."""
        return np.array([law.steps for law in self.laws])

    @cached_property
    def steps(self) -> float:
        """How many steps there are."""
        return math.fsum(law.steps for law in self.laws)

    @cached_property
    def drawn(self) -> float:
        """How many steps draw the record, on average."""
        return math.fsum(law.rate * law.steps for law in self.laws)

    @property
    def changes(self) -> bool:
        """Whether many laws share a rate, as noise that changes from step to step makes them."""
        return len(self.laws) >= _MANY * len({law.rate for law in self.laws})

    @property
    def rate(self) -> float:
        """The rate of a step, on average."""
        return self.drawn / self.steps

    @property
    def shift(self) -> float:
        """The largest of all."""
        return max(law.shift for law in self.laws)

    @property
    def are_large(self) -> bool:
        """Whether a step has a loss worth the name only where it draws the record."""
        return self.laws[0].are_large

    @property
    def most_drawn(self) -> float:
        """How many steps may draw the record, on average."""
        return MOST_OF_LARGE if self.are_large else MOST_DRAWN

    def of(self, steps: float) -> RareSum:
        """So many steps in all: of several laws as often as their shares say, which need not be whole numbers."""
        if len(self.laws) == 1:
            return RareSum((replace(self.laws[0], steps=steps),))
        return RareSum(tuple(replace(law, steps=law.steps * (steps / self.steps)) for law in self.laws))

    def base(self, loss: float) -> float:
        """About the u of a loss, of the first law."""
        return self.laws[0].base(loss)

    def cuts(self, place: float) -> tuple[float, ...]:
        """About where every law has the loss that the first one has at a place, or its largest: the u of each."""
        first, *others = self.laws
        if not others:
            return (place,)
        loss = float(first.loss(np.array([place]))[0])
        same = (place, *(law.base(loss) if loss > 0.0 else place for law in others))
        return tuple(min(cut, law.largest) for law, cut in zip(self.laws, same, strict=True))

    def least_delta(self, epsilon: float) -> float:
        """About delta at an epsilon, or less."""
        return float((self.laws[0].by_number if self.are_large else self._one_large)(np.array([epsilon]))[0])

    def about_delta(self, epsilon: Array) -> Array:
        """About delta at epsilons, shape (E,), as if the losses but one were normal together."""
        if self.are_large:
            return self.laws[0].by_number(epsilon)
        deviation = np.sqrt(sum(law.small_variance(epsilon) for law in self.laws))[:, None]
        left = epsilon[:, None] - 0.5 * deviation**2 - deviation * _NORMAL
        alone = -np.expm1(np.minimum(left, 0.0))
        return np.asarray(
            ((self._one_large(np.maximum(left, _LEAST_LARGE * deviation)) + alone) * _WEIGHTS).sum(axis=1)
        )

    def _one_large(self, epsilon: Array) -> Array:
        return np.asarray(sum(law.one_large(epsilon) for law in self.laws))
