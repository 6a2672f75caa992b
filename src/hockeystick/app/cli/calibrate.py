r"""The noise, rate, batch size or number of steps that meets a target.

The smallest noise multiplier, or the largest rate, batch size or number of steps, that is proved to meet a target. The
value is proved safe, and the value just beyond it proved unsafe.

  hockeystick calibrate --epsilon 1 --delta 1e-6 --rate 0.001 --steps 10000
  hockeystick calibrate --advantage 0.1 --rate 0.1 --noise-multiplier 1
  hockeystick calibrate spec.toml --epsilon 2 --delta 1e-5 --find count
  hockeystick calibrate --epsilon 8 --delta 1e-5 --sampling balls-in-bins \
      --round-steps 100 --epochs 20
"""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import replace
from typing import Any

from hockeystick.app.cli.answer import Answer, answer_text, told
from hockeystick.app.cli.options import add_of_run, run_of, save_as, stated
from hockeystick.app.cli.parsing import WIDTH, CommandError, Parser, Status, count, delta, epsilon, option, positive
from hockeystick.app.cli.sampler import IN_ROUNDS, OF_ONE_SCHEME, add_length, add_sampler, entry_of
from hockeystick.app.cli.unknown import ROUND, Unknown
from hockeystick.app.report.numbers import is_number, nearest, plain, result_document
from hockeystick.app.report.words import IF_HELD
from hockeystick.app.spec.entries import Choice
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.problems import suggestion
from hockeystick.app.spec.registry import samplings
from hockeystick.calibrate import Calibration, UnreachableTargetError, calibrate
from hockeystick.errors import one_line
from hockeystick.progress import Progress

_NO_FLOOR = (
    "note: mu-GDP at every delta, however small, is no easier with sampling than without it. --floor 1e-10, say, asks"
    " for it above that delta only"
)
_LENGTH = ("steps", "epochs", "tuning", "round_steps")
_OF_RUN = ("noise_multiplier", "rate", "batch_size", "population", "sampling", *_LENGTH, *OF_ONE_SCHEME)
_FOUND = ("noise-multiplier", "rate", "batch-size", "round-steps", "steps")
_BEGUN = {"rate": 1e-3, "batch_size": 1, "round_steps": 100, "noise_multiplier": 1.0}  # in place of what is to be found


def add(parser: Parser) -> None:
    """Add the command's options."""
    words = "a specification, instead of the options of a run"
    parser.add_argument("specification", metavar="SPEC", nargs="?", help=words)
    target = parser.add_argument_group("target (one of them)")
    option(target, "--epsilon", epsilon, "E", "epsilon, together with --delta")
    option(target, "--delta", delta, "D", "delta, together with --epsilon")
    option(target, "--mu", positive, "M", "Gaussian differential privacy at every delta")
    option(target, "--floor", delta, "D", "with --mu: only for delta above this (default: 0)")
    option(target, "--advantage", delta, "A", "the advantage of any attack")
    of_run = parser.add_argument_group("run (give all but the one to find)")
    option(of_run, "--noise-multiplier", positive, "S", "noise over clipping norm")
    add_sampler(of_run)
    add_length(of_run)
    words = f"what to find: {', '.join(_FOUND)}; or a parameter of SPEC, or count"
    parser.add_argument("--find", metavar="NAME", help=words)
    option(parser, "--step", count, "K", "which step of SPEC (default: 1)", default=1)
    words = "relative distance between the value and one proved unsafe (default: %(default)s); integers are exact"
    option(parser, "--precision", positive, "P", words, "--tolerance", default=1e-5)
    add_of_run(parser)


def run(options: argparse.Namespace) -> Status:
    """Find the value and print it."""
    target = _target(options)
    unknown = _from_file(options) if options.specification else _from_options(options)
    with Progress(f"looking for {unknown.name}"):
        try:
            found = calibrate(unknown.family, **target, **unknown.settings, precision=options.precision)
        except UnreachableTargetError as error:
            raise CommandError(f"{options.parser.prog}: no answer: {one_line(error)}", Status.NO_ANSWER) from None
    specification = unknown.at(found.value)
    asked = specification.deltas if options.delta is None else (options.delta,)
    save_as(options, replace(specification, deltas=asked))
    document = {
        "found": unknown.name,
        **{name: getattr(found, name) for name in ("value", "unsafe", "precision", "target")},
        "at_value": result_document(found.bound),
        "at_unsafe": None if found.bound_at_unsafe is None else result_document(found.bound_at_unsafe),
        **{name: getattr(found, name) for name in ("evaluations", "estimates", "notes")},
        "specification": specification.document(),
    }
    specification = replace(specification, deltas=() if options.delta is None else asked)
    return told(specification, document, _text(options, unknown, found, specification), as_json=options.json)


