"""A composition of dominating pairs as a sum of independent losses with certified transforms.

Every law is asked for its summand. Equal summands add their counts, normal losses add up to one, with those that are
normal but for a lattice that no answer sees, and the others are grouped into batches of their kind.

Guarantee: the rules built here carry bounds on all their errors. Laws without a certified transform raise
`UnknownPairError`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, cast, final

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Pair
from hockeystick.numerics.columns import Array, Places
from hockeystick.transforms.replicas import Replicas
from hockeystick.transforms.rule import LossRule, Numbers, Rows, RuleSource, Sketch, Window
from hockeystick.transforms.saddle import LossSum, is_few
from hockeystick.transforms.summand import Summand

if TYPE_CHECKING:
    from hockeystick.laws.gaussian_rule import SubsampledGaussians
    from hockeystick.transforms.lattice import SharedLattice

_MOST_STEPS = 2.0**40
_SHARE = 1e-10
_AT_ONCE = 16384  # nodes of rules built together: their arrays stay in the processor's cache


class _OfSources(LossSum):
    """A sum whose parts have rules, each of which may leave out some mass."""

    _sources: Sequence[RuleSource]
    log_drop: Numbers

    def rules(self, window: Window) -> Sequence[LossRule] | None:
        """Rules for everything but the normal part; None where one would be too long."""
        window = replace(window, log_drop=self.log_drop)
        found = [source.rule(window) for source in self._sources]
        rules = [rule for rule in found if rule is not None]
        return rules if len(rules) == len(found) else None

    def sketches(self, window: Window) -> Sequence[Sketch] | None:
        """The same without errors."""
        window = replace(window, log_drop=self.log_drop)
        found = [source.sketch(window) for source in self._sources]
        sketches = [sketch for sketch in found if sketch is not None]
        return sketches if len(sketches) == len(found) else None


@final
class PairSum(_OfSources):
    """The privacy loss of a composition in one direction.

    Parameters
    ----------
    parts : iterable of (Pair, int)
        Pairs and how often each is composed.
    share : float
        Of delta, that taking lattices for the normal densities on them may add: more is not worth its speed.

    Raises
    ------
    UnknownPairError
        For a pair without a certified transform, or more than 2^40 steps.
    """

    def __init__(self, parts: Iterable[tuple[Pair, int]], share: float = _SHARE) -> None:
        self.parts = tuple(parts)
        self.log_drop = -math.inf
        counts: dict[Summand, int] = {}
        for pair, count in self.parts:
            summand = pair.same_summand
            counts[summand] = counts.get(summand, 0) + count
        if sum(counts.values()) > _MOST_STEPS:
            raise UnknownPairError("the transform of more than 2^40 steps is not certified")
        self.gaussian_variance = math.fsum(summand.normal_variance * count for summand, count in counts.items())
        fine = [(loss, float(count)) for one, count in counts.items() if (loss := one.lattice_normal) is not None]
        self.replicas = Replicas.negligible(fine, self.gaussian_variance, share)
        if self.replicas is not None:
            self.gaussian_variance += math.fsum(loss.variance * count for loss, count in fine)
            counts = {one: count for one, count in counts.items() if one.lattice_normal is None}
        kinds: dict[type[Summand], list[tuple[Summand, float]]] = {}
        for summand, count in counts.items():
            kinds.setdefault(type(summand), []).append((summand, float(count)))
        self._sources = [source for kind, group in kinds.items() for source in kind.sources(group)]

    @cached_property
    def total_count(self) -> float:
        """Steps that are not plain Gaussian."""
        return math.fsum(source.steps for source in self._sources)

    @cached_property
    def typical_shift(self) -> float:
        """The largest scale of a part."""
        return max((source.scale for source in self._sources), default=1.0)

    @property
    def source(self) -> SubsampledGaussians:
        """The only part, of a sum of a `kind`."""
        return cast("SubsampledGaussians", self._sources[0])

    @cached_property
    def leaves_out(self) -> bool:
        """Whether rules may leave out mass on purpose."""
        return any(source.leaves_out for source in self._sources)

    def dropping(self, log_drop: float) -> PairSum:
        """The same sum, each of whose steps may leave out ``e^log_drop`` of its mass where its loss is largest."""
        other = object.__new__(PairSum)
        vars(other).update(vars(self), log_drop=log_drop)
        return other

    def planned(self) -> PairSum:
        """The sum that lines are planned for: of like runs that differ in their counts a little, all have the same.

        Counts are rounded up to the next of two an octave: periods are long enough for fewer steps (k of section 4 of
        `docs/derivations/contour.md` grows with the count), and `FEWEST` of `engines.contour.laid` says how few.
        """
        if self.kind is None:
            return self
        other, least = object.__new__(PairSum), self.total_count
        steps = max(float(math.ceil(2.0 ** (0.5 * math.ceil(2.0 * math.log2(max(least, 1.0)))))), least)
        vars(other).update(vars(self), _sources=[self.source.counted(steps)], total_count=steps)
        return other

    @property
    def key(self) -> Hashable:
        """What tells sums of a `kind` from each other."""
        return self.kind, self.source.law, self.total_count, self.gaussian_variance

    @property
    def look(self) -> Hashable:
        """What tells sums of a `kind` from each other that are not looked at by one coarse rule of a step."""
        return self.source.law, self.log_drop, is_few(self.total_count)

    @cached_property
    def kind(self) -> str | None:
        """Sums of one kind can be asked together (`LikeSums`); None where they cannot."""
        return self._sources[0].kind if len(self._sources) == 1 and self.replicas is None else None

    @property
    def on_lattice(self) -> bool:
        """Whether all pairs are discrete."""
        return self.gaussian_variance == 0.0 and all(source.is_atomic for source in self._sources)

    def lattice(self, rules: Sequence[LossRule]) -> SharedLattice | None:
        """The lattice of discrete pairs, if they share one and leave nothing out: its lines add no such mass."""
        rows: list[tuple[Sequence[Fraction], float]] = []
        for source, rule in zip(self._sources, rules, strict=True):
            own = source.precise(rule)
            if own is None or rule.dropped.any():
                return None
            rows += own
        from hockeystick.transforms.lattice import shared_lattice  # loaded where losses are discrete

        return shared_lattice(rows)


def together(sums: Sequence[PairSum]) -> LossSum:
    """Sums of one kind, or one sum of any."""
    return LikeSums.of(sums) if len(sums) > 1 else sums[0]


@final
class LikeSums(_OfSources):
    """The privacy losses of several runs, each a sum of one part and a normal one: a rule each, in one batch.

    Parameters
    ----------
    source : SubsampledGaussians
        A row for each run.
    gaussian_variance, log_drop : ndarray, shape (R,)
        As of each `PairSum`.
    """

    def __init__(self, source: SubsampledGaussians, gaussian_variance: Array, log_drop: Array) -> None:
        self._source, self._sources = source, [source]
        self.gaussian_variance: Array = gaussian_variance
        self.log_drop: Array = log_drop

    @classmethod
    def of(cls, sums: Sequence[PairSum]) -> LikeSums:
        """Those of one kind."""
        sources = [one.source for one in sums]
        variances, drops = (
            np.array([getattr(one, name) for one in sums]) for name in ("gaussian_variance", "log_drop")
        )
        return cls(type(sources[0]).stacked(sources), variances, drops)

    @property
    def total_count(self) -> Array:
        return self._source.counts

    @property
    def typical_shift(self) -> Array:
        return self._source.shift

    def at(self, rows: Rows) -> LikeSums:
        return LikeSums(self._source.at(rows), self.gaussian_variance[rows], self.log_drop[rows])

    def alike(self, window: Window) -> Iterator[tuple[Places, LossSum, Window]]:
        sizes = self._source.lengths(replace(window, log_drop=self.log_drop))
        for size in np.unique(sizes[np.isfinite(sizes)]).tolist():
            rows, most = np.flatnonzero(sizes == size), max(int(_AT_ONCE // size), 1)
            for first in range(0, rows.size, most):
                own = rows[first : first + most]
                yield own, self.at(own), window.at(own)
