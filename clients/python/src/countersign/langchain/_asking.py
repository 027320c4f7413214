"""One tool call at the gateway: proposed, held, decided. A repeated run finds the same proposal."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from countersign import _calls, _waiting
from countersign._names import Invalid
from countersign._plans import Core, Plan
from countersign.answers import Committed, Decision, Held
from countersign.errors import Closed, Conflict, Halted, HeadMoved, Rejected, ThreadHeld, UnexpectedAnswer
from countersign.langgraph import Pointer
from countersign.langgraph._asking import ANSWERS_MAX, AnsweredTooOften
from countersign.langgraph._pointer import approved

from ._answers import CALL_ID, Answer, Change, Stop

# The maximum of versions that others may have committed since the run's version.
REBASED_MAX = 200


@dataclass(frozen=True)
class ToolCall:
    """A call by the model, or as changed by a response."""

    id: str
    name: str
    args: dict[str, Any]
    edited: bool = False

    def __post_init__(self) -> None:
        # The proposal and the call that runs would differ in it.
        if CALL_ID in self.args:
            raise Invalid("tool_call", f"an argument of {self.name} is called {CALL_ID}")

    @classmethod
    def of(cls, call: Any) -> ToolCall:
        """Returns a model's call, which must have an id, and arguments that leave room for it."""
        if not isinstance(call.get("id"), str) or not call["id"]:
            raise Invalid("tool_call", f"a call of {call.get('name')} has no id")
        return cls(call["id"], call["name"], dict(call["args"]))

    def made(self, *where: object) -> str:
        """Returns the identity of the call within its run."""
        told = [*where, self.tool()]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=repr).encode()).hexdigest()

    def tool(self) -> dict[str, Any]:
        """Returns the call as the gateway receives it."""
        return {"name": self.name, "arguments": {**self.args, CALL_ID: self.id}}


@dataclass(frozen=True)
class Runs:
    """The call runs, with these arguments."""

    call: ToolCall
    pointer: Pointer

    @property
    def transition(self) -> str:
        """Returns the transition that allowed it."""
        return self.pointer["transition"]


@dataclass(frozen=True)
class Told:
    """The call does not run. The model receives this text as the result."""

    call: ToolCall
    said: str
    status: Literal["error", "success"]


@dataclass(frozen=True)
class Waiting:
    """A call with a pending review. Without a transition, another review of this thread is pending."""

    call: ToolCall
    transition: str | None
    review: dict[str, Any]


Ask = Callable[[Waiting], Answer | None]


def settled(core: Core, thread: str, node: str, pointer: Pointer, call: ToolCall, ask: Ask) -> Plan[Runs | Told]:
    """Returns whether a call from an earlier turn runs. It is looked up, and interrupts only if it is still pending."""
    try:
        found = yield from _proposed(core, thread, node, pointer, call)
    except Rejected as no:
        return _refused(no, call)
    if isinstance(found, Held):
        _, ended = yield from _waiting.followed(core, found.transition)
        if ended is not None:
            return _outcome(ended, call)
    return (yield from let_through(core, thread, node, pointer, call, ask))


def let_through(core: Core, thread: str, node: str, pointer: Pointer, call: ToolCall, ask: Ask) -> Plan[Runs | Told]:
    """Returns whether a call runs. `ask` stops the run until it is resumed, and returns the response.

    Earlier responses are repeated first, in order, and find their calls as they ended.
    """
    for _ in range(ANSWERS_MAX):
        try:
            found = yield from _proposed(core, thread, node, pointer, call)
        except Rejected as no:
            return _refused(no, call)
        if isinstance(found, Committed):
            return Runs(call, {"version": found.version, "transition": found.transition})
        answer = ask(_waiting_for(call, found))
        if answer is None:
            continue
        if isinstance(answer, Change) and answer.args != call.args:
            yield from _taken_back(core, found, "a person requested other arguments")
            call = replace(call, args=answer.args, edited=True)
        elif isinstance(answer, Stop):
            yield from _taken_back(core, found, "a person stopped the call")
            return Told(call, answer.said, answer.status)
        elif isinstance(found, Held):
            _, ended = yield from _waiting.followed(core, found.transition)
            if ended is not None:
                return _outcome(ended, call)
    raise AnsweredTooOften(f"more than {ANSWERS_MAX} responses led to no decision")


def still(core: Core, found: Runs) -> Plan[Runs | Told]:
    """Returns whether an approval is still usable: it can be revoked, expire, or be halted. A condition that can end
    raises as a proposal would. For any other, the model is informed."""
    stopped = (yield from _calls.transition(core, found.transition)).stopped
    if stopped is None:
        return found
    why = f"The call of `{found.call.name}` did not run, because it is no longer allowed: {stopped}."
    if stopped in _LATER:
        raise _LATER[stopped](status=409, code=stopped, detail=why)
    return Told(found.call, why, "error")


_LATER: dict[str, type[Conflict]] = {"halted": Halted, "closed": Closed}


def _proposed(
    core: Core, thread: str, node: str, pointer: Pointer, call: ToolCall
) -> Plan[Committed | Held | ThreadHeld]:
    """Proposes the call on the version that the run points to, or on the first later one that accepts it."""
    version, parent = pointer["version"], pointer["transition"]
    for _ in range(REBASED_MAX):
        try:
            return (
                yield from _calls.propose(
                    core, thread, node=node, parent=parent, patch={}, tool=call.tool(), step=_step(pointer, call)
                )
            )
        except ThreadHeld as held:
            return held
        except HeadMoved as moved:
            if moved.head.version <= version:
                raise
        version += 1
        view = yield from _calls.state(core, thread, node, version=version)
        parent = view.transition
    raise UnexpectedAnswer(f"more than {REBASED_MAX} versions were committed in between")


def _step(pointer: Pointer, call: ToolCall) -> str:
    """Returns the call's step at the gateway. The call is proposed after the model's turn and again where it runs,
    in two LangGraph tasks, so no task id would do. A changed call is another step, and no retry of the model's."""
    return f"call.{call.made(pointer['transition'])}"


def _waiting_for(call: ToolCall, found: Held | ThreadHeld) -> Waiting:
    if isinstance(found, ThreadHeld):
        return Waiting(call, None, {"id": found.review})
    review = found.review
    told = {"id": review.id, "url": review.url, "expires_at": review.expires_at.isoformat()}
    return Waiting(call, found.transition, told)


def _taken_back(core: Core, found: Held | ThreadHeld, reason: str) -> Plan[None]:
    """Cancels the review of a call that will not run. If it was decided in between, nothing changes."""
    if isinstance(found, Held):
        with contextlib.suppress(Conflict):
            yield from _calls.cancel(core, found.transition, reason=reason)


def _outcome(decision: Decision, call: ToolCall) -> Runs | Told:
    if decision.approved:
        if decision.version is None:
            raise UnexpectedAnswer("an approval without a version")
        return Runs(call, approved(decision, decision.version))
    why = f": {decision.comment}" if decision.comment else "."
    return Told(call, f"The call of `{call.name}` did not run, because it was {decision.decision}{why}", "error")


def _refused(no: Rejected, call: ToolCall) -> Told:
    """Returns the policy's refusal as text for the model, if the policy lets the run go on."""
    if no.action not in ("retry_once", "skip_node"):
        raise no
    told = "; ".join(f"{it.code}: {it.detail}" for it in no.errors)
    return Told(call, f"The policy rejects this call of `{call.name}`: {told}", "error")
