"""What a resume may say about a call that is held. It is anybody's word, and lets nothing run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

DecisionType = Literal["approve", "edit", "reject", "respond"]
# The model's name for the call goes along, so that no approval is for two calls that look alike.
CALL_ID = "tool_call_id"
EVERY: tuple[DecisionType, ...] = ("approve", "edit", "reject", "respond")


@dataclass(frozen=True)
class Look:
    """Somebody says that it is decided: look at the gateway."""


@dataclass(frozen=True)
class Change:
    """Somebody wants other arguments: to be asked about as the model's own were."""

    args: dict[str, Any]


@dataclass(frozen=True)
class Stop:
    """Somebody does not want it run; `said` is told to the model in its place."""

    said: str
    status: Literal["error", "success"]


Answer = Look | Change | Stop


def read_answer(said: object, name: str, transition: str | None, allowed: tuple[DecisionType, ...]) -> Answer | None:
    """One answer about a call of that tool, or `None` if it is none: then it is asked again."""
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
    """Other arguments of the same tool: another tool would be another call."""
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
    """The answers to several calls, in their order, if there is one for each."""
    listed = said.get("decisions") if isinstance(said, Mapping) else None
    return list(listed) if isinstance(listed, list | tuple) and len(listed) == calls else None
