"""A write that happens at most once: verify, guard, body, commit and confirm, in this order.

The target database has the guard of `clients/sql`. `guarded_write` is for `psycopg` and `sqlite3`; whoever finds a
write of which nobody knows what became of it calls `settle`.
"""

from ._errors import GaveWay, GuardRefused, OutcomeUnknown
from ._writing import Written, guarded_write, settle

__all__ = ["GaveWay", "GuardRefused", "OutcomeUnknown", "Written", "guarded_write", "settle"]
