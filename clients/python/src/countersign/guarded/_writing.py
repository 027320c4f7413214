"""The two ways in which it is carried out: one blocks, one awaits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from countersign._client import AsyncClient, Client
from countersign._finished import finished
from countersign.answers import Ended, Verified
from countersign.errors import Json

from . import _order
from ._databases import AwaitedDatabase, Database, Pass, awaited_database_of, database_of, told_as
from ._order import Doing, Job, Result, Written

if TYPE_CHECKING:
    from countersign.verify import Keys

C = TypeVar("C")
T = TypeVar("T")
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
    """Asks the gateway, passes the guard, runs `body`, commits and confirms. Writes at most once, however it ends.

    `body` writes by `verified.view` to the connection that it is given, in the transaction that is open there, and does
    nothing else: it is run anew if the database gives way to another transaction. What it returns is confirmed as
    the writer's result. If it raises, nothing is written, the gateway is told so, and its exception is raised on. Where
    the database gives way each time, that is `GaveWay`, and the same call may be made again within the lease.

    Take `thread` and `transition` from your own job, and store `write_id` with it first. After a crash call this again
    with the very same: what was committed is confirmed, and not done again. `Denied` with `already_used` says
    that it is too late for that: `settle` it.

    With `keys` (of `countersign.verify`) what verify answers must be what the gateway signed. If it is not, that is
    `Refused`, nothing is written, and the gateway is told nothing.
    """
    job = Job(_order.target(thread, transition, write_id), receipt, expect, keys)
    return _carried_out(_order.write(job), _Blocking(database_of(connection), client, body))


def settle(
    connection: Any,
    client: Client,
    *,
    thread: str,
    transition: str,
    write_id: str,
    reason: str = INTERRUPTED,
) -> Ended:
    """Finds out what became of a write, sees to it that nothing becomes of it any more, and tells the gateway.

    `confirmed` (or `late`) if it is in the database; `aborted` if not, and then it never will be: have the head
    reaffirmed. `UnexpectedAnswer` if the gateway was told otherwise before: do nothing more, and call somebody.
    `NotFound` if the gateway never heard of it: begin with another `write_id`, for this one is used up in the database.
    Safe beside a writer that still runs: whichever comes first counts.
    """
    doing = _order.settle(_order.target(thread, transition, write_id), reason)
    return _carried_out(doing, _Blocking(database_of(connection), client))


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
    """`guarded_write`, awaited, on an `AsyncConnection` of psycopg.

    A task that is cancelled is like a process that dies: what is not committed is rolled back, and nothing is said.
    Call this again with the very same.
    """
    job = Job(_order.target(thread, transition, write_id), receipt, expect, keys)
    return await _awaited(_order.write(job), _Awaiting(awaited_database_of(connection), client, body))


async def asettle(
    connection: Any,
    client: AsyncClient,
    *,
    thread: str,
    transition: str,
    write_id: str,
    reason: str = INTERRUPTED,
) -> Ended:
    """`settle`, awaited, on an `AsyncConnection` of psycopg."""
    doing = _order.settle(_order.target(thread, transition, write_id), reason)
    return await _awaited(doing, _Awaiting(awaited_database_of(connection), client))


def _carried_out(doing: Doing[T], hands: _Blocking) -> T:
    go: Callable[[], Any] = partial(next, doing)
    while True:
        try:
            step = go()
        except StopIteration as done:
            found: T = done.value
            return found
        try:
            go = partial(doing.send, step(hands))
        except Exception as error:  # it is for the order to say what follows
            go = partial(doing.throw, error)


async def _awaited(doing: Doing[T], hands: _Awaiting) -> T:
    go: Callable[[], Any] = partial(next, doing)
    while True:
        try:
            step = go()
        except StopIteration as done:
            found: T = done.value
            return found
        try:
            go = partial(doing.send, await step(hands))
        except Exception as error:  # it is for the order to say what follows
            go = partial(doing.throw, error)


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
