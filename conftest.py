"""Shared test configuration: examples in Markdown run as tests, and hypothesis profiles.

In every Markdown file under test (see ``testpaths``):

- ``python`` code blocks run top to bottom in one namespace per file; ``>>>`` examples are compared with their output;
- in ``console`` code blocks each ``$ hockeystick ...`` command runs, and what follows it is compared with its output
  (``...`` matches anything). Other commands in such a block, like ``$ make demo``, are not run.

Put ``<!--- skip: next -->`` before a block that must not run, and say why there.
"""

from __future__ import annotations

import contextlib
import doctest
import gc
import importlib.util
import io
import os
import shlex
import signal

from hypothesis import settings
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from hockeystick.integrations import FRAMEWORKS

# Tests interrupt the commands that they start, which inherit what is ignored: as it is in jobs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Adapters of frameworks that are not installed here, and their tests: `make test-integrations` runs them.
collect_ignore = [
    place.format(module)
    for module, framework in FRAMEWORKS.items()
    if importlib.util.find_spec(framework) is None
    for place in (
        "src/hockeystick/integrations/{}.py",
        "tests/integrations/test_{}.py",
        "tests/integrations/test_{}_own.py",
    )
]
if importlib.util.find_spec("dp_accounting") is None:
    collect_ignore.append("tests/integrations/test_tensorflow_privacy.py")  # a framework known by its events alone
collect_ignore.append("docs/conf.py")  # Sphinx's, which is no dependency of the tests

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Deterministic by default: a failure seen once is a failure everyone can repeat. `make torture` explores.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("torture", deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def _run_console(example: Example) -> str | None:
    """Run the ``$ hockeystick`` commands of a console block; a message when the output differs."""
    from hockeystick.app.cli import main  # not for those who run one other file

    for command, expected in _transcript(str(example.parsed)):
        arguments = shlex.split(command)
        if arguments[0] != "hockeystick":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(arguments[1:])
        if not doctest.OutputChecker().check_output(expected, printed.getvalue(), OPTIONS):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed.getvalue()}"
    return None


def _transcript(block: str) -> list[tuple[str, str]]:
    """Commands (after ``$``, continued by a trailing backslash) with the output shown under each."""
    pairs: list[tuple[str, str]] = []
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            pairs.append((line.removeprefix("$ "), ""))
        elif pairs:
            command, expected = pairs[-1]
            pairs[-1] = (command, expected + line + "\n")
    return pairs


def pytest_sessionstart() -> None:
    """Spare the garbage collector most of its rounds: tests make little that only it could free."""
    gc.set_threshold(100_000)


def pytest_collection_finish() -> None:
    """Spare it ten thousand tests, which live as long as it does."""
    gc.freeze()


pytest_collect_file = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(doctest_optionflags=OPTIONS),
        CodeBlockParser("console", _run_console),
    ],
    patterns=["*.md"],
).pytest()
