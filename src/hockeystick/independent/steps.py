"""From the specification to laws: mechanism, sampling and relation, read anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from hockeystick.independent.allocation import Allocated
from hockeystick.independent.atoms import Atoms, mirrored_outcomes, normalised, outcomes_of, sampled
from hockeystick.independent.balls import UnreachedError, real
from hockeystick.independent.laws import JoinedNormal, Laplace, Law, Mixture

_EVEN_NOISE = {"gaussian", "laplace", "discrete-laplace", "discrete-gaussian", "binomial"}
_WRITTEN_WITH = {  # what is written with more may be something else
    "approximate-dp": {"epsilon", "delta"},
    "binomial": {"trials", "probability", "sensitivity", "values"},
    "discrete-gaussian": {"sigma", "sensitivity", "values"},
    "discrete-laplace": {"scale", "sensitivity", "values"},
    "discrete-pair": {"p", "q"},
    "gaussian": {"noise_multiplier"},
    "gaussian-dp": {"mu"},
    "gaussian-mixture": {"noise_multiplier", "sensitivities", "probabilities"},
    "laplace": {"scale"},
    "randomized-response": {"probability", "categories"},
    "staircase": {"epsilon", "gamma"},
    "none": {"scheme"},
    "poisson": {"scheme", "rate", "batch_size", "population"},
    "without-replacement": {"scheme", "batch_size", "population"},
    "shuffled": {"scheme", "batch_size", "population"},
    "random-allocation": {"scheme", "steps", "selected"},
    "balls-in-bins": {"scheme", "bins", "epochs"},
}


@final
@dataclass(frozen=True)
class SampledStep:
    """One entry of the specification in one direction; kind: remove, add or joined; g: the rate."""

    mechanism: str
    parameters: tuple[tuple[str, Any], ...]
    moved: int  # by how many sensitivities the record moves the sum
    g: Fraction
    kind: str
    count: int
    mirrored: bool = False  # a Poisson sample under substitution: noise moved up or down by the record that is drawn
    places: int = 1  # steps, or bins, of which the record takes part in one
    repeats: int = 1  # how often each bin is used

    def law(self) -> Law:
        """The law at the working precision."""
        name, given = self.mechanism, dict(self.parameters)
        if self.places > 1 or name in {"gaussian", "gaussian-dp"}:
            return self._gaussian(name, given)
        if name == "gaussian-mixture":
            weights = normalised(given["probabilities"])
            noise = Fraction(given["noise_multiplier"])
            merged = {Fraction(0): 1 - self.g}
            for d, w in zip(given["sensitivities"], weights, strict=True):
                merged[Fraction(d) / noise] = merged.get(Fraction(d) / noise, Fraction(0)) + self.g * w
            return self._turned({c: w for c, w in merged.items() if w})
        if name == "laplace":
            kind = "mirrored" if self.mirrored else self.kind
            return Laplace(self.moved / Fraction(given["scale"]), self.g, kind)
        if self.mirrored:
            return Atoms(*mirrored_outcomes(name, given, self.g, self.count))
        outcomes, unit, missing = outcomes_of(name, given, self.moved, self.count)
        if self.kind == "joined" and name == "discrete-pair":
            raise UnreachedError("two vectors say nothing about substitution")
        # the supremum of the losses of noise that is not listed to its end, which no outcome reaches
        beyond = -real(1 - self.g).log() if self.kind == "add" and self.g < 1 else None
        return Atoms(sampled(outcomes, self.g, self.kind), unit, missing, beyond)

    def _gaussian(self, name: str, given: Mapping[str, Any]) -> Law:
        if self.places > 1:
            if name != "gaussian":
                raise UnreachedError(f"random allocation is proved here for Gaussian noise, not for {name}")
            return Allocated(self.repeats / Fraction(given["noise_multiplier"]) ** 2, self.places, self.kind)
        if name == "gaussian":
            shift = self.moved / Fraction(given["noise_multiplier"])
        else:
            shift = Fraction(given["mu"])
        if self.kind == "joined" and self.g < 1:
            return JoinedNormal(shift, self.g, "joined")
        mixed = {Fraction(0): 1 - self.g, shift: self.g} if self.g < 1 else {shift: Fraction(1)}
        if self.mirrored:
            return Mixture(mixed, {-c: w for c, w in mixed.items()})
        return self._turned(mixed)

    def _turned(self, mixed: dict[Fraction, Fraction]) -> Law:
        still = {Fraction(0): Fraction(1)}
        return Mixture(mixed, still) if self.kind != "add" else Mixture(still, mixed)


def step_of(entry: Mapping[str, Any], direction: str) -> tuple[SampledStep, bool]:
    """An entry in one direction, and whether known datasets attain its law."""
    said = {"name", "note"}  # of the reader's
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items() if k not in said}
    name, count, sampling = given.pop("mechanism"), given.pop("count", 1), given.pop("sampling", "none")
    sizes = dict(sampling) if isinstance(sampling, Mapping) else {"scheme": sampling}
    for what, parameters in ((name, given), (sizes["scheme"], sizes)):
        if more := set(parameters) - _WRITTEN_WITH.get(what, set(parameters)):
            raise UnreachedError(f"{what} is written with {', '.join(sorted(more))}, which the checker does not know")
    kind = {"zero-out": "remove", "zero-in": "add", "substitute": "joined"}.get(direction, direction)
    if sizes["scheme"] in {"random-allocation", "balls-in-bins"}:
        return _allocated(name, given, sizes, kind, count), True
    moved, g, attained = _scheme(sizes, direction, kind)
    if not 0 <= g <= 1:
        raise UnreachedError(f"{float(g)!r} is no sampling rate")
    replaced = sizes["scheme"] == "poisson" and kind == "joined" and g < 1
    mirrored = replaced and name in _EVEN_NOISE and given.get("values") != "counts"
    if replaced and not mirrored:
        if name not in {*_EVEN_NOISE, "randomized-response"}:
            raise UnreachedError(f"{name} on a Poisson sample under substitution is not proved here")
        attained = False  # as on batches of fixed size: the same pair with a record and without, or with another
    if moved == 2 and (
        name in {"discrete-pair", "gaussian-mixture"} or (name == "binomial" and given.get("probability", 0.5) != 0.5)
    ):
        raise UnreachedError(f"no pair is known for {name} under substitution")
    if kind == "joined" and (g == 1 or mirrored):
        kind = "remove"
    return SampledStep(name, tuple(given.items()), 1 if mirrored else moved, g, kind, count, mirrored), attained


def _allocated(name: str, given: Mapping[str, Any], sizes: Mapping[str, Any], kind: str, count: int) -> SampledStep:
    """A round, or a whole run on fixed bins."""
    places, repeats = sizes.get("steps", sizes.get("bins", 1)), sizes.get("epochs", 1)
    if kind == "joined" or sizes.get("selected", 1) != 1:
        raise UnreachedError("random allocation is proved here for one step of a round, and not under substitution")
    if places == 1:
        count, repeats = count * repeats, 1
    return SampledStep(name, tuple(given.items()), 1, Fraction(1), kind, count, places=places, repeats=repeats)


def _scheme(sizes: Mapping[str, Any], direction: str, kind: str) -> tuple[int, Fraction, bool]:
    """By how many sensitivities a record moves the sum, the rate, and whether known datasets attain the law."""
    moved = 2 if kind == "joined" else 1
    if sizes["scheme"] == "none":
        return moved, Fraction(1), True
    if sizes["scheme"] == "poisson":
        return moved, Fraction(sizes["rate"] if "rate" in sizes else sizes["batch_size"] / sizes["population"]), True
    if sizes["scheme"] == "without-replacement" and direction not in {"zero-out", "zero-in"}:
        g = Fraction(sizes["batch_size"], sizes["population"])
        if g == 1 and kind != "joined":
            raise UnreachedError("without the record there is no batch of this size")
        return 2, g, kind != "joined" or g == 1
    if sizes["scheme"] == "shuffled" and direction not in {"add", "remove"}:
        return moved, Fraction(1), bool(sizes["batch_size"] == sizes["population"])
    raise UnreachedError(f"no pair is known for sampling {sizes['scheme']!r} under {direction!r}")
