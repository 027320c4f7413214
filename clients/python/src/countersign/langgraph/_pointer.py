"""Where a run stands in its thread: one channel of the graph's state, and which thread a run is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from langgraph.config import get_config

from countersign._names import Invalid, digest, name, whole
from countersign.answers import Committed, Created, Decision, View

# The channel's name, unless somebody says otherwise.
CHANNEL = "countersign"
State = Mapping[str, Any]
ThreadOf = Callable[[State], str]


class Pointer(TypedDict, total=False):
    """A version of the thread, and what was said about it. It says where to look and proves nothing: it lies in
    checkpoints, which may be replayed and edited."""

    version: int
    transition: str
    # What people are asked about, if it is held.
    pending: str | None
    # By what people approved `transition`.
    receipt: str | None
    # How a write of it ended: `confirmed`, `aborted` or `late`.
    outcome: str | None


def latest(old: Pointer | None, new: Pointer | None) -> Pointer:
    """The reducer of the channel: of two branches that went on, the later version stands; what both say of the same
    version is put together."""
    if not old or not new:
        return new or old or {}
    if old.get("version", 0) == new.get("version", 0):
        return {**old, **new}
    return max(old, new, key=lambda it: it.get("version", 0))


def head(at: Created | Committed | View) -> Pointer:
    """The pointer to begin a run with: `graph.invoke({"countersign": head(created), …})`."""
    return {"version": at.version, "transition": at.transition}


def approved(decision: Decision, version: int) -> Pointer:
    """The pointer after people said yes."""
    return {"version": version, "transition": decision.transition_digest, "receipt": decision.receipt}


def pointer_of(state: State, channel: str) -> Pointer:
    """The pointer that a run carries, which must at least be one."""
    values: object = state
    found = values.get(channel) if isinstance(values, Mapping) else getattr(values, channel, None)
    if not isinstance(found, Mapping):
        raise Invalid(channel, "the state has no pointer; begin the run with countersign.langgraph.head(…)")
    pointer: Pointer = {
        "version": whole(f"{channel}.version", found.get("version"), 0),
        "transition": digest(f"{channel}.transition", found.get("transition")),
    }
    if found.get("pending") is not None:
        pointer["pending"] = digest(f"{channel}.pending", found.get("pending"))
    if isinstance(found.get("receipt"), str):
        pointer["receipt"] = found["receipt"]
    return pointer


def of_run(state: State) -> str:
    """The gateway's thread of the name that the run has: `thread_id` of its configuration.

    It is said by whoever invokes the graph. The state is not asked: agents write there.
    """
    configured = get_config().get("configurable", {})
    return name("thread_id", configured.get("thread_id"))
