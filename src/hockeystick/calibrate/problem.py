"""What is calibrated: a family of runs, the target, the neighbouring relation and the accountant."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from hockeystick.account import account
from hockeystick.accountants.base import Accountant, Parts
from hockeystick.accountants.certified import Certified
from hockeystick.accountants.contour import Contour
from hockeystick.calibrate.targets import Target
from hockeystick.composition import Composition, Step, directions
from hockeystick.curve import PrivacyCurve
from hockeystick.engines.closed_form import closed_form
from hockeystick.engines.rare import RareCurve
from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import any_guarantee

FARTHEST: Final = 800.0
"""The largest excess that counts."""

FINEST: Final = 1e-9
"""Relative tolerance below which nothing finer is asked for."""

_RARELY = 4.0  # times that a record is drawn: above, passes of the contour take 4 ms a run, lines of rare losses 9


@final
@dataclass(frozen=True)
class Problem:
    """What is calibrated: a family, a target, a relation and an accountant."""

    family: Callable[[float], Step | Composition]
    target: Target
    adjacency: str
    accountant: Accountant

    @property
    def adapts(self) -> bool:
        """Whether the accountant is the default one, whose tolerance is then chosen for each evaluation."""
        return isinstance(self.accountant, Certified) and self.accountant.engine == "automatic"

    def curve(self, run: Composition, tolerance: float) -> PrivacyCurve:
        """The curve of a run; where the accountant adapts, at a tolerance."""
        method = self.accountant
        if self.adapts and isinstance(method, Certified):
            method = replace(method, tolerance=tolerance)
        return account(run, self.adjacency, accountant=method)

    def by_contour(self, run: Composition, tolerance: float) -> PrivacyCurve | None:
        """The curve by the contour at the width that is needed; None where it does not serve, or another is quicker."""
        closed = all(closed_form(run.pairs(name)) is not None for name in directions(self.adjacency))
        if closed or self.one_sided(run) or self.has_rare_losses(run, tolerance):
            return None
        with contextlib.suppress(UnknownPairError):  # no transform is known of these pairs
            return account(run, self.adjacency, accountant=Contour(max(0.1 * tolerance, FINEST)))
        return None

    def has_rare_losses(self, run: Composition, tolerance: float) -> bool:
        """Whether large losses are rare: the contour then may take far longer than what comes after it."""
        return any(self.by_rare_losses(run.pairs(name), tolerance) is not None for name in directions(self.adjacency))

    def by_rare_losses(self, parts: Parts, tolerance: float) -> RareCurve | None:
        """What takes rare large losses apart, where these are so rare that the contour takes longer."""
        rare = RareCurve.of(parts, tolerance)
        return rare if rare is not None and rare.losses.rate * rare.losses.steps <= _RARELY else None

    def one_sided(self, run: Composition) -> bool:
        """Whether the sides of a bracket are proofs of their own that never meet: the upper one decides."""
        every = [run.pairs(name) for name in directions(self.adjacency)]
        return any(any_guarantee(parts) or any(pair.selection is not None for pair, _ in parts) for parts in every)

    def run(self, value: float) -> Composition:
        """The run at a value."""
        try:
            run = self.family(value)
        except (TypeError, ValueError) as error:
            whole = "" if isinstance(value, int) else ", or values='integer' if it takes whole numbers"
            error.add_note(
                f"the family was asked for {value!r}: give within=(low, high) to keep it where it is defined{whole}"
            )
            raise
        if not isinstance(run, Step | Composition):
            raise TypeError(
                "family must turn a number into a step or a composition, such as"
                f" lambda s: Gaussian(s).poisson(0.01) * 1000; got {run!r} from {value!r}"
            )
        return run * 1

    def defined_towards(self, start: float, end: float) -> float:
        """How far from a value towards an end the family is defined: ``end`` itself, or what is next to the last."""
        whole = isinstance(start, int)
        inside, outside = start, end
        if self._defined(end) or not self._defined(start):
            return end
        while abs(outside - inside) > (1 if whole else 1e-12 * inside):
            middle = math.sqrt(inside) * math.sqrt(outside)
            middle = int(middle) if whole else middle
            if middle in {inside, outside}:
                break
            inside, outside = (middle, outside) if self._defined(middle) else (inside, middle)
        short = float(f"{inside:.9g}")  # 1000000 rather than 999999.9999998
        return short if not whole and self._defined(short) else inside

    def _defined(self, value: float) -> bool:
        try:
            self.run(value)
        except ValueError:
            return False
        return True

    def excess(self, quantity: float) -> float:
        """``ln(quantity / most)``, cut where it is large."""
        if quantity <= 0.0:
            return -FARTHEST
        return min(max(math.log(quantity) - math.log(self.target.most), -FARTHEST), FARTHEST)
