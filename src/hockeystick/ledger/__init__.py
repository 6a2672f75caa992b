"""The ledger: what has been spent on each data set, by whom and why, and whether the next release may run.

A ledger is a database (SQLite, or PostgreSQL for teams; through SQLAlchemy, an extra). It holds data sets, each with a
neighbouring relation, a budget and a rule of admission, and entries, which are never changed: each carries the hash of
the one before, and a mistake is corrected by a later entry. A release is admitted in the transaction that records it,
so that of two which would each just fit, one is.

Guarantee: what has been admitted to a data set satisfies its budget, rounding included, in the way that its rule makes
valid (`hockeystick.ledger.rules`).
"""

from hockeystick.ledger.book import Ledger, Reservation
from hockeystick.ledger.errors import LedgerError, OverBudgetError, TamperedError
from hockeystick.ledger.records import DataSet, Entry
from hockeystick.ledger.rules import Budget, Total
from hockeystick.ledger.verification import Finding

__all__ = ["Budget", "DataSet", "Entry", "Finding", "Ledger", "Reservation", "Total"]
__all__ += ["LedgerError", "OverBudgetError", "TamperedError"]


def __dir__() -> list[str]:
    return __all__