def _target(options: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(options, name) for name in ("epsilon", "delta", "mu", "advantage")}
    target = {name: value for name, value in given.items() if value is not None}
    if set(target) not in ({"epsilon", "delta"}, {"mu"}, {"advantage"}):
        options.parser.error("give one target: --epsilon with --delta, or --mu, or --advantage")
    if options.floor is not None:
        if options.mu is None:
            options.parser.error("--floor goes with --mu: it is the delta above which mu-GDP must hold")
        target["floor"] = options.floor
    return target


def _from_options(options: argparse.Namespace) -> Unknown:
    """The run of the options, with a value to start from in place of the one to find."""
    name = _absent(options)
    if options.epochs is not None and name in {"rate", "batch_size"}:
        options.parser.error(
            f"--epochs are counted in batches, whose size is what is looked for: give --steps to find the"
            f" {name.replace('_', '-')}"
        )
    begun = {name: _BEGUN[name]} if name in _BEGUN else {}
    filled = argparse.Namespace(**vars(options) | begun)
    entry = entry_of(filled, Choice.of("gaussian", noise_multiplier=filled.noise_multiplier))
    sampling = entry.sampling or Choice("none")
    part = "mechanism" if name == "noise_multiplier" else "sampling"
    if name == "steps":
        part, name = ("sampling", "epochs") if "epochs" in sampling.mapping else ("count", "count")
    return Unknown(run_of(options, entry), 0, part, ROUND[sampling.name] if name == "round_steps" else name)


def _absent(options: argparse.Namespace) -> str:
    """The one option that is left out, to be found."""
    in_rounds = options.sampling in IN_ROUNDS
    needed = () if options.sampling is None else samplings()[options.sampling].required
    if in_rounds:
        size = "round_steps"
    elif options.population is None or (options.find == "rate" and "largest_batch" in needed):
        size = "rate"  # its population may belong to the scheme
    else:
        size = "batch_size"
    of_size = options.round_steps if in_rounds else options.rate
    given = {"noise_multiplier": (options.noise_multiplier,), "steps": (options.steps, options.epochs)}
    given |= {size: (of_size, options.batch_size)}
    absent = [name for name, values in given.items() if all(value is None for value in values)]
    if len(absent) != 1 or options.find not in {None, absent[0].replace("_", "-")}:
        sizes = "--round-steps" if in_rounds else "--rate (or --batch-size with --population)"
        missing = ", ".join(absent).replace("_", "-") or "none"
        options.parser.error(
            f"give all but one of --noise-multiplier, --steps, and {sizes};"
            f" missing: {missing}; to find: {options.find or 'the missing one'}"
        )
    if absent == ["round_steps"] and options.epochs is None:
        options.parser.error("give --epochs, the passes over the data, to find how many steps each has")
    if absent == ["batch_size"] and options.sampling == "shuffled":
        options.parser.error(
            "--sampling shuffled: nothing is proved to get better with smaller batches; give --batch-size, and find"
            " the noise or the steps"
        )
    return absent[0]


def _from_file(options: argparse.Namespace) -> Unknown:
    """The specification of the file and the place in it to fill."""
    parser: Parser = options.parser
    given = [name.replace("_", "-") for name in _OF_RUN if getattr(options, name) is not None]
    if given:
        parser.error(f"--{given[0]} describes a run, which {options.specification} does already; leave out one of them")
    specification = stated(options)
    if options.step > len(specification.steps):
        kinds = f"{options.specification} has {len(specification.steps)} kinds of steps"
        parser.error(f"--step is {options.step} but {kinds}")
    entry = specification.steps[options.step - 1]
    sampling = entry.sampling or Choice("none")
    places = {name: "mechanism" for name, value in entry.mechanism.parameters if is_number(value)}
    places |= {name: "sampling" for name, value in sampling.parameters if is_number(value)}
    places["count"] = "count"
    if options.find is None:
        parser.error(f"say what to --find: {', '.join(places)}")
    in_file = {"steps": "count", "round-steps": ROUND.get(sampling.name, "round_steps")}
    name = in_file.get(options.find, options.find.replace("-", "_"))
    if name not in places:
        parser.error(f"--find {options.find!r} is not a number in step {options.step}{suggestion(name, places)}")
    return Unknown(specification, options.step - 1, places[name], name)


def _text(options: argparse.Namespace, unknown: Unknown, found: Calibration, specification: Specification) -> str:
    worth = IF_HELD if specification.broken else "certified"
    lines = [textwrap.fill(f"{unknown.noun} = {plain(found.value)} meets {found.target}, {worth}", WIDTH)]
    if found.unsafe is not None:
        distance = nearest(found.precision, 2)
        lines.append(f"{unknown.noun} = {plain(found.unsafe)} does not: relative distance {distance}")
    sampled = any(entry.sampling is not None for entry in specification.steps)
    cautions = [_NO_FLOOR] if options.mu is not None and not options.floor and sampled else []
    lines += [textwrap.fill(note, WIDTH) for note in (*found.notes, *cautions)]
    if options.epsilon is not None:
        lines += ["", answer_text(specification, [Answer("delta", options.epsilon, found.bound)])]
    return "\n".join(lines)
