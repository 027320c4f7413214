"""A node under its policy: it receives its view, and its result is proposed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from langgraph.types import Command

from countersign import AsyncClient, Client, _calls, _waiting
from countersign._names import Invalid
from countersign._plans import Came, Core, Plan, Step
from countersign.answers import Committed, Held, View
from countersign.errors import HeadMoved, Rejected, StepReused, UnexpectedAnswer

from ._channels import Channels
from ._executions import StepOf, step_of
from ._nodes import AsyncNode, Node, Update, named_as
from ._patching import patch
from ._pointer import CHANNEL, Pointer, State, ThreadOf, approved, asking, head, latest, of_run, pointer_of, told_of

# The maximum of versions that others may have committed since the run's version.
REBASED_MAX = 200
Body = Callable[..., Any]
AsyncBody = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Turn:
    """Runs the node's own code on that state. `rejected` is the refusal of the attempt before."""

    state: dict[str, Any]
    rejected: Rejected | None


Playing = Generator[Step | Turn, Any, Any]


@dataclass(frozen=True)
class _Asked:
    """The common part of a node's proposals, and the run's pointer."""

    thread: str
    step: str | None
    pointer: Pointer


@dataclass(frozen=True)
class _Came:
    """The outcome of an attempt: the graph's update, and the new pointer."""

    update: Update
    pointer: Pointer | None


@dataclass(frozen=True)
class _Governed:
    node: str
    channels: Channels
    thread: ThreadOf
    channel: str
    step: StepOf | None
    body: str

    def play(self, core: Core, state: State, thread: str) -> Playing:
        """Runs the whole node except its code. A repeated run is the same step, starts on the same version, and
        finds its proposal."""
        pointer = pointer_of(state, self.channel)
        asked = _Asked(thread, self.step(state) if self.step else step_of(self.body, pointer), pointer)
        view = yield from self._view(core, thread, pointer["version"])
        if view.transition != pointer["transition"]:
            raise UnexpectedAnswer("the run points to a version that this thread does not have")
        rejected: Rejected | None = None
        for attempt in (1, 2):
            returned = yield Turn({**self.channels.given(view.state), **self._local(state)}, rejected)
            try:
                came = yield from self._came(core, asked, view, _update(returned), attempt)
            except Rejected as error:
                if error.action == "skip_node":
                    return {}
                if error.action != "retry_once" or attempt > 1:
                    raise
                rejected = error
            else:
                return self._returned(returned, came)
        raise AssertionError("the second turn returns or raises")

    def _view(self, core: Core, thread: str, version: int) -> Plan[View]:
        return (yield from _calls.state(core, thread, self.node, version=version))

    def _local(self, state: State) -> dict[str, Any]:
        return {key: state[key] for key in self.channels.local if key in state}

    def _came(self, core: Core, asked: _Asked, view: View, update: Update, attempt: int) -> Plan[_Came]:
        governed = self.channels.governed(update)
        local = {key: value for key, value in update.items() if key in self.channels.local}
        try:
            found = yield from self._proposed(core, asked, view, governed, attempt)
        except StepReused as reused:
            return (yield from self._done_before(core, asked, local, reused))
        if isinstance(found, Held):
            return _Came(local, asking(asked.pointer, found.transition))
        return _Came({**local, **governed}, None if found is None else latest(asked.pointer, head(found)))

    def _proposed(
        self, core: Core, asked: _Asked, view: View, governed: Update, attempt: int
    ) -> Plan[Committed | Held | None]:
        """Proposes on the version that was read, or on the first later one that accepts it. The order is the same
        each time, so that an earlier proposal is found and not repeated."""
        for _ in range(REBASED_MAX):
            steps = patch(view.state, self.channels.after(view.state, governed))
            if not steps:
                return None
            try:
                return (
                    yield from _calls.propose(
                        core,
                        asked.thread,
                        node=self.node,
                        parent=view.transition,
                        patch=steps,
                        format="json-patch",
                        attempt=attempt,
                        step=asked.step,
                    )
                )
            except HeadMoved as moved:
                if moved.head.version <= view.version:
                    raise
                view = yield from self._view(core, asked.thread, view.version + 1)
        raise UnexpectedAnswer(f"more than {REBASED_MAX} versions were committed in between")

    def _done_before(self, core: Core, asked: _Asked, local: Update, reused: StepReused) -> Plan[_Came]:
        """Handles an execution that had its effect before, while its code now returns something else. The first
        effect stays, and the graph continues with it."""
        transition, ended = yield from _waiting.followed(core, reused.transition)
        if ended is None:
            return _Came(local, asking(asked.pointer, transition))
        if not ended.approved or ended.version is None:
            raise reused
        before = yield from self._view(core, asked.thread, ended.version - 1)
        after = yield from self._view(core, asked.thread, ended.version)
        told = told_of(asked.pointer, (reused.transition, transition))
        pointer = latest(told, approved(ended, ended.version))
        return _Came({**local, **self.channels.between(before.state, after.state)}, pointer)

    def _returned(self, returned: Any, came: _Came) -> Any:
        update = came.update if came.pointer is None else {**came.update, self.channel: came.pointer}
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
    step: StepOf | None = None,
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
    step: StepOf | None = None,
) -> Callable[[AsyncBody], AsyncNode]: ...
def governed(
    client: Client | AsyncClient,
    *,
    node: str,
    state: type,
    local: Iterable[str] = (),
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    step: StepOf | None = None,
) -> Callable[[Any], Any]:
    """Makes `body(state)` a node that receives only the gateway's view for the policy's `node`.

    The channels of the graph's `state` reduce its result, and the difference is proposed. If it commits, the graph
    continues with it. If it is held, the graph continues without it, to an `approval_gate` that waits for it. If it is
    rejected, the policy's `on_violation` applies: the run fails, the body runs once more, or the node is skipped. In
    the second run the body gets the `Rejected` as its second argument, if it takes one. Channels in `local` exist only
    in the graph.

    Each execution of the node is a step, and has one effect. If it is retried, resumed, or run again after a crash, it
    finds its first effect, even if its body returns something else. `step` gives it a name of your own, for runs that
    start again with other checkpoints: for example a job's id, and the turn of a loop.
    """
    channels = Channels(state, channel, local)

    def decorate(body: Any) -> Any:
        if inspect.iscoroutinefunction(body) != isinstance(client, AsyncClient):
            raise Invalid("client", "a Client goes with a function, an AsyncClient with an async one")
        takes_rejected = len(inspect.signature(body).parameters) > 1

        def turn(now: Turn) -> Any:
            return body(now.state, now.rejected) if takes_rejected else body(now.state)

        node_of = _Governed(node, channels, thread, channel, step, getattr(body, "__name__", ""))
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
