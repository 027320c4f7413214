"""The blocking and the awaited variant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from countersign._client import AsyncClient, Client
from countersign._finished import finished
from countersign._ordered import awaited, blocked
from countersign.answers import Ended, Verified
from countersign.errors import Json

from . import _order
from ._databases import AwaitedDatabase, Database, Pass, awaited_database_of, database_of, told_as
from ._order import Job, Result, Written

if TYPE_CHECKING:
    from countersign.verify import Keys

C = TypeVar("C")
INTERRUPTED = "the writer was interrupted, and its database has no such write"


def guarded_write(
    connection: C,
    client: Client,
    body: Callable[[C, Verified], Result],
    *,
    thread: str,
    transition: str,
    write_id: str,
    receipt: str | None = None,
    expect: Mapping[str, Json] | None = None,
    keys: Keys | None = None,
) -> Written:
    """Calls `verify`, passes the guard, runs `body`, commits and confirms. It writes at most once, however it ends.

    `body` writes by `verified.view` on the given connection, in the open transaction, and does nothing else. It is run
    again if the database gives way to another transaction. Its result is confirmed as the writer's result. If it
    raises, nothing is written, the write is aborted, and the exception is raised again. If the database gives way each
    time, `GaveWay` is raised, and the same call can be repeated within the lease.

    Take `thread` and `transition` from your own job, and store `write_id` with it first. After a crash repeat the same
    call: a committed write is confirmed and not repeated. `Denied` with `already_used` means that it is too late for
    that: call `settle`.

    With `keys` (of `countersign.verify`) the response of `verify` must be signed. If not, `Refused` is raised, nothing
    is written, and the gateway is not notified.
    """
    job = Job(_order.target(thread, transition, write_id), receipt, expect, keys)
    return blocked(_order.write(job), _Blocking(database_of(connection), client, body))


def settle(
    connection: Any,
    client: Client,
    *,
    thread: str,
    transition: str,
    write_id: str,
    reason: str = INTERRUPTED,
) -> Ended:
    """Finds out how a write ended, prevents it from then on if it did not happen, and reports it to the gateway.

    `confirmed` (or `late`): it is in the database. `aborted`: it is not, and never will be, so have the head
    reaffirmed. `UnexpectedAnswer`: database and gateway disagree. Write nothing more, and alert an operator.
    `NotFound`: the gateway never received the write. Use another `write_id`, because this one is used up in the
    database. Safe while another writer runs: the first of the two wins.
    """
    doing = _order.settle(_order.target(thread, transition, write_id), reason)
    return blocked(doing, _Blocking(database_of(connection), client))


async def aguarded_write(
    connection: C,
    client: AsyncClient,
    body: Callable[[C, Verified], Awaitable[Result]],
    *,
    thread: str,
    transition: str,
    write_id: str,
    receipt: str | None = None,
    expect: Mapping[str, Json] | None = None,
    keys: Keys | None = None,
) -> Written:
    """The awaited variant of `guarded_write`, on an `AsyncConnection` of psycopg.

    A cancelled task is like a killed process: uncommitted changes are rolled back, and nothing is reported. Repeat the
    same call.
    """
    job = Job(_order.target(thread, transition, write_id), receipt, expect, keys)
    return await awaited(_order.write(job), _Awaiting(awaited_database_of(connection), client, body))


async def asettle(
    connection: Any,
    client: AsyncClient,
    *,
    thread: str,
    transition: str,
    write_id: str,
    reason: str = INTERRUPTED,
) -> Ended:
    """The awaited variant of `settle`, on an `AsyncConnection` of psycopg."""
    doing = _order.settle(_order.target(thread, transition, write_id), reason)
    return await awaited(doing, _Awaiting(awaited_database_of(connection), client))


@dataclass(frozen=True)
class _Blocking:
    database: Database
    client: Client
    body: Callable[[Any, Verified], Result] = lambda *_: None

    def once(self, it: Pass, verified: Verified) -> Result:
        with told_as(self.database) as now, self.database.transaction():
            self.database.enter(it)
            now.in_body = True
            said: Result = finished(self.body(self.database.connection, verified))
            result = dict(said or {})
            self.database.leave(it, result)
        return result


async def _nothing(connection: Any, verified: Verified) -> Result:
    return None


@dataclass(frozen=True)
class _Awaiting:
    database: AwaitedDatabase
    client: AsyncClient
    body: Callable[[Any, Verified], Awaitable[Result]] = _nothing

    async def once(self, it: Pass, verified: Verified) -> Result:
        with told_as(self.database) as now:
            async with self.database.transaction():
                await self.database.enter(it)
                now.in_body = True
                said: Result = finished(await self.body(self.database.connection, verified))
                result = dict(said or {})
                await self.database.leave(it, result)
        return result
