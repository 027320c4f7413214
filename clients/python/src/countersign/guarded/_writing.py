"""The order in which it is done, and what follows from each way in which it can fail."""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timezone
from typing import Any, TypeVar

from countersign import _names as names
from countersign._client import Client
from countersign._reading import parse
from countersign.answers import Ended, Verified
from countersign.errors import CountersignError, Json, UnexpectedAnswer

from ._databases import Database, Found, Pass, database_of
from ._errors import GaveWay, GuardRefused, OutcomeUnknown

C = TypeVar("C")
Result = Mapping[str, Json] | None
# Whoever gives way to others this often in a row will not get through within a lease.
TRIES = 5

log = logging.getLogger("countersign")


@dataclass(frozen=True)
class Written:
    """It is in the database, once, and the gateway was told: `ended.outcome` is `confirmed` or `late`.

    `by_this_call` is false if it stood there already: an earlier call died, or another process was faster.
    """

    ended: Ended
    result: Mapping[str, Json]
    by_this_call: bool


@dataclass(frozen=True)
class _Job:
    """One write, as the writer's own job has it."""

    thread: str
    transition: str
    write_id: str
    receipt: str | None

    @property
    def id(self) -> str:
        """What the write is known by in the database. A receipt that says that it is for something else would have
        another write taken for this one, before the gateway is asked."""
        if self.receipt is None:
            return self.transition
        if (_claim(self.receipt, "sub"), _claim(self.receipt, "transition")) != (self.thread, self.transition):
            raise names.Invalid("receipt", "it is for another thread or transition than the job")
        return str(_claim(self.receipt, "jti"))


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
) -> Written:
    """Asks the gateway, passes the guard, runs `body`, commits and confirms. Writes at most once, however it ends.

    `body` writes by `verified.view` to the connection that it is given, in the transaction that is open there, and does
    nothing else: it is run anew if the database gives way to another transaction. What it returns is confirmed as
    the writer's result. If it raises, nothing is written, the gateway is told so, and its exception is raised on.

    Take `thread` and `transition` from your own job, and store `write_id` with it first. After a crash call this again
    with the very same: what was committed is confirmed, and not done again. `Denied` with `already_used` says
    that it is too late for that: `settle` it.
    """
    job = _Job(names.name("thread", thread), names.digest("transition", transition), write_id, receipt)
    database = database_of(connection)
    before = database.look(job.id, job.thread)
    if before is not None:
        return _confirmed(client, job, before.result, by_this_call=False)
    verified = client.verify(thread=thread, transition=transition, write_id=write_id, receipt=receipt, expect=expect)
    try:
        result = _tried(database, job, verified, body)
    except Exception as error:  # also whatever the body raises
        stood = _after(database, client, job, verified, database.read(error))
        return _confirmed(client, job, stood.result, by_this_call=False)
    return _confirmed(client, job, result, by_this_call=True)


def settle(
    connection: Any,
    client: Client,
    *,
    thread: str,
    transition: str,
    write_id: str,
    receipt: str | None = None,
    reason: str = "the writer was interrupted, and its database has no such write",
) -> Ended:
    """Finds out what became of a write, sees to it that nothing becomes of it any more, and tells the gateway.

    `confirmed` (or `late`) if it is in the database; `aborted` if not, and then it never will be: have the head
    reaffirmed. Safe beside a writer that still runs: whichever comes first counts.
    """
    job = _Job(names.name("thread", thread), names.digest("transition", transition), write_id, receipt)
    found = database_of(connection).settle(job.id, thread, None)
    if found is None:
        return client.abort(write_id, reason=reason)
    return client.confirm(write_id, result=found.result)


def _tried(database: Database, job: _Job, verified: Verified, body: Callable[[Any, Verified], Result]) -> Result:
    passing = Pass(_used(job, verified), job.thread, verified.fence, _moment(verified))
    for _ in range(TRIES - 1):
        with contextlib.suppress(GaveWay):
            return _once(database, passing, verified, body)
    return _once(database, passing, verified, body)


def _once(database: Database, passing: Pass, verified: Verified, body: Callable[[Any, Verified], Result]) -> Result:
    try:
        with database.transaction():
            database.enter(passing)
            result = dict(body(database.connection, verified) or {})
            database.leave(passing, result)
    except Exception as error:
        if database.gave_way(error):
            raise GaveWay from error
        raise
    return result


def _after(database: Database, client: Client, job: _Job, verified: Verified, error: Exception) -> Found:
    """What stands in the database under this very write. Otherwise it never will: that is told, and `error` raised."""
    try:
        stood = database.settle(job.id, job.thread, verified.fence)
    except Exception:  # whatever it was, nobody knows now
        raise OutcomeUnknown(job.write_id) from error
    if stood is not None and stood.fence == verified.fence:
        if isinstance(error, GuardRefused) and error.code in ("fence_not_newer", "id_used"):
            return stood
        # The body committed by itself before it failed: what is there is there.
        _confirmed(client, job, stood.result, by_this_call=True)
        raise error
    try:
        client.abort(job.write_id, reason=f"nothing was written: {type(error).__name__}")
    except CountersignError as unsaid:
        log.warning("%s: nothing was written, and the gateway was not told (%s)", job.write_id, type(unsaid).__name__)
    raise error


def _confirmed(client: Client, job: _Job, result: Result, *, by_this_call: bool) -> Written:
    ended = client.confirm(job.write_id, result=result or {})
    if ended.outcome not in ("confirmed", "late"):
        raise UnexpectedAnswer(f"{job.write_id} is written, and the gateway has it as {ended.outcome}: call somebody")
    return Written(ended, dict(result or {}), by_this_call)


def _used(job: _Job, verified: Verified) -> str:
    """The id by which the gateway let it through, which must be the one that is looked for after a crash."""
    used = _claim(verified.verification, "receipt") or job.transition
    if used != job.id:
        raise UnexpectedAnswer("verify used another receipt than the one that was sent, or none")
    return str(used)


def _claim(token: str, name: str) -> Json:
    """A claim of a signed token, unchecked: the gateway checks receipts, and its own answer came from it."""
    try:
        part = token.split(".")[1]
        claims = parse(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
        return claims[name]
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error, UnexpectedAnswer):
        raise names.Invalid("receipt", f"not a token with {name}") from None


def _moment(verified: Verified) -> str:
    """As verify wrote it."""
    return verified.lease_expires_at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
