"""A line of limited band: one Fourier sum below, and one above, the delta of a term at any epsilon.

With the transforms G^ of `kernels`, sums over the frequencies ``s_m = 2 pi m / W`` below 2 pi / w,

    S(eps) = (w / W) sum_m G^(w s_m) phi(s_m) e^{-i s_m eps},      phi(s) = sum p e^{(theta + is) l} / scale,

are those of ``sum_j G(l - eps + j W)`` over the outcomes, and G lies below f, or above it: nothing is left out, however
slowly phi decays. What the period W brings back makes both larger, and is taken off below.

Guarantee: both sides, rounding included (`docs/derivations/one-sided-lines.md`, section 4). Cost: some 100 nanoseconds
for each frequency, and a tenth of one more for each atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.one_sided.kernels import COARSEST, KERNEL, Kernels
from hockeystick.engines.one_sided.terms import TILTS, Aliasing, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, Complex, TiltedStep, Transforms, doubts_of, weight_of
from hockeystick.laws.base import Array
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_down, exp_up, up

_BLOCK = 1 << 14  # frequencies at once: arrays that stay near
_MOST_ERROR = 1e-2  # of phi, relative to its largest value
_SKIPPED = 1e-13  # of the sum of all sizes, that rows left out may be
_LIGHT = 1e-10  # of what their sizes are without phi, besides: bounds on these are coarse
_MIDDLE = COLUMNS // 2


@final
@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of the sums of a line, unless they are negligible.

    Attributes
    ----------
    rows : ndarray, shape (n,)
        Numbers of the frequencies in their middle.
    sums : ndarray, shape (2, n, COLUMNS)
        ``G^ phi`` below and above.
    totals : tuple of float
        Bounds on the sizes of sums left out, and on the sum of the terms of G^; and on those of sizes of G^, times the
        root of that of phi and alone, each again times the number of the frequency.
    """

    rows: Array
    sums: Complex
    totals: tuple[float, ...]

    @classmethod
    def of(cls, kernels: Kernels, transforms: Transforms, groups: Array, whole: float, part: float) -> Self:
        """Of some groups of rows."""
        columns = np.arange(float(COLUMNS)) - _MIDDLE
        rows = COLUMNS * np.arange(groups[0] * transforms.group, (groups[-1] + 1.0) * transforms.group)
        phi = transforms.at(groups) / whole
        sizes = np.abs(phi)
        most = kernels.largest(rows[0] - _MIDDLE, rows[-1] + _MIDDLE) if groups[0] > 0.0 else math.inf
        skipped, every = most * float(sizes.sum()), most * sizes.size
        if max(skipped, _LIGHT * every) * 4.0 * kernels.theta <= part * kernels.points:
            largest, sums, terms = np.full_like(sizes, most), np.empty((2, 0, COLUMNS), dtype=np.complex128), 0.0
        else:
            both, of_terms = kernels.at(rows, columns)
            largest, sums, terms = np.maximum(*np.abs(both)), np.array(both) * phi, float(of_terms.sum())
            skipped = 0.0
            if groups[0] == 0.0:  # frequencies below 0 have been counted, and 0 is its own mirror image
                sums[:, 0] *= np.where(columns == 0.0, 0.5, columns > 0.0)
        weights = [
            (one.sum(), rows @ one.sum(axis=1) + one.sum(axis=0) @ columns)
            for one in (largest * np.sqrt(sizes), largest)
        ]
        return cls(rows[: sums.shape[1]], sums, (skipped, terms, *map(float, np.ravel(weights))))


