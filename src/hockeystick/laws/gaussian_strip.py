"""The strip of subsampled Gaussian rules: how far the record turns the integrand, and cut-offs beyond all that matters.

Symbols as in `hockeystick.laws.gaussian_rule`.

Guarantee: upper bounds (`docs/derivations/contour.md`, sections 3.2 and 3.4). Cost: a few dozen exponentials and arcs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array, Flags, column
from hockeystick.numerics.error_functions import erfcx
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, U, log_sums
from hockeystick.transforms.rule import Numbers, Window
from hockeystick.transforms.strip import MixtureStrip, Strip

_OUTSIDE = np.concatenate((np.arange(0.0, 12.0, 0.4), 12.0 * 1.08 ** np.arange(40.0)))[None]  # beyond the last node
_MOST_CELLS = 1 << 16  # of one pair, where it has fewer nodes
_LOG_GAPS = np.log(np.diff(_OUTSIDE)) + 1e-12


def record_argument(posterior: Array, angle: Array) -> Array:
    """The argument of ``1 - q + q e^{iv}``, between 0 and v < pi, increasing in q."""
    return np.arctan2(posterior * np.sin(angle), 1.0 - posterior + posterior * np.cos(angle))


@final
@dataclass(frozen=True, eq=False)
class SampledStrip(MixtureStrip):
    """The strip of subsampled Gaussians, where the argument of r is small as long as the record is unlikely.

    At height v in u, ``arg r = arg(1 - q + q e^{iv})`` with q the posterior weight of the record, which increases in u.
    So the tilted mean of ``e^{s arg r}`` is at most the sum over cells of its value at the right end times the cell's
    mass, and that is at most its length times the larger density at its ends times ``e^{c eta^2 / 8}``, ``-c`` a lower
    bound on the second derivative of the log density. Beyond the last node the density falls.

    Attributes
    ----------
    shift : ndarray, shape (B,)
        m.
    posterior : ndarray, shape (B, n)
        q at the nodes.
    is_reversed : bool
        Whether the losses are those of the reversed pairs.
    """

    shift: Array
    posterior: Array
    is_reversed: bool

    def log_turns(self, exponent: Numbers, frequency: Numbers, error: Array) -> Callable[[Array], Array]:
        """As in the class's description, or ``s m b`` where that is less."""
        rate = frequency * self.shift * (1.0 + 1e-9)
        gentle = rate * self.strip.half_widths[:, 0] < 3.0
        if gentle.all():
            return lambda b: rate * b
        up_to, power = column(frequency * (1.0 + 1e-9)), np.asarray(1.0 - exponent if self.is_reversed else exponent)
        logs = self.log_weight + column(exponent) * self.loss
        bend = 2.0 * self.growth + np.maximum(-power, 0.0) * self.shift * self.shift / 4.0
        cells = np.maximum(logs[:, 1:], logs[:, :-1]) + column(bend * self.step * self.step / 8.0)
        below, above = (_inverse(rate[0]) for rate in self.end_rates(np.array([exponent])))
        beyond, posterior_beyond = self._beyond(column(power), above)
        doubt = 1e-9 * (1.0 + np.abs(logs).max(axis=1))
        # the moment is at least the sum of the rule over one plus the strip error at frequency 0
        whole = log_sums(logs) - np.log1p(error) - doubt
        left = logs[:, :1] + np.log(below / self.step)[:, None]
        log_masses = np.concatenate((left, cells, column(logs[:, -1]) + beyond), axis=1) - column(whole)
        posterior = np.concatenate((np.minimum(self.posterior * (1.0 + 1e-9), 1.0), posterior_beyond), axis=1)

        def turn(b: Array) -> Array:
            turned = up_to * record_argument(posterior, column(self.shift * b))
            everywhere = rate * b
            found = log_sums(log_masses + np.concatenate((turned, everywhere[:, None]), axis=1))
            return np.where(gentle, everywhere, np.minimum(found, everywhere))

        return turn

    def _beyond(self, power: Array, length: Array) -> tuple[Array, Array]:
        """What lies beyond the last node, cut at `_OUTSIDE`: ``ln`` of masses over the last weight, and posteriors.

        The integrand falls there, so that its value at the left end bounds each mass, and the last of them is at most
        that times ``length``; ``r(u + mx) = r(u) (1 - q + q e^{mx})``. The posterior weights are those at the right
        ends, rounded up. Shapes (B, x) and (B, x - 1), for a column of powers.
        """
        last = np.minimum(column(self.posterior[:, -1]) * (1.0 + 1e-9), 1.0)
        odds = column(self.shift) * _OUTSIDE
        grown = last * np.expm1(np.minimum(odds, 600.0))
        log_growth = np.log1p(grown)  # less than 3e-9 above its value at the last posterior as it is
        log_growth = np.where((odds < 600.0) | (power <= 0.0), log_growth, odds)
        drop = column(self.high + self.fall) * _OUTSIDE + column(self.growth) * _OUTSIDE * _OUTSIDE
        log_masses = power * log_growth + 3e-9 * np.abs(power) - drop * (1.0 - 1e-9) - column(np.log(self.step))
        log_masses[:, :-1] += _LOG_GAPS
        log_masses[:, -1] += np.log(length)
        posterior = np.where(odds < 600.0, np.minimum((grown + last) / (1.0 + grown) * (1.0 + 1e-9), 1.0), 1.0)
        return log_masses, posterior[:, 1:]


