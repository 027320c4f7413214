"""Responses of a resume to a held call. They are untrusted, and allow nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from countersign._names import Invalid

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


@dataclass(frozen=True)
class ResumeShape:
    """The shape of a valid response: one decision for a call, or one for each of several calls."""

    names: tuple[str, ...]
    allowed: tuple[DecisionType, ...]
    batched: bool

    def schema(self) -> dict[str, Any]:
        """Returns the shape as a JSON Schema, for clients that make a form of it."""
        each = [_schema_of(it) for it in self.allowed]
        decision = {
            "type": "object",
            "properties": {"transition_digest": {"type": "string"}},
            "required": ["transition_digest"],
        }
        if not self.batched:
            return {"anyOf": [*each, decision]}
        count = len(self.names)
        decisions = {"type": "array", "items": {"anyOf": each}, "minItems": count, "maxItems": count}
        several = {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}
        return {"anyOf": [several, decision]}

    def check(self, said: object) -> object:
        """Returns a response of this shape, and raises for any other."""
        answers = each_answer(said, self) if self.batched else [said]
        for name, answer in zip(self.names, answers, strict=False):
            read_answer(answer, name, None, self)
        return said

    def wrong(self, problem: str) -> Invalid:
        """Returns the error for a response of another shape. It names the right one."""
        one = " or ".join(json.dumps(_example_of(it, self.names[0])) for it in self.allowed)
        right = f'{{"decisions": [...]}} with {len(self.names)} of {one}' if self.batched else one
        return Invalid("resume", f"{problem}. Resume with {right}, or with the gateway's decision")


def read_answer(said: object, name: str, transition: str | None, shape: ResumeShape) -> Answer | None:
    """Returns a response to a call of that tool, or `None` if it is about another review. Then the run stops again."""
    if isinstance(said, str) and said.startswith("sha256:"):
        return Look() if said == transition else None
    if not isinstance(said, Mapping):
        raise shape.wrong(f"the response is {_named(said)}")
    if "transition_digest" in said:
        return Look() if said["transition_digest"] == transition else None
    kind = said.get("type")
    if kind not in shape.allowed:
        raise shape.wrong(f"the response has the type {json.dumps(kind, default=repr)}")
    if kind == "approve":
        return Look()
    if kind == "edit":
        return _change(said.get("edited_action"), name, shape)
    return _stop(kind == "respond", said.get("message"), name, shape)


def each_answer(said: object, shape: ResumeShape) -> list[object]:
    """Returns the responses to several calls, in order. The gateway's decision is about the first of them."""
    count = len(shape.names)
    if not isinstance(said, Mapping) or "decisions" not in said:
        is_decision = isinstance(said, str) or (isinstance(said, Mapping) and "transition_digest" in said)
        if count > 1 and not is_decision:
            raise shape.wrong("the response has no list of decisions")
        return [said]
    listed = said["decisions"]
    if not isinstance(listed, list | tuple) or len(listed) != count:
        raise shape.wrong("the response does not have one decision for each call")
    return list(listed)


def _change(action: object, name: str, shape: ResumeShape) -> Change:
    """Returns other arguments of the same tool. Another tool would be another call."""
    args = action.get("args") if isinstance(action, Mapping) else None
    if not isinstance(action, Mapping) or action.get("name") != name or not isinstance(args, Mapping):
        raise shape.wrong(f"an edit needs an `edited_action` with `args` and the `name` {name}")
    if CALL_ID in args:
        raise shape.wrong(f"an edit must not have the argument {CALL_ID}")
    return Change(dict(args))


def _stop(responds: bool, message: object, name: str, shape: ResumeShape) -> Stop:
    if responds:
        if not isinstance(message, str):
            raise shape.wrong("a response needs a `message`")
        return Stop(message, "success")
    if isinstance(message, str) and message:
        return Stop(f"The call of `{name}` was rejected: {message}", "error")
    return Stop(
        f"The call of `{name}` was rejected and did not run. Do not repeat it unless you are asked to.", "error"
    )


def _named(said: object) -> str:
    return "text" if isinstance(said, str) else f"of the type {type(said).__name__}"


def _example_of(kind: DecisionType, name: str) -> dict[str, Any]:
    more: dict[DecisionType, dict[str, Any]] = {
        "edit": {"edited_action": {"name": name, "args": {}}},
        "reject": {"message": "..."},
        "respond": {"message": "..."},
    }
    return {"type": kind, **more.get(kind, {})}


def _schema_of(kind: DecisionType) -> dict[str, Any]:
    action = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
        "required": ["name", "args"],
    }
    message = {"type": "string"}
    more: dict[DecisionType, dict[str, Any]] = {
        "edit": {"edited_action": action},
        "reject": {"message": message},
        "respond": {"message": message},
    }
    members = more.get(kind, {})
    # A rejection needs no reason.
    required = ["type", *(it for it in members if kind != "reject")]
    return {"type": "object", "properties": {"type": {"const": kind}, **members}, "required": required}
