"""The cases: what is composed, at which delta, what is known to be true, and why the case is here.

The relation is add-remove and the sampling is Poisson (rate 1 is none), except where a case says otherwise. `Truth`
carries the radius of what is known, half a unit of its last digit, so that a bracket is never judged against more
digits than there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from benchmarks.truth import gaussian_epsilon


@dataclass(frozen=True)
class Step:
    """A Gaussian of the given noise multiplier, Poisson subsampled at ``rate``, composed ``count`` times."""

    noise_multiplier: float
    rate: float
    count: int


@dataclass(frozen=True)
class Truth:
    """The true epsilon, known to within ``radius`` nats."""

    value: float
    radius: float

    @classmethod
    def from_digits(cls, digits: str) -> Truth:
        """Of a printed decimal: the radius is half a unit in its last place."""
        exponent = Decimal(digits).as_tuple().exponent
        assert isinstance(exponent, int)
        return cls(value=float(digits), radius=0.5 * 10.0**exponent)


@dataclass(frozen=True)
class Case:
    """One question, asked to the methods of `benchmarks.methods.EVERYWHERE` and to those of ``also``.

    A question that is not the plain one, epsilon at delta, names the function of an adapter that answers it, the
    arguments it takes besides steps and delta, and what is asked in words; it is put to ourselves and ``also`` alone.
    """

    name: str
    steps: tuple[Step, ...]
    delta: float
    truth: Truth
    why: str
    also: tuple[str, ...] = ()
    question: str = "epsilon"
    arguments: Mapping[str, object] = field(default_factory=dict)
    words: str = ""

    @property
    def plain(self) -> bool:
        """Whether epsilon is asked for at one delta."""
        return self.question == "epsilon"


def subsampled(name: str, step: Step, delta: float, *, truth: str, why: str, also: tuple[str, ...] = ()) -> Case:
    """A homogeneous composition of a subsampled Gaussian."""
    return Case(name, (step,), delta, Truth.from_digits(truth), why, also)


def gaussian(name: str, noise_multiplier: float, count: int, delta: float, why: str) -> Case:
    """A composition of Gaussians without sampling, where the truth is a closed form."""
    epsilon = gaussian_epsilon(noise_multiplier, count, delta)
    steps = (Step(noise_multiplier, 1.0, count),)
    also = ("dp-accounting-self", "autodp-fourier")
    return Case(name, steps, delta, Truth(epsilon, math.ulp(epsilon)), why, also)


DPSGD = Step(noise_multiplier=1.0, rate=0.01, count=2000)
EVERYDAY = Truth.from_digits("2.58384118169")
NOISES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
RATES = (0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
COUNTS = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
DISTINCT = tuple(Step(3.0 - 0.5 * i / 199, rate=0.01, count=10) for i in range(200))

CASES: tuple[Case, ...] = (
    subsampled(
        "dpsgd",
        DPSGD,
        1e-5,
        truth="2.58384118169",
        why="an everyday DP-SGD run: speed",
        also=(
            "hockeystick-1e-6",
            "dp-accounting-both",
            "dp-accounting-rdp",
            "opacus-rdp",
            "autodp-fourier",
            "pld-accounting",
            "riskcal",
            "gdpnum",
        ),
    ),
    Case(
        "distinct-200",
        DISTINCT,
        1e-5,
        Truth.from_digits("0.613269009325"),
        "200 different noise multipliers from 3.0 to 2.5, 10 steps each: speed",
    ),
    subsampled(
        "dpsgd-1e-10", DPSGD, 1e-10, truth="4.27258754033", why="the same run, small delta", also=("pld-accounting",)
    ),
    subsampled("dpsgd-1e-15", DPSGD, 1e-15, truth="5.84722999401", why="below double precision of one minus delta"),
    subsampled("dpsgd-1e-20", DPSGD, 1e-20, truth="7.42322398878", why="far below it"),
    subsampled("dpsgd-1e-30", DPSGD, 1e-30, truth="10.4986226448", why="far below it"),
    subsampled(
        "high-rate",
        Step(1.5, 0.22, 10_000),
        1e-12,
        truth="237.715947219",
        why="large epsilon, small delta: mass cut off at a lattice's end is lost",
    ),
    subsampled(
        "low-noise",
        Step(0.6, 0.05, 500),
        5e-14,
        truth="45.1611154241",
        why="small delta: the rounding of an untilted transform shows",
        also=("opacus-0.1",),
    ),
    subsampled(
        "million-steps",
        Step(10.0, 1e-3, 10**6),
        1e-5,
        truth="0.341659939882",
        why="a fixed lattice spacing is too coarse for one step; a finer one meets rounding",
        also=("dp-accounting-1e-5", "dp-accounting-1e-7"),
    ),
    subsampled("rare", Step(1.0, 1e-5, 10**6), 1e-5, truth="0.0368835102682", why="very small rate, a million steps"),
    subsampled(
        "rarer", Step(1.0, 1e-6, 10**8), 1e-5, truth="0.0367775221604", why="very small rate, a hundred million steps"
    ),
    subsampled(
        "tiny-noise", Step(0.05, 1e-3, 100), 1e-5, truth="637.52469818", why="noise 0.05: losses in the hundreds"
    ),
    gaussian("gaussian-1e-10", 100.0, 10_000, 1e-10, "closed form: delta below the rounding of a transform"),
    gaussian("gaussian-1e-12", 100.0, 10_000, 1e-12, "closed form: delta below the rounding of a transform"),
    gaussian("gaussian-1e-13", 100.0, 10_000, 1e-13, "closed form: delta below the rounding of a transform"),
    gaussian("gaussian-1e6-steps", 1000.0, 10**6, 1e-11, "closed form: a million steps, small delta"),
    Case(
        "curve-10000",
        (DPSGD,),
        1e-5,
        EVERYDAY,
        "a whole curve: speed",
        also=("dp-accounting",),
        question="curve",
        arguments={"highest": 12.0, "points": 10_000},
        words="delta at 10,000 epsilons from 0 to 12, and where that curve crosses delta",
    ),
    Case(
        "grid-1000",
        (DPSGD,),
        1e-5,
        EVERYDAY,
        "many plans: speed",
        also=("dp-accounting",),
        question="grid",
        arguments={"noises": NOISES, "rates": RATES, "counts": COUNTS},
        words="epsilon of 1,000 plans (noise 0.6 to 5, rate 0.001 to 0.1, 100 to 100,000 steps), this one among them",
    ),
    Case(
        "round",
        (Step(1.0, 1.0, 1000),),
        1e-5,
        Truth.from_digits("0.138846600009"),
        "random allocation: what shuffling loaders are taken for",
        also=("opake", "pld-accounting"),
        question="allocated",
        words="one round of random allocation on 1,000 steps of noise 1, delta 1e-05, add-remove",
    ),
    Case(
        "round-low-noise",
        (Step(0.5, 1.0, 1000),),
        1e-5,
        Truth.from_digits("3.134152206056"),
        "random allocation with little noise: rare large likelihood ratios",
        also=("opake", "pld-accounting"),
        question="allocated",
        words="one round of random allocation on 1,000 steps of noise 0.5, delta 1e-05, add-remove",
    ),
    Case(
        "responses",
        (Step(0.75, 1.0, 100),),
        1e-6,
        Truth.from_digits("94.2898678929"),
        "a mechanism composed with a count",
        also=("dp-accounting-replace",),
        question="responses",
        words="randomised response with the truth at probability 0.75, 100 times, delta 1e-06, substitution",
    ),
    Case(
        "tuned",
        (Step(1.0, 0.01, 1000),),
        1e-5,
        Truth(3.2751, 0.0283),
        "hyperparameter tuning: the best of many runs",
        also=("dp-accounting-rdp",),
        question="tuned",
        arguments={"mean": 10.0},
        words="the best of a Poisson number of runs, 10 on average, each of 1,000 steps of noise 1 at rate 0.01",
    ),
)
