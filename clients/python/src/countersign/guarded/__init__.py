"""A write that happens at most once: verify, guard, body, commit and confirm, in this order.

The target database has the guard of `clients/sql`. `guarded_write` is for `psycopg` and `sqlite3`, `aguarded_write` for
psycopg's `AsyncConnection`. If the outcome of a write is unknown, call `settle` or `asettle`.
"""

from countersign.errors import ReceiptMismatch

from ._errors import GaveWay, GuardRefused, OutcomeUnknown
from ._order import Written
from ._writing import aguarded_write, asettle, guarded_write, settle

__all__ = [
    "GaveWay",
    "GuardRefused",
    "OutcomeUnknown",
    "ReceiptMismatch",
    "Written",
    "aguarded_write",
    "asettle",
    "guarded_write",
    "settle",
]
