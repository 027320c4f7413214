"""The pointer of a run to its version in a thread, as one channel of the graph's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from langgraph.config import get_config

from countersign._names import Invalid, digest, name, whole
from countersign.answers import Committed, Created, Decision, View

# The channel's default name.
CHANNEL = "countersign"
# A branch that missed so many decisions is no longer running.
TOLD_MAX = 1000
# A gate asks about each. More unreported reviews mean that the graph has no gate.
WAITED_MAX = 1000
State = Mapping[str, Any]
ThreadOf = Callable[[State], str]


class Pointer(TypedDict, total=False):
    """A version of the thread, and its reviews. It says where to look and proves nothing: checkpoints can be
    replayed and edited."""

    version: int
    transition: str
    # Reviews by digest. An odd number means that no gate has reported it yet. Each time
    # that it is proposed or reported the number grows, so that the better informed of two branches has the greater one.
    asked: dict[str, int]
    # The single review that earlier clients stored. It is read, and no longer written.
    pending: str | None
    # The receipt of `transition`.
    receipt: str | None
    # The outcome of its write: `confirmed`, `aborted` or `late`.
    outcome: str | None


def latest(old: Pointer | None, new: Pointer | None) -> Pointer:
    """The channel's reducer. The later version of two branches wins, and facts about the same version are combined.
    Reviews outlive their version: a gate waits for each, whichever branch committed."""
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
    """Returns the pointer with a review that a gate has to wait for."""
    asked = _asked(at)
    return _asking(at, {**asked, transition: asked.get(transition, 0) | 1})


def told_of(at: Pointer, transitions: Iterable[str]) -> Pointer:
    """Returns the pointer after a gate reported these decisions."""
    asked = _asked(at)
    told = {it: asked[it] + asked[it] % 2 for it in transitions if it in asked}
    return _asking(at, {**asked, **told})


def waited_for(at: Pointer) -> list[str]:
    """Returns the reviews that no gate has reported, in their order."""
    found = [transition for transition, number in _asked(at).items() if number % 2]
    if len(found) > WAITED_MAX:
        raise Invalid("asked", f"no gate has reported more than {WAITED_MAX} reviews")
    return found


def _asked(at: Mapping[str, object]) -> dict[str, int]:
    given = at.get("asked", {})
    if not isinstance(given, Mapping):
        raise Invalid("asked", "numbers by digests")
    asked = {digest("asked", key): whole("asked", number, 1) for key, number in given.items()}
    pending = at.get("pending")
    return asked if pending is None else {digest("pending", pending): 1, **asked}


def _asking(at: Pointer, asked: dict[str, int]) -> Pointer:
    """Returns the pointer with these reviews. Old reported ones are dropped, unreported ones never."""
    pointer = at.copy()
    pointer.pop("pending", None)
    pointer.pop("asked", None)
    told = [transition for transition, number in asked.items() if number % 2 == 0]
    forgotten = set(told[:-TOLD_MAX])
    if asked:
        pointer["asked"] = {key: number for key, number in asked.items() if key not in forgotten}
    return pointer


def head(at: Created | Committed | View) -> Pointer:
    """Returns the pointer to start a run with: `graph.invoke({"countersign": head(created), …})`."""
    return {"version": at.version, "transition": at.transition}


def approved(decision: Decision, version: int) -> Pointer:
    """Returns the pointer after an approval."""
    return {"version": version, "transition": decision.transition_digest, "receipt": decision.receipt}


def pointer_of(state: State, channel: str) -> Pointer:
    """Returns the run's pointer, and raises if it has none."""
    values: object = state
    found = values.get(channel) if isinstance(values, Mapping) else getattr(values, channel, None)
    if not isinstance(found, Mapping):
        raise Invalid(channel, "the state has no pointer: start the run with countersign.langgraph.head(…)")
    pointer: Pointer = {
        "version": whole(f"{channel}.version", found.get("version"), 0),
        "transition": digest(f"{channel}.transition", found.get("transition")),
    }
    if isinstance(found.get("receipt"), str):
        pointer["receipt"] = found["receipt"]
    return _asking(pointer, _asked(found))


def of_run(state: State) -> str:
    """Returns the gateway's thread with the name of the run: `thread_id` of its configuration.

    The caller of the graph sets it. The state is not used, because agents write there.
    """
    configured = get_config().get("configurable", {})
    return name("thread_id", configured.get("thread_id"))
