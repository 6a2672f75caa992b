"""The ledger: what has been spent on each data set, by whom and why, and whether the next release may run.

A ledger is a database (SQLite, or PostgreSQL for teams; through SQLAlchemy, an extra). It holds data sets, each with a
neighbouring relation, a budget and a rule of admission, and entries, which are never changed: each carries the hash of
the one before, and a mistake is corrected by a later entry. A release is admitted in the transaction that records it,
so that of two which would each just fit, one is.

Guarantee: what has been admitted to a data set satisfies its budget, rounding included, in the way that its rule makes
valid (`hockeystick.ledger.rules`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.ledger.book import Ledger as Ledger
    from hockeystick.ledger.book import Reservation as Reservation
    from hockeystick.ledger.errors import LedgerError as LedgerError
    from hockeystick.ledger.errors import OverBudgetError as OverBudgetError
    from hockeystick.ledger.errors import TamperedError as TamperedError
    from hockeystick.ledger.records import DataSet as DataSet
    from hockeystick.ledger.records import Entry as Entry
    from hockeystick.ledger.rules import Budget as Budget
    from hockeystick.ledger.rules import Total as Total
    from hockeystick.ledger.verification import Finding as Finding

attach(
    __name__,
    {
        "hockeystick.ledger.book": "Ledger Reservation",
        "hockeystick.ledger.errors": "LedgerError OverBudgetError TamperedError",
        "hockeystick.ledger.records": "DataSet Entry",
        "hockeystick.ledger.rules": "Budget Total",
        "hockeystick.ledger.verification": "Finding",
    },
)
