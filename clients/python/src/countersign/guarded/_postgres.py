"""The guard of PostgreSQL, with psycopg 3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from countersign._names import Invalid
from countersign._plans import text
from countersign.errors import Json

from ._databases import Found, Pass, Row, Target, found, looked
from ._errors import Code, GuardRefused

_CODES: dict[str, Code] = {
    "ZG001": "fence_not_newer",
    "ZG002": "id_used",
    "ZG003": "lease_past",
    "ZG004": "arguments",
    "ZG005": "no_pass",
    "ZG006": "other_thread",
    "ZG007": "receipt_mismatch",
}
# Serialization failure and deadlock: the transaction is gone, and a new one can succeed.
_AGAIN = frozenset({"40001", "40P01"})


_LOOK = """
    SELECT wrote, fence, result::text FROM countersign_guard.passes
    WHERE thread = %s AND transition = %s AND write_id = %s
"""
# At a higher level it would read the state from before its wait, or fail with a conflict.
_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE"
_SETTLE = "SELECT wrote, written_fence, result::text FROM countersign_guard.settle(%s, %s, %s, %s)"
_ENTER = "SELECT countersign_guard.pass(%s, %s, %s, %s, %s, %s::timestamptz)"
# Fails if the body swallowed a database error: the commit would then commit nothing.
_NOTE = "SELECT countersign_guard.note(%s, %s::jsonb)"


class _Postgres:
    """The common part of the blocking and the awaited variant."""

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise Invalid("connection", "it must be open and in no transaction: the guard needs one of its own")
        self._connection = connection

    def _must_be_over(self, *, whole: bool) -> None:
        """Checks that the commit happened. psycopg raises nothing if the body rolled back, or if the connection was
        lost."""
        if not whole:
            raise GuardRefused("no_pass", "the body rolled back its transaction")
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            raise psycopg.OperationalError("the connection was lost before the commit was confirmed")

    def read(self, error: Exception) -> Exception:
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        if state not in _CODES or not isinstance(error, psycopg.Error):
            return error
        return GuardRefused(_CODES[state], (error.diag.message_primary or "").removeprefix("countersign guard: "))

    def gave_way(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) and error.sqlstate in _AGAIN and not self._connection.closed


class Postgres(_Postgres):
    """One connection, outside a transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection)
        self.connection = connection

    def _ask(self, query: str, *arguments: Any) -> Row:
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(query.encode(), arguments).fetchone()

    def look(self, target: Target) -> Found | None:
        with self.connection.transaction():
            self.connection.execute(_COMMITTED)
            row = self._ask(_LOOK, *_named(target))
        return looked(row)

    def settle(self, target: Target, fence: int | None) -> Found | None:
        with self.connection.transaction():
            self.connection.execute(_COMMITTED)
            row = self._ask(_SETTLE, *_named(target), fence)
        return found(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        whole = False
        with self.connection.transaction():
            yield
            whole = True
        self._must_be_over(whole=whole)

    def enter(self, it: Pass) -> None:
        self._ask(_ENTER, *_told(it))

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        self._ask(_NOTE, it.id, text(dict(result)).decode())


class AwaitedPostgres(_Postgres):
    """The awaited variant."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        super().__init__(connection)
        self.connection = connection

    async def _ask(self, query: str, *arguments: Any) -> Row:
        async with self.connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query.encode(), arguments)
            return await cursor.fetchone()

    async def look(self, target: Target) -> Found | None:
        async with self.connection.transaction():
            await self.connection.execute(_COMMITTED)
            row = await self._ask(_LOOK, *_named(target))
        return looked(row)

    async def settle(self, target: Target, fence: int | None) -> Found | None:
        async with self.connection.transaction():
            await self.connection.execute(_COMMITTED)
            row = await self._ask(_SETTLE, *_named(target), fence)
        return found(row)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        whole = False
        async with self.connection.transaction():
            yield
            whole = True
        self._must_be_over(whole=whole)

    async def enter(self, it: Pass) -> None:
        await self._ask(_ENTER, *_told(it))

    async def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        await self._ask(_NOTE, it.id, text(dict(result)).decode())


def _named(target: Target) -> tuple[str, str, str]:
    return target.thread, target.transition, target.write_id


def _told(it: Pass) -> tuple[Any, ...]:
    return (it.id, *_named(it.target), it.fence, it.lease_expires_at)
