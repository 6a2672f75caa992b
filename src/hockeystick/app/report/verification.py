"""Verification of a receipt: compute everything in it again, and say what does not agree.

Four things are checked. The checksum: has anything been changed since? The words: do statements and cautions
follow from the figures? The figures: computed again from the specification inside. With the same versions of
everything each figure must come out the same, to far more digits than matter; with others each bracket must hold the
new one, or else one made narrow enough to decide it, and all else must be what is said here of these figures. The
self-check: were the error bounds that every figure assumes kept where the receipt was made, and are they kept here?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from hockeystick.app.report.form import NoReceiptError as NoReceiptError
from hockeystick.app.report.form import has_checksum as has_checksum
from hockeystick.app.report.form import is_page as is_page
from hockeystick.app.report.form import misfits
from hockeystick.app.report.form import open_receipt as open_receipt
from hockeystick.app.report.numbers import asked, is_number, jsonable, number, result_document
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import attack, missed_by, receipt, said_of_run, software, stated
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.problems import SpecificationError
from hockeystick.app.spec.reader import from_document
from hockeystick.app.spec.registry import AUTOMATIC
from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve
from hockeystick.readouts.directions import each_delta
from hockeystick.readouts.one_test import of_several
from hockeystick.readouts.outline import Samples

_PAGE = "page: what is shown is not what the receipt inside it says"
_NO_ANSWERS = "results: not those the specification asks for"
_NO_FIGURES = "figures: some are not of their kind"
_JUNK = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # where a figure is something else
_SAME = 1e-9  # relative: the order of a few sums may differ between machines, nothing else
_FEW = 12  # values of lists that are told
_SHARPER = 0.02  # with other versions: how much narrower the brackets are that decide what is claimed


@final
@dataclass(frozen=True)
class Verification:
    """What came of computing a receipt again.

    Attributes
    ----------
    holds : bool
        Whether everything agrees.
    findings : tuple of str
        What does not agree, one line each.
    remarks : tuple of str
        What a reader should know although it is no disagreement.
    checked : int
        How many figures and texts were compared.
    """

    holds: bool
    findings: tuple[str, ...]
    remarks: tuple[str, ...]
    checked: int


def verify(document: Mapping[str, Any], *, shown: str | None = None) -> Verification:
    """Whether a receipt holds.

    Parameters
    ----------
    document : mapping
        As `open_receipt` returns it.
    shown : str, optional
        The HTML page it came in, to be compared with what the receipt inside says.
    """
    findings: list[str] = []
    if not has_checksum(document):
        findings.append("checksum: the contents are not those the receipt was made with")
    try:
        specification = from_document(document["specification"], source="specification")
    except SpecificationError as error:
        return Verification(holds=False, findings=(*findings, *str(error).splitlines()), remarks=(), checked=1)
    again = receipt(specification, created=str(document.get("created")))
    same_software = document.get("software") == again["software"]
    remarks: list[str] = []
    if not same_software:
        remarks.append(f"made with {_versions(document.get('software'))}; checked with {_versions(again['software'])}")
        again["software"] = document.get("software")
        remarks += _own_words(document.get("results"), again["results"])
    findings += misfits(document)
    if not _shows(shown, document):
        findings.append(_PAGE)
    for words, broken in _self_checks(document.get("selfcheck"), again["selfcheck"]):
        (findings if broken else remarks).append(words)
    try:
        compared = list(_exactly(document, again) if same_software else _compatibly(document, again, specification))
    except _JUNK:
        compared = [_NO_FIGURES]
    findings += filter(None, compared)
    return Verification(not findings, tuple(findings), tuple(remarks), 1 + len(compared))


def _shows(shown: str | None, document: Mapping[str, Any]) -> bool:
    """Whether a page, if there is one, is that of the receipt."""
    try:
        with np.errstate(all="ignore"):  # of figures that are none
            return shown is None or shown == page(document)
    except _JUNK:  # no page can be made of it
        return False


def _own_words(claims: object, found: list[dict[str, Any]]) -> Iterator[str]:
    """What other versions say of how they computed, which is theirs alone to say."""
    for place, (claimed, own) in enumerate(zip(claims if isinstance(claims, list) else (), found, strict=False)):
        for name in ("method", "notes"):
            if isinstance(claimed, dict) and claimed.get(name) != own[name]:
                yield f"results[{place}].{name}: {claimed.get(name)!r} is not checked; here it is {own[name]!r}"


def _self_checks(recorded: object, here: Mapping[str, Any] | None) -> Iterator[tuple[str, bool]]:
    """What the self-checks say, there and here, each with whether it speaks against the receipt."""
    if not isinstance(recorded, dict) or not isinstance(recorded.get("worst"), dict):
        yield "self-check: none is recorded; what the figures assume was not measured where the receipt was made", False
    else:
        exceeded = [name for name, share in recorded["worst"].items() if not number(share) <= 1.0]
        if exceeded or recorded.get("passed") is not True:
            names = ", ".join(exceeded) or "unnamed"
            yield f"self-check: where the receipt was made, assumed error bounds were exceeded: {names}", True
        else:
            yield "self-check: passed where the receipt was made", False
    if here is None:
        yield "self-check: not run here, which needs python-flint", False
    elif here["passed"]:
        yield "self-check: passes here", False
    else:
        yield "self-check: assumed error bounds are exceeded here: run `hockeystick selfcheck`", True


def _versions(found: object) -> str:
    if not isinstance(found, dict):
        return "unknown versions"
    names = software()
    return ", ".join(f"{name} {found.get(name, 'unknown')}" for name in names if name != "machine")


# ---------------------------------------------------------------------------------------------------- the same versions


def _exactly(document: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """One item for each leaf: the finding, or nothing where it agrees."""
    for key in dict.fromkeys((*again, *document)):
        if key not in {"checksum", "selfcheck"}:  # the second is of a machine, not of the run
            yield from _leaves(key, document.get(key), again.get(key))


def _leaves(path: str, claimed: object, found: object) -> Iterator[str]:
    if isinstance(claimed, dict) and isinstance(found, dict):
        for key in dict.fromkeys((*found, *claimed)):
            yield from _leaves(f"{path}.{key}", claimed.get(key), found.get(key))
    elif isinstance(claimed, list) and isinstance(found, list) and len(claimed) == len(found):
        for place, (one, other) in enumerate(zip(claimed, found, strict=True)):
            yield from _leaves(f"{path}[{place}]", one, other)
    elif isinstance(claimed, list) and isinstance(found, list) and max(len(claimed), len(found)) > _FEW:
        yield f"{path}: the receipt has {len(claimed)} values, computed again there are {len(found)}"
    else:
        says = f"{path}: the receipt says {claimed!r}, computed again it is {found!r}"
        yield "" if _agree(path, claimed, found) else says


def _agree(path: str, claimed: object, found: object) -> bool:
    if is_number(claimed) and is_number(found):
        # A width, or an error of the order of rounding, is a difference of much larger numbers
        small = ".errors." in path or path.endswith(("width", ".error"))
        return math.isclose(float(claimed), float(found), rel_tol=1e-4 if small else _SAME)
    return type(claimed) is type(found) and claimed == found


# ------------------------------------------------------------------------------------------------------- other versions


def _compatibly(document: Mapping[str, Any], again: Mapping[str, Any], specification: Specification) -> Iterator[str]:
    """Whether the figures may stand, and whether all else is what this version says of them."""
    claims, points = document.get("results"), document.get("curve")
    if not isinstance(claims, list) or len(claims) != len(again["results"]):
        yield _NO_ANSWERS
        return
    if not isinstance(points, list) or len(points) != len(again["curve"]):
        yield "curve: not the points of this specification"
        return
    curve, finer = specification.curve, _sharper(specification).curve
    for claimed, found in zip(claims, again["results"], strict=True):
        yield from _claims(claimed, found, finer)
    for place, (claimed, found) in enumerate(zip(points, again["curve"], strict=True)):
        yield _held(f"curve[{place}]", claimed, found, partial(finer.epsilon, found["delta"]))
    yield from _pictures(document, again, curve, finer)
    yield from _words(document, again, specification)


def words_that_differ(
    document: Mapping[str, Any], specification: Specification, *, shown: str | None = None
) -> tuple[str, ...]:
    """What a receipt says and this version does not say of its figures, whether or not these are true."""
    kept = ("receipt", "created", "results", "curve", "drawn", "tradeoff", "software")
    again = {name: document.get(name) for name in kept} | jsonable(said_of_run(specification))
    told, drawn, missed = attack(specification), document.get("drawn"), document.get("tradeoff")
    if isinstance(missed, dict):
        again["tradeoff"] = told and missed | told
    if isinstance(drawn, dict):
        again["drawn"] = drawn | {"several": of_several(specification.curve)}
    changed = () if _shows(shown, document) else (_PAGE,)
    if _questions(document) != specification.questions:  # of which the cautions speak
        changed = (*changed, _NO_ANSWERS)
    return (*misfits(document), *changed, *filter(None, _words(document, again, specification)))


def _questions(document: Mapping[str, Any]) -> list[tuple[str, float]] | None:
    """What the results of a receipt answer; None where that cannot be known."""
    try:
        return [(result["quantity"], asked(result)[1]) for result in document["results"]]
    except _JUNK:
        return None


def _words(document: Mapping[str, Any], again: Mapping[str, Any], specification: Specification) -> Iterator[str]:
    try:
        expected = _said_of(document, again, specification)
    except _JUNK:
        yield _NO_FIGURES
        return
    yield from _exactly(document, expected)


def _said_of(document: Mapping[str, Any], again: Mapping[str, Any], specification: Specification) -> Mapping[str, Any]:
    """What this version writes of the figures in a receipt."""
    results = []
    for claimed, found in zip(document["results"], again["results"], strict=True):
        _, level = asked(found)
        words = str(claimed["method"]), tuple(map(str, claimed["notes"]))
        result: Bound | Estimate
        if found["certified"]:
            directions = [tuple(map(number, (side["lower"], side["upper"]))) for side in claimed["directions"].values()]
            low, high = map(max, zip(*directions, strict=True))  # the worst direction
            errors = {name: number(size) for name, size in claimed["errors"].items()}
            result = Bound(low, high, *words, errors)
        else:
            result = Estimate(number(claimed["value"]), number(claimed["error"]), *words)
        sides = {name: _figures(claimed["directions"][name], found) for name in found["directions"]}
        asked_for = {name: found[name] for name in ("quantity", "at")}
        results.append(asked_for | stated(specification, found["quantity"], level, result) | {"directions": sides})
    points = [
        {"delta": found["delta"], **_figures(claimed, found)}
        for claimed, found in zip(document["curve"], again["curve"], strict=True)
    ]
    drawn = {name: again["drawn"][name] for name in ("least", "certified", "several")}
    drawn |= {name: document["drawn"][name] for name in ("epsilon", "directions")}
    tradeoff = again["tradeoff"] and {
        **{name: again["tradeoff"][name] for name in ("certified", "direction", "false_positive")},
        "false_negative": [_figures(claimed, claimed) for claimed in document["tradeoff"]["false_negative"]],
    }
    said: dict[str, Any] = jsonable({"results": results, "curve": points, "drawn": drawn, "tradeoff": tradeoff})
    return {**again, **said}


def _figures(claimed: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides of what is proved, else the value; nothing else that may stand beside them."""
    return {name: claimed[name] for name in (("lower", "upper") if "upper" in found else ("value",))}


