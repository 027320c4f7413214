"""What a guarded write needs of a database, said the same of each kind."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from countersign._names import Invalid
from countersign.errors import Json


@dataclass(frozen=True)
class Pass:
    """What the guard is told: `id` is the receipt's jti, or the transition's digest where none was needed."""

    id: str
    thread: str
    fence: int
    lease_expires_at: str


@dataclass(frozen=True)
class Found:
    """A write that is in the database for good, and what is to be confirmed of it."""

    fence: int
    result: dict[str, Json]


class Database(Protocol):
    """A connection to a database that has the guard."""

    # What the body is given.
    connection: Any

    def look(self, id: str, thread: str) -> Found | None:  # noqa: A002 - the guard's word
        """Whether it was written by this id, for this thread."""

    def settle(self, id: str, thread: str, fence: int | None) -> Found | None:  # noqa: A002
        """The same, and from then on nobody writes by it. Waits for whoever is about to commit."""

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Around one try: committed at its end, rolled back by whatever is raised in it."""

    def enter(self, it: Pass) -> None:
        """Passes the guard."""

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        """Keeps what is to be confirmed, if the pass is still this transaction's."""

    def read(self, error: Exception) -> Exception:
        """The guard's refusal, if this is one."""

    def gave_way(self, error: Exception) -> bool:
        """Whether the database let another transaction go first, so that this one may succeed if tried again."""


def database_of(connection: Any) -> Database:
    """By what it is. What has not been imported is not what was given."""
    for module, name in (("psycopg", "Connection"), ("sqlite3", "Connection")):
        found = sys.modules.get(module)
        if found is not None and isinstance(connection, getattr(found, name)):
            if module == "psycopg":
                from ._postgres import Postgres

                return Postgres(connection)
            from ._sqlite import Sqlite

            return Sqlite(connection)
    raise Invalid("connection", "a Connection of psycopg 3 or of sqlite3")
