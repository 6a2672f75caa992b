"""The line of a composition of rarely large losses: what does not depend on how often the step is composed.

With ``A`` the transform of a step below the lower cut and ``B`` of one between the cuts, the line sums

    D(z) = (A(z) + B(z))^T - A(z)^T,

the transform of the runs in which no step is above the upper cut and some step is above the lower one. It falls as B
does, however slowly A falls.

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
from hockeystick.engines.rare.losses import RISEN, WIDTH, RareLosses, raised
from hockeystick.engines.rare.pieces import Pieces, TiltedPieces
from hockeystick.engines.rare.plan import RarePlan, Shares, plan
from hockeystick.engines.rare.turning import CLEAR
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.products import SMALL
from hockeystick.numerics.rounding import U

MOST_FREQUENCIES = 1 << 14
MOST_WORK = 60_000_000
"""Products of frequencies and nodes that a line may take: about a fifth of a second."""

_FEWEST = 64  # frequencies: sums of a million nodes round by 1e-10
_GAP = 5.0  # widths, from one cut to the next
_LEAST_ANGLE = 2.0  # of the largest frequency, below which losses share a piece
_SEEN = 2.0  # widths above a cut that its piece reaches there
_CHUNK = 128
_TABLE = 1 << 15  # entries of tables at a time: they stay in the processor's cache
_FEW, _SHORT = 1024, 16  # nodes of which shorter chunks cost little, and lose less


@final
@dataclass(frozen=True, eq=False)
class RareLine:
    """A line planned for one run and epsilon, which brackets delta wherever it is asked (`RareRuns`).

    Attributes
    ----------
    losses : RareLosses
        The law, and the run.
    found : RarePlan
        Where the cuts lie.
    pieces : Pieces
        Those below the lower cut, and those between both.
    step : float
        h, of 21 bits.
    frequencies : int
        M.
    planned : float
        The epsilon.
    """

    losses: RareLosses
    found: RarePlan
    pieces: Pieces
    step: float
    frequencies: int
    planned: float

    @cached_property
    def _tilted(self) -> TiltedPieces:
        """The pieces on the line."""
        return TiltedPieces(self.pieces, 1.0 + self.found.tilt)

    @cached_property
    def parts(self) -> tuple[slice, slice]:
        """Those below the lower cut, and those between both."""
        small = int(np.count_nonzero(self.pieces.above <= self.found.low))
        return slice(small), slice(small, None)

    @cached_property
    def transforms(self) -> tuple[Complex, float, Complex, float]:
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
        bounds = raised(self._tilted.log_faded(last, self.found.half_width))
        return float(bounds[self.parts[1]].sum()) * RISEN

    @cached_property
    def lost(self) -> float:
        """Upper bound on the mass of a step beyond the ends of its piece."""
        return float(self.pieces.lost.sum()) * RISEN


def rare_line(
    losses: RareLosses, epsilon: float, log_error: float, *, least: Sequence[Shares] = ((1.0, 1.0),)
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
    pieces = pieces_of(losses, found)
    nodes = int(pieces.sizes.sum())
    if nodes * max(frequencies, _FEWEST) > MOST_WORK:
        raise ContourRefusal("tail", f"{nodes} nodes would be needed: losses of many sizes")
    return RareLine(losses, found, pieces, step, frequencies, epsilon)


def pieces_of(losses: RareLosses, found: RarePlan) -> Pieces:
    """The pieces below the lower cut, and then those between both."""
    exponent, gap, least = 1.0 + found.tilt, found.high - found.low, _GAP * losses.width
    number = max(math.ceil(gap / least - 0.3), 1)
    cuts = [found.high - gap * k / number for k in range(number)] + [found.low]
    log_target = found.log_error - math.log(losses.steps) - (losses.steps - 1.0) * found.log_moment - 5.0
    # an error of A counts as often as B may stand beside it
    log_small = log_target - math.log(losses.steps) - found.log_part + found.log_moment
    bottom = found.low
    bulk = -0.5 * losses.shift**2 + losses.shift
    lower = [bottom]
    while bottom - least > bulk and _turns_apart(losses, bottom, found.reach):
        bottom -= least
        lower.append(bottom)
    lower.append(-math.inf)
    accuracy = [min(log_small, log_target)] * (len(lower) - 1) + [log_target] * (len(cuts) - 1)
    return Pieces.planned(
        losses,
        np.array(lower[1:] + cuts[1:]),
        np.array(lower[:-1] + cuts[:-1]),
        exponent=exponent,
        frequency=found.reach,
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
