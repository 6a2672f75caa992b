"""The line of a composition of rarely large losses: what does not depend on how often steps are composed.

With ``A_k`` the transform of a step of the k-th law below the lower cut and ``B_k`` of one between the cuts, the line
sums

    D(z) = prod_k (A_k(z) + B_k(z))^{T_k} - prod_k A_k(z)^{T_k},

the transform of the runs in which no step is above the upper cut and some step is above the lower one. It falls as the
B do, however slowly the A fall.

Guarantee: both sides certified, rounding included (`docs/derivations/rare-losses.md`). Cost: a complex product for each
node in the loss and each frequency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.contour.planned import few_bit_steps
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.rare.losses import RISEN, WIDTH, RareLosses, RareSum, raised
from hockeystick.engines.rare.pieces import Pieces, TiltedPieces
from hockeystick.engines.rare.plan import RarePlan, Shares, plan
from hockeystick.engines.rare.powers import Transforms
from hockeystick.engines.rare.turning import CLEAR
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.products import SMALL
from hockeystick.numerics.rounding import U, log_sums

MOST_FREQUENCIES = 1 << 14
MOST_WORK = 60_000_000
"""Products of frequencies and nodes that a law may take on a line: about a fifth of a second."""

MOST_HELD = 1 << 23
"""Frequencies of all laws together: their transforms take 32 bytes each."""

_FEWEST = 64  # frequencies: sums of a million nodes round by 1e-10
_GAP = 5.0  # widths, from one cut to the next
_LEAST_ANGLE = 2.0  # of the largest frequency, below which losses share a piece
_SEEN = 2.0  # widths above a cut that its piece reaches there
_CHUNK = 128
_TABLE = 1 << 15  # entries of tables at a time: they stay in the processor's cache
_FEW, _SHORT = 1024, 16  # nodes of which shorter chunks cost little, and lose less


@final
@dataclass(frozen=True, eq=False)
class RareStep:
    """A step of one law on a line.

    Attributes
    ----------
    pieces : Pieces
        Those below the lower cut, and those between both.
    low : float
        The lower cut.
    half_width : float
        Of the strip that proves the decay.
    found : RarePlan
        The tilts.
    step : float
        h.
    frequencies : int
        M.
    """

    pieces: Pieces
    low: float
    half_width: float
    found: RarePlan
    step: float
    frequencies: int

    @cached_property
    def _tilted(self) -> TiltedPieces:
        """The pieces on the line."""
        return TiltedPieces(self.pieces, 1.0 + self.found.tilt)

    @cached_property
    def parts(self) -> tuple[slice, slice]:
        """Those below the lower cut, and those between both."""
        small = int(np.count_nonzero(self.pieces.above <= self.low))
        return slice(small), slice(small, None)

    @cached_property
    def transforms(self) -> Transforms:
        """A and B on the line, each with a bound on its errors at all frequencies."""
        small, large = transforms(self._tilted, self.parts, self.step, self.frequencies)
        return *small, *large

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Upper bounds on A and B at the tilt of the line."""
        return self._moments(self._tilted)

    @cached_property
    def moments_above(self) -> tuple[float, float]:
        """The same at the tilt above."""
        return self._moments(TiltedPieces(self.pieces, 1.0 + self.found.above))

    @cached_property
    def moment_dropping(self) -> float:
        """An upper bound on A at the tilt that bounds the losses below the lower cut."""
        return self._moments(TiltedPieces(self.pieces, 1.0 + self.found.dropping))[0]

    def _moments(self, tilted: TiltedPieces) -> tuple[float, float]:
        small, large = (float(tilted.moment[some].sum()) * RISEN for some in self.parts)
        return small, large

    @cached_property
    def faded(self) -> float:
        """Upper bound on ``|B|`` at and beyond the last frequency."""
        last = self.step * (self.frequencies - 1)
        bounds = raised(self._tilted.log_faded(last, self.half_width))
        return float(bounds[self.parts[1]].sum()) * RISEN

    @cached_property
    def lost(self) -> float:
        """Upper bound on the mass of a step beyond the ends of its piece."""
        return float(self.pieces.lost.sum()) * RISEN


