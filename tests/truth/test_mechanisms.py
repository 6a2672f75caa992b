"""The whole table: every mechanism, sampling scheme and direction, against its definition or with its refusal."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import laws as pairs
from hockeystick.composition import Direction, Step
from tests import mechanism_truths as truths
from tests.mechanism_truths import LinePair, Noise, Vectors, mp, mpf

RATE = 0.25  # of Poisson samples
BATCH, POPULATION = 2, 6  # a rate of 1/3, which no float64 is
G = Fraction(BATCH, POPULATION)
EPSILONS = (0.0, 0.7)
WIDTH = 2e-4  # relative width allowed, the widest of all: two steps of a joined discrete Gaussian pair
DIRECTIONS: tuple[Direction, ...] = ("remove", "add", "substitute", "zero-out", "zero-in")
AS_REMOVE = {"zero-out": "remove", "zero-in": "add"}


@dataclass(frozen=True)
class Truth:
    """What a bracket must contain: ``below`` and ``above`` differ where only an upper bound is known."""

    below: Callable[[mpf], mpf]
    above: Callable[[mpf], mpf]
    error: float = 0.0


@dataclass(frozen=True)
class Line:
    """A mechanism on the line, by the distances of its centres."""

    noise: Noise
    remove: float
    substitute: float | None

    def pair(self, p: float, q: float, share: Fraction = Fraction(1)) -> LinePair:
        """((1 - g) at q + g at p, q)."""
        rest = ((1 - share, q),) if share < 1 else ()
        return LinePair(self.noise, (*rest, (share, p)), ((Fraction(1), q),))

    def turned(self, p: float, q: float, share: Fraction) -> LinePair:
        """(q, (1 - g) at q + g at p), mirrored so that the ratio rises."""
        rest = ((1 - share, -q),) if share < 1 else ()
        return LinePair(self.noise, ((Fraction(1), -q),), (*rest, (share, -p)))

    def poisson_substitution(self) -> LinePair:
        g = Fraction(RATE)
        return LinePair(self.noise, ((1 - g, 0.0), (g, 1.0)), ((1 - g, 0.0), (g, -1.0)))

    def truth(self, shift: float, share: Fraction, direction: str, steps: int) -> Truth:
        if direction == "joined":
            return self._joined(shift, share, steps)
        pair = self.pair(shift, 0.0, share) if direction == "remove" else self.turned(shift, 0.0, share)
        return _on_line(pair, steps)

    def _joined(self, shift: float, share: Fraction, steps: int) -> Truth:
        one, other = self.pair(shift, 0.0, share), self.turned(shift, 0.0, share)
        if steps == 1:
            return Truth(*2 * (lambda a: _once(one, a),))
        return Truth(
            lambda a: max(_twice(one, a), _twice(other, a), _twice(one, a, other)),
            lambda a: _joined_twice(one, other, a),
            1e-8,  # of the quadrature about the kinks of the joined curve
        )


def _on_line(pair: LinePair, steps: int) -> Truth:
    if steps == 1:
        return Truth(*2 * (lambda a: _once(pair, a),))
    return Truth(*2 * (lambda a: _twice(pair, a),), truths.LINE_ERROR)


# Zeroing out is removing, and several mechanisms are the same pair: each truth is computed once.


@functools.cache
def _once(pair: LinePair, a: mpf) -> mpf:
    return pair.once(a)


@functools.cache
def _twice(pair: LinePair, a: mpf, other: LinePair | None = None) -> mpf:
    return mpf(pair.twice(float(a), other))


@functools.cache
def _joined_twice(one: LinePair, other: LinePair, a: mpf) -> mpf:
    return mpf(truths.joined_twice(one, other, float(a)))


@dataclass(frozen=True)
class Sum:
    """A mechanism with countably many outcomes, by its vectors under remove and substitute.

    And those of a Poisson sample of noise that is moved up where a record is drawn, or down where another is.
    """

    remove: Vectors
    substitute: Vectors | None
    either_way: Vectors | None = None

    def truth(self, vectors: Vectors, share: Any, direction: str, steps: int) -> Truth:
        one = truths.mixed(vectors, share) if share != 1 else vectors
        if direction == "joined":
            other = truths.turned(one)
            if steps == 1:
                return _summed(one, one, 1)
            best = [_summed(x, y, 2) for x, y in ((one, one), (other, other), (one, other))]
            joined = truths.joined_vectors(vectors, share)
            return Truth(lambda a: max(curve.below(a) for curve in best), _summed(joined, joined, 2).above)
        return _summed(one, one, steps) if direction == "remove" else _summed(*2 * (truths.turned(one),), steps)


def _summed(one: Vectors, other: Vectors, steps: int) -> Truth:
    return Truth(*2 * (lambda a: _of_vectors(one, a, other if steps == 2 else None),))


@functools.cache
def _of_vectors(one: Vectors, a: mpf, other: Vectors | None) -> mpf:
    return truths.hockey_stick(one, a, other)


def _shifts(noise: dict[int, Any], *, doubled: bool = True) -> Sum:
    places = sorted({x + shift for x in noise for shift in (-1, 0, 1)})
    still, up, down = ([noise.get(x - shift, Fraction(0)) for x in places] for shift in (0, 1, -1))
    return Sum(truths.shifted(noise, 1), truths.shifted(noise, 2) if doubled else None, _moved(still, up, down))


def _moved(still: list[Any], up: list[Any], down: list[Any]) -> Vectors:
    c, p, q = ([truths.as_mpf(mass) for mass in masses] for masses in (still, up, down))
    g = mpf(RATE)
    return tuple(((1 - g) * c + g * p, (1 - g) * c + g * q) for c, p, q in zip(c, p, q, strict=True))


_R = mp.exp(mpf(-1))  # of discrete Laplace noise: what lies below 0, at 0 and above
_UP = [_R**2 / (1 + _R), (1 - _R) / (1 + _R) * _R, 1 / (1 + _R)]
_GEOMETRIC = _moved([_R / (1 + _R), (1 - _R) / (1 + _R), _R / (1 + _R)], _UP, _UP[::-1])


_THIRD = Fraction(1, 3)
_RESPONSE = ((Fraction(3, 4), Fraction(1, 8)), (Fraction(1, 8), Fraction(3, 4)), (Fraction(1, 8), Fraction(1, 8)))
_VECTORS = ((0.5, 0.25, 0.25, 0.0), (0.125, 0.25, 0.5, 0.125))
_GENERIC = tuple(
    (mpf(p), mpf(q))
    for p, q in (
        (mpf(0.01), mpf(0)),
        (mpf(0), mpf(0.01)),
        ((1 - mpf(0.01)) / (1 + mp.exp(-mpf(0.7))), (1 - mpf(0.01)) / (1 + mp.exp(mpf(0.7)))),
        ((1 - mpf(0.01)) / (1 + mp.exp(mpf(0.7))), (1 - mpf(0.01)) / (1 + mp.exp(-mpf(0.7)))),
    )
)
_SKEWED = Sum(truths.shifted(truths.binomial(8, 0.25), 1), None)
_STATED = tuple((Fraction(p), Fraction(q)) for p, q in zip(*_VECTORS, strict=True))

MECHANISMS: dict[str, tuple[Any, Line | Sum]] = {
    "gaussian": (hs.Gaussian(1.25), Line(truths.gaussian_noise(1.25), 1.0, 2.0)),
    "laplace": (hs.Laplace(1.5), Line(truths.laplace_noise(1.5), 1.0, 2.0)),
    "gaussian-dp": (hs.GaussianDP(0.75), Line(truths.gaussian_noise(1.0), 0.75, 0.75)),
    "user-defined": (hs.UserDefined(remove=pairs.LaplacePair(1.5)), Line(truths.laplace_noise(1.5), 1.0, None)),
    "discrete-gaussian": (hs.DiscreteGaussian(1.25), _shifts(truths.discrete_gaussian(1.25))),
    "discrete-laplace": (
        hs.DiscreteLaplace(1.0),
        Sum(truths.shifted_discrete_laplace(1.0, 1), truths.shifted_discrete_laplace(1.0, 2), _GEOMETRIC),
    ),
    "randomized-response": (hs.RandomizedResponse(0.75, 3), Sum(_RESPONSE, _RESPONSE)),
    "binomial": (hs.Binomial(12), _shifts(truths.binomial(12, 0.5))),
    "skewed-binomial": (hs.Binomial(8, 0.25), _SKEWED),
    "approximate-dp": (hs.ApproximateDP(0.7, 0.01), Sum(_GENERIC, _GENERIC)),
    "discrete-pair": (hs.DiscretePair(*_VECTORS), Sum(_STATED, None)),
}
SAMPLINGS: dict[str, Callable[[Any], Step]] = {
    "none": lambda mechanism: mechanism,
    "poisson": lambda mechanism: mechanism.poisson(RATE),
    "fixed-size": lambda mechanism: mechanism.without_replacement(batch_size=BATCH, population=POPULATION),
    "shuffled": lambda mechanism: mechanism.shuffled(batch_size=3, population=6),
}


def is_refused(name: str, sampling: str, direction: str) -> bool:
    """The cells of the table for which no pair is known, as documented."""
    no_substitution = name in {"user-defined", "skewed-binomial", "discrete-pair"}
    if direction == "substitute":
        return no_substitution or (sampling == "poisson" and name in {"gaussian-dp", "approximate-dp"})
    if sampling == "fixed-size":
        return no_substitution or direction in AS_REMOVE
    return sampling == "shuffled" and direction in {"add", "remove"}


def truth_of(name: str, sampling: str, direction: str, steps: int) -> Truth:
    """From the definitions: docs/concepts/sampling.md."""
    base = MECHANISMS[name][1]
    plain = AS_REMOVE.get(direction, direction)
    if sampling == "poisson" and direction == "substitute":
        if isinstance(base, Line):
            return _on_line(base.poisson_substitution(), steps)
        if base.either_way is not None:
            return _summed(base.either_way, base.either_way, steps)
        assert base.remove == base.substitute
        return base.truth(base.remove, Fraction(RATE), "joined", steps)
    if sampling == "fixed-size":
        assert base.substitute is not None
        shape = "joined" if direction == "substitute" else direction
        return base.truth(base.substitute, G, shape, steps)  # type: ignore[arg-type]
    share = Fraction(RATE) if sampling == "poisson" else Fraction(1)
    if direction == "substitute":
        return base.truth(base.substitute, Fraction(1), "remove", steps)  # type: ignore[arg-type]
    return base.truth(base.remove, share, plain, steps)  # type: ignore[arg-type]


def account(step: Step, direction: Direction, steps: int) -> Any:
    adjacency = "zero-out" if direction in AS_REMOVE else direction
    return hs.account(step * steps, adjacency).directed[direction]


def bracket(run: Step | hs.Composition, adjacency: str, epsilon: float) -> hs.Bound:
    found = hs.account(run, adjacency).delta(epsilon=epsilon)
    assert isinstance(found, hs.Bound)
    return found


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_cell_contains_its_definition_or_is_refused(name: str, sampling: str) -> None:
    for direction in DIRECTIONS:
        for steps in (1, 2):
            check_cell(name, sampling, direction, steps)


def check_cell(name: str, sampling: str, direction: Direction, steps: int) -> None:
    """The bracket of so many steps contains what their definition says, or there is none."""
    step = SAMPLINGS[sampling](MECHANISMS[name][0])
    if is_refused(name, sampling, direction):
        with pytest.raises(hs.UnknownPairError, match=r"use|state|give"):
            step.pair(direction)
        return
    curve, truth = account(step, direction, steps), truth_of(name, sampling, direction, steps)
    for epsilon in EPSILONS:
        bound, a = curve.delta(epsilon), mp.exp(mpf(epsilon))
        above, below = truth.above(a), truth.below(a)
        assert bound.upper >= above * (1 - truth.error), (epsilon, bound)
        assert bound.upper <= above * (1 + WIDTH) + mpf(1e-15), (epsilon, bound)
        if sampling == "shuffled":
            assert bound.lower <= above, (epsilon, bound)  # the lower side has a test of its own
            continue
        assert bound.lower <= below * (1 + truth.error), (epsilon, bound)
        assert bound.lower >= below * (1 - WIDTH) - mpf(1e-15), (epsilon, bound)


def test_what_runs_through_numbers_once_is_read_once() -> None:
    once = hs.GaussianMixture(1.0, iter((0.0, 1.0)), probabilities=iter((0.75, 0.25)))  # type: ignore[arg-type]
    assert once == hs.GaussianMixture(1.0, (0.0, 1.0), probabilities=(0.75, 0.25))


def test_a_mixture_of_sensitivities_contains_its_definition() -> None:
    weights = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    step = hs.GaussianMixture(1.25, (0.0, 0.5, 2.0), probabilities=weights)
    noise = truths.gaussian_noise(1.25)
    remove = LinePair(noise, tuple(zip(weights, (0.0, 0.5, 2.0), strict=True)), ((Fraction(1), 0.0),))
    add = LinePair(noise, ((Fraction(1), 0.0),), tuple(zip(weights, (0.0, -0.5, -2.0), strict=True)))
    for direction, pair in (("remove", remove), ("add", add)):
        for epsilon in EPSILONS:
            a = mp.exp(mpf(epsilon))
            once = bracket(step, direction, epsilon)
            assert once.lower <= pair.once(a) <= once.upper
            assert once.upper - once.lower <= 1e-11
            twice = bracket(step * 2, direction, epsilon)
            value = pair.twice(math.exp(epsilon))
            assert twice.lower <= value * (1 + truths.LINE_ERROR)
            assert twice.upper >= value * (1 - truths.LINE_ERROR)
    with pytest.raises(hs.UnknownPairError, match="add-remove"):
        step.pair("substitute")


def test_the_lower_side_of_shuffled_batches_is_below_its_datasets() -> None:
    """Two batches: the whole pair of datasets by a quadrature in two dimensions, the maximum forgotten nowhere."""
    sigma, epsilons = 0.8, (0.5, 1.5)
    x = np.linspace(-10 * sigma, 2 + 10 * sigma, 1501)
    w = np.full(x.size, x[1] - x[0])
    density = {c: np.exp(-0.5 * ((x - c) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) for c in (0.0, 1.0, 2.0)}

    def law(shift: float) -> Any:
        one = np.outer(density[shift], density[0.0])
        return 0.5 * (one + one.T)

    step = hs.Gaussian(sigma).shuffled(batch_size=3, population=6)
    weights = np.outer(w, w)
    for direction, p, q in (("zero-out", 2.0, 1.0), ("zero-in", 1.0, 2.0), ("substitute", 2.0, 0.0)):
        for epsilon in epsilons:
            bound = account(step, direction, 1).delta(epsilon)  # type: ignore[arg-type]
            value = float((weights * np.maximum(law(p) - math.exp(epsilon) * law(q), 0.0)).sum())
            assert 0.0 < bound.lower <= value * (1 + 1e-4)  # of the quadrature across the kink
            assert bound.upper >= value * (1 - 1e-4)
            assert any("no amplification" in note for note in bound.notes)


@pytest.mark.parametrize("direction", ["remove", "substitute", "zero-out"])
def test_sensitivity_is_per_unit_of_add_remove(direction: Direction) -> None:
    """mu doubles under substitution, and only there."""
    mu = mpf(2 if direction == "substitute" else 1) / mpf(3)
    for epsilon in EPSILONS:
        exact = (
            mp.erfc((mpf(epsilon) / mu - mu / 2) / mp.sqrt(2))
            - mp.exp(mpf(epsilon)) * mp.erfc((mpf(epsilon) / mu + mu / 2) / mp.sqrt(2))
        ) / 2
        assert account(hs.Gaussian(3.0), direction, 1).delta(epsilon).contains(exact)


def weight(step: hs.DiscreteLaplace | hs.DiscreteGaussian, x: int) -> Any:
    """An unnormalised mass of the noise, to 40 digits."""
    if isinstance(step, hs.DiscreteLaplace):
        return mp.exp(-abs(x) / mpf(step.scale))
    return mp.exp(-(mpf(x) ** 2) / (2 * mpf(step.sigma) ** 2))


@pytest.mark.parametrize(
    "step", [hs.DiscreteLaplace(0.75, 3, values="counts"), hs.DiscreteGaussian(1.5, 2, values="counts")]
)
def test_counts_are_replaced_by_counts(step: hs.DiscreteLaplace | hs.DiscreteGaussian) -> None:
    """The worst of all pairs of counts in 0..sensitivity, by summing over the outcomes one by one."""
    size, epsilon = step.sensitivity, 0.5
    with mp.workdps(40):
        total = sum(weight(step, x) for x in range(-90, 91))  # less than 1e-50 lies beyond

        def delta(a: int, b: int) -> Any:
            terms = (weight(step, x - a) - mp.exp(mpf(epsilon)) * weight(step, x - b) for x in range(-80, 81))
            return sum(term for term in terms if term > 0) / total

        truth = max(delta(a, b) for a in range(size + 1) for b in range(size + 1))
        found = hs.account(step, "substitute").delta(epsilon)
        assert isinstance(found, hs.Bound)
        assert mpf(float(found.lower)) <= truth * (1 + mpf(10) ** -30)
        assert mpf(float(found.upper)) >= truth * (1 - mpf(10) ** -30)
        assert float(found.width) < 1e-9
    signed = hs.account(replace(step, values="signed"), "substitute").delta(epsilon)
    assert float(signed.sides[0]) > float(found.upper)


def test_directions_with_the_same_pairs_are_asked_once() -> None:
    curve = hs.account(hs.DiscreteLaplace(2.0) + hs.DiscreteGaussian(3.0))
    asked: list[object] = []
    curve.by_direction(lambda directed: (asked.append(directed), directed.delta(1.0))[1])
    assert len(asked) == 1
    assert list(curve.directed) == ["remove", "add"]
    assert len({id(one) for one in hs.account(hs.Gaussian(1.0).poisson(0.1)).directed.values()}) == 2
