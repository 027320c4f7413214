"""The order of a guarded write, and the consequence of each failure.

Each step gets the hands of a writer: its `database`, its `client`, and `once`, which runs one attempt: a transaction
with the guard, the body and its result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timezone
from typing import TYPE_CHECKING

from countersign import _names as names
from countersign._ordered import Order
from countersign._unchecked import NoToken, claim
from countersign.answers import Ended, Verified
from countersign.errors import CountersignError, Json, Malformed, ReceiptMismatch, UnexpectedAnswer

from ._databases import Found, Pass, Target
from ._errors import GaveWay, GuardRefused, OutcomeUnknown

if TYPE_CHECKING:
    from countersign.verify import Keys

Result = Mapping[str, Json] | None
# After so many conflicts in a row, an attempt within the lease is unlikely to succeed.
TRIES = 5

log = logging.getLogger("countersign")


@dataclass(frozen=True)
class Written:
    """The write is in the database, once, and the gateway was notified: `ended.outcome` is `confirmed` or `late`.

    `by_this_call` is false if the write was there already, because an earlier call died or another process was faster.
    """

    ended: Ended
    result: Mapping[str, Json]
    by_this_call: bool


@dataclass(frozen=True)
class Job:
    """One write, as the writer's own job describes it, and its receipt."""

    target: Target
    receipt: str | None
    expect: Mapping[str, Json] | None
    keys: Keys | None

    def __post_init__(self) -> None:
        """Refuses a receipt that claims to be for another transition, before anything else happens."""
        if self.receipt is not None:
            said = (_said(self.receipt, "sub"), _said(self.receipt, "transition"))
            if said != (self.target.thread, self.target.transition):
                raise names.Invalid("receipt", "it names another thread or transition than the job")
            names.jti("receipt", self.jti)

    @property
    def jti(self) -> Json:
        """Returns the id that the receipt claims, unchecked. It is only compared with the one that `verify` used."""
        return None if self.receipt is None else _said(self.receipt, "jti")


def target(thread: str, transition: str, write_id: str) -> Target:
    """Returns the identity of the job's write."""
    return Target(
        names.name("thread", thread), names.digest("transition", transition), names.name("write_id", write_id)
    )


def write(job: Job) -> Order[Written]:
    """Looks for the write, calls `verify`, passes the guard with the body, and confirms."""
    before: Found | None = yield lambda it: it.database.look(job.target)
    if before is not None:
        return (yield from _confirmed(job.target, before.result, by_this_call=False))
    asked = {**vars(job.target), "receipt": job.receipt, "expect": job.expect, "keys": job.keys}
    verified: Verified = yield lambda it: it.client.verify(**asked)
    # A wrong receipt raises here, before the gateway is notified, so the right one still works.
    passing = Pass(_used(job, verified), job.target, verified.fence, _moment(verified))
    try:
        result = yield from _tried(passing, verified)
    except GaveWay as error:
        stood = yield from _given_way(job.target, error)
        return (yield from _confirmed(job.target, stood.result, by_this_call=False))
    except Exception as error:  # includes exceptions of the body
        stood = yield from _after(job.target, verified, error)
        return (yield from _confirmed(job.target, stood.result, by_this_call=False))
    return (yield from _confirmed(job.target, result, by_this_call=True))


def settle(it: Target, reason: str) -> Order[Ended]:
    """Finds out how the write ended, and reports it."""
    found: Found | None = yield lambda by: by.database.settle(it, None)
    if found is not None:
        return (yield from _confirmed(it, found.result, by_this_call=False)).ended
    aborted: Ended = yield lambda by: by.client.abort(it.write_id, reason=reason)
    if aborted.outcome != "aborted":
        raise _at_odds(it, "not in the database", aborted)
    return aborted


def _tried(passing: Pass, verified: Verified) -> Order[Result]:
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


def _given_way(it: Target, error: GaveWay) -> Order[Found]:
    """Returns the write, if the body committed by itself before the database gave way. Otherwise every attempt was
    rolled back, and `error` is raised without settling, so that the call can be repeated."""
    try:
        stood: Found | None = yield lambda by: by.database.look(it)
    except GuardRefused:  # it was settled in between, so a retry is useless
        raise
    except Exception:  # if the body ran, the outcome is unknown
        if error.in_body:
            raise OutcomeUnknown(it.write_id) from error
        raise error from None
    if stood is None:
        raise error
    return stood


def _after(it: Target, verified: Verified, error: Exception) -> Order[Found]:
    """Returns this write, if it is in the database. Otherwise it is prevented and aborted, and `error` is raised."""
    try:
        stood: Found | None = yield lambda by: by.database.settle(it, verified.fence)
    except Exception:  # the outcome is unknown
        raise OutcomeUnknown(it.write_id) from error
    if stood is not None and stood.fence == verified.fence:
        if isinstance(error, GuardRefused) and error.code in ("fence_not_newer", "id_used"):
            return stood
        # The body committed by itself before it failed.
        yield from _confirmed(it, stood.result, by_this_call=True)
        raise error
    try:
        yield lambda by: by.client.abort(it.write_id, reason=f"nothing was written: {type(error).__name__}")
    except CountersignError as unsaid:
        log.warning(
            "%s: nothing was written, and the gateway was not notified (%s)", it.write_id, type(unsaid).__name__
        )
    raise error


def _confirmed(it: Target, result: Result, *, by_this_call: bool) -> Order[Written]:
    try:
        ended: Ended = yield lambda by: by.client.confirm(it.write_id, result=result or {})
    except (Malformed, names.Invalid) as unsaid:
        # The write must be confirmed even if the body's result cannot be sent.
        log.warning(
            "%s: confirmed without its result, which the gateway refuses (%s)", it.write_id, type(unsaid).__name__
        )
        ended = yield lambda by: by.client.confirm(it.write_id)
    if ended.outcome not in ("confirmed", "late"):
        raise _at_odds(it, "written", ended)
    return Written(ended, dict(result or {}), by_this_call)


def _at_odds(it: Target, found: str, ended: Ended) -> UnexpectedAnswer:
    return UnexpectedAnswer(f"{it.write_id} is {found}, and the gateway has it as {ended.outcome}: alert an operator")


def _used(job: Job, verified: Verified) -> str:
    """Returns the id by which the gateway allowed the write, from its own response: of the receipt that was sent, and
    of no other.

    A repeated `verify` returns its first response without checking the receipt again, which can have been replaced
    since.
    """
    used = _said(verified.verification, "receipt")
    if used != job.jti:
        raise ReceiptMismatch
    return job.target.transition if used is None else str(used)


def _said(token: str, name: str) -> Json:
    """Returns the claim, unchecked. The gateway checks receipts, and made this response."""
    try:
        return claim(token, name)
    except NoToken:
        raise names.Invalid("receipt", f"not a token with {name}") from None


def _moment(verified: Verified) -> str:
    """Returns a time in the form of `verify`."""
    return verified.lease_expires_at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