@final
@dataclass(frozen=True, eq=False)
class RareLine:
    """A line planned for one run and epsilon, which brackets delta wherever it is asked (`RareRuns`).

    Attributes
    ----------
    losses : RareSum
        The laws, and the run.
    found : RarePlan
        Where the cuts lie.
    pieces : tuple of Pieces, of length K
        Of every law.
    step : float
        h, of 21 bits.
    frequencies : int
        M.
    planned : float
        The epsilon.
    """

    losses: RareSum
    found: RarePlan
    pieces: tuple[Pieces, ...]
    step: float
    frequencies: int
    planned: float

    @cached_property
    def steps(self) -> tuple[RareStep, ...]:
        """A step of every law."""
        of_laws = zip(self.pieces, self.found.low, self.found.half_widths, strict=True)
        return tuple(RareStep(*own, self.found, self.step, self.frequencies) for own in of_laws)


def rare_line(
    losses: RareSum, epsilon: float, log_error: float, *, least: Sequence[Shares] = ((1.0, 1.0),)
) -> RareLine:
    """A line that brackets delta at and near an epsilon to about ``e^log_error``; see `plan` for ``least``.

    Raises
    ------
    ContourRefusal
        Where losses of all sizes are frequent, or a line would be too long.
    """
    if not 0.0 < epsilon < math.inf:
        raise ContourRefusal("tail", "no line showed where to look")
    found = plan(losses, epsilon, log_error, least)
    step = float(few_bit_steps(np.array(2.0 * math.pi / found.period)))
    frequencies = math.ceil(found.reach / step) + 1
    if frequencies > MOST_FREQUENCIES:
        raise ContourRefusal("tail", f"{frequencies} frequencies would be needed: losses of many sizes")
    if frequencies * len(losses.laws) > MOST_HELD:
        raise ContourRefusal("tail", f"{frequencies} frequencies would be needed of every law")
    pieces = pieces_of(losses, found)
    nodes = sum(int(own.sizes.sum()) for own in pieces)
    if nodes * max(frequencies, _FEWEST) > MOST_WORK * len(losses.laws):
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: losses of many sizes")
    return RareLine(losses, found, pieces, step, frequencies, epsilon)


def pieces_of(losses: RareSum, found: RarePlan) -> tuple[Pieces, ...]:
    """The pieces of every law below the lower cut, and then those between both."""
    log_moment, log_counts = np.array(found.log_moment), np.log(losses.counts)
    log_other = float(losses.counts @ log_moment) - log_moment
    log_targets = found.log_error - log_counts - math.log(len(losses.laws)) - log_other - 5.0
    # an error of A counts as often as some B may stand beside it
    log_beside = float(log_sums(log_counts + found.log_part - log_moment))
    of_laws = zip(losses.laws, found.low, found.high, log_targets.tolist(), strict=True)
    return tuple(
        _pieces(law, (low, high), (1.0 + found.tilt, found.reach), (log_target - log_beside, log_target))
        for law, low, high, log_target in of_laws
    )


def _pieces(
    law: RareLosses, cuts: tuple[float, float], line: tuple[float, float], log_targets: tuple[float, float]
) -> Pieces:
    """Those of a law between two cuts, for an exponent and a largest frequency, and errors of A and B."""
    (low, high), (exponent, reach), (log_small, log_target) = cuts, line, log_targets
    gap, least = high - low, _GAP * law.width
    number = max(math.ceil(gap / least - 0.3), 1)
    between = [high - gap * k / number for k in range(number)] + [low]
    bottom = low
    bulk = -0.5 * law.shift**2 + law.shift
    lower = [bottom]
    while bottom - least > bulk and _turns_apart(law, bottom, reach):
        bottom -= least
        lower.append(bottom)
    lower.append(-math.inf)
    accuracy = [min(log_small, log_target)] * (len(lower) - 1) + [log_target] * number
    return Pieces.planned(
        law,
        np.array(lower[1:] + between[1:]),
        np.array(lower[:-1] + between[:-1]),
        exponent=exponent,
        frequency=reach,
        log_accuracy=np.array(accuracy),
    )


def _turns_apart(losses: RareLosses, cut: float, frequency: float) -> bool:
    """Whether losses below a cut turn by too different angles for one piece, or those of wide cuts by too many."""
    here, above = losses.posterior(cut + np.array([0.0, _SEEN * losses.width])).tolist()
    return frequency * here > _LEAST_ANGLE or (losses.width > WIDTH and above > CLEAR)


