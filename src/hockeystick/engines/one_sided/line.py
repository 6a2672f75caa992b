"""A line of limited band: one Fourier sum below, and one above, the delta of a term at any epsilon.

With the transforms G^ of `kernels`, sums over the frequencies ``s_m = 2 pi m / W`` below 2 pi / w,

    S(eps) = (w / W) sum_m G^(w s_m) phi(s_m) e^{-i s_m eps},      phi(s) = sum p e^{(theta + is) l} / scale,

are those of ``sum_j G(l - eps + j W)`` over the outcomes, and G lies below f, or above it: nothing is left out, however
slowly phi decays. What the period W brings back makes both larger, and is taken off.

Guarantee: both sides, rounding included (`docs/derivations/one-sided-lines.md`, sections 2 and 4). Cost: some 30
nanoseconds for each frequency, a tenth of one more for each atom, and 50 more where phi is not next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.one_sided.kernels import COARSEST, KERNEL, Kernels
from hockeystick.engines.one_sided.terms import Placed, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, VANISHED, Transforms, doubts_of, weight_of
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_down, exp_up, up

_BLOCK = 1 << 14  # frequencies at once: arrays that stay near
_MIDDLE = COLUMNS // 2
_ROWS = 32  # whose sums are added up before exact sums
_ADDITIONS = COLUMNS + _ROWS
_MOST_ERROR = 1e-2  # of phi, relative to its largest value
_LEAST_SHARE = 1e-200  # of all outcomes, that those of a number of large losses weigh: products keep their digits
_SKIPPED = 1e-13  # of the sum of all kernels, that rows left out may be
_LIGHT = 1e-10  # of what their kernels alone are, besides: bounds on these are coarse


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
        Bounds on the sizes of sums left out, and on the sum of the terms of G^, times the root of the size of phi; and
        on those of sizes of G^, times that root and alone, each again times the number of the frequency.
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
            largest, sums = np.maximum(*np.abs(both)), np.array(both) * phi
            skipped, terms = 0.0, float((of_terms * np.sqrt(sizes)).sum())
            if float(sizes.max()) < VANISHED:  # it may be larger than what is true
                skipped, sums = float((largest * sizes).sum()), sums[:, :0]
            elif groups[0] == 0.0:  # frequencies below 0 have been counted, and 0 is its own mirror image
                sums[:, 0] *= np.where(columns == 0.0, 0.5, columns > 0.0)
        weights = [
            (one.sum(), rows @ one.sum(axis=1) + one.sum(axis=0) @ np.abs(columns))
            for one in (largest * np.sqrt(sizes), largest)
        ]
        return cls(rows[: sums.shape[1]], sums, (skipped, terms, *map(float, np.ravel(weights))))


@final
@dataclass(frozen=True, eq=False)
class OneSidedLine:
    """The sums of one term.

    Attributes
    ----------
    terms, placed : Terms, Placed
        What the term is one of, and where the line lies.
    spacing : float
        w (nats).
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
    placed: Placed
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
    def of(cls, terms: Terms, placed: Placed, nodes: int) -> Self:
        """With so many frequencies, or some more.

        Raises
        ------
        ContourRefusal
            Where these are too few, or too many.
        """
        theta, number, frequency = placed.theta, placed.number, 2.0 * math.pi / placed.period
        both = zip(terms.steps, terms.cuts, strict=True)
        steps = [step.tilted(count, cut, theta, number) for (step, count), cut in both]
        transforms, whole = Transforms(steps, number, frequency), weight_of(steps, number)
        if not whole > _LEAST_SHARE:
            raise ContourRefusal("atoms", f"{number} large losses weigh next to nothing at a tilt of {theta:g}")
        groups = -(-nodes // (COLUMNS * transforms.group)) + 1
        points = (groups * transforms.group - 1) * COLUMNS + _MIDDLE + 0.5
        kernels = Kernels(theta, points, placed.period / points)
        if (1.0 + theta) * kernels.spacing > COARSEST:
            raise ContourRefusal("width", f"{nodes} frequencies are too few for a tilt of {theta:g}")
        together = max(_BLOCK // (COLUMNS * transforms.group), 1)
        blocks = [np.arange(float(at), min(at + together, groups)) for at in range(0, groups, together)]
        found = [_Block.of(kernels, transforms, some, whole, _SKIPPED / len(blocks)) for some in blocks]
        share = 2.0 / points
        columns = zip(*(one.totals for one in found), strict=True)
        skipped, size, *weights = (1.02 * share * math.fsum(column) for column in columns)
        doubts = doubts_of(steps, number) * (1.0, frequency)
        if not (most := float(doubts.sum(axis=0) @ (1.0, points))) <= _MOST_ERROR:
            raise ContourRefusal("width", f"losses turn too fast for {nodes} frequencies")
        damped, moved, plain, _ = weights
        # sizes of phi are those computed: where all factors are 40 k times their errors, phi is off by a fortieth
        doubt = 1.03 * float(np.ravel(doubts) @ weights) + (41.0 * len(steps) + 50.0) * most * most * plain
        doubt += size * KERNEL * (1.0 + 50.0 / (theta * placed.period)) + damped * 3.1 * U * (_ADDITIONS + 24) + skipped
        centres = [step.count * step.centre for step in steps]
        return cls(
            terms,
            placed,
            kernels.spacing,
            groups * transforms.group * COLUMNS,
            np.concatenate([one.rows for one in found]),
            np.asarray(np.concatenate([one.sums for one in found], axis=1) * share),
            math.fsum(step.log_scale for step in steps) + math.log(whole),
            math.fsum(centres),
            shift=math.fsum(step.count * step.shift for step in steps) + 4.0 * U * math.fsum(map(abs, centres)),
            error=math.fsum(step.error for step in steps) + ELEMENTARY * (16.0 + 2.0 * abs(math.log(whole))),
            doubt=1.1 * doubt,
            turning=12.0 * U * moved * frequency,
        )

    def value(self, side: int, epsilon: float) -> float:
        """The sum below (0) or above (1), over the scale; an estimate."""
        turn = -2j * math.pi / self.placed.period * (epsilon - self.centre)
        near = np.exp(turn * (np.arange(float(COLUMNS)) - _MIDDLE))
        sums = np.exp(turn * self.rows) * np.einsum("ij,j->i", self.sums[side], near)
        return math.fsum(np.add.reduceat(sums.real, np.arange(0, sums.size, _ROWS)).tolist())

    def log_scale_at(self, epsilon: float) -> float:
        """``ln`` of what sums are to be multiplied by."""
        return self.log_scale - self.placed.theta * epsilon

    def rounded(self, epsilon: float, value: float) -> float:
        """About how far roundings move both sides of a sum apart, over the scale."""
        return 2.0 * (self._doubt(epsilon) + value * (self.placed.theta * self._moved(epsilon) + self._error(epsilon)))

    def lower(self, epsilon: float) -> float:
        """At most the delta of the term."""
        at = epsilon + self._moved(epsilon)
        value = max(self.value(0, at) - self._doubt(at), 0.0)
        found = self._scaled(exp_down, at, value, -1.0)
        return math.nextafter(max(found - self.terms.aliasing(self.placed, at).upper, 0.0), 0.0)

    def upper(self, epsilon: float) -> float:
        """At least the delta of the term."""
        at = epsilon - self._moved(epsilon)
        found = self._scaled(exp_up, at, max(self.value(1, at) + self._doubt(at), 0.0), 1.0)
        return found if found == math.inf else up(max(found - self.terms.aliasing(self.placed, at).lower, 0.0))

    def _scaled(self, exp: Callable[[float, float], float], epsilon: float, value: float, sign: float) -> float:
        """A sum times its scale, rounded to the side of the sign."""
        power = max(math.frexp(value)[1], 0)  # a factor of at most 1 is asked for
        error = sign * (self._error(epsilon) + 4.0 * U * power)
        return exp(self.log_scale_at(epsilon) + power * math.log(2.0) + error, math.ldexp(value, -power))

    def _moved(self, epsilon: float) -> float:
        return self.shift + 4.0 * U * (abs(epsilon) + abs(self.centre))

    def _doubt(self, epsilon: float) -> float:
        return self.doubt + self.turning * abs(epsilon - self.centre)

    def _error(self, epsilon: float) -> float:
        return self.error + 6.0 * U * (abs(self.log_scale) + self.placed.theta * abs(epsilon))
