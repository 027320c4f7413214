"""What a guarded write needs of a database, said the same of each kind."""

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
    """By what a write is known in the database: by what the writer's own job says of it, and not by a receipt, which
    somebody else may have put there."""

    thread: str
    transition: str
    write_id: str


@dataclass(frozen=True)
class Pass:
    """What the guard is told: `id` is the receipt's jti, or the transition's digest where none was needed."""

    id: str
    target: Target
    fence: int
    lease_expires_at: str


@dataclass(frozen=True)
class Found:
    """A write that is in the database for good, and what is to be confirmed of it."""

    fence: int
    result: dict[str, Json]


# Of the guard's table: whether it was written, by which fence, and what is to be confirmed, as text.
Row = tuple[Any, ...] | None


def found(row: Row) -> Found | None:
    """What a row of the guard's says of a write."""
    if row is None or not row[0]:
        return None
    return Found(row[1], json.loads(row[2]) if row[2] else {})


def looked(row: Row) -> Found | None:
    """The same before it is begun: of what was settled the gateway is not asked, which would use the approval up."""
    if row is not None and not row[0]:
        raise GuardRefused("id_used", "it was settled that this write never will be: begin with another write_id")
    return found(row)


class Refusals(Protocol):
    """What a database's errors mean."""

    def read(self, error: Exception) -> Exception:
        """The guard's refusal, if this is one."""

    def gave_way(self, error: Exception) -> bool:
        """Whether the database let another transaction go first, so that this one may succeed if tried again."""


class Database(Refusals, Protocol):
    """A connection to a database that has the guard."""

    # What the body is given.
    connection: Any

    def look(self, target: Target) -> Found | None:
        """Whether this very write is there. Raises if it was settled that it never will be."""

    def settle(self, target: Target, fence: int | None) -> Found | None:
        """The same, and from then on it never will be. Waits for whoever is about to commit."""

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Around one try: committed at its end, rolled back by whatever is raised in it."""

    def enter(self, it: Pass) -> None:
        """Passes the guard."""

    def leave(self, it: Pass, result: Mapping[str, Json]) -> None:
        """Keeps what is to be confirmed, if the pass is still this transaction's."""


class AwaitedDatabase(Refusals, Protocol):
    """The same, awaited."""

    connection: Any

    def look(self, target: Target) -> Awaitable[Found | None]: ...

    def settle(self, target: Target, fence: int | None) -> Awaitable[Found | None]: ...

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]: ...

    def enter(self, it: Pass) -> Awaitable[None]: ...

    def leave(self, it: Pass, result: Mapping[str, Json]) -> Awaitable[None]: ...


@dataclass
class Try:
    """How far one came."""

    in_body: bool = False


@contextlib.contextmanager
def told_as(database: Refusals) -> Iterator[Try]:
    """Around one try: what the database says in its own words is raised in ours."""
    now = Try()
    try:
        yield now
    except Exception as error:
        told = GaveWay(in_body=now.in_body) if database.gave_way(error) else database.read(error)
        if told is error:
            raise
        raise told from error


def database_of(connection: Any) -> Database:
    """By what it is. What has not been imported is not what was given."""
    if _is(connection, "psycopg", "Connection"):
        from ._postgres import Postgres

        return Postgres(connection)
    if _is(connection, "sqlite3", "Connection"):
        from ._sqlite import Sqlite

        return Sqlite(connection)
    raise Invalid("connection", "a Connection of psycopg 3 or of sqlite3")


def awaited_database_of(connection: Any) -> AwaitedDatabase:
    """The same of those that are awaited."""
    if _is(connection, "psycopg", "AsyncConnection"):
        from ._postgres import AwaitedPostgres

        return AwaitedPostgres(connection)
    raise Invalid("connection", "an AsyncConnection of psycopg 3")


def _is(connection: Any, module: str, name: str) -> bool:
    found = sys.modules.get(module)
    return found is not None and isinstance(connection, getattr(found, name))
