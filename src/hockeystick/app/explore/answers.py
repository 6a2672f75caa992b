"""What the page shows of a question: certified numbers and outlines from the library's public functions, as JSON.

Everything here is what Python and the command line answer; the page computes no privacy of its own.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np

from hockeystick import dpsgd
from hockeystick.account import account
from hockeystick.accountants.gaussian_limit import GaussianLimit
from hockeystick.app.canvas import Array, between, last, lowest, risen
from hockeystick.app.explore.question import RANGES, TOLERANCE, BadQuestionError, Question
from hockeystick.app.report.figures import privacy_chart, standalone
from hockeystick.app.report.markup import Markup
from hockeystick.app.report.numbers import bracket, jsonable, plain, result_document, rounded_up
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.words import headline, method_words, not_included, statement
from hockeystick.app.spec.cautions import cautions, verdict
from hockeystick.app.spec.circumstances import Circumstances
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate import Calibration
from hockeystick.calibrate.beginning import begun, foreseen_noise
from hockeystick.composition import directions
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import HockeystickError, one_line
from hockeystick.readouts.outline import Lines, Samples, crossed, crossings, sampled
from hockeystick.together import asked_together, each_together

_LEVELS = np.array([0.99, 0.97, 0.9, 0.75, 0.6, 0.45, 0.3])  # of delta at epsilon 0, asked while a slider moves
_DEEPER = 13  # more of them, down to the last delta that is drawn, and one beyond
_RESTING = {"seen": 4e-3}  # of the axis
_SLOW, _RESTING_SLOW = "lattice", {"seen": math.inf, "first": 13}  # an engine whose values each take a while
_ROUGHLY = 1e-4  # of the noise for a target, while a slider moves
_ANY_DELTA = 1e-5  # a curve does not depend on where it is asked
_BELOW = 1e-3  # how far below delta the privacy curve is drawn, as a factor
_COUNTS, _RATES = {"live": 7, "fine": 25}, {"live": 5, "fine": 13}
_TRADE_OFF = ("add-remove", "zero-out", "substitute")  # relations that say something of an attack


def answered(view: str, question: Question) -> tuple[int, dict[str, Any]]:
    """The status and the document of one answer; what has no answer says why."""
    try:
        return 200, jsonable(VIEWS[view](question))
    except (BadQuestionError, HockeystickError, TypeError, ValueError) as error:
        return 422, {"error": one_line(error)}


def _run(question: Question) -> dict[str, Any]:
    """The run without its noise, as `hockeystick.dpsgd` takes it."""
    if question.rate is not None:
        return {"rate": question.rate, "sampling": question.sampling}
    return {"batch_size": question.batch_size, "population": question.examples, "sampling": question.sampling}


def _specified(question: Question) -> Specification:
    """The run with its noise, given or found."""
    return question.specification(_noise(question)[0])


def _noise(question: Question) -> tuple[float, Calibration | None]:
    """The noise multiplier, and how it was found where epsilon is locked and no slider moves."""
    if question.noise_multiplier is not None:
        return question.noise_multiplier, None
    if question.detail != "live":
        return _calibrated(question)
    expected = foreseen_noise(  # `_proved` proves that it meets the target
        lambda noise: dpsgd.run(noise, question.steps, **_run(question)),
        begun(question.steps, _wanted(question)),
        within=RANGES["noise_multiplier"],
        precision=_ROUGHLY,
    )
    return expected, None


def _wanted(question: Question) -> dict[str, Any]:
    """The target and the run without its noise, as `hockeystick.dpsgd.noise_multiplier_for` takes them."""
    target = {"epsilon": question.target_epsilon, "delta": question.delta, "adjacency": question.adjacency}
    return _run(question) | target


def _calibrated(question: Question) -> tuple[float, Calibration]:
    found = dpsgd.noise_multiplier_for(steps=question.steps, **_wanted(question))
    return float(found.value), found


def _curve(specification: Specification) -> PrivacyCurve:
    """The curve of a run: what was proved of it at one delta, or coarsely, serves the next question."""
    return _kept(replace(specification, deltas=(_ANY_DELTA,), circumstances=Circumstances()))


@lru_cache(maxsize=4)
def _kept(specification: Specification) -> PrivacyCurve:
    return specification.curve


def _proved(question: Question) -> tuple[float, Calibration | None, _Shown]:
    """The noise and its curve; noise that was foreseen is proved by it to meet the target, or else found."""
    noise, found = _noise(question)
    shown = _Shown(question, _curve(question.specification(noise)))
    if found or not float(shown.bound.sides[1]) > (question.target_epsilon or math.inf):
        return noise, found, shown
    noise, found = _calibrated(question)
    return noise, found, _Shown(question, _curve(question.specification(noise)))


def _met(question: Question, found: Calibration | None) -> dict[str, Any] | None:
    """What is proved of the noise that was found."""
    if question.target_epsilon is None:
        return None
    if found is None:
        return {"words": f"the target is met; noise is found to {_ROUGHLY:.2%}, and finer once the controls rest"}
    at, most = plain(question.target_epsilon), rounded_up(float(found.bound.upper))
    words = f"delta at epsilon {at} is at most {most}"
    return {"unsafe": found.unsafe, "delta": result_document(found.bound), "words": words}


def _worth(specification: Specification) -> dict[str, Any]:
    """What stands beside every number: which assumptions are broken, and what is not stated."""
    return {
        "verdict": verdict(specification.broken) or None,
        "broken": list(specification.broken),
        "unstated": [caution.text for caution in cautions(specification) if not caution.broken],
    }


def _answer(question: Question) -> dict[str, Any]:
    """The guarantee in words and figures, the privacy curve and the trade-off function."""
    noise, found, shown = _proved(question)
    specification, bound = question.specification(noise), shown.bound
    return {
        **_worth(specification),
        "noise_multiplier": noise,
        "met": _met(question, found),
        "epsilon": result_document(bound),
        "bracket": bracket(bound) if bound.certified else None,  # type: ignore[arg-type]  # a Bound is certified
        "headline": headline(specification, "epsilon", question.delta, bound),
        "statement": statement(specification, "epsilon", question.delta, bound),
        "method": method_words(bound),
        "not_included": list(not_included(specification)),
        **_curves(question, shown),
        "specification": json.dumps(specification.document(), indent=2),
        "python": _python(question, noise),
        "command": _command(question, noise),
    }


def _curves(question: Question, shown: _Shown) -> dict[str, Any]:
    """The outlines; none while a slider moves where each value takes a while: the number comes first."""
    if shown.slow and question.detail == "live":
        return {"later": True}
    samples = shown.samples
    return {
        "curve": {**_lines(samples.privacy(shown.least)), "least": shown.least, "end": shown.end},
        "trade_off": _lines(samples.trade_off()) if question.adjacency in _TRADE_OFF else None,
        "proved": samples.certified,
        "values": len(samples.epsilon),
    }


@final
class _Shown:
    """What is shown of a curve: epsilon at delta, and down to which delta and up to which epsilon it is drawn."""

    def __init__(self, question: Question, curve: PrivacyCurve) -> None:
        self._curve = curve
        self.least = 10.0 ** math.floor(math.log10(question.delta * _BELOW) + 0.5)
        self._lowest = lowest(curve, self.least)
        # where one pass answers all, first of all the curve, whose contours answer the rest: else the number
        together = all(curve.composition.attained(direction) is None for direction in directions(curve.adjacency))
        levels = [question.delta, self._lowest]
        moving = together and question.detail == "live"
        self._moving = None
        if moving:
            crossing = crossings(curve, _levels(curve, self._lowest), needed=levels)
            self._moving = crossed(curve, crossing)
            found = [crossing[level] for level in levels]
        else:
            asked = np.array(levels if together else levels[:1])
            found = list(map(_given, each_together([curve], np.zeros(asked.size, dtype=np.intp), asked, "epsilon")))
        self.bound, self._ending = found[0], found[-1] if together else None

    @cached_property
    def end(self) -> float:
        """The largest epsilon of the picture."""
        ending = self._ending or self._curve.epsilon(self._lowest)
        return last([float(ending.sides[1])])

    @property
    def slow(self) -> bool:
        """Whether each value of the curve takes a while."""
        return _SLOW in self.bound.method

    @property
    def samples(self) -> Samples:
        """Values of the curve: few while a slider moves, many once it rests."""
        if self._moving is not None:
            return self._moving
        asked = _RESTING_SLOW if self.slow else _RESTING
        return sampled(self._curve, self.end, least=self.least, **asked)  # type: ignore[arg-type]  # two of its numbers


def _levels(curve: PrivacyCurve, least: float) -> list[float]:
    """Deltas down to the last that is drawn and one beyond; where they start is an estimate."""
    limit = account(curve.composition, directions(curve.adjacency)[0], accountant=GaussianLimit())
    start = max(float(limit.delta(0.0).sides[1]), 10.0 * least)
    levels = (*(start * _LEVELS), *np.geomspace(0.2 * start, least, _DEEPER), 0.5 * least)
    return [float(level) for level in levels if level < 1.0]


def _given(answer: Bound | Estimate | HockeystickError) -> Bound | Estimate:
    if isinstance(answer, HockeystickError):
        raise answer
    return answer


def _lines(lines: Lines) -> dict[str, Any]:
    return {side: [line.tolist() for line in getattr(lines, side)] for side in ("below", "above")}


def _steps(question: Question) -> dict[str, Any]:
    """Epsilon at delta against the number of steps: between two counts at least the earlier, at most the later."""
    specification = _specified(question)
    first = max(1, round(question.steps / 20))
    last = min(question.steps * 5, int(RANGES["steps"][1]))
    around = np.geomspace(first, last, _COUNTS[question.detail])
    counts = sorted({question.steps, *(round(count) for count in around)})
    step = specification.steps[0].step
    curves = [account(step * count, question.adjacency, tolerance=TOLERANCE) for count in counts]
    found = asked_together(curves, np.arange(len(counts)), np.full(len(counts), question.delta), "epsilon")
    return {**_worth(specification), "proved": found.certified, **_stairs(np.array(counts, dtype=np.float64), found)}


def _rates(question: Question) -> dict[str, Any]:
    """The least noise for the locked epsilon, or for the run's own, against the sampling rate."""
    specification = _specified(question)
    epsilon = question.target_epsilon or float(_curve(specification).epsilon(question.delta).sides[1])
    low, high = RANGES["target_epsilon"]
    if not low <= epsilon <= high:
        raise BadQuestionError(
            f"noise is found for epsilon from {low:g} to {high:g}; that of this run is {epsilon:.4g}"
        )
    places, given = _places(question)
    wanted: dict[str, Any] = {"epsilon": epsilon, "delta": question.delta, "adjacency": question.adjacency}
    found = dpsgd.noise_multipliers_for(steps=question.steps, **wanted, precision=1e-3, **given)
    return {**_worth(specification), "proved": True, "target": epsilon, **_stairs(places, between(found))}


