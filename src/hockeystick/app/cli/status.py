"""Exit statuses, and the exceptions that carry them."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What the exit status of ``hockeystick`` means."""

    OK = 0
    REFUTED = 1
    BAD_INPUT = 2
    NO_ANSWER = 3
    NOT_CERTIFIED = 4
    INTERRUPTED = 130


STATUS_MEANING = {
    Status.OK: "the answer was printed; for verify: the receipt holds, or every number was proved again; for selfcheck:"
    " every bound was kept",
    Status.REFUTED: "verify: the receipt does not hold; audit: the claim is refuted; selfcheck: an assumed bound was"
    " exceeded",
    Status.BAD_INPUT: "bad input: an option, a file or a value in it; one line on stderr for each problem",
    Status.NO_ANSWER: "no answer: no theorem covers this case, or the precision cannot be reached; for verify"
    " --independent: nothing is wrong, but some number is out of its reach",
    Status.NOT_CERTIFIED: "the answer was printed, or for verify: the figures agree; but by the specification's own"
    " words an assumption that they rest on is broken",
    Status.INTERRUPTED: "interrupted from the keyboard",
}
"""One line for each status, as help shows it."""


class CommandError(Exception):
    """A failure with a message for the person at the terminal and an exit status."""

    def __init__(self, message: str, status: Status = Status.BAD_INPUT) -> None:
        super().__init__(message)
        self.status = status