def _pictures(
    document: Mapping[str, Any], again: Mapping[str, Any], curve: PrivacyCurve, finer: PrivacyCurve
) -> Iterator[str]:
    """What the pictures are drawn from: other versions may have asked for other points, so each is asked for anew."""
    told, samples = again["tradeoff"], Samples.of(document["drawn"])
    missed = [] if told is None else document["tradeoff"]["false_negative"]
    rates = [] if told is None else list(zip(told["false_positive"], missed, told["false_negative"], strict=True))
    if samples.values.keys() != curve.directed.keys():
        yield "drawn: not the directions of this specification"
        return
    for direction, values in samples.values.items():
        anew = each_delta(curve, direction, samples.epsilon)
        for epsilon, value, found in zip(samples.epsilon, values, map(result_document, anew), strict=True):
            claimed = {"value": value.upper, "lower": value.lower, "upper": value.upper}
            narrower = partial(finer.directed[direction].delta, epsilon)
            yield _held(f"drawn: delta at {epsilon!r}, {direction}", claimed, found, narrower)
    for alpha, claimed, found in rates:
        narrower = partial(missed_by, finer, told["direction"], alpha, sharper=_SHARPER)
        yield _held(f"tradeoff at {alpha!r}", claimed, found, narrower)


def _held(
    name: str,
    claimed: Mapping[str, Any],
    found: Mapping[str, Any],
    narrower: Callable[[], Bound | Estimate],
    *,
    spare: float = _SAME,
) -> str:
    """Nothing where what is claimed is proved by the new bracket or a narrower one; estimates agree to three digits."""
    if "upper" not in found:
        agrees = math.isclose(number(claimed.get("value")), number(found["value"]), rel_tol=1e-3)
    else:
        agrees = _holds(claimed, found["lower"], found["upper"], spare)
        agrees = agrees or (isinstance(result := narrower(), Bound) and _holds(claimed, *result.sides, spare))
    says = f"the receipt says {_said(claimed)}, which could not be proved again; computed again it is {_said(found)}"
    return "" if agrees else f"{name}: {says}"


