"""A script that completes commands and options in your shell.

Print a completion script for a shell.

  source <(hockeystick completion bash)   # put it into ~/.bashrc to keep it
  hockeystick completion zsh > ~/.zfunc/_hockeystick    # a directory of $fpath
  hockeystick completion fish > ~/.config/fish/completions/hockeystick.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hockeystick.app.assets import asset
from hockeystick.app.cli.parsing import Parser, Status

Subparsers = argparse._SubParsersAction  # noqa: SLF001 - what `add_subparsers` returns has no public name

Options = dict[str, tuple[str, ...]]
"""The options of a command, each with its few values."""


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> Status:
    """Print the script: commands, options, the values of options that have few, and file names everywhere else."""
    commands: Subparsers[Parser] = options.commands
    known = {name: _options(parser) for name, parser in commands.choices.items()}
    # argparse has no public way to get at the helps of commands, nor at the options of a parser
    helps = {action.dest: action.help or "" for action in commands._choices_actions}  # noqa: SLF001 - see above
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](known, helps), end="")
    return Status.OK


def _options(parser: Parser) -> Options:
    found: Options = {}
    for action in parser._actions:  # noqa: SLF001 - see `run`
        values = tuple(map(str, action.choices or ()))
        for inner in action.choices.values() if isinstance(action.choices, dict) else ():
            found = _options(inner) | found  # of an action of the command; the first of a name says its values
        names = [name for name in action.option_strings if name.startswith("--")]
        found |= dict.fromkeys(names or [""] * bool(values), values)
    return found


def _bash(commands: Mapping[str, Options], _: Mapping[str, str]) -> str:
    cases: list[str] = []
    for name, options in commands.items():
        few = [
            f"        {option}) words='{' '.join(values)}' ;;"
            for option, values in options.items()
            if option and values
        ]
        words = f"words='{' '.join((*filter(None, options), *options.get('', ())))}'"
        inner = ["      case $prev in", *few, f"        *) {words} ;;", "      esac"] if few else [f"      {words}"]
        cases += [f"    {name})", *inner, "      ;;"]
    return asset("cli/completion.bash").replace("@cases@", "\n".join(cases)).replace("@commands@", " ".join(commands))


def _zsh(commands: Mapping[str, Options], helps: Mapping[str, str]) -> str:
    listed = " ".join(f"'{name}:{_quoted(helps.get(name, ''))}'" for name in commands)
    cases: list[str] = []
    for name, options in commands.items():
        few = {option: f":value:({' '.join(values)})" if values else "" for option, values in options.items()}
        values = few.pop("", None)
        first = "" if values is None else f"'1{values}'"
        specs = [f"'{option}[]{values}'" for option, values in few.items()]
        cases.append(f"    {name}) _arguments {' '.join([*specs, first])} '*:file:_files' ;;")
    return asset("cli/completion.zsh").replace("@cases@", "\n".join(cases)).replace("@commands@", listed)


def _fish(commands: Mapping[str, Options], helps: Mapping[str, str]) -> str:
    lines = ["# fish completion for hockeystick", "complete -c hockeystick -n __fish_use_subcommand -f"]
    for name, options in commands.items():
        lines.append(f"complete -c hockeystick -n __fish_use_subcommand -a {name} -d '{_quoted(helps.get(name, ''))}'")
        seen = f"complete -c hockeystick -n '__fish_seen_subcommand_from {name}'"
        for option, values in options.items():
            few = f" -a '{' '.join(values)}'" if values else ""
            if not option:
                lines.append(f"{seen} -f{few}")
            else:
                lines.append(f"{seen} -l {option.removeprefix('--')}{' -x' if few else ''}{few}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """Text that is safe inside single quotes of every shell, and holds no colon for zsh."""
    return text.replace("'", "").replace(":", ",")