@final
@dataclass(frozen=True, eq=False)
class OneSidedLine:
    """The sums of one term.

    Attributes
    ----------
    terms : Terms
        What the term is one of.
    number, tilt : int
        How many large losses it has, and which of `TILTS` it is tilted by.
    period, spacing : float
        W and w (nats).
    nodes : int
        Frequencies.
    rows : ndarray, shape (n,)
        Numbers m of the frequencies in the middle of rows that are not negligible.
    sums : ndarray, shape (2, n, COLUMNS)
        ``G^ phi`` below and above, weighted.
    log_scale, centre : float
        What is taken out of weights, and of losses.
    shift, error : float
        Bounds on the errors of losses, and of logarithms of weights.
    doubt, turning : float
        Bounds on the error of a sum: fixed, and for each nat from the centre to epsilon.
    """

    terms: Terms
    number: int
    tilt: int
    period: float
    spacing: float
    nodes: int
    rows: Array
    sums: Complex
    log_scale: float
    centre: float
    shift: float
    error: float
    doubt: float
    turning: float

    @classmethod
    def of(cls, terms: Terms, number: int, tilt: int, period: float, nodes: int) -> Self:
        """With so many frequencies, or some more."""
        theta, frequency = float(TILTS[tilt]), 2.0 * math.pi / period
        steps = [TiltedStep.of(*step, cut, theta, number) for step, cut in zip(terms.steps, terms.cuts, strict=True)]
        transforms, whole = Transforms(steps, number, frequency), weight_of(steps, number)
        groups = -(-nodes // (COLUMNS * transforms.group)) + 1
        points = (groups * transforms.group - 1) * COLUMNS + _MIDDLE + 0.5
        kernels = Kernels(theta, points, period / points)
        if (1.0 + theta) * kernels.spacing > COARSEST:
            raise ContourRefusal("width", f"{nodes} frequencies are too few for a tilt of {theta:g}")
        together = max(_BLOCK // (COLUMNS * transforms.group), 1)
        blocks = [np.arange(start, min(start + together, groups)) for start in range(0, groups, together)]
        found = [
            _Block.of(kernels, transforms, some.astype(np.float64), whole, _SKIPPED / len(blocks)) for some in blocks
        ]
        share = 2.0 / points
        skipped, size, *parts = (
            1.02 * share * math.fsum(column) for column in zip(*(one.totals for one in found), strict=True)
        )
        # damped and not, fixed and for each frequency; sizes are those computed
        weights, doubts = np.reshape(parts, (2, 2)) * [[1.1], [1.0]], doubts_of(steps, number) * (1.0, frequency)
        if doubts.sum(axis=0) @ (1.0, points) > _MOST_ERROR:
            raise ContourRefusal("width", f"losses turn too fast for {nodes} frequencies")
        doubt = float((doubts * weights).sum()) + size * KERNEL + weights[1, 0] * 3.1 * U * (COLUMNS + 24) + skipped
        centres = [step.count * step.centre for step in steps]
        return cls(
            terms,
            number,
            tilt,
            period,
            kernels.spacing,
            groups * transforms.group * COLUMNS,
            np.concatenate([one.rows for one in found]),
            np.asarray(np.concatenate([one.sums for one in found], axis=1) * share),
            math.fsum(step.log_scale for step in steps) + math.log(whole),
            math.fsum(centres),
            shift=math.fsum(step.count * step.shift for step in steps) + 4.0 * U * math.fsum(map(abs, centres)),
            error=math.fsum(step.error for step in steps) + 16.0 * ELEMENTARY,
            doubt=1.1 * doubt,
            turning=6.8 * U * float(weights[1, 1] * frequency),
        )

    def value(self, side: int, epsilon: float) -> float:
        """The sum below (0) or above (1), over the scale; an estimate."""
        turn = -2j * math.pi / self.period * (epsilon - self.centre)
        near = np.exp(turn * (np.arange(float(COLUMNS)) - _MIDDLE))
        sums = np.exp(turn * self.rows) * np.einsum("ij,j->i", self.sums[side], near)
        return math.fsum(sums.real.tolist())

    def rounded(self, epsilon: float, value: float) -> float:
        """About how far roundings move both sides of a sum apart, over the scale."""
        moved = float(TILTS[self.tilt]) * self._moved(epsilon) + self._error(epsilon)
        return 2.0 * (self._doubt(epsilon) + value * moved)

    def log_scale_at(self, epsilon: float) -> float:
        """``ln`` of what sums are to be multiplied by."""
        return self.log_scale - float(TILTS[self.tilt]) * epsilon

    def lower(self, epsilon: float) -> float:
        """At most the delta of the term."""
        at = epsilon + self._moved(epsilon)
        value = self.value(0, at) - self._doubt(at)
        if value <= 0.0:
            return 0.0
        return max(self._scaled(exp_down, -1.0, at, value) - self._aliasing(at).upper, 0.0)

    def upper(self, epsilon: float) -> float:
        """At least the delta of the term."""
        at = epsilon - self._moved(epsilon)
        value = self.value(1, at) + self._doubt(at)
        found = self._scaled(exp_up, 1.0, at, max(value, 0.0))
        return found if found == math.inf else up(max(found - self._aliasing(at).lower, 0.0))

    def _scaled(self, exp: Callable[[float, float], float], sign: float, epsilon: float, value: float) -> float:
        """A sum times its scale, rounded to the side of the sign."""
        power = max(math.frexp(value)[1], 0)  # a factor of at most 1 is asked for
        error = sign * (self._error(epsilon) + 4.0 * U * power)
        return exp(self.log_scale_at(epsilon) + power * math.log(2.0) + error, math.ldexp(value, -power))

    def _aliasing(self, epsilon: float) -> Aliasing:
        return self.terms.aliasing(self.number, self.tilt, self.period, epsilon)

    def _moved(self, epsilon: float) -> float:
        return self.shift + 4.0 * U * (abs(epsilon) + abs(self.centre))

    def _doubt(self, epsilon: float) -> float:
        return self.doubt + self.turning * abs(epsilon - self.centre)

    def _error(self, epsilon: float) -> float:
        return self.error + 4.0 * U * (abs(self.log_scale) + float(TILTS[self.tilt]) * abs(epsilon))
