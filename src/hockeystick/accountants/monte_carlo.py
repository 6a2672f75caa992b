"""Monte Carlo verification: an estimate of delta with a confidence interval (003, section 5).

Two proposals:

- *plain* draws the losses themselves (the samples window): delta is the mean of ``(1 - e^{eps - S})_+`` in [0, 1], S
  the composed loss, and Hoeffding's inequality gives a band of half-width ``sqrt(ln(2 / beta) / 2 N)``, whatever delta
  is.
- *tilted* draws from the distribution tilted to the saddle point, where epsilon is a typical loss, and weighs:

      delta = M e^{-theta eps} E~[f(S - eps)],  f(y) = e^{-theta y} (1 - e^{-y})_+ <= theta^theta / (1+theta)^(1+theta).

  The mean on the right is of order one for any delta. A pair shows the mass of its cells only, so the losses drawn are
  bracketed: all mass of a cell at its mean ``ln(p / q)`` (merging outcomes) gives less than delta, at the cell's two
  ends with P- and Q-mass kept (the chord) more. Each side has an empirical Bernstein bound (Maurer and Pontil 2009),
  ``sqrt(2 V ln(4 / beta) / N) + 7 R ln(4 / beta) / (3 (N - 1))``, V the sample variance and R the range.

Guarantee: with probability at least ``confidence`` over the draws the true value lies within ``value +- error``; never
certified. It shares no lattice and no Fourier transform with the other accountants. Cost: one draw a step and sample,
about 0.1 microseconds each; constant memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, final

import numpy as np

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Estimate
from hockeystick.engines.contour.aliasing import kernel_peak
from hockeystick.engines.lattice.plan import saddle_at_delta, saddle_at_epsilon
from hockeystick.errors import check_choice, check_count, check_positive, set_fields
from hockeystick.laws.base import Array, Pair

Proposal = Literal["tilted", "plain"]

_CHUNK = 1 << 16
_CUTS = 1 << 14
_GRID = 41  # values of epsilon at which an epsilon is looked for
_REACH = 1.5  # how far they reach to either side, in units of 1 / theta


def samples_needed(accuracy: float, confidence: float, *, epsilons: int = 1) -> int:
    """Plain samples for a Hoeffding band of half-width ``accuracy`` at several epsilons at once (003, section 5).

    ``N = ceil(ln(2 |E| / beta) / (2 alpha^2))`` with ``beta = 1 - confidence``.

    Parameters
    ----------
    accuracy : float
        alpha, above 0: absolute, in units of delta.
    confidence : float
        Above 0 and below 1.
    epsilons : int
        ``|E|``, at least 1.

    Examples
    --------
    >>> samples_needed(1e-3, 0.99, epsilons=40)
    4493599
    """
    alpha, beta = check_positive("accuracy", accuracy), 1.0 - _checked_confidence(confidence)
    size = math.log(2.0 * check_count("epsilons", epsilons) / beta)
    return math.ceil(Fraction(size) / (2 * Fraction(alpha) ** 2))  # a whole number, however small alpha is


@final
@dataclass(frozen=True)
class MonteCarlo(Accountant):
    """Estimates by simulation, with a stated confidence: for verifying other accountants.

    Parameters
    ----------
    samples : int
        Compositions drawn for one answer, at least 100; see `samples_needed`.
    seed : int
        Of the random numbers: the same seed, the same answer.
    proposal : {"tilted", "plain"}
        "tilted" reaches any delta; "plain" draws the losses themselves.
    confidence : float
        Probability that the stated interval holds, above 0 and below 1.
    progress : callable, optional
        Called as ``progress(done, samples)`` after every chunk.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> estimate = MonteCarlo(20_000, seed=1).directed(((GaussianPair(1.0), 4),)).delta(16.0)
    >>> abs(estimate.value - 2.769364e-13) < estimate.error < 0.1 * estimate.value
    True
    """

    samples: int = 1_000_000
    seed: int = 0
    proposal: Proposal = field(default="tilted", kw_only=True)
    confidence: float = field(default=0.99, kw_only=True)
    progress: Callable[[int, int], None] | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_fields(self, samples=check_count("samples", self.samples, minimum=100))
        set_fields(self, seed=check_count("seed", self.seed, minimum=0))
        check_choice("proposal", self.proposal, ("tilted", "plain"))
        set_fields(self, confidence=_checked_confidence(self.confidence))
        if not (self.progress is None or callable(self.progress)):
            raise TypeError(f"progress must be a function of two numbers, got {self.progress!r}")

    def directed(self, parts: Parts) -> DirectedCurve:
        return _MonteCarloCurve(self, parts)


@final
class _MonteCarloCurve(DirectedCurve):
    """One direction; every question draws anew, from the same seed."""

    def __init__(self, settings: MonteCarlo, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        log_finite = sum(count * math.log1p(-min(pair.mass_at_infinity, 1.0 - 1e-16)) for pair, count in parts)
        self._at_infinity = abs(math.expm1(log_finite))

    def delta(self, epsilon: float) -> Estimate:
        if epsilon > sum(count * pair.loss_bounds[1] for pair, count in self._parts) * (1.0 + 1e-13):
            return self._estimate(self._at_infinity, self._at_infinity, "epsilon is beyond the largest loss")
        if math.isinf(epsilon):
            return self._estimate(self._at_infinity, self._at_infinity)
        saddle = saddle_at_epsilon(self._parts, epsilon)[1]
        low, high = self._interval(np.array([epsilon]), saddle.theta, saddle.log_delta)
        return self._estimate(float(low[0]), float(high[0]))

    def epsilon(self, delta: float) -> Estimate:
        if delta >= 1.0:
            return self._estimate(0.0, 0.0)
        if delta <= self._at_infinity:
            return self._estimate(math.inf, math.inf, "delta is not above the mass at infinite loss")
        saddle = saddle_at_delta(self._parts, delta)[1]
        # fixed before anything is drawn: the bands of all values hold at once, and so does what they imply
        grid = saddle.epsilon + np.linspace(-_REACH, _REACH, _GRID) / saddle.theta
        grid = np.unique(np.maximum(grid, 0.0))
        low, high = self._interval(grid, saddle.theta, math.log(delta))
        surely_before, surely_beyond = np.flatnonzero(low > delta), np.flatnonzero(high <= delta)
        if surely_beyond.size == 0 or (surely_before.size == 0 and grid[0] > 0.0):
            value = max(saddle.epsilon, 0.0)
            return Estimate(value, math.inf, self._method, ("too few samples to say: draw more",))
        least = float(grid[surely_before[-1]]) if surely_before.size else 0.0
        return self._estimate(least, float(grid[surely_beyond[0]]))

    @property
    def _method(self) -> str:
        return f"Monte Carlo, {self._settings.proposal}"

    def _estimate(self, low: float, high: float, *notes: str) -> Estimate:
        settings = self._settings
        held = f"value +- error holds with probability at least {settings.confidence:g} ({settings.samples} samples)"
        error = 0.5 * (high - low) if high > low else 0.0
        return Estimate(low + error if low < high else low, error, self._method, (*notes, held))

    def _interval(self, epsilons: Array, theta: float, log_delta: float) -> tuple[Array, Array]:
        """Confidence bounds on delta at several epsilons, all at once."""
        if self._settings.proposal == "plain":
            return self._plain(epsilons)
        return self._tilted(epsilons, theta, log_delta)

    def _plain(self, epsilons: Array) -> tuple[Array, Array]:
        settings = self._settings
        rng = np.random.default_rng(settings.seed)
        total = np.zeros(epsilons.size)
        for size in self._chunks():
            loss = np.zeros(size)
            for pair, count in self._parts:
                for _ in range(count):
                    loss += pair.sample(rng, size)
            for index, epsilon in enumerate(epsilons):
                total[index] += float(-np.expm1(np.minimum(epsilon - loss, 0.0)).sum())
        mean = total / settings.samples
        band = math.sqrt(math.log(2.0 * epsilons.size / (1.0 - settings.confidence)) / (2.0 * settings.samples))
        return np.maximum(mean - band, 0.0), np.minimum(mean + band, 1.0)

    def _tilted(self, epsilons: Array, theta: float, log_delta: float) -> tuple[Array, Array]:
        settings = self._settings
        rng = np.random.default_rng(settings.seed)
        steps = sum(count for _, count in self._parts)
        log_above = log_delta - math.log(steps) - 20.0
        ranges = [pair.loss_range(min(log_above, -60.0), log_above) for pair, _ in self._parts]
        wide = sum(count * (high - low) / _CUTS for (low, high), (_, count) in zip(ranges, self._parts, strict=True))
        theta = min(theta, 1.0 / max(wide, 1e-300), 1e12)  # any tilt is right; one that a cell can tell apart is better
        cells = [_TiltedCells(pair, theta, *own) for (pair, _), own in zip(self._parts, ranges, strict=True)]
        counts = [count for _, count in self._parts]
        log_scale = sum(count * own.log_moment for own, count in zip(cells, counts, strict=True))
        width = sum(count * own.width for own, count in zip(cells, counts, strict=True))
        below, above = _Tally(epsilons.size), _Tally(epsilons.size)
        for size in self._chunks():
            mean, spread = np.zeros(size), np.zeros(size)
            for own, count in zip(cells, counts, strict=True):
                for _ in range(count):
                    own.draw(rng, mean, spread)
            for index, epsilon in enumerate(epsilons):
                weight = np.exp(-theta * np.maximum(mean - epsilon, -width))
                below.add(index, weight * -np.expm1(np.minimum(epsilon - mean, 0.0)))
                above.add(index, weight * -np.expm1(np.minimum(epsilon - spread, 0.0)))
        peak = kernel_peak(theta)
        log_beta = math.log(4.0 * epsilons.size / (1.0 - settings.confidence))
        low = below.mean - below.bernstein(peak, log_beta, settings.samples)
        high = above.mean + above.bernstein(peak * math.exp(theta * width), log_beta, settings.samples)
        error = sum(count * own.error for own, count in zip(cells, counts, strict=True))  # of the masses
        beyond = sum(count * own.beyond for own, count in zip(cells, counts, strict=True))
        lightest, heaviest = (np.exp(np.minimum(log_scale - theta * epsilons + off, 700.0)) for off in (-error, error))
        lower = lightest * np.maximum(low, 0.0) + self._at_infinity
        with np.errstate(over="ignore"):
            upper = heaviest * high + self._at_infinity + beyond
        return lower, np.minimum(upper, 1.0)

    def _chunks(self) -> Iterator[int]:
        """Sizes of the chunks, reporting progress after each."""
        done = 0
        while done < self._settings.samples:
            size = min(_CHUNK, self._settings.samples - done)
            yield size
            done += size
            if self._settings.progress is not None:
                self._settings.progress(done, self._settings.samples)


@final
class _Tally:
    """Running mean and variance of the terms at several epsilons."""

    def __init__(self, size: int) -> None:
        self._count = np.zeros(size)
        self.mean = np.zeros(size)
        self._squares = np.zeros(size)  # sum of squared deviations from the mean

    def add(self, index: int, terms: Array) -> None:
        """A chunk of terms for one epsilon (Chan, Golub and LeVeque's update)."""
        own = float(terms.mean())
        old, new = self._count[index], self._count[index] + terms.size
        between = (own - self.mean[index]) ** 2 * old * terms.size / new
        self._squares[index] += float(((terms - own) ** 2).sum()) + between
        self.mean[index] += (own - self.mean[index]) * terms.size / new
        self._count[index] = new

    def bernstein(self, reach: float, log_beta: float, samples: int) -> Array:
        """Half-width of the empirical Bernstein bound for terms in [0, reach]."""
        variance = self._squares / (samples - 1)
        return np.asarray(np.sqrt(2.0 * variance * log_beta / samples) + 7.0 * reach * log_beta / (3.0 * (samples - 1)))


@final
class _TiltedCells:
    """One pair cut into cells, drawn with their tilted masses.

    Attributes
    ----------
    log_moment : float
        ``ln sum p_i e^{theta c_i}``, c_i the mean losses.
    width : float
        Of a cell (nats).
    error : float
        Bound on the error of ``ln`` of any weight, from the stated errors of the masses.
    beyond : float
        P-mass above and below the cells.
    """

    def __init__(self, pair: Pair, theta: float, low: float, high: float) -> None:
        margin = 1e-9 * (1.0 + abs(low) + abs(high))
        cuts = np.linspace(low - margin, high + margin, 2 if high <= low else _CUTS)  # one loss needs one cell
        cells = pair.cells(cuts)
        inner = slice(1, -1)  # what lies beyond either end is left out, and its mass added above
        log_p, log_q = cells.log_p[inner], cells.log_q[inner]
        kept = log_p > -math.inf
        self.width = float(cuts[1] - cuts[0])
        bottom, top = cuts[:-1][kept], cuts[1:][kept]
        mean = np.clip(log_p[kept] - log_q[kept], bottom, top)
        exponents = log_p[kept] + theta * mean
        peak = float(exponents.max())
        weights = np.exp(exponents - peak)
        self.log_moment = peak + math.log(math.fsum(weights))
        self._mean = mean
        self._bottom, self._top = bottom, top
        self._share = np.clip(np.expm1(bottom - mean) / np.expm1(bottom - top), 0.0, 1.0)  # of the P-mass, for the top
        running = np.cumsum(weights)
        self._running = running / running[-1]
        errors = (1.0 + theta) * cells.error_p[inner] + theta * cells.error_q[inner]
        self.error = float(errors[kept].max()) + 2.0 * (1.0 + theta) * float(cells.slack.max())
        self.beyond = math.exp(float(cells.log_p[0])) + math.exp(float(cells.log_p[-1]))

    def draw(self, rng: np.random.Generator, mean: Array, spread: Array) -> None:
        """Add one draw to the sums of mean losses and of end points."""
        index = np.minimum(np.searchsorted(self._running, rng.random(mean.size), side="right"), self._running.size - 1)
        mean += self._mean[index]
        spread += np.where(rng.random(mean.size) < self._share[index], self._top[index], self._bottom[index])


def _checked_confidence(confidence: float) -> float:
    value = check_positive("confidence", confidence)
    if value >= 1.0:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence!r}; try 0.99")
    return value
