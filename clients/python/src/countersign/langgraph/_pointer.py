"""Where a run stands in its thread: one channel of the graph's state, and which thread a run is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from langgraph.config import get_config

from countersign._names import Invalid, digest, name, whole
from countersign.answers import Committed, Created, Decision, View

# The channel's name, unless somebody says otherwise.
CHANNEL = "countersign"
# A branch that has not heard of so many answers is not under way any more.
TOLD_MAX = 1000
# A gate asks about each of them. A graph that lets so many refusals go by has none.
WAITED_MAX = 1000
State = Mapping[str, Any]
ThreadOf = Callable[[State], str]


class Pointer(TypedDict, total=False):
    """A version of the thread, and what was said about it. It says where to look and proves nothing: it lies in
    checkpoints, which may be replayed and edited."""

    version: int
    transition: str
    # What people were asked about, by its digest. A number that is odd says that no gate has told of it yet; each time
    # that it is asked about, or told, it goes up, so that of two branches the one that knows more has the greater.
    asked: dict[str, int]
    # The one question that earlier clients kept, if there was any. It is read, and no longer written.
    pending: str | None
    # By what people approved `transition`.
    receipt: str | None
    # How a write of it ended: `confirmed`, `aborted` or `late`.
    outcome: str | None


def latest(old: Pointer | None, new: Pointer | None) -> Pointer:
    """The reducer of the channel: of two branches that went on, the later version stands; what both say of the same
    version is put together. What people were asked about outlives its version: it is waited for until a gate has told
    of it, whoever went on meanwhile."""
    if not old or not new:
        return new or old or {}
    if old.get("version", 0) == new.get("version", 0):
        stands: Pointer = {**old, **new}
    else:
        stands = max(old, new, key=lambda it: it.get("version", 0))
    asked = _asked(old)
    for transition, number in _asked(new).items():
        asked[transition] = max(asked.get(transition, 0), number)
    return _asking(stands, asked)


def asking(at: Pointer, transition: str) -> Pointer:
    """The pointer after people were asked about that: a gate has to wait for it."""
    asked = _asked(at)
    return _asking(at, {**asked, transition: asked.get(transition, 0) | 1})


def told_of(at: Pointer, transitions: Iterable[str]) -> Pointer:
    """The pointer after a gate told what people said of them."""
    asked = _asked(at)
    told = {it: asked[it] + asked[it] % 2 for it in transitions if it in asked}
    return _asking(at, {**asked, **told})


def waited_for(at: Pointer) -> list[str]:
    """What people were asked about and no gate has told of, in the order in which it was asked."""
    found = [transition for transition, number in _asked(at).items() if number % 2]
    if len(found) > WAITED_MAX:
        raise Invalid("asked", f"no gate has told of more than {WAITED_MAX} questions")
    return found


def _asked(at: Mapping[str, object]) -> dict[str, int]:
    given = at.get("asked", {})
    if not isinstance(given, Mapping):
        raise Invalid("asked", "numbers by digests")
    asked = {digest("asked", key): whole("asked", number, 1) for key, number in given.items()}
    pending = at.get("pending")
    return asked if pending is None else {digest("pending", pending): 1, **asked}


def _asking(at: Pointer, asked: dict[str, int]) -> Pointer:
    """The pointer with these questions. What was told is forgotten in time, and what was not never is."""
    pointer = at.copy()
    pointer.pop("pending", None)
    pointer.pop("asked", None)
    told = [transition for transition, number in asked.items() if number % 2 == 0]
    forgotten = set(told[:-TOLD_MAX])
    if asked:
        pointer["asked"] = {key: number for key, number in asked.items() if key not in forgotten}
    return pointer


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
    if isinstance(found.get("receipt"), str):
        pointer["receipt"] = found["receipt"]
    return _asking(pointer, _asked(found))


def of_run(state: State) -> str:
    """The gateway's thread of the name that the run has: `thread_id` of its configuration.

    It is said by whoever invokes the graph. The state is not asked: agents write there.
    """
    configured = get_config().get("configurable", {})
    return name("thread_id", configured.get("thread_id"))