def _places(question: Question) -> tuple[Array, dict[str, Any]]:
    """Sampling rates around the run's own, and the arguments that ask for them."""
    count = _RATES[question.detail]
    if question.rate is not None:
        rates = np.geomspace(max(question.rate / 10.0, RANGES["rate"][0]), min(question.rate * 10.0, 1.0), count)
        rates = np.minimum(rates, 1.0)
        rates = np.unique(np.append(rates[abs(rates - question.rate) > 1e-9 * rates], question.rate))
        return rates, {"rates": rates.tolist(), "sampling": question.sampling}
    size, examples = question.batch_size or 1, question.examples or 1
    around = np.geomspace(max(size / 10.0, 1.0), min(size * 10.0, examples), count)
    sizes = sorted({size, *(round(one) for one in around)})
    given = {"batch_sizes": sizes, "population": examples, "sampling": question.sampling}
    return np.array(sizes) / examples, given


def _stairs(x: Array, found: Bound | Estimate) -> dict[str, Any]:
    """What never falls, known at a few points."""
    lower, upper = risen(found)
    return {"x": x.tolist(), "lower": lower.tolist(), "upper": upper.tolist()}


def _receipt(question: Question) -> dict[str, Any]:
    """The privacy receipt as a page of its own."""
    return {"html": page(receipt(_specified(question)))}


