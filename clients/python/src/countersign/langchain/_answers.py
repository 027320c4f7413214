"""Responses of a resume to a held call. They are untrusted, and allow nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

DecisionType = Literal["approve", "edit", "reject", "respond"]
# The model's id of the call is proposed too, so that no approval covers two equal calls.
CALL_ID = "tool_call_id"
EVERY: tuple[DecisionType, ...] = ("approve", "edit", "reject", "respond")


@dataclass(frozen=True)
class Look:
    """Claims that the call was decided: ask the gateway."""


@dataclass(frozen=True)
class Change:
    """Requests other arguments, which are proposed like the model's own."""

    args: dict[str, Any]


@dataclass(frozen=True)
class Stop:
    """Stops the call. The model receives `said` as the result."""

    said: str
    status: Literal["error", "success"]


Answer = Look | Change | Stop


def read_answer(said: object, name: str, transition: str | None, allowed: tuple[DecisionType, ...]) -> Answer | None:
    """Returns a response to a call of that tool, or `None` if it is invalid. Then the run stops again."""
    if isinstance(said, str):
        return Look() if said == transition else None
    if not isinstance(said, Mapping):
        return None
    if "transition_digest" in said:
        return Look() if said["transition_digest"] == transition else None
    kind = said.get("type")
    if kind not in allowed:
        return None
    if kind == "approve":
        return Look()
    if kind == "edit":
        return _change(said.get("edited_action"), name)
    return _stop(kind == "respond", said.get("message"), name)


def _change(action: object, name: str) -> Change | None:
    """Returns other arguments of the same tool. Another tool would be another call."""
    if not isinstance(action, Mapping) or action.get("name") != name:
        return None
    args = action.get("args")
    return Change(dict(args)) if isinstance(args, Mapping) and CALL_ID not in args else None


def _stop(responds: bool, message: object, name: str) -> Stop | None:
    if responds:
        return Stop(message, "success") if isinstance(message, str) else None
    if isinstance(message, str) and message:
        return Stop(f"The call of `{name}` was rejected: {message}", "error")
    return Stop(
        f"The call of `{name}` was rejected and did not run. Do not repeat it unless you are asked to.", "error"
    )


def each_answer(said: object, calls: int) -> list[object] | None:
    """Returns the responses to several calls, in order, if each call has one."""
    listed = said.get("decisions") if isinstance(said, Mapping) else None
    return list(listed) if isinstance(listed, list | tuple) and len(listed) == calls else None
