"""What goes wrong with a ledger, by name; whatever it is, the ledger is as it was before."""

from __future__ import annotations

from hockeystick.errors import HockeystickError


class LedgerError(HockeystickError):
    """A request that the ledger cannot follow: an unknown name, a reservation that is settled, another version."""


class OverBudgetError(LedgerError):
    """A release does not fit into what is left: it must not be run, and was not recorded."""


class TamperedError(LedgerError):
    """Stored entries do not agree with their hashes."""
