"""The guard of PostgreSQL, by psycopg 3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from countersign._names import Invalid
from countersign.errors import Json

from ._databases import Found, Pass
from ._errors import Code, GuardRefused

_CODES: dict[str, Code] = {
    "ZG001": "fence_not_newer",
    "ZG002": "id_used",
    "ZG003": "lease_past",
    "ZG004": "arguments",
    "ZG005": "no_pass",
    "ZG006": "other_thread",
}
# Serialization failure and deadlock: the transaction is gone, and another one may well succeed.
_AGAIN = frozenset({"40001", "40P01"})


class Postgres:
    """One connection, in no transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise Invalid("connection", "it must be open and in no transaction: the guard needs one of its own")
        self.connection = connection

    def _ask(self, query: str, *arguments: Any) -> tuple[Any, ...] | None:
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(query.encode(), arguments).fetchone()

    def look(self, id: str, thread: str) -> Found | None:  # noqa: A002 - the guard's word
        query = "SELECT wrote, fence, result::text FROM countersign_guard.passes WHERE id = %s AND thread = %s"
        with self.connection.transaction():
            row = self._ask(query, id, thread)
        return _found(row)

    def settle(self, id: str, thread: str, fence: int | None) -> Found | None:  # noqa: A002
        query = "SELECT wrote, written_fence, result::text FROM countersign_guard.settle(%s, %s, %s)"
        with self.connection.transaction():
            # At any other level it would be told what stood there before it waited.
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE")
            row = self._ask(query, id, thread, fence)
        return _found(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.connection.transaction():
            yield
        # psycopg says nothing if there was no connection any more to commit by.
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            raise psycopg.OperationalError("the connection broke before the commit was answered")

    def enter(self, it: Pass) -> None:
        query = "SELECT countersign_guard.pass(%s, %s, %s, %s::timestamptz)"
        self._ask(query, it.id, it.thread, it.fence, it.lease_expires_at)

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        # Fails if the body swallowed a failure of the database: what is committed then is nothing at all.
        self._ask("SELECT countersign_guard.note(%s, %s::jsonb)", it.id, json.dumps(dict(result)))

    def read(self, error: Exception) -> Exception:
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        if state not in _CODES or not isinstance(error, psycopg.Error):
            return error
        return GuardRefused(_CODES[state], (error.diag.message_primary or "").removeprefix("countersign guard: "))

    def gave_way(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) and error.sqlstate in _AGAIN and not self.connection.closed


def _found(row: tuple[Any, ...] | None) -> Found | None:
    if row is None or not row[0]:
        return None
    return Found(row[1], json.loads(row[2]) if row[2] else {})
