"""All exceptions: one base class, and one class for each refusal that callers handle differently.

A response of the gateway is a `Problem` with its `code`. No exception contains an address with a password, a token or a
body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Any


class CountersignError(Exception):
    """Base class of all exceptions of this package. If one is raised, nothing was approved."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling would otherwise call the constructor with the message alone.
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[CountersignError], args: tuple[Any, ...], facts: dict[str, Any]) -> CountersignError:
    """Rebuilds an exception that was raised in another process."""
    made = kind.__new__(kind, *args)
    made.__dict__.update(facts)
    return made


class Unreachable(CountersignError):
    """No response after every safe attempt. The request may have been carried out. Send the same again."""


class UnexpectedAnswer(CountersignError):
    """A response that the protocol does not know. It is treated as no response, and never as a permission."""


class AnswerTooLarge(UnexpectedAnswer):
    """A response of more bytes than the client reads (`answer_bytes_max`). The rest was not read."""

    code = "answer_too_large"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"{self.code}: more than {bytes_max} bytes")
        self.bytes_max = bytes_max


class AnswerMismatch(UnexpectedAnswer):
    """A response about another call or another write than the caller's own. Do not run the call, write nothing, and
    alert an operator.

    `code` is one of these:

    - of calls: `request_mismatch`, `tool_mismatch`, `arguments_mismatch`
    - of writes: `digest_mismatch`, `fence_mismatch`, `lease_mismatch`, `enforced_mismatch`, `receipt_mismatch`,
      `expectation_failed`
    - of both: `receipt_malformed`, `thread_mismatch`, `write_mismatch`, `expired`
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class ReceiptMismatch(AnswerMismatch):
    """The receipt that was sent is not the one by which the gateway allowed this write. Nothing was written.

    The gateway was not notified, so the permission is still valid: call again with the right receipt within the lease,
    or `settle`.
    """

    def __init__(self) -> None:
        super().__init__("receipt_mismatch", "verify used another receipt than the one that was sent, or none")


class StillHeld(CountersignError):
    """The wait ended before the decision. The proposal is still pending: wait again, or cancel it."""

    def __init__(self, transition: str, waited_secs: float) -> None:
        super().__init__(f"{transition} is still held after {waited_secs:.0f} s")
        self.transition = transition


@dataclass(frozen=True)
class Fault:
    """One error in a request."""

    pointer: str
    code: str
    detail: str
    rule: str | None = None
    offset: int | None = None
    value: Json = None


@dataclass(frozen=True)
class Head:
    """The newest version of a thread."""

    version: int
    transition: str


class Problem(CountersignError):
    """A refusal of the gateway (RFC 9457). Check `code`. Give `request_id` to the operator."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        title: str = "",
        detail: str = "",
        request_id: str | None = None,
        errors: tuple[Fault, ...] = (),
        facts: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {detail or title}" + _listed(errors))
        self.status, self.code, self.title, self.detail = status, code, title, detail
        self.request_id, self.errors, self.facts = request_id, errors, dict(facts or {})

    @property
    def checkpoint(self) -> Head | None:
        """Returns the version to continue from, if the gateway names one. Nothing was changed."""
        return _head(self.facts.get("checkpoint"))


def _head(found: Json) -> Head | None:
    if isinstance(found, dict):
        version, transition = found.get("version"), found.get("transition")
        if isinstance(version, int) and isinstance(transition, str):
            return Head(version, transition)
    return None


def _listed(errors: tuple[Fault, ...]) -> str:
    """Returns paths and codes, without values, which can be confidential."""
    return "".join(f"; {it.code} at {it.pointer or 'the root'}" for it in errors)


class Malformed(Problem):
    """400 or 413: the request cannot be read. `errors` says where."""


class Unauthenticated(Problem):
    """401: the token is wrong or revoked."""


class Forbidden(Problem):
    """403: the token does not have this role or node."""


class NotFound(Problem):
    """404: it does not exist, or belongs to another flow."""


class StateErased(Problem):
    """410: the policy erased the values of that version. Later versions can be read."""


class Conflict(Problem):
    """409: the request does not fit the current state. Read it, then propose again."""


class BranchConflict(Conflict):
    """Branches changed the paths in `errors` to different values. Join with another strategy, or use `resolve`, on
    the version that `checkpoint` names."""


class HeadMoved(Conflict):
    """Another version was committed first. Read the view again, and propose on `head`."""

    @property
    def head(self) -> Head:
        found = _head(self.facts.get("head"))
        if found is None:
            raise UnexpectedAnswer("head_moved without a head")
        return found


class StepReused(Conflict):
    """The step already did something else, or another owner used it. `transition` names it.

    `checkpoint` is the current version.
    """

    @property
    def transition(self) -> str:
        found = self.facts.get("transition")
        if isinstance(found, str):
            return found
        raise UnexpectedAnswer("step_reused without a transition")


class ThreadHeld(Conflict):
    """Another change of this thread waits for approval. Wait for `review`."""

    @property
    def review(self) -> str:
        found = self.facts.get("review")
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            return str(found["id"])
        raise UnexpectedAnswer("thread_held without a review")


class WriteInProgress(Conflict):
    """A writer has a lease. Wait until it ends."""


class Halted(Conflict):
    """The flow, or every flow, is halted."""


class Closed(Conflict):
    """An administrator closed the thread."""


class Exists(Conflict):
    """Another thread has this name, with another state."""


class WrongState(Conflict):
    """The call does not fit the status, for example because the transition is no longer held."""


class Expired(Conflict):
    """The deadline has passed."""


class Rejected(Problem):
    """422: the policy rejects the request. `errors` lists each violation, `action` says what to do."""

    @property
    def action(self) -> str | None:
        """Returns `stop`, `retry_once`, `no_more_tries`, `skip_node`, or nothing."""
        found = self.facts.get("instruction")
        action = found.get("action") if isinstance(found, dict) else None
        return action if isinstance(action, str) else None


class Denied(Problem):
    """403 from `verify`: do not write. `advice` says what to do about `code`."""

    @property
    def advice(self) -> str:
        """Returns `wait`, `send_receipt`, `reaffirm`, `look` (find out what happened to the thread) or `stop`."""
        return _ADVICE.get(self.code, "stop")


_ADVICE = {
    "halted": "wait",
    "write_in_progress": "wait",
    "not_yet_valid": "wait",
    "receipt_missing": "send_receipt",
    "expired": "reaffirm",
    "revoked": "reaffirm",
    "policy_mismatch": "reaffirm",
    "not_head": "look",
    "closed": "look",
    "already_used": "look",
}


class TooManyRequests(Problem):
    """429, after all attempts."""


class Failed(Problem):
    """5xx: the gateway failed. The request may have been carried out. Send the same again."""


class ChainBroken(Failed):
    """Stored data differs from the signed data. Stop, and run an audit."""
