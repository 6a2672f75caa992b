"""The largest of T batch results, one of them shifted: a lower bound for shuffled batches (Chua et al. 2024).

T independent N(0, s^2), to one of which, at random, a (under P) or b (under Q) is added. By symmetry the largest has

    P(max <= c) = Phi((c - a) / s) Phi(c / s)^{T-1},        Q likewise with b.

The pair is that of *which of many intervals the maximum falls in*: a function of the results, hence by data processing
below the pair of the datasets, and its composition below theirs. Levels lie where float64 holds what is on either side
of them, so that no mass is left out; where the shifts are more than 60 s apart for that, s is taken as large as brings
them so near, as if noise were added to the results. Proof: docs/derivations/shuffling.md.

Masses: with F the distribution function, ``F(c') - F(c) = F(c) (e^S - 1)``, S a sum of ``log1p`` of ratios of normal
masses, each positive and accurate relative to itself. Cost: four erfcx a level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx

from hockeystick.errors import check_count, check_fields, check_finite, check_positive
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.numerics.columns import Array
from hockeystick.numerics.normal import normal_intervals
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, U

_LEVELS = 2000
_REACH = 36.0  # standard deviations: not far beyond, a mass is below `_SMALL`
_APART = 60.0  # the same, of the two laws from each other, at most
_FARTHEST = 1e6  # a shift, in standard deviations: levels about it are told apart by far
_SMALL = 1e-280  # far above where a relative error ceases to hold


@final
@dataclass(frozen=True)
class LargestResultPair(AtomicPair):
    """Which interval the largest of T normal results falls in, one of them shifted by p_shift against q_shift.

    Parameters
    ----------
    sigma : float
        Standard deviation s of every result, above 0.
    batches : int
        T, at least 1.
    p_shift, q_shift : float
        What is added to one result at random under P and under Q.

    Examples
    --------
    >>> low, high = LargestResultPair(1.0, 10, 2.0, 1.0).loss_bounds
    >>> low < 0.0 < high
    True
    """

    sigma: float
    batches: int
    p_shift: float
    q_shift: float

    is_merged = True

    def __post_init__(self) -> None:
        check_fields(self, sigma=check_positive, batches=check_count, p_shift=check_finite, q_shift=check_finite)
        if not max(abs(self.p_shift), abs(self.q_shift)) <= _FARTHEST * self._noise:
            raise ValueError(f"shifts must be at most {_FARTHEST:g} times the noise, got {self!r}")

    @property
    def _noise(self) -> float:
        """s, or more."""
        return max(self.sigma, abs(self.p_shift - self.q_shift) / _APART)

    def make_table(self) -> AtomTable:
        shifts = (self.p_shift / self._noise, self.q_shift / self._noise)
        # -ln Phi(-y) is about y^2 / 2: below -sqrt(120 / T), but not below -11, the maximum of T is not seen
        low = max(min(-math.sqrt(120.0 / self.batches), *shifts) - 1.0, max(shifts) - _REACH)
        high = max(min(shifts), 0.0 if self.batches > 1 else -math.inf) + _REACH
        levels = np.linspace(low, high, _LEVELS)
        logs = np.array(
            [_log_cdf(levels, shift)[0] + (self.batches - 1) * _log_cdf(levels, 0.0)[0] for shift in shifts]
        )
        levels = levels[((logs > math.log(_SMALL)) & (logs < -_SMALL)).all(axis=0)]
        (log_p, error_p), (log_q, error_q) = (self._masses(levels, shift) for shift in shifts)
        loss = log_p - log_q
        order = np.argsort(loss, kind="stable")
        error, one = max(error_p, error_q), np.ones(loss.size)
        slack = 2.0 * error + 2.0 * U * float(np.abs(loss).max(initial=0.0))
        return AtomTable(loss[order], slack * one, log_p[order], log_q[order], error * one)

    def _masses(self, levels: Array, shift: float) -> tuple[Array, float]:
        """``ln`` of the masses of the intervals cut by the levels, and one bound on their absolute errors."""
        others = self.batches - 1
        own, own_error = _log_cdf(levels, shift)
        rest, rest_error = _log_cdf(levels, 0.0)
        log_f, log_f_error = (
            own + others * rest,
            own_error + others * rest_error + 2.0 * U * np.abs(own + others * rest),
        )
        own_step, own_ratio, own_step_error = _log_steps(levels, shift, own, own_error)
        rest_step, rest_ratio, rest_step_error = _log_steps(levels, 0.0, rest, rest_error)
        rise = own_step + others * rest_step  # S
        rise_error = np.maximum(own_step_error, rest_step_error) + 4.0 * U  # relative
        least = np.logaddexp(own_ratio, rest_ratio + (math.log(others) if others else -math.inf))
        with np.errstate(divide="ignore"):
            between = rise + np.log(-np.expm1(-rise))  # ln (e^S - 1), and ln S where S may be below the normal range
        between = log_f[:-1] + np.where(rise > _SMALL, between, least)
        between_error = log_f_error[:-1] + rise_error * (1.0 + rise) + 3.0 * ELEMENTARY
        log_top = math.log(-math.expm1(float(log_f[-1]))) if log_f[-1] < -_SMALL else -math.inf
        log_mass = np.concatenate(([log_f[0]], between, [log_top]))
        top_error = float(log_f_error[-1] / abs(log_f[-1])) + 3.0 * ELEMENTARY if log_f[-1] < -_SMALL else 0.0
        errors = np.concatenate(([log_f_error[0]], between_error, [top_error]))
        kept = np.isfinite(log_mass)
        return log_mass, float(errors[kept].max() + 4.0 * U * np.abs(log_mass[kept]).max())


def _log_cdf(levels: Array, shift: float) -> tuple[Array, Array]:
    """``ln Phi(level - shift)`` and bounds on its absolute error, small where it is small."""
    z = np.abs(levels - shift)
    off = U * (abs(shift) + z)  # of the shift, and of the difference
    with np.errstate(divide="ignore"):
        tail = np.log(0.5 * erfcx(z * math.sqrt(0.5))) - 0.5 * z * z
    tail_error = ERFCX + ELEMENTARY + U * (4.0 * z * z + 2.0 * np.abs(tail) + 4.0) + 1.01 * (z + 1.0) * off
    mass = np.exp(tail)
    high = np.log1p(-np.minimum(mass, 0.5))
    high_error = 2.0 * mass * (tail_error + 2.0 * ELEMENTARY + 2.0 * U * np.abs(tail)) + ELEMENTARY * np.abs(high)
    return np.where(levels > shift, high, tail), np.where(levels > shift, high_error, tail_error)


def _log_steps(levels: Array, shift: float, log_cdf: Array, log_cdf_error: Array) -> tuple[Array, Array, Array]:
    """``ln (Phi(next) / Phi(level))`` for all but the last level, with bounds on the relative errors.

    Between them ``ln (Phi(next) / Phi(level) - 1)``, which keeps what is too small for a float, to the same errors.
    """
    part = normal_intervals(levels, shift, U * abs(shift))
    exponent = part.log_mass - log_cdf[:-1]
    # ln(1 + e^x), as x + ln(1 + e^-x) where e^x is large
    step = np.maximum(exponent, 0.0) + np.log1p(np.exp(-np.abs(exponent)))
    error = (
        part.error + log_cdf_error[:-1] + 2.0 * U * (np.abs(part.log_mass) + np.abs(log_cdf[:-1])) + 3.0 * ELEMENTARY
    )
    return step, exponent, error  # |d ln log1p(e^x) / dx| <= 1