def _inverse(rates: Array) -> Array:
    """``1 / rate``, infinite unless the rate is above 0."""
    falls = rates > 0.0
    return np.where(falls, 1.0 / np.where(falls, rates, 1.0), np.inf)


@final
@dataclass(frozen=True, eq=False)
class CutOff:
    """Smooth cut-offs ``erfc((t - t_0) / w) / 2`` in units of the noise; t_0 infinite for none.

    Under N(0, 1) and N(m, 1) the cut-off leaves out a normal tail beyond t_0 - m of variance 1 + w^2 / 2. On
    ``|Im t| <= b`` it is at most ``e^{b^2/w^2}`` times its value on the line, and it is log-concave.

    Attributes
    ----------
    place, width : ndarray, shape (B,)
        t_0 and w.
    dropped : ndarray, shape (B,)
        Bounds on the mass left out, under P and under Q.
    """

    place: Array
    width: Array
    dropped: Array

    @cached_property
    def used(self) -> Flags:
        """Which are there."""
        return np.isfinite(self.place)

    @cached_property
    def is_used(self) -> bool:
        """Whether there is any."""
        return bool(self.used.any())

    @cached_property
    def growth(self) -> Array:
        """Half, and one over w^2 for the cut-off."""
        if not self.is_used:
            return np.full(self.place.size, 0.5)
        return np.where(self.used, 0.5 + (1.0 + 1e-9) / self.width**2, 0.5)

    def highest(self, peak: Array) -> Array:
        """Where the integrand is largest, given where it would be without the cut-off."""
        if not self.is_used:
            return peak
        weight = 2.0 / self.width**2
        place = np.where(self.used, self.place, peak)
        return np.where(place < peak, (peak + weight * place) / (1.0 + weight), peak)

    def fall(self, high: Array) -> Array:
        """``-d ln / dt`` of the cut-off at and beyond a point, rounded down: at least 2 (t - t_0) / w^2."""
        return np.maximum(2.0 * (high - self.place) / self.width**2, 0.0) * (1.0 - 1e-9)

    def log_factor(self, t: Array, m: Array) -> tuple[Array, Array]:
        """``ln`` of the cut-off and a bound on its error; t carries three roundings of terms of its size and m's."""
        used = column(self.used)
        width = self.width[:, None]
        x = np.where(used, (t - np.where(used, self.place[:, None], 0.0)) / width, -30.0)
        size = np.abs(x)
        scaled = 0.5 * erfcx(size)
        beyond = np.log(scaled) - size * size
        before = np.log1p(-scaled * np.exp(-size * size))
        value = np.where(x > 0.0, beyond, before)
        slip = U * ((6.0 * np.abs(t) + 4.0 * m) / width + 4.0 * size)
        above = slip * (2.0 * size + 1.2) + ERFCX + ELEMENTARY * (1.0 + np.abs(np.log(scaled))) + 4.0 * U * size * size
        below = 1.2 * np.exp(-size * size) * (slip + ERFCX + 2.0 * ELEMENTARY + 4.0 * U * size * size)
        error = np.where(x > 0.0, above, below) + (ELEMENTARY + U) * np.abs(value)
        return value, np.where(used, error, 0.0)


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Where the nodes of a rule lie.

    Attributes
    ----------
    u : ndarray, shape (B, n)
        Base losses, exact; one row where pairs share their nodes.
    step : ndarray, shape (B,)
        Their spacing.
    strip : Strip
        Around the line, in units of the noise.
    cut : CutOff
        What is left out.
    """

    u: Array
    step: Array
    strip: Strip
    cut: CutOff

    def between(self, window: Window) -> int:
        """Number of cells to a step, at least one."""
        return max(min(window.cells, _MOST_CELLS // int(self.u.shape[1])), 1)
