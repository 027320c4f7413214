"""A node under its policy: it is given what it may read, and what it returns is proposed before it is anything."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from langgraph.types import Command

from countersign import AsyncClient, Client, _calls
from countersign._names import Invalid
from countersign._plans import Came, Core, Plan, Step
from countersign.answers import Committed, Held, View
from countersign.errors import HeadMoved, Rejected, UnexpectedAnswer

from ._channels import Channels
from ._nodes import AsyncNode, Node, Update, named_as
from ._patching import patch
from ._pointer import CHANNEL, Pointer, State, ThreadOf, of_run, pointer_of

# How many versions others may have committed since the one that a run points to.
REBASED_MAX = 200
Body = Callable[..., Any]
AsyncBody = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Turn:
    """The node's own code is to run, on that state; `rejected` is what became of its turn before."""

    state: dict[str, Any]
    rejected: Rejected | None


Playing = Generator[Step | Turn, Any, Any]


@dataclass(frozen=True)
class _Governed:
    node: str
    channels: Channels
    thread: ThreadOf
    channel: str

    def play(self, core: Core, state: State, thread: str) -> Playing:
        """The whole node, but for its code. Run again from its top on the same checkpoint it begins on the same
        version, and what it proposed before is found again."""
        pointer = pointer_of(state, self.channel)
        view = yield from self._view(core, thread, pointer["version"])
        if view.transition != pointer["transition"]:
            raise UnexpectedAnswer("the run points to a version that this thread does not have")
        rejected: Rejected | None = None
        for attempt in (1, 2):
            returned = yield Turn({**self.channels.given(view.state), **self._local(state)}, rejected)
            try:
                found = yield from self._proposed(core, thread, view, _update(returned), attempt)
            except Rejected as error:
                if error.action == "skip_node":
                    return {}
                if error.action != "retry_once" or attempt > 1:
                    raise
                rejected = error
            else:
                return self._returned(returned, found, pointer)
        raise AssertionError("the second turn returns or raises")

    def _view(self, core: Core, thread: str, version: int) -> Plan[View]:
        return (yield from _calls.state(core, thread, self.node, version=version))

    def _local(self, state: State) -> dict[str, Any]:
        return {key: state[key] for key in self.channels.local if key in state}

    def _proposed(
        self, core: Core, thread: str, view: View, update: Update, attempt: int
    ) -> Plan[tuple[Update, Committed | Held | None]]:
        """Proposes on the version that was read, or, where others were faster, on the first one after it that takes
        it: in the same order each time, so that an earlier proposal is found and not made twice."""
        governed = self.channels.governed(update)
        local = {key: value for key, value in update.items() if key in self.channels.local}
        for _ in range(REBASED_MAX):
            steps = patch(view.state, self.channels.after(view.state, governed))
            if not steps:
                return {**local, **governed}, None
            try:
                found = yield from _calls.propose(
                    core,
                    thread,
                    node=self.node,
                    parent=view.transition,
                    patch=steps,
                    format="json-patch",
                    attempt=attempt,
                )
            except HeadMoved as moved:
                if moved.head.version <= view.version:
                    raise
                view = yield from self._view(core, thread, view.version + 1)
            else:
                return ({**local, **governed} if isinstance(found, Committed) else local), found
        raise UnexpectedAnswer(f"more than {REBASED_MAX} versions were committed meanwhile")

    def _returned(self, returned: Any, told: tuple[Update, Committed | Held | None], pointer: Pointer) -> Any:
        update, found = told
        if isinstance(found, Committed):
            update = {**update, self.channel: {"version": found.version, "transition": found.transition}}
        elif isinstance(found, Held):
            update = {**update, self.channel: {**pointer, "pending": found.transition}}
        return dataclasses.replace(returned, update=update) if isinstance(returned, Command) else update


def _update(returned: Any) -> Update:
    update = returned.update if isinstance(returned, Command) else returned
    if update is None:
        return {}
    if not isinstance(update, Mapping):
        raise Invalid("update", "a governed node returns an update by its channels' names, or nothing")
    return dict(update)


@overload
def governed(
    client: Client,
    *,
    node: str,
    state: type,
    local: Iterable[str] = (),
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
) -> Callable[[Body], Node]: ...
@overload
def governed(
    client: AsyncClient,
    *,
    node: str,
    state: type,
    local: Iterable[str] = (),
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
) -> Callable[[AsyncBody], AsyncNode]: ...
def governed(
    client: Client | AsyncClient,
    *,
    node: str,
    state: type,
    local: Iterable[str] = (),
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
) -> Callable[[Any], Any]:
    """Makes `body(state)` a node that is given the gateway's view for the policy's `node`, and nothing else.

    What it returns is reduced by the channels of the graph's `state`, and proposed. If it commits, the graph goes on
    with it; if it is held, the graph goes on without, to an `approval_gate` that waits for it; if it is rejected, the
    policy's `on_violation` is done: the run fails, or the body runs once more (with the `Rejected` as its second
    argument, if it takes one), or the node is passed over. Channels in `local` are the graph's own affair.
    """
    node_of = _Governed(node, Channels(state, channel, local), thread, channel)

    def decorate(body: Any) -> Any:
        if inspect.iscoroutinefunction(body) != isinstance(client, AsyncClient):
            raise Invalid("client", "a Client goes with a function, an AsyncClient with an async one")
        takes_rejected = len(inspect.signature(body).parameters) > 1

        def turn(step: Turn) -> Any:
            return body(step.state, step.rejected) if takes_rejected else body(step.state)

        made = _awaiting(client, node_of, turn) if isinstance(client, AsyncClient) else _blocking(client, node_of, turn)
        return named_as(body, made)

    return decorate


def _blocking(client: Client, governed: _Governed, turn: Callable[[Turn], Any]) -> Node:
    def node(state: Any) -> Update:
        playing = governed.play(client._settings.core, state, governed.thread(state))
        came: Came | Any = None
        while True:
            try:
                step = playing.send(came)
            except StopIteration as done:
                update: Update = done.value
                return update
            came = turn(step) if isinstance(step, Turn) else client._do(step)

    return node


def _awaiting(client: AsyncClient, governed: _Governed, turn: Callable[[Turn], Awaitable[Any]]) -> AsyncNode:
    async def node(state: Any) -> Update:
        playing = governed.play(client._settings.core, state, governed.thread(state))
        came: Came | Any = None
        while True:
            try:
                step = playing.send(came)
            except StopIteration as done:
                update: Update = done.value
                return update
            came = await (turn(step) if isinstance(step, Turn) else client._do(step))

    return node
