"""The guard of SQLite, by the standard library."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from countersign._names import Invalid
from countersign.errors import Json

from ._databases import Found, Pass
from ._errors import Code, GuardRefused

_SAYS = "countersign guard: "
# What the guard's sentences begin or end with.
_CODES: tuple[tuple[str, Code], ...] = (
    ("the fence is not newer", "fence_not_newer"),
    ("the id was used", "id_used"),
    ("the lease is past", "lease_past"),
    ("the lease was past", "lease_past"),
    ("", "arguments"),
)
_LOOK = "SELECT fence, result FROM countersign_guard WHERE id = ? AND thread = ? AND wrote = 1 AND open IS NULL"
_SETTLE = """
    INSERT INTO countersign_guard (id, thread, fence, wrote, open) SELECT :id, :thread, :fence, 0, NULL
    WHERE NOT EXISTS (SELECT 1 FROM countersign_guard WHERE id = :id AND (wrote = 1 OR fence IS :fence))
"""


class Sqlite:
    """One connection, in no transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction or getattr(connection, "autocommit", None) is False:
            raise Invalid("connection", "it must be in no transaction, and not opened with autocommit=False")
        self.connection = connection
        self._ask("PRAGMA foreign_keys = ON")
        self._ask("PRAGMA recursive_triggers = ON")

    def _ask(self, query: str, arguments: Any = ()) -> tuple[Any, ...] | None:
        cursor = self.connection.cursor()
        cursor.row_factory = None
        row: tuple[Any, ...] | None = cursor.execute(query, arguments).fetchone()
        cursor.close()
        return row

    def look(self, id: str, thread: str) -> Found | None:  # noqa: A002 - the guard's word
        row = self._ask(_LOOK, (id, thread))
        return None if row is None else Found(row[0], json.loads(row[1]) if row[1] else {})

    def settle(self, id: str, thread: str, fence: int | None) -> Found | None:  # noqa: A002
        with self.transaction():
            self._ask(_SETTLE, {"id": id, "thread": thread, "fence": fence})
            return self.look(id, thread)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # Nobody else writes from here on, so that nothing is decided by what is old.
        self._ask("BEGIN IMMEDIATE")
        try:
            yield
            self._ask("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self._ask("ROLLBACK")
            raise

    def enter(self, it: Pass) -> None:
        query = "INSERT INTO countersign_guard (id, thread, fence, lease_expires_at) VALUES (?, ?, ?, ?)"
        self._ask(query, (it.id, it.thread, it.fence, it.lease_expires_at))

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        ended = self.connection.execute(
            "UPDATE countersign_guard SET open = NULL, result = ? WHERE id = ? AND open = 1",
            (json.dumps(dict(result)), it.id),
        )
        if ended.rowcount != 1:
            raise GuardRefused("no_pass", f"{it.id} was not passed in this transaction")

    def read(self, error: Exception) -> Exception:
        said = str(error)
        if not isinstance(error, sqlite3.Error) or not said.startswith(_SAYS):
            return error
        detail = said.removeprefix(_SAYS)
        if detail.endswith("has passed the guard"):
            return GuardRefused("no_pass", detail)
        return GuardRefused(next(code for begins, code in _CODES if detail.startswith(begins)), detail)

    def gave_way(self, error: Exception) -> bool:
        return False
