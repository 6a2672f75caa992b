"""What a run releases, in words: steps that differ in numbers alone are said as one, with the range of each number.

Noise that changes from step to step makes a thousand kinds of steps, and one sentence. What is said of a few kinds is
said of each, and every number stands in the specification that a receipt holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import final

from hockeystick.app.report import words
from hockeystick.app.report.numbers import count_text
from hockeystick.app.spec.entries import StepEntry
from hockeystick.app.spec.model import Specification, together

_FEW = 5  # kinds of steps that are alike in words and are listed all the same
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w]|[.,]\d)")


@final
@dataclass(frozen=True)
class Release:
    """One kind of step, or many that differ in numbers alone.

    Attributes
    ----------
    steps : StepEntry
        The kind; of many the first, with the counts of all added and their names and notes listed.
    noise : str
        What is released in one step, with every parameter.
    sampling : str
        How its records are chosen.
    often : str
        How many results are released.
    times : str
        The same, as a heading.
    kinds : str
        How many kinds there are, and what the ranges mean; empty of one.
    """

    steps: StepEntry
    noise: str
    sampling: str
    often: str
    times: str
    kinds: str = ""


def releases(specification: Specification) -> list[Release]:
    """All that a run releases."""
    alike: dict[tuple[str, ...], list[tuple[list[StepEntry], str, str]]] = {}
    for entries in specification.alike:
        said = words.noise_words(entries[0]), words.sampling_words(entries[0].sampling, specification.unit)
        alike.setdefault(tuple(_NUMBER.sub("0", one) for one in said), []).append((entries, *said))
    found: list[Release] = []
    for several in alike.values():
        kinds, noise, sampling = zip(*several, strict=True)
        if len(kinds) <= _FEW:
            each = zip(map(together, kinds), noise, sampling, strict=True)
            found += [Release(*one, words.steps_text(one[0]), words.times_text(one[0])) for one in each]
        else:
            entries = list(chain.from_iterable(kinds))
            total = count_text(sum(entry.count * entry.step.releases for entry in entries))
            own = f"{count_text(len(kinds))} kinds of steps, each with its own numbers, one in each range stated"
            times = f"{total} times in all"
            found.append(Release(together(entries), ranged(noise), ranged(sampling), total, times, own))
    return found


def ranged(sentences: Sequence[str]) -> str:
    """Sentences that differ in numbers alone as one, with the range of each number.

    Examples
    --------
    >>> ranged(["noise 1.2 in 3 batches", "noise 0.9 in 3 batches", "noise 1.0 in 3 batches"])
    'noise 0.9 to 1.2 in 3 batches'
    """
    columns = zip(*map(_NUMBER.findall, sentences), strict=True)
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), sentences[0])


def _range(numbers: Sequence[str]) -> str:
    least, most = (end(numbers, key=lambda text: float(text.replace(",", ""))) for end in (min, max))
    return least if least == most else f"{least} to {most}"
