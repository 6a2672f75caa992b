"""The state of a run in progress as plain data or a file: what is written, and the refusal of anything else.

The format is docs/reference/state.md: JSON, floats in hexadecimal, and a SHA-256 checksum of all of it. A version
number says which layout it is. What is read is checked: kind, version, checksum, every field.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from hockeystick.errors import HockeystickError, public_door

VERSION = 1


class StateError(HockeystickError):
    """What should be a saved state is none, is damaged, or belongs to something with other settings."""


class Saved(ABC):
    """What can be saved in the middle of a run, and goes on as if it had never been interrupted.

    Pickles and copies hold the same; `state_dict` and `load_state_dict` work as in PyTorch, so that the state can lie
    in a checkpoint beside the model's.
    """

    kind: ClassVar[str]
    """What it is, in a word or two."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Plain data from which `_restored` makes it anew; what the caller chose is under ``settings``."""

    @classmethod
    @abstractmethod
    def _restored(cls, body: dict[str, Any]) -> Self:
        """What ``_content`` was taken from."""

    def state_dict(self) -> dict[str, Any]:
        """The state as plain data, for a checkpoint."""
        return stamped(self.kind, self._content())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `state_dict`; what was recorded here before is forgotten.

        Raises
        ------
        StateError
            Where it is no such state, a damaged one, or one with other settings, such as a larger budget.
        """
        restored = self._of(state)
        given, own = restored._content()["settings"], self._content()["settings"]  # noqa: SLF001 - its own class
        if given != own:
            other = ", ".join(name for name in own if given.get(name) != own[name])
            raise StateError(f"this state is of a {self.kind} with another {other}: make it with the same settings")
        vars(self).update(vars(restored))

    def to_json(self) -> str:
        """The state as text: the format of docs/reference/state.md."""
        return json.dumps(self.state_dict(), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What was written by `to_json`: it goes on as if it had never been interrupted.

        Raises
        ------
        StateError
            Where the text is no such state, or a damaged one.
        """
        try:
            data = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise StateError(f"this is not a saved {cls.kind}: it is not JSON ({error})") from error
        return cls._of(data)

    def save(self, path: str | Path) -> None:
        """Write the state to a file, all of it or nothing, whoever else writes it at the same time."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the state from a file.

        Raises
        ------
        StateError
            Where the file holds no such state, or a damaged one.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise StateError(f"{path} is not a saved {cls.kind}: it is not text ({error})") from error
        return cls.from_json(text)

    @classmethod
    @public_door
    def _of(cls, data: object) -> Self:
        body = _checked(cls.kind, dict(data) if isinstance(data, Mapping) else data)
        try:
            return cls._restored(body)
        except (ValueError, ArithmeticError, KeyError, TypeError) as error:
            raise StateError(f"this {cls.kind} state is damaged: {error}") from error


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file, all of it or nothing, whoever else writes it at the same time; a device is written to."""
    target = Path(os.path.realpath(path))  # what a link leads to
    written = content if isinstance(content, bytes) else content.encode("utf-8")
    if target.exists() and not target.is_file():
        target.write_bytes(written)
        return
    beside = target.with_name(f"{target.name}.{os.urandom(16).hex()}.part")
    try:
        with beside.open("wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())  # on the disk before it takes the other's place
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except OSError as error:
        error.filename = os.fspath(path)  # the one that was asked for
        raise
    finally:
        beside.unlink(missing_ok=True)


def stamped(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Content with its kind, version and checksum."""
    body = {"format": f"hockeystick {kind}", "version": VERSION, **content}
    return {**body, "checksum": _checksum(body)}


def _checked(kind: str, data: Any) -> dict[str, Any]:
    """The content of a state, its kind, version and checksum verified."""
    wanted = f"hockeystick {kind}"
    if not isinstance(data, dict) or data.get("format") != wanted:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise StateError(f"this is not a saved {kind}: its format is {found!r}, not {wanted!r}")
    if data.get("version") != VERSION:
        raise StateError(
            f"this {kind} state has version {data.get('version')!r}; this release reads version {VERSION}: use the"
            " release that wrote it"
        )
    body = {key: value for key, value in data.items() if key != "checksum"}
    if data.get("checksum") != _checksum(body):
        raise StateError(f"this {kind} state is damaged: its checksum does not match its content")
    return body


def field(data: Any, name: str, kind: type) -> Any:
    """One field of a dictionary, of the kind expected."""
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StateError(f"this state is damaged: {name!r} should be {kind.__name__}, found {value!r}")
    return value


def encode_float(value: float) -> str:
    """A float64 in hexadecimal."""
    return float(value).hex()


def decode_float(text: Any) -> float:
    """The float64 written by `encode_float`.

    Raises
    ------
    ValueError
        Where it is no such text.
    """
    if not isinstance(text, str):
        raise ValueError(f"a hexadecimal float was expected, found {text!r}")
    value = float.fromhex(text)
    if math.isnan(value):
        raise ValueError("a number is NaN")
    return value


def _checksum(body: dict[str, Any]) -> str:
    import hashlib  # loaded where a state is saved, not for every file that is written

    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()
