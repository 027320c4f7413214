"""The order in which it is done, and what follows from each way in which it can fail.

A `Doing` is a generator, like the plans of the client: it yields a `Step`, is given what came of it or has raised in it
what went wrong, and returns the answer. So this is written once; whoever carries it out blocks or awaits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import timezone
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from countersign import _names as names
from countersign._unchecked import NoToken, claim
from countersign.answers import Ended, Verified
from countersign.errors import CountersignError, Json, Malformed, UnexpectedAnswer

from ._databases import Found, Pass, Target
from ._errors import GaveWay, GuardRefused, OutcomeUnknown, ReceiptMismatch

if TYPE_CHECKING:
    from countersign.verify import Keys

T = TypeVar("T")
Result = Mapping[str, Json] | None
# Whoever gives way to others this often in a row will not get through within a lease.
TRIES = 5

log = logging.getLogger("countersign")


class Hands(Protocol):
    """What a step is done with; each of it at once, or to be awaited."""

    @property
    def database(self) -> Any: ...

    @property
    def client(self) -> Any: ...

    def once(self, it: Pass, verified: Verified) -> Any:
        """One try: a transaction with the guard, the body and what is to be confirmed in it."""


Step = Callable[[Hands], Any]
Doing = Generator[Step, Any, T]


@dataclass(frozen=True)
class Written:
    """It is in the database, once, and the gateway was told: `ended.outcome` is `confirmed` or `late`.

    `by_this_call` is false if it stood there already: an earlier call died, or another process was faster.
    """

    ended: Ended
    result: Mapping[str, Json]
    by_this_call: bool


@dataclass(frozen=True)
class Job:
    """One write, as the writer's own job has it, and what it is to be let through by."""

    target: Target
    receipt: str | None
    expect: Mapping[str, Json] | None
    keys: Keys | None

    def __post_init__(self) -> None:
        """A receipt that says that it is for something else is a mistake in the job, which is told before anything."""
        if self.receipt is not None:
            said = (_said(self.receipt, "sub"), _said(self.receipt, "transition"))
            if said != (self.target.thread, self.target.transition):
                raise names.Invalid("receipt", "it is for another thread or transition than the job")
            names.jti("receipt", self.jti)

    @property
    def jti(self) -> Json:
        """The id that the receipt claims, unchecked: it is compared with what verify used, and for nothing else."""
        return None if self.receipt is None else _said(self.receipt, "jti")


def target(thread: str, transition: str, write_id: str) -> Target:
    """What a job's write is known by."""
    return Target(
        names.name("thread", thread), names.digest("transition", transition), names.name("write_id", write_id)
    )


def write(job: Job) -> Doing[Written]:
    """Looks, asks the gateway, passes the guard with the body, and confirms."""
    before: Found | None = yield lambda it: it.database.look(job.target)
    if before is not None:
        return (yield from _confirmed(job.target, before.result, by_this_call=False))
    asked = {**vars(job.target), "receipt": job.receipt, "expect": job.expect, "keys": job.keys}
    verified: Verified = yield lambda it: it.client.verify(**asked)
    # A receipt that is not the one raises here: nothing is told, and whoever comes with the right one goes on.
    passing = Pass(_used(job, verified), job.target, verified.fence, _moment(verified))
    try:
        result = yield from _tried(passing, verified)
    except GaveWay as error:
        stood = yield from _given_way(job.target, error)
        return (yield from _confirmed(job.target, stood.result, by_this_call=False))
    except Exception as error:  # also whatever the body raises
        stood = yield from _after(job.target, verified, error)
        return (yield from _confirmed(job.target, stood.result, by_this_call=False))
    return (yield from _confirmed(job.target, result, by_this_call=True))


def settle(it: Target, reason: str) -> Doing[Ended]:
    """Finds out, and tells."""
    found: Found | None = yield lambda by: by.database.settle(it, None)
    if found is not None:
        return (yield from _confirmed(it, found.result, by_this_call=False)).ended
    aborted: Ended = yield lambda by: by.client.abort(it.write_id, reason=reason)
    if aborted.outcome != "aborted":
        raise _at_odds(it, "not in the database", aborted)
    return aborted


def _tried(passing: Pass, verified: Verified) -> Doing[Result]:
    left, in_body = TRIES, False
    while True:
        left -= 1
        try:
            result: Result = yield lambda it: it.once(passing, verified)
        except GaveWay as error:
            in_body = error.in_body = in_body or error.in_body
            if left == 0:
                raise
        else:
            return result


def _given_way(it: Target, error: GaveWay) -> Doing[Found]:
    """What stands in the database, if the body committed by itself before the database gave way. Otherwise each try was
    taken back, and `error` is raised: nothing is settled and nobody told, so that it can be tried again."""
    try:
        stood: Found | None = yield lambda by: by.database.look(it)
    except GuardRefused:  # somebody settled it meanwhile, so that trying again is of no use
        raise
    except Exception:  # without the body nothing can have been committed; with it, nobody knows now
        if error.in_body:
            raise OutcomeUnknown(it.write_id) from error
        raise error from None
    if stood is None:
        raise error
    return stood


def _after(it: Target, verified: Verified, error: Exception) -> Doing[Found]:
    """What stands in the database under this very write. Otherwise it never will: that is told, and `error` raised."""
    try:
        stood: Found | None = yield lambda by: by.database.settle(it, verified.fence)
    except Exception:  # whatever it was, nobody knows now
        raise OutcomeUnknown(it.write_id) from error
    if stood is not None and stood.fence == verified.fence:
        if isinstance(error, GuardRefused) and error.code in ("fence_not_newer", "id_used"):
            return stood
        # The body committed by itself before it failed: what is there is there.
        yield from _confirmed(it, stood.result, by_this_call=True)
        raise error
    try:
        yield lambda by: by.client.abort(it.write_id, reason=f"nothing was written: {type(error).__name__}")
    except CountersignError as unsaid:
        log.warning("%s: nothing was written, and the gateway was not told (%s)", it.write_id, type(unsaid).__name__)
    raise error


def _confirmed(it: Target, result: Result, *, by_this_call: bool) -> Doing[Written]:
    try:
        ended: Ended = yield lambda by: by.client.confirm(it.write_id, result=result or {})
    except (Malformed, names.Invalid) as unsaid:
        # It is written, and that has to be known, also where what the body said of it is nothing that can be sent.
        log.warning("%s: confirmed without its result, which no gateway takes (%s)", it.write_id, type(unsaid).__name__)
        ended = yield lambda by: by.client.confirm(it.write_id)
    if ended.outcome not in ("confirmed", "late"):
        raise _at_odds(it, "written", ended)
    return Written(ended, dict(result or {}), by_this_call)


def _at_odds(it: Target, found: str, ended: Ended) -> UnexpectedAnswer:
    return UnexpectedAnswer(f"{it.write_id} is {found}, and the gateway has it as {ended.outcome}: call somebody")


def _used(job: Job, verified: Verified) -> str:
    """The id by which the gateway let it through, from its own answer: of the receipt that was sent, and of no other.

    A repeated verify gives its first answer without another look at the receipt, which may have been replaced since."""
    used = _said(verified.verification, "receipt")
    if used != job.jti:
        raise ReceiptMismatch
    return job.target.transition if used is None else str(used)


def _said(token: str, name: str) -> Json:
    """Unchecked: the gateway checks receipts, and its own answer came from it."""
    try:
        return claim(token, name)
    except NoToken:
        raise names.Invalid("receipt", f"not a token with {name}") from None


def _moment(verified: Verified) -> str:
    """As verify wrote it."""
    return verified.lease_expires_at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