def transforms(
    tilted: TiltedPieces, parts: Sequence[slice], step: float, frequencies: int
) -> list[tuple[Complex, float]]:
    """The transforms of some of the pieces each at ``i m step`` from the line, with bounds on their errors there."""
    pieces, last, found = tilted.pieces, step * (frequencies - 1), []
    rules = raised(tilted.log_error(last))
    # a phase is off by the error of the loss, and its parts, twice as large in all at most, by a rounding each
    relative = tilted.relative_error + last * (pieces.loss_error + 3.0 * U * np.abs(pieces.loss))
    for some in parts:
        own = pieces.nodes_of(some)
        value, rounding = _summed(tilted.weights[own], pieces.loss[own], relative[own], step, frequencies)
        found.append((value, rounding + float(rules[some].sum()) * RISEN))
    return found


def _summed(weight: Array, loss: Array, relative: Array, step: float, frequencies: int) -> tuple[Complex, float]:
    """``sum w e^{i m step l}``, and a bound on its error, where terms have these.

    Frequencies lie in blocks, c the middle of one: the products of the cosine and the sine of c l with those of r l,
    summed, are all that those of ``(c + r) l`` and ``(c - r) l`` sum to.
    """
    length = _SHORT if weight.size <= _FEW else _CHUNK
    missing = -weight.size % length
    chunks = (weight.size + missing) // length
    padded_weight, padded_loss = (np.concatenate((one, np.zeros(missing))) for one in (weight, loss))
    side = math.isqrt((frequencies - 1) // 2)
    needed = -(-frequencies // (2 * side + 1))
    groups = -(-needed * (side + 1) * length // SMALL)
    group = -(-needed // groups)
    blocks = groups * group
    shape = (chunks, 1, length)
    w, y = padded_weight.reshape(shape), padded_loss.reshape(shape)
    sums = np.zeros((2, groups, group, 2 * (side + 1)))
    most = max(_TABLE // (length * (side + 1 + blocks)), 1)
    for first in range(0, chunks, most):
        part = slice(first, first + most)
        near = _turns(y[part], step, side + 1)
        middle = _turns(y[part], step * (2 * side + 1), blocks, times=w[part] * near[:, side:])
        left = _apart(middle).reshape(-1, 2, groups, group, length)
        right = _apart(near).reshape(-1, 1, 1, 2 * (side + 1), length)
        sums += np.matmul(left, right.transpose(0, 1, 2, 4, 3)).sum(axis=0)
    even, odd = sums.reshape(2, blocks, 2, side + 1)  # of the cosines of c l, and of its sines
    here, aside = even[:, 0] + 1j * odd[:, 0], odd[:, 1] - 1j * even[:, 1]
    value = np.concatenate(((here + aside)[:, :0:-1], here - aside), axis=1)
    # twelve sines and cosines err by 6 u each; ten products of tables, one by the weight by 24 u in all
    own = relative + (92.0 + 1.5 * (length + chunks)) * U
    return value.ravel()[:frequencies], float((weight * own).sum()) * 1.01


def _apart(turns: Complex) -> Array:
    """Cosines, and then sines, along a new second axis."""
    found = np.empty((turns.shape[0], 2, *turns.shape[1:]))
    found[:, 0], found[:, 1] = turns.real, turns.imag
    return found


def _turns(loss: Array, step: float, count: int, *, times: Complex | float = 1.0) -> Complex:
    """``times e^{i k h l}`` for ``k < count`` along the middle axis, products of the entries of two tables."""
    length = math.isqrt(count - 1) + 1
    near, far = _table(loss, step, length) * times, _table(loss, step * length, -(-count // length))
    every = far[:, :, None] * near[:, None]
    return every.reshape(loss.shape[0], -1, loss.shape[2])[:, :count]


def _table(loss: Array, step: float, count: int) -> Complex:
    """The same, where those in the second half are products of two in the first."""
    found, half = np.ones((loss.shape[0], count, loss.shape[2]), dtype=np.complex128), count // 2
    found[:, 1 : half + 1] = turn(loss * (step * np.arange(1.0, half + 1.0))[:, None])
    found[:, half + 1 :] = found[:, 1 : count - half] * found[:, half : half + 1]
    return found


def turn(angle: Array) -> Complex:
    """``e^{i angle}``."""
    found = np.empty(angle.shape, dtype=np.complex128)
    np.cos(angle, out=found.real)
    np.sin(angle, out=found.imag)
    return found
