"""Transforms of the atoms of a step, tilted, at many equally spaced frequencies: products of small matrices.

The frequencies are ``m h``, in rows of ``COLUMNS`` about ``m = r COLUMNS``, rows in groups. With the frequencies
``s, s', s''`` of a group, of a row within and of a place in it, ``e^{i (s + s' + s'') l}`` is a product of three, so
that a sum over the atoms is one matrix product for each group. These are small: linear algebra libraries start threads
for larger ones.

Guarantee: transforms err by no more than `doubts_of` says, and atoms by no more than a step's ``shift`` and ``error``
(section 4 of `docs/derivations/one-sided-lines.md`). Cost: a tenth of a nanosecond for each frequency and atom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Self, final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.fft import integer_power
from hockeystick.numerics.rounding import ELEMENTARY, U

_HALF = 32
COLUMNS: Final = 2 * _HALF - 1
"""Frequencies of a row: the middle one and as many on either side."""

VANISHED: Final = 1e-40
"""Of a transform that adds nothing to any sum."""

_SMALL = 190_000  # multiplications of one matrix product
_MOST_ROWS = 64  # of a group
_PIECE = 128  # atoms of one matrix product: sums of few terms, which are added up


@final
@dataclass(frozen=True, eq=False)
class TiltedStep:
    """The atoms of a step, tilted; small losses and large ones have weights that sum to 1 each.

    Attributes
    ----------
    count : int
        How often the step is composed.
    kinds : sequence of (ndarray, ndarray)
        Weights and losses from the centre on, of the small atoms and of the large ones.
    shares : tuple of float
        What 0, 1, ... large losses of all those steps weigh, over ``e^log_scale``.
    log_scale, centre : float
        What is taken out of weights, and of the losses of one step.
    shift, error : float
        Bounds on the errors of the losses of one step, and of logarithms of weights of all, but for what `doubt` has.
    doubts : sequence of (float, float)
        Bounds on the errors of the transforms of either kind, relative to their values at 0: fixed, and for each
        frequency.
    between : (ndarray, float), optional
        Of the density of Laplace noise: what is divided by a rate plus i times the frequency, and the rate.
    """

    count: int
    kinds: Sequence[tuple[Array, Array]]
    shares: tuple[float, ...]
    log_scale: float
    centre: float
    shift: float
    error: float
    doubts: Sequence[tuple[float, float]]
    between: tuple[Array, float] | None = None

    @classmethod
    def of(cls, table: AtomTable, count: int, cut: int, theta: float, most: int) -> Self:
        """The atoms before the cut are small; at most so many large losses are asked for."""
        most = min(most, count) if cut < table.size else 0
        logs = table.log_p + theta * table.loss
        parts = [slice(0, cut), slice(cut, table.size)][: 1 + (most > 0)]
        sums = [float(np.logaddexp.reduce(logs[part])) for part in parts]
        terms = [(log_ways(count, k), (count - k) * sums[0], k * sums[-1]) for k in range(most + 1)]
        ways = [math.fsum(each) for each in terms]
        log_scale = max(ways)
        weights = [np.exp(logs[part] - total) for part, total in zip(parts, sums, strict=True)]
        centre = float(np.float32(weights[0] @ table.loss[:cut]))
        loss = table.loss - centre
        kinds = [(weight, loss[part]) for weight, part in zip(weights, parts, strict=True)]
        size = 2.0 * np.abs(table.log_p) + 3.0 * theta * np.abs(table.loss) + 2.0 * max(map(abs, sums))
        shift, far = _usual(weights, parts, table.loss_error + U * np.abs(loss))
        error, rough = _usual(weights, parts, table.error + U * size + 4.0 * ELEMENTARY)
        off = 1.01 * (rough + theta * far)
        # what weights may be at most, those that underflow, too; far above 1 is refused
        heavy = [
            np.exp(np.minimum(logs[part] - total + off[part], 99.0)) for part, total in zip(parts, sums, strict=True)
        ]
        added = min(loss.size, _PIECE) + loss.size // _PIECE
        return cls(
            count,
            kinds,
            tuple(math.exp(one - log_scale) for one in ways),
            log_scale,
            centre,
            shift,
            count * error + 8.0 * U * max(sum(map(abs, each)) for each in terms),
            [
                (
                    3.1 * U * (added + 25) + 1.01 * float(heaviest @ -np.expm1(-off[part])),
                    17.0 * U * float(weight @ np.abs(own)) + 1.02 * float(heaviest @ far[part]),
                )
                for part, (weight, own), heaviest in zip(parts, kinds, heavy, strict=True)
            ],
        )

    @classmethod
    def of_laplace(cls, loss: LaplaceLoss, count: int, theta: float) -> Self:
        """A step with the density of Laplace noise, whose largest loss is one rounding off."""
        m, rate, share = float(loss.largest), theta + 0.5, log_share(loss)
        ends = np.array([-m, m])
        logs = np.array([-(1.0 + theta) * m, theta * m]) - share
        log_between = math.log(m) - 0.5 * m + float(log_sinhc(np.array(rate * m))) - share
        total = float(np.logaddexp.reduce([*logs, log_between])) if loss.has_atoms else log_between
        weight = np.exp(logs - total)
        inside = math.exp(log_between - total) * (m / math.tanh(rate * m) - 1.0 / rate)
        atoms = weight if loss.has_atoms else np.zeros(2)
        centre = float(np.float32(atoms @ ends + inside))
        own = ends - centre
        sizes = 2.0 * float(np.abs(logs).max()) + 3.0 * (1.0 + theta) * m + 2.0 * abs(total) + 4.0 * abs(share)
        rounded = U * sizes + 4.0 * ELEMENTARY
        most = 1.01 * weight * (2.0 if loss.has_atoms else 0.5 / rate)  # what each end adds at a frequency
        doubt = float(most.sum()) * (1.01 * rounded + 3.1 * U * (own.size + 25) + 15.0 * U)
        return cls(
            count,
            [(atoms, own)],
            (1.0,),
            count * total,
            centre,
            shift=1.01 * U * m,
            error=count * 1.01 * U * (1.0 + m) + 8.0 * U * abs(count * total),
            doubts=[(doubt, 18.0 * U * float(most @ np.abs(own)))],
            between=(weight * (-0.5, 0.5), rate),
        )


def log_share(loss: LaplaceLoss) -> float:
    """``ln`` of what the terms of the transform are divided by: 2, or without atoms ``1 - e^{-m}``."""
    return math.log(2.0) if loss.has_atoms else math.log(-math.expm1(-float(loss.largest)))


def log_ways(count: int, k: int) -> float:
    """``ln`` of how many ways there are to choose k of so many."""
    return math.log(math.comb(count, k))


def log_sinhc(x: Array) -> Array:
    """``ln (sinh(x) / x)`` for x of at least 0, to a few roundings of itself and of 1."""
    low, high = np.clip(x, 1e-8, 1.0), np.maximum(x, 1.0)
    return np.where(x < 1.0, np.log(np.sinh(low) / low), high + np.log1p(-np.exp(-2.0 * high)) - np.log(2.0 * high))


def _usual(weights: Sequence[Array], parts: Sequence[slice], errors: Array) -> tuple[float, Array]:
    """A bound on most errors, by weight, and by how much each is beyond it."""
    usual = 2.0 * max(float(weight @ errors[part]) for weight, part in zip(weights, parts, strict=True))
    return usual * (1.0 + 8.0 * U), np.maximum(errors - usual, 0.0)


def rows_of_group(steps: Sequence[TiltedStep]) -> int:
    """How many rows are one matrix product."""
    atoms = max(loss.size for step in steps for _, loss in step.kinds)
    return min(max(_SMALL // (4 * _HALF * min(atoms, _PIECE)), 1), _MOST_ROWS)


@final
class Transforms:
    """The transforms of all steps, with a number of large losses, at multiples of a frequency."""

    def __init__(self, steps: Sequence[TiltedStep], number: int, frequency: float) -> None:
        self._steps, self._number, self.group = steps, number, rows_of_group(steps)
        self._frequency = frequency
        kinds = [
            step.kinds if step.between is None else [*step.kinds, (step.between[0], step.kinds[0][1])] for step in steps
        ]
        self._tables = [[_tables(*kind, self.group, frequency) for kind in own] for own in kinds]

    def at(self, groups: Array) -> Complex:
        """At all frequencies of some groups, of shape (rows, COLUMNS).

        Where the product of some of the steps has all but vanished, it is that: no smaller than that of all.
        """
        least = self._number if len(self._steps) == 1 else 0
        found: list[Complex | float] | None = None
        inverse: dict[float, Complex] = {}
        for step, tables in zip(self._steps, self._tables, strict=True):
            sums = [_sums(groups, kind) for kind in tables]
            if step.between is not None:
                rate = step.between[1]
                if rate not in inverse:
                    inverse[rate] = self._inverse(groups, rate)
                sums = [sums[0] + sums[1] * inverse[rate]]
            own = _with_large(step, sums, least)
            if found is None:
                found = own
            elif self._number == 0 and _has_vanished(found[0]):
                break
            else:
                found = _both(found, own)
        return np.asarray(found[self._number] if found else 1.0)

    def _inverse(self, groups: Array, rate: float) -> Complex:
        """``1 / (rate + is)``."""
        rows = (groups[:, None] * self.group + np.arange(float(self.group))).reshape(-1, 1) * COLUMNS
        s = self._frequency * (rows + (np.arange(float(COLUMNS)) - (_HALF - 1)))
        return np.asarray((rate - 1j * s) / (rate * rate + s * s))


def _has_vanished(phi: Complex | float) -> bool:
    size = np.asarray(phi)
    return float((size.real**2 + size.imag**2).max()) < VANISHED**2


_Table = tuple[Array, Complex, Array]


def _tables(weight: Array, loss: Array, group: int, frequency: float) -> list[_Table]:
    """Of pieces of the atoms: phases of one group, those of the rows of a group, and cosines and sines within a row."""
    row = COLUMNS * frequency
    within = np.arange(float(group))[:, None] * row
    near = np.arange(float(_HALF)) * frequency
    found = []
    for start in range(0, loss.size, _PIECE):
        own = loss[start : start + _PIECE]
        angles = np.multiply.outer(own, near)
        rows = weight[start : start + _PIECE] * np.exp(1j * (within * own))
        found.append((group * row * own, rows, np.concatenate((np.cos(angles), np.sin(angles)), axis=1)))
    return found


def _sums(groups: Array, pieces: Sequence[_Table]) -> Complex:
    """``sum w e^{i (x + y)}``, y before and after the middle of a row, from cosines and sines of x and of y."""
    both = np.zeros(())
    for turn, rows, near in pieces:
        far = np.exp(1j * np.multiply.outer(groups, turn))[:, None, :] * rows
        both = both + np.concatenate((far.real, far.imag), axis=1) @ near
    both = both.reshape(groups.size, 2, -1, 2, _HALF)
    cosine, sine = both[:, 0], both[:, 1]  # of x, times cosines and sines of y
    found = np.empty((*cosine.shape[:2], COLUMNS), dtype=np.complex128)
    found.real[..., _HALF - 1 :] = cosine[:, :, 0] - sine[:, :, 1]
    found.imag[..., _HALF - 1 :] = sine[:, :, 0] + cosine[:, :, 1]
    found.real[..., : _HALF - 1] = (cosine[:, :, 0] + sine[:, :, 1])[..., :0:-1]
    found.imag[..., : _HALF - 1] = (sine[:, :, 0] - cosine[:, :, 1])[..., :0:-1]
    return found.reshape(-1, COLUMNS)


def _with_large(step: TiltedStep, kinds: Sequence[Complex], least: int) -> list[Complex | float]:
    """What 0, 1, ... large losses weigh, from the least number on, given the transforms of small atoms and of large."""
    most = len(step.shares) - 1
    if most == 0:
        return [integer_power(kinds[0], step.count)]
    small: list[Complex | float] = [integer_power(kinds[0], step.count - most) if step.count > most else 1.0]
    large: list[Complex | float] = [integer_power(kinds[1], least) if least else 1.0]
    for _ in range(least, most):
        small.append(small[-1] * kinds[0])
        large.append(large[-1] * kinds[1])
    both = zip(step.shares[least:], reversed(small), large, strict=True)
    return [0.0] * least + [share * (one * other) for share, one, other in both]


def _both(first: list[Complex | float], second: list[Complex | float]) -> list[Complex | float]:
    """Of two kinds of steps: the product of polynomials in the number of large losses."""
    found: list[Complex | float] = [0.0] * (len(first) + len(second) - 1)
    for j, one in enumerate(first):
        for k, other in enumerate(second):
            found[j + k] = found[j + k] + one * other
    return found


def weight_of(steps: Sequence[TiltedStep], number: int) -> float:
    """What outcomes with so many large losses weigh, over the scales."""
    return float(reduce(np.convolve, [np.array(step.shares) for step in steps])[number])


def doubts_of(steps: Sequence[TiltedStep], number: int) -> Array:
    """Bounds on the error of a transform, relative to its value at 0, shape (2, 2): fixed, and for each frequency.

    First what may be multiplied by the root of its size: of a product only one factor is smaller than that, at most.
    """
    found, alone = np.zeros((2, 2)), np.zeros(2)
    is_product = number == 0 or sum(len(step.kinds) > 1 for step in steps) == 1
    for step in steps:
        large = min(step.count, number) if len(step.kinds) > 1 else 0
        small = step.count - large if is_product else step.count  # none has more
        for place, times in enumerate((small, large)[: len(step.kinds)]):
            own = np.array(step.doubts[place])
            found[0 if is_product else 1] += times * own
            alone = np.maximum(alone, own if times == 1 else 0.0)
        found[0 if is_product else 1, 0] += 2.5 * U * step.count + 8.0 * U * (number + 1)
    if is_product:
        found[1] = found[1] + alone
    return found
