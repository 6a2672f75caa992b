"""What 004's experiments compare: three saddle-point approximations, two older accountants, FFT, and the truth.

The direction is "remove", 004's equation (98). `SaddlePoint("clt")` answers with the bracket of Theorem 5; the paper
draws the middle of it, equation (8), as SP-CLT: `TiltedCentre` here, a few lines over the same cumulants.

Symbols: theta the tilt, K the cumulant generating function of the composition, ``K'(theta) = eps + 1/theta + 1/(1 +
theta)`` at the saddle point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.accountants import PRV, Contour, Exact, GaussianLimit, Moments, SaddlePoint
from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, Estimate
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.numerics.tilted_normal import tilted_normal
from hockeystick.transforms.cumulants import TiltedCumulants
from reproduce.items import Size
from reproduce.style import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DELTA",
    "EPOCH",
    "FEWEST_EXACT",
    "RATE",
    "STEPS",
    "Answer",
    "Array",
    "TiltedCentre",
    "bound",
    "compared",
    "deltas",
    "draw",
    "epsilons",
]

Array = NDArray[np.float64]

DELTA, RATE, STEPS = 1e-5, 0.01, 2000
EPOCH = 100  # steps, at rate 0.01
FEWEST_EXACT = {"full": 100, "reduced": 1000}
"""Steps from which ball arithmetic takes less than a second; for fewer the certified contour is the truth."""


def _excess(c: TiltedCumulants) -> float:
    """The epsilon whose saddle point the tilt is."""
    return c.mean - 1.0 / c.theta - 1.0 / (1.0 + c.theta)


def _log_delta(c: TiltedCumulants, epsilon: float) -> float:
    """Equation (8): ``ln`` of ``e^{K - theta eps} E[e^{-theta (Z - eps)} (1 - e^{-(Z - eps)})_+]``, Z normal."""
    sigma = math.sqrt(c.variance)
    return c.log_moment - c.theta * epsilon + tilted_normal(c.theta, (c.mean - epsilon) / sigma, sigma).log


@final
@dataclass(frozen=True)
class TiltedCentre(Accountant):
    """The tilted loss taken as normal, equation (8): an estimate."""

    def directed(self, parts: Parts) -> DirectedCurve:
        return _CentreCurve(CumulantWindow(parts))


@final
@dataclass(frozen=True)
class _CentreCurve(DirectedCurve):
    window: CumulantWindow

    def delta(self, epsilon: float) -> Estimate:
        theta = self.window.tilt_where(lambda c: _excess(c) - epsilon, tolerance=1e-12)
        return Estimate(math.exp(_log_delta(self.window.at(theta), epsilon)), math.nan, "equation (8)")

    def epsilon(self, delta: float) -> Estimate:
        theta = self.window.tilt_where(lambda c: math.log(delta) - _log_delta(c, _excess(c)), tolerance=1e-12)
        return Estimate(_excess(self.window.at(theta)), math.nan, "equation (8)")


@dataclass(frozen=True)
class Answer:
    """What one method says at each point: an interval of delta or epsilon, of width 0 for an estimate."""

    look: str
    lower: Array
    upper: Array
    is_bound: bool

    def error(self, truth: Array) -> Array:
        """Relative error of the upper end."""
        return np.abs(self.upper / truth - 1.0)


def compared(first_order: Accountant, centre: Accountant) -> Mapping[str, Accountant]:
    """The methods of figures 1 and 3, by their look; 004 gives FFT an error of 0.1 in epsilon and 1e-10 in delta."""
    return {
        "msd0": SaddlePoint("msd0"),
        "msd1": first_order,
        "sp-clt": centre,
        "moments": Moments("tight"),
        "gaussian-dp": GaussianLimit("gaussian-dp"),
        "prv": PRV(0.1, 1e-10),
    }


def bound(found: Bound | Estimate) -> Bound:
    """The same, where it is a bound."""
    if not isinstance(found, Bound):
        raise TypeError("the accountant gives estimates; this needs bounds")
    return found


def deltas(
    noise: float, epsilon: Array, methods: Mapping[str, Accountant], *, steps: int = STEPS
) -> tuple[Array, dict[str, Answer]]:
    """The exact curve, by ball arithmetic, and what the methods make of it."""
    run = hs.Gaussian(noise).poisson(RATE) * steps
    exact = bound(hs.account(run, "remove", accountant=Exact(10)).delta(epsilon))
    answers = {
        look: _answer(look, [hs.account(run, "remove", accountant=one).delta(epsilon)]) for look, one in methods.items()
    }
    return np.asarray(exact.upper), answers


def epsilons(
    noise: float, steps: Sequence[int], methods: Mapping[str, Accountant], *, size: Size
) -> tuple[Array, dict[str, Answer]]:
    """The true epsilon of each number of steps, at delta 1e-5, and what the methods make of it."""
    runs = [hs.Gaussian(noise).poisson(RATE) * count for count in steps]
    truth = [
        bound(hs.account(run, "remove", accountant=_reference(count, size)).epsilon(DELTA))
        for run, count in zip(runs, steps, strict=True)
    ]
    answers = {
        look: _answer(look, [hs.account(run, "remove", accountant=one).epsilon(DELTA) for run in runs])
        for look, one in methods.items()
    }
    return np.array([float(one.upper) for one in truth]), answers


def _reference(steps: int, size: Size) -> Accountant:
    if steps >= FEWEST_EXACT[size]:
        return Exact(10)
    return Contour(1e-9 if steps >= EPOCH else 1e-5)  # of delta: about 2e-7 of epsilon at ten steps


def _answer(look: str, found: Sequence[Bound | Estimate]) -> Answer:
    is_bound = isinstance(found[0], Bound)
    pairs = [(one.lower, one.upper) if isinstance(one, Bound) else (one.value, one.value) for one in found]
    lower, upper = (np.concatenate([np.atleast_1d(end) for end in side]) for side in zip(*pairs, strict=True))
    return Answer(look, lower, upper, is_bound)


def draw(plot: Axes, at: Array, answer: Answer, *, first: int = 0, every: int = 1, **more: Any) -> None:
    """One method: its upper end or its estimate, and the lower end where there is one that is not trivial."""
    look, markers = LOOKS[answer.look], (first, every)
    label = f"{look.label} (FFT), error 0.1" if answer.look == "prv" else look.label
    kind = "upper" if answer.is_bound else "estimate"
    plot.plot(at, answer.upper, **look.line(kind, markevery=markers, label=label, **more))
    if answer.is_bound and np.any(answer.lower > 0.0):
        lower = np.where(answer.lower > 0.0, answer.lower, np.nan)
        plot.plot(at, lower, **look.line("lower", markevery=markers, **more))
