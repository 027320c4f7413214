"""The gate: a node that proposes, stops, and goes on only if the gateway says that people approved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, overload

from countersign import AsyncClient, Client, _calls
from countersign._plans import Core, Plan
from countersign.answers import Committed, Decision, Patch
from countersign.errors import CountersignError, UnexpectedAnswer

from ._asking import Question, decided, question_about
from ._channels import Channels
from ._nodes import AsyncNode, Node, Update
from ._pointer import (
    CHANNEL,
    Pointer,
    State,
    ThreadOf,
    approved,
    head,
    latest,
    of_run,
    pointer_of,
    told_of,
    waited_for,
)

PatchOf = Callable[[State], Patch]


class NotApproved(CountersignError):
    """People did not approve: `decision` says whether they refused, or nobody decided in time.

    The run's pointer still has the question. A run that has nothing to do with it any more is begun with
    `Overwrite(head(…))`, which puts the pointer in the place of that one.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.transition_digest}: {decision.decision}")
        self.decision = decision


@dataclass(frozen=True)
class _Gate:
    node: str
    patch: PatchOf | None
    format: _calls.Format | None
    rationale: Callable[[State], str] | None
    thread: ThreadOf
    channel: str
    denied: Literal["raise", "continue"]
    channels: Channels | None

    def plan(self, core: Core, state: State, thread: str) -> Plan[Update]:
        """The whole node. Run again from its top it asks for the very same, and so finds what became of it."""
        pointer = pointer_of(state, self.channel)
        decisions: dict[str, Decision] = {}
        if self.patch is not None:
            found = yield from self._propose(core, state, thread, pointer)
            if isinstance(found, Committed):
                return {self.channel: head(found)}
            decisions[found.transition] = yield from self._decided(core, Question.of_held(thread, found))
        else:
            # Each of them: a later approval does not stand for what was refused before.
            for transition in waited_for(pointer):
                question = yield from question_about(core, thread, transition)
                decisions[transition] = yield from self._decided(core, question)
        if not decisions:
            return {}
        return (yield from self._gone_on(core, state, thread, pointer, decisions))

    def _decided(self, core: Core, question: Question) -> Plan[Decision]:
        decision = yield from decided(core, question)
        if self.denied == "raise" and not decision.approved:
            raise NotApproved(decision)
        return decision

    def _gone_on(
        self, core: Core, state: State, thread: str, pointer: Pointer, decisions: Mapping[str, Decision]
    ) -> Plan[Update]:
        """On the last version that people approved, or on a later one where others went on meanwhile; with a receipt
        only if they refused nothing."""
        told, values = told_of(pointer, decisions), {}
        approvals = [it for it in decisions.values() if it.approved]
        for decision in approvals:
            told = latest(told, approved(decision, _version(decision)))
        if approvals:
            values = yield from self._values(core, state, thread, told["version"])
        if len(approvals) < len(decisions):
            told = {**told, "receipt": None}
        return {**values, self.channel: told}

    def _values(self, core: Core, state: State, thread: str, version: int) -> Plan[Update]:
        """What people approved, for the graph's own channels: a reviewer may have rewritten it."""
        if self.channels is None:
            return {}
        view = yield from _calls.state(core, thread, self.node, version=version)
        return self.channels.refreshed(view.state, state)

    def _propose(self, core: Core, state: State, thread: str, pointer: Pointer) -> Plan[Any]:
        assert self.patch is not None
        return (
            yield from _calls.propose(
                core,
                thread,
                node=self.node,
                parent=pointer["transition"],
                patch=self.patch(state),
                format=self.format,
                rationale=self.rationale(state) if self.rationale else None,
            )
        )


def _version(decision: Decision) -> int:
    if decision.version is None:
        raise UnexpectedAnswer("an approval without a version")
    return decision.version


@overload
def approval_gate(
    client: Client,
    *,
    node: str,
    patch: PatchOf | None = None,
    format: _calls.Format | None = None,
    rationale: Callable[[State], str] | None = None,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    denied: Literal["raise", "continue"] = "raise",
    state: type | None = None,
) -> Node: ...
@overload
def approval_gate(
    client: AsyncClient,
    *,
    node: str,
    patch: PatchOf | None = None,
    format: _calls.Format | None = None,
    rationale: Callable[[State], str] | None = None,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    denied: Literal["raise", "continue"] = "raise",
    state: type | None = None,
) -> AsyncNode: ...
def approval_gate(
    client: Client | AsyncClient,
    *,
    node: str,
    patch: PatchOf | None = None,
    format: _calls.Format | None = None,  # noqa: A002 - the protocol's word
    rationale: Callable[[State], str] | None = None,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    denied: Literal["raise", "continue"] = "raise",
    state: type | None = None,
) -> Node | AsyncNode:
    """A node that goes on only with what people approved.

    With `patch` it proposes that on the version that the run points to, as the policy's `node`; without, it waits for
    all that governed nodes before it were held for and no gate has told of. What commits by itself goes on at once.
    What is held stops the run with the digest and the diff; resume it with anything that has this `transition_digest`,
    such as the decision. Whether people approved is then asked of the gateway. If they did not, `NotApproved` is
    raised, or with `denied="continue"` the run goes on without a receipt. With the graph's `state`, its channels are
    brought to what was approved, as far as the node may read it; LangGraph has no way to take a channel out again, so
    one that the approved version does not have stays in the graph as it was.
    """
    channels = Channels(state, channel) if state is not None else None
    gate = _Gate(node, patch, format, rationale, thread, channel, denied, channels)
    if isinstance(client, AsyncClient):
        return _awaiting(client, gate)
    return _blocking(client, gate)


def _blocking(client: Client, gate: _Gate) -> Node:
    def node(state: Any) -> Update:
        return client._run(gate.plan(client._settings.core, state, gate.thread(state)))

    return node


def _awaiting(client: AsyncClient, gate: _Gate) -> AsyncNode:
    async def node(state: Any) -> Update:
        return await client._run(gate.plan(client._settings.core, state, gate.thread(state)))

    return node
