"""No tool runs by an approval that is no longer usable, or that only looks like one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from conftest import Flow
from countersign import Client, Decision, Halted
from countersign.langgraph import approval_gate, head
from faulty import Instead, between
from test_agents import MODES, POLICY, Desk, Mode, Run, approve_of, call, told, waiting
from test_graph_attacks import gates_only

NAME = "stopping"
WRITER = """
[nodes.clerk]
reads = ["note"]
writer = true
"""


@dataclass
class Stopping(Desk):
    """A desk whose flow has a writer, and an administrator who stops flows."""

    writer: Client | None = None
    admin: Client | None = None

    def held(self, mode: Mode) -> tuple[Run, str]:
        """A run that waits for people, and the digest of what it waits for."""
        run = self.run(mode, [call("refund", amount=500)])
        (value,) = waiting(run.begin())
        return run, value["transition_digest"]

    def approved(self, mode: Mode) -> tuple[Run, Decision]:
        """The same, once they have decided."""
        run, transition = self.held(mode)
        run.approve()
        return run, self.agent.wait_for_decision(transition, within_secs=30)

    def writes_what_came_before(self, run: Run) -> str:
        """Writes the head while a review is pending. Returns what the confirmation committed."""
        assert self.writer is not None
        name = f"w-{run.made.thread}"
        self.writer.verify(thread=run.made.thread, transition=run.made.transition, write_id=name)
        written = self.writer.confirm(name).transition
        assert written is not None
        return written

    @contextmanager
    def halted(self) -> Iterator[None]:
        assert self.admin is not None
        self.admin.halt(NAME, proposing=True, verifying=True, reason="an exercise")
        try:
            yield
        finally:
            self.admin.halt(NAME, proposing=False, verifying=False, reason="it was one")


@pytest.fixture(scope="session")
def desk(flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Stopping:
    return desk_on(flow, tmp_path_factory.mktemp(NAME), POLICY)


def desk_on(flow: Flow, folder: Path, policy: str) -> Stopping:
    (folder / "policy.toml").write_text(policy.replace('flow = "agents"', f'flow = "{NAME}"') + WRITER)
    gateway = flow.gateway
    gateway.activate(folder / "policy.toml")
    host = gateway.client(gateway.add_token("host", flow=NAME))
    agent = gateway.client(gateway.add_token("agent", flow=NAME, nodes=["planner"]))
    writer = gateway.client(gateway.add_token("writer", flow=NAME, nodes=["clerk"]))
    admin = gateway.client(gateway.add_token("admin"))
    return Stopping(flow, host, agent, NAME, writer=writer, admin=admin)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", ["approve", "decision", "what was written"])
def test_a_write_that_was_confirmed_meanwhile_is_no_approval(desk: Stopping, mode: Mode, answer: str) -> None:
    run, transition = desk.held(mode)
    written = desk.writes_what_came_before(run)
    said: dict[str, Any] = {
        "approve": approve_of(mode),
        "decision": {"approved": True, "transition_digest": transition},
        "what was written": {"approved": True, "transition_digest": written},
    }
    found = run.resume(said[answer])
    if answer == "what was written":
        # The resume is about something else, so the review stays pending.
        assert (len(waiting(found)), desk.ran) == (1, [])
        found = run.resume(approve_of(mode))
    assert desk.ran == []
    ((status, text),) = told(found)
    assert (status, "superseded" in text) == ("error", True)


def test_waiting_does_not_take_it_for_one_either(desk: Stopping) -> None:
    run, transition = desk.held("batched")
    desk.writes_what_came_before(run)
    for follow in (False, True):
        ended = desk.agent.wait_for_decision(transition, within_secs=30, follow=follow)
        assert (ended.approved, ended.decision, ended.superseded_by) == (False, "superseded", None)


def test_nor_where_a_gateway_names_the_write_as_what_took_its_place(desk: Stopping) -> None:
    run, transition = desk.held("batched")
    written = desk.writes_what_came_before(run)
    body = desk.agent._http.get(f"/v1/transitions/{transition}/decision").content
    named = body.replace(b'"superseded_by":null', b'"superseded_by":"%s"' % written.encode())
    assert named != body
    token = desk.flow.gateway.add_token("agent", flow=NAME, nodes=["planner"])
    with between(desk.flow.gateway.url) as proxy, Client(proxy.url, token) as agent:
        proxy.todo.append(Instead(200, named))
        ended = agent.wait_for_decision(transition, within_secs=30, follow=True)
        assert (ended.approved, ended.decision, ended.transition_digest) == (False, "superseded", transition)


def test_nor_does_a_gate(flow: Flow) -> None:
    made = flow.thread()
    gate = approval_gate(flow.planner, node="planner", patch=lambda _: {"target_user_id": 42}, denied="continue")
    graph = gates_only(gate)
    config: Any = {"configurable": {"thread_id": made.thread}}
    question = graph.invoke({"countersign": head(made)}, config)["__interrupt__"][0].value
    flow.writer.verify(thread=made.thread, transition=made.transition, write_id=f"w-{made.thread}")
    flow.writer.confirm(f"w-{made.thread}")
    found = graph.invoke(Command(resume=question["transition_digest"]), config)
    pointer = found["countersign"]
    assert (pointer["version"], pointer["transition"], pointer["receipt"]) == (0, made.transition, None)


@pytest.mark.parametrize("mode", MODES)
def test_an_approval_that_was_taken_back_lets_nothing_run(desk: Stopping, mode: Mode) -> None:
    run, decision = desk.approved(mode)
    assert desk.admin is not None
    assert decision.nonce is not None
    desk.admin.revoke_receipt(decision.nonce, reason="a mistake")
    found = run.resume(approve_of(mode))
    ((status, text),) = told(found)
    assert (desk.ran, status, "revoked" in text) == ([], "error", True)


@pytest.mark.parametrize("mode", MODES)
def test_while_the_flow_is_halted_nothing_runs_and_afterwards_it_does_once(desk: Stopping, mode: Mode) -> None:
    run, _ = desk.approved(mode)
    with desk.halted(), pytest.raises(Halted):
        run.resume(approve_of(mode))
    assert desk.ran == []
    run.agent.invoke(None, run.config)
    assert desk.ran == [("refund", 500)]


@pytest.mark.parametrize("mode", MODES)
def test_an_approval_that_has_lapsed_lets_nothing_run(own_flow: Flow, tmp_path: Path, mode: Mode) -> None:
    desk = desk_on(own_flow, tmp_path, POLICY.replace("attempts = 100", 'attempts = 100\nreceipt_ttl = "1s"'))
    run, decision = desk.approved(mode)
    assert decision.approved
    time.sleep(1.5)
    found = run.resume(approve_of(mode))
    ((status, text),) = told(found)
    assert (desk.ran, status, "expired" in text) == ([], "error", True)