def _picture(question: Question) -> dict[str, Any]:
    """The privacy curve as an SVG file, marked where an assumption is broken."""
    specification = _specified(question)
    shown = _Shown(question, _curve(specification))
    mark = (float(shown.bound.sides[1]), question.delta)
    said = verdict(specification.broken)
    drawn = privacy_chart(shown.samples, shown.least, [mark], title=said or "Privacy curve")
    return {"svg": standalone(drawn or Markup(""), said)}


def _python(question: Question, noise: float) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in _run(question).items() if value != "poisson")
    return (
        "import hockeystick as hs\n\n"
        f"run = hs.dpsgd.run({noise!r}, {question.steps}, {given})\n"
        f"bound = hs.account(run, {question.adjacency!r}).epsilon(delta={question.delta!r})\n"
        "print(bound.lower, bound.upper)\n"
    )


def _command(question: Question, noise: float) -> str:
    """The same on the command line; what only a specification can say goes by its file."""
    if question.batches is not None:
        return "hockeystick account spec.json"
    options: dict[str, Any] = {"noise-multiplier": noise, "rate": question.rate, "batch-size": question.batch_size}
    options |= {"examples": question.examples, "steps": question.steps, "delta": question.delta}
    options |= {"adjacency": question.adjacency, "sampling": question.sampling}
    said = " ".join(f"--{name} {plain(value)}" for name, value in options.items() if value is not None)
    return f"hockeystick dpsgd {said}"


VIEWS = {"answer": _answer, "steps": _steps, "rates": _rates, "receipt": _receipt, "picture": _picture}
"""What can be asked, by name."""
