"""Matrix mechanisms on fixed bins: every record is put into one of b bins once, bin i is used in step i of every epoch.

With v_i the sum of the columns of |C| of bin i's steps, the run has the likelihood ratio ``(1/b) sum_i e^{X_i - G_ii
/ 2}``, X normal of covariance ``G_ik = <v_i, v_k> / s^2``; delta grows with every entry of G. So with covariance c
between all bins, and g - c of each apart, it is a Gaussian release of mu^2 = c beside a round of random allocation of
mu^2 = g - c on b steps:

- *above*, with g and c the largest entries. The bins i mod p alone, for p = 1, 2, ..., are floor(b / p) bins or more
  whose c is smaller: the whole lies below a mean of these;
- *below*, with c the least entry. Blocks of p neighbouring bins, as one bin each, whose g is the least entry in a
  block.

Source: Chua et al. (2412.16802), Choquette-Choo et al. (2410.06266). Proof: docs/derivations/banded.md, section 3.

Guarantee: both sides, rounding included. The lower one needs products of columns that are not negative. Cost: one
product of matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick.composition import Composition, Direction, Step, compose
from hockeystick.errors import LEAST_RATIO, UnknownPairError, check_count, check_positive, check_ratio, public_door
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.mechanisms.matrix import checked_matrix
from hockeystick.numerics.rounding import TINY, U
from hockeystick.sampling.random_allocation import allocated_pairs

Array = NDArray[np.float64]

_RANGE = (1e-100, 1e100)  # of entries: squares are normal numbers
_ALIKE = 1e-8  # relative: bins that differ by less are taken to be one
_ORTHOGONAL = 1e-20  # relative: what bins have in common is taken to be as much as this, or to be nothing
_LEAST = (2.0 * LEAST_RATIO) ** 2  # the square of a mu that is one of a pair when it is rounded down, too
_AT = 1e-6  # the delta where the upper sides are compared


@final
@dataclass(frozen=True)
class BinnedMatrix(Step):
    """What the bins of a matrix mechanism have in common, or apart: rounds of random allocation that bracket it.

    Parameters
    ----------
    above : tuple of int and float
        Steps and mu of a round of random allocation of mu-Gaussian releases above it.
    below : tuple of tuples
        The same of rounds below it.
    """

    above: tuple[int, float]
    below: tuple[tuple[int, float], ...]

    def pair(self, direction: Direction) -> Pair:
        return _round(*self.above, direction)[0]

    def attained(self, direction: Direction) -> tuple[Pair, ...]:
        return tuple(_round(*each, direction)[1] for each in self.below)

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        sides = "bracket it on both sides" if self.below else "are above it"
        return (f"matrix mechanism on fixed bins, the whole run: equally correlated bins {sides}",)


def _round(steps: int, mu: float, direction: Direction) -> tuple[Pair, Pair]:
    if direction == "substitute":
        raise UnknownPairError(
            "no dominating pair is proved for matrix mechanisms on fixed bins under 'substitute'; use adjacency"
            " 'add-remove' or 'zero-out'"
        )
    return allocated_pairs(GaussianPair(1.0, mu), steps, direction)


@public_door
def binned_matrix_mechanism(strategy: ArrayLike, noise_multiplier: float, *, bins: int) -> Composition:
    """A matrix mechanism on fixed bins, the whole run: once every record is put into one of ``bins`` bins, at random.

    Bin i is used in steps i, i + bins, i + 2 bins, ... Records are put into bins uniformly and independently, nobody
    but the trainer knowing which. Contributions may be chosen adaptively, step by step.

    Parameters
    ----------
    strategy : array_like, shape (n, n)
        C, lower triangular: ``C X + Z`` is released, or any function of it. Entries are 0 or of size 1e-100 to 1e100.
    noise_multiplier : float
        Standard deviation of every entry of Z, in units of the clipping norm; above 0.
    bins : int
        b, from 1 to n.

    Returns
    -------
    Composition
        What the bins have in common, and what each has apart; under 'substitute' it refuses. The bracket is narrow
        where bins are nearly orthogonal or nearly alike. Where columns have negative products its lower side is 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = binned_matrix_mechanism([[0.8, 0.0], [0.6, 1.0]], 2.0, bins=2)
    >>> run.total_steps  # what the bins have in common, and what each has apart
    2
    >>> f"{hs.account(run).epsilon(delta=1e-5):.2f}"
    '[1.76, 1.77]'
    """
    noise, matrix = check_positive("noise_multiplier", noise_multiplier), checked_matrix(strategy).astype(np.float64)
    count = check_count("bins", bins)
    if count > matrix.shape[0]:
        raise ValueError(f"bins must be at most the number of steps, {matrix.shape[0]}, got {count}")
    sizes = np.append(np.abs(matrix[matrix != 0.0]), noise)
    if sizes.min() < _RANGE[0] or sizes.max() > _RANGE[1]:
        raise ValueError(
            "noise_multiplier and the entries of strategy that are not 0 must be of size"
            f" {_RANGE[0]:g} to {_RANGE[1]:g}"
        )
    largest, least = _covariances(matrix, noise, count)
    steps, shared, apart = _above(largest)
    both = shared > 0.0 and apart > 0.0
    low_shared = float(least.min()) if both else 0.0
    low_shared = low_shared if low_shared >= max(_ORTHOGONAL * float(largest.max()), _LEAST) else 0.0
    rounds = _below(least, low_shared)
    if not both:
        whole = (steps, apart) if apart > 0.0 else (1, shared)  # bins that are all alike hide nothing
        return compose([BinnedMatrix(whole, rounds)])
    common = ((1, math.sqrt(low_shared) * (1.0 - 4.0 * U)),) if low_shared > 0.0 else ()
    return BinnedMatrix((steps, apart), rounds) + BinnedMatrix((1, shared), common)


def _covariances(matrix: Array, noise: float, bins: int) -> tuple[Array, Array]:
    """Upper bounds on the entries of G for |C|, lower bounds on those for C: all contributions of a record alike."""
    n = matrix.shape[0]
    signed, sizes = (
        np.stack([each[:, first::bins].sum(axis=1) for first in range(bins)], axis=1)
        for each in (matrix, np.abs(matrix))
    )
    with np.errstate(under="ignore"):
        most, least = sizes.T @ sizes, signed.T @ signed
    check_ratio(math.sqrt(most.max()), noise)
    # every entry is a sum of at most n products of sums of at most n entries, each an integer rounded at most once
    off = (3.0 * n + 8.0) * U * most
    scale = noise * noise
    largest = np.where(most > 0.0, np.maximum((most + off) / scale * (1.0 + 8.0 * U), TINY), 0.0)
    return largest, np.where(most > 0.0, (least - off) / scale, 0.0) * (1.0 - 8.0 * U)


def _above(covariance: Array) -> tuple[int, float, float]:
    """Steps, the mu in common and the mu apart, of the best of the covers by bins i mod p, about."""
    bins, own = covariance.shape[0], float(covariance.diagonal().max())
    beside = np.array([covariance.diagonal(lag).max() for lag in range(1, bins)])
    best = (math.inf, 1, math.sqrt(own), 0.0)
    for apart in range(1, bins + 1):
        steps, lags = bins // apart, beside[apart - 1 :: apart]
        shared = float(lags.max(initial=0.0))
        shared = max(shared, _ORTHOGONAL * own, _LEAST) if shared > 0.0 else 0.0
        if steps == 1 or own - shared < max(_ALIKE * own, _LEAST):
            shared = own
        guess = _about(steps, shared, own - shared)
        if guess < best[0]:
            best = guess, steps, math.sqrt(shared), math.sqrt(own - shared)
    _, steps, shared, apart_mu = best
    return steps, shared * (1.0 + 4.0 * U), apart_mu * (1.0 + 4.0 * U)


def _about(steps: int, shared: float, apart: float) -> float:
    """About the epsilon: of a normal law that has the variance of the likelihood ratio, or of one bin alone."""
    own = math.sqrt(shared + apart)
    alike = min(math.sqrt(shared + math.expm1(min(apart, 600.0)) / steps), own)
    normal = NormalDist()
    found = 0.5 * alike**2 - alike * normal.inv_cdf(_AT)
    alone = 0.5 * own**2 - own * normal.inv_cdf(min(steps * _AT, 0.5)) - math.log(steps)
    return max(found, alone)


def _below(covariance: Array, shared: float) -> tuple[tuple[int, float], ...]:
    """Steps of blocks of p bins, p = 1, 2, 4, ..., and the mu that they have besides what is in common."""
    bins, rounds, size = covariance.shape[0], [], 1
    while covariance.min() >= 0.0 and size < 2 * bins:
        blocks = [covariance[first : first + size, first : first + size].min() for first in range(0, bins, size)]
        own = float(min(blocks)) - shared
        if own >= _LEAST:
            rounds.append((len(blocks), math.sqrt(own) * (1.0 - 4.0 * U)))
        size *= 2
    return tuple(rounds)