def _holds(claimed: Mapping[str, Any], lower: Any, upper: Any, spare: float) -> bool:
    """Whether a bracket is proved where another one is: but for what machines may differ by, and ``spare`` above."""
    low, high = number(claimed.get("lower")), number(claimed.get("upper"))
    return low * (1.0 - _SAME) <= float(lower) and high * (1.0 + spare) >= float(upper)


def _claims(claimed: Mapping[str, Any], found: Mapping[str, Any], finer: PrivacyCurve) -> Iterator[str]:
    """One result in each direction."""
    name, sides = f"{found['quantity']} at {found['at']}", claimed.get("directions")
    if not isinstance(sides, dict) or sides.keys() != found["directions"].keys():
        yield f"{name}: not the directions of this specification"
        return
    _, level = asked(found)
    for direction, own in found["directions"].items():
        narrower = partial(getattr(finer.directed[direction], found["quantity"]), level)
        yield _held(f"{name}, {direction}", sides[direction], own, narrower, spare=0.0)  # what a guarantee rests on


def _sharper(specification: Specification) -> Specification:
    """The same specification with a much smaller tolerance, where its accountant has one."""
    accountant, parameters = specification.accountant, specification.accountant.mapping
    if accountant.name != AUTOMATIC and "tolerance" not in parameters:
        return specification
    tolerance = float(parameters.get("tolerance", 1e-3)) * _SHARPER  # type: ignore[arg-type]  # a number, as checked
    return replace(specification, accountant=accountant.but(tolerance=tolerance))


def _said(result: Mapping[str, Any]) -> str:
    return f"[{result.get('lower')!r}, {result.get('upper')!r}]" if "upper" in result else repr(result.get("value"))
