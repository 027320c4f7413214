"""Everything that is raised: one base, and a class for each thing that one would do differently.

What a gateway answers is a `Problem` with its `code`; https://… addresses, tokens and bodies are in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Any


class CountersignError(Exception):
    """Of this package. Whatever is raised, nothing was approved by it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By itself an exception is made again from its text, which for most of these is not what they are made of.
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[CountersignError], args: tuple[Any, ...], facts: dict[str, Any]) -> CountersignError:
    """An error that came from another process, as it was there."""
    made = kind.__new__(kind, *args)
    made.__dict__.update(facts)
    return made


class Unreachable(CountersignError):
    """No answer, after every try that was safe. What was asked may have happened; ask the same again."""


class UnexpectedAnswer(CountersignError):
    """An answer that the protocol does not know: taken for no answer, and never for a yes."""


class AnswerTooLarge(UnexpectedAnswer):
    """An answer of more bytes than the client reads (`answer_bytes_max`). The rest was not read."""

    code = "answer_too_large"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"{self.code}: more than {bytes_max} bytes")
        self.bytes_max = bytes_max


class StillHeld(CountersignError):
    """The wait is over and people have not decided. The proposal still stands: wait on, or cancel it."""

    def __init__(self, transition: str, waited_secs: float) -> None:
        super().__init__(f"{transition} is still held after {waited_secs:.0f} s")
        self.transition = transition


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request."""

    pointer: str
    code: str
    detail: str
    rule: str | None = None
    offset: int | None = None
    value: Json = None


@dataclass(frozen=True)
class Head:
    """The last version of a thread."""

    version: int
    transition: str


class Problem(CountersignError):
    """What the gateway says no with (RFC 9457). Look at `code`; name `request_id` to whoever runs the gateway."""

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
        """The version to go on from, where the gateway says one: nothing was changed, and it stands."""
        return _head(self.facts.get("checkpoint"))


def _head(found: Json) -> Head | None:
    if isinstance(found, dict):
        version, transition = found.get("version"), found.get("transition")
        if isinstance(version, int) and isinstance(transition, str):
            return Head(version, transition)
    return None


def _listed(errors: tuple[Fault, ...]) -> str:
    """The places and codes; values are left out, for they are somebody's data."""
    return "".join(f"; {it.code} at {it.pointer or 'the root'}" for it in errors)


class Malformed(Problem):
    """400 or 413: the request cannot be understood; `errors` says where."""


class Unauthenticated(Problem):
    """401: the token is wrong or revoked."""


class Forbidden(Problem):
    """403: the role or the node is not this token's."""


class NotFound(Problem):
    """404: not there, or not of this token's flow."""


class StateErased(Problem):
    """410: the values of that version are erased, as the flow's policy has it. Later versions are there."""


class Conflict(Problem):
    """409: not as things stand. Read, then ask again."""


class BranchConflict(Conflict):
    """Branches have several values at the places in `errors`: join by another strategy, or settle them by `resolve`, on
    the version that `checkpoint` names."""


class HeadMoved(Conflict):
    """Something else was committed first: read the view again and propose on `head`."""

    @property
    def head(self) -> Head:
        found = _head(self.facts.get("head"))
        if found is None:
            raise UnexpectedAnswer("head_moved without a head")
        return found


class StepReused(Conflict):
    """The step has done something else: `transition` says what, and `checkpoint` where the thread is now."""

    @property
    def transition(self) -> str:
        found = self.facts.get("transition")
        if isinstance(found, str):
            return found
        raise UnexpectedAnswer("step_reused without a transition")


class ThreadHeld(Conflict):
    """People are asked about something else in this thread: wait for `review`."""

    @property
    def review(self) -> str:
        found = self.facts.get("review")
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            return str(found["id"])
        raise UnexpectedAnswer("thread_held without a review")


class WriteInProgress(Conflict):
    """A writer is at work: wait until its lease is over."""


class Halted(Conflict):
    """Somebody stopped the flow, or all of them."""


class Closed(Conflict):
    """An administrator closed the thread."""


class Exists(Conflict):
    """Another thread has the name, with another state."""


class WrongState(Conflict):
    """For example: not held any more."""


class Expired(Conflict):
    """The deadline had passed before."""


class Rejected(Problem):
    """422: the policy says no. `errors` lists each violation, `action` what to do about it."""

    @property
    def action(self) -> str | None:
        """`stop`, `retry_once`, `no_more_tries`, `skip_node`, or nothing."""
        found = self.facts.get("instruction")
        action = found.get("action") if isinstance(found, dict) else None
        return action if isinstance(action, str) else None


class Denied(Problem):
    """403 from verify: do not write. `advice` says what can be done about `code`."""

    @property
    def advice(self) -> str:
        """`wait`, `send_receipt`, `reaffirm`, `look` (what became of the thread), or `stop`."""
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
    """429, after waiting as often as is sensible."""


class Failed(Problem):
    """5xx: the gateway could not. Nothing says whether it happened; ask the same again."""


class ChainBroken(Failed):
    """What is stored is not what was signed. Stop, and have it audited."""
