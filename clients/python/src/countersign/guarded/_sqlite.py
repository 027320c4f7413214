"""The guard of SQLite, with the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from countersign._names import Invalid
from countersign._plans import text
from countersign.errors import Json

from ._databases import Found, Pass, Target, found, looked
from ._errors import Code, GuardRefused

_SAYS = "countersign guard: "
# Prefixes and suffixes of the guard's messages.
_CODES: tuple[tuple[str, Code], ...] = (
    ("the fence is not newer", "fence_not_newer"),
    ("the id was used for another", "receipt_mismatch"),
    ("the id was used", "id_used"),
    ("the write was used", "id_used"),
    ("the lease is past", "lease_past"),
    ("the lease was past", "lease_past"),
    ("", "arguments"),
)
_WRITE = "thread = :thread AND transition = :transition AND write_id = :write_id"
_LOOK = f"""
    SELECT wrote, fence, result FROM countersign_guard
    WHERE {_WRITE} AND open IS NULL AND (wrote = 1 OR fence IS NULL) ORDER BY wrote DESC
"""  # noqa: S608
_SETTLE = f"""
    INSERT INTO countersign_guard (thread, transition, write_id, fence, wrote, open)
    SELECT :thread, :transition, :write_id, :fence, 0, NULL
    WHERE NOT EXISTS (SELECT 1 FROM countersign_guard WHERE {_WRITE} AND (wrote = 1 OR fence IS :fence))
"""  # noqa: S608
_ENTER = """
    INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at)
    VALUES (:id, :thread, :transition, :write_id, :fence, :lease_expires_at)
"""


class Sqlite:
    """One connection, outside a transaction."""

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

    def look(self, target: Target) -> Found | None:
        return looked(self._ask(_LOOK, asdict(target)))

    def settle(self, target: Target, fence: int | None) -> Found | None:
        with self.transaction():
            self._ask(_SETTLE, {**asdict(target), "fence": fence})
            return found(self._ask(_LOOK, asdict(target)))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # No other connection can write from here on, so the read is current.
        self._ask("BEGIN IMMEDIATE")
        try:
            yield
            self._ask("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self._ask("ROLLBACK")
            raise

    def enter(self, it: Pass) -> None:
        given = {"id": it.id, "fence": it.fence, "lease_expires_at": it.lease_expires_at}
        self._ask(_ENTER, {**given, **asdict(it.target)})

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        ended = self.connection.execute(
            "UPDATE countersign_guard SET open = NULL, result = ? WHERE id = ? AND open = 1",
            (text(dict(result)).decode(), it.id),
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
        # Messages of SQLite itself: Python has its codes only since 3.11.
        return isinstance(error, sqlite3.OperationalError) and str(error) == "database is locked"
