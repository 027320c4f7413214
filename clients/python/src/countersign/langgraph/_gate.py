"""The approval gate: a node that proposes, stops, and continues only if the gateway reports an approval."""

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
    """The change was not approved: `decision` says whether it was denied or expired.

    The run's pointer still has the question. To start a run without it, use `Overwrite(head(…))`.
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
        """Runs the whole node. A repeated run sends the same proposal, and finds its outcome."""
        pointer = pointer_of(state, self.channel)
        decisions: dict[str, Decision] = {}
        if self.patch is not None:
            found = yield from self._propose(core, state, thread, pointer)
            if isinstance(found, Committed):
                return {self.channel: head(found)}
            decisions[found.transition] = yield from self._decided(core, Question.of_held(thread, found))
        else:
            # Each is checked, because a later approval does not replace an earlier denial.
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
        """Returns the pointer to the last approved version, or to a later one if others continued. It has a receipt
        only if nothing was denied."""
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
        """Returns the approved values for the graph's own channels. A reviewer may have edited them."""
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
    """Returns a node that continues only with an approved change.

    With `patch` it proposes that on the run's version, as the policy's `node`. Without, it waits for every held
    proposal of governed nodes before it that no gate has reported. A change that commits continues at once. A held
    change stops the run with the digest and the diff. Resume it with any value that has this `transition_digest`, such
    as the decision. Then the gateway is asked. If the change was not approved, `NotApproved` is raised. With
    `denied="continue"` the run continues without a receipt. With the graph's `state`, its channels are set to the
    approved values, as far as the node may read them. LangGraph cannot remove a channel, so one that the approved
    version lacks stays as it was.
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
