"""The interface of a guarded database, the same for each kind."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from countersign._names import Invalid
from countersign.errors import Json

from ._errors import GaveWay, GuardRefused


@dataclass(frozen=True)
class Target:
    """The identity of a write in the database: the facts of the writer's own job, and never a receipt, which others
    may have put there."""

    thread: str
    transition: str
    write_id: str


@dataclass(frozen=True)
class Pass:
    """The arguments of the guard: `id` is the receipt's jti, or the transition's digest if no receipt was needed."""

    id: str
    target: Target
    fence: int
    lease_expires_at: str


@dataclass(frozen=True)
class Found:
    """A write that is permanently in the database, and the result to confirm."""

    fence: int
    result: dict[str, Json]


# A row of the guard's table: written or not, its fencing token, and the result to confirm, as text.
Row = tuple[Any, ...] | None


def found(row: Row) -> Found | None:
    """Returns the write that a row of the guard describes."""
    if row is None or not row[0]:
        return None
    return Found(row[1], json.loads(row[2]) if row[2] else {})


def looked(row: Row) -> Found | None:
    """Returns the write before it starts. If it was settled, the gateway is not asked, because that would use up the
    approval."""
    if row is not None and not row[0]:
        raise GuardRefused("id_used", "this write was settled as not written: use another write_id")
    return found(row)


class Refusals(Protocol):
    """The meaning of a database's errors."""

    def read(self, error: Exception) -> Exception:
        """Returns the guard's refusal, if the error is one."""

    def gave_way(self, error: Exception) -> bool:
        """Returns whether the database let another transaction go first, so that a retry can succeed."""


class Database(Refusals, Protocol):
    """A connection to a database with the guard."""

    # The object that the body receives.
    connection: Any

    def look(self, target: Target) -> Found | None:
        """Returns this write, if it is there. Raises if it was settled as not written."""

    def settle(self, target: Target, fence: int | None) -> Found | None:
        """Returns this write, and otherwise prevents it from then on. Waits for transactions that are about to
        commit."""

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Surrounds one attempt: commits at its end, rolls back on an exception."""

    def enter(self, it: Pass) -> None:
        """Passes the guard."""

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        """Stores the result to confirm, if the pass still belongs to this transaction."""


class AwaitedDatabase(Refusals, Protocol):
    """The awaited variant of `Database`."""

    connection: Any

    def look(self, target: Target) -> Awaitable[Found | None]: ...

    def settle(self, target: Target, fence: int | None) -> Awaitable[Found | None]: ...

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]: ...

    def enter(self, it: Pass) -> Awaitable[None]: ...

    def leave(self, it: Pass, result: Mapping[str, Json]) -> Awaitable[None]: ...


@dataclass
class Try:
    """The progress of one attempt."""

    in_body: bool = False


@contextlib.contextmanager
def told_as(database: Refusals) -> Iterator[Try]:
    """Surrounds one attempt: converts the database's errors into ours."""
    now = Try()
    try:
        yield now
    except Exception as error:
        told = GaveWay(in_body=now.in_body) if database.gave_way(error) else database.read(error)
        if told is error:
            raise
        raise told from error


def database_of(connection: Any) -> Database:
    """Returns the database for a connection. A library that was not imported cannot be the connection's."""
    if _is(connection, "psycopg", "Connection"):
        from ._postgres import Postgres

        return Postgres(connection)
    if _is(connection, "sqlite3", "Connection"):
        from ._sqlite import Sqlite

        return Sqlite(connection)
    raise Invalid("connection", "a Connection of psycopg 3 or of sqlite3")


def awaited_database_of(connection: Any) -> AwaitedDatabase:
    """Returns the database for an awaited connection."""
    if _is(connection, "psycopg", "AsyncConnection"):
        from ._postgres import AwaitedPostgres

        return AwaitedPostgres(connection)
    raise Invalid("connection", "an AsyncConnection of psycopg 3")


def _is(connection: Any, module: str, name: str) -> bool:
    found = sys.modules.get(module)
    return found is not None and isinstance(connection, getattr(found, name))
