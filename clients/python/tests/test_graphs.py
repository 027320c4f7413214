"""A real LangGraph with a real checkpointer and a real table: what gets through, and what does not."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

import graphs
from conftest import POLICY, STATE, Flow
from countersign import Created, Denied, HeadMoved, Held, Invalid, ThreadHeld, UnexpectedAnswer
from countersign.langgraph import (
    NotApproved,
    NotConfirmed,
    Pointer,
    Write,
    approval_gate,
    guarded_writer,
    head,
    latest,
)
from graphs import Graph
from state import Ledger, State


@dataclass(frozen=True)
class Run:
    """A thread, and the graph that is run in it."""

    flow: Flow
    made: Created
    graph: Graph
    ledger: Ledger
    folder: Path

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.made.thread}}

    def begin(self, target: int = 42) -> dict[str, Any]:
        """Runs until it stops, and gives what it stopped with."""
        found = self.graph.invoke({"target_user_id": target, "countersign": head(self.made)}, self.config)
        (waiting,) = found["__interrupt__"]
        assert self.rows() == []
        value: dict[str, Any] = waiting.value
        return value

    def resume(self, value: Any, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.graph.invoke(Command(resume=value, **more), self.config)
        return found

    def decision(self, question: dict[str, Any]) -> dict[str, Any]:
        """What the gateway's endpoint would resume with."""
        body: dict[str, Any] = self.flow.planner._http.get(
            f"/v1/transitions/{question['transition_digest']}/decision"
        ).json()
        return body

    def approve(self, question: dict[str, Any]) -> dict[str, Any]:
        self.flow.ada.approve(question["review"]["url"])
        return self.decision(question)

    def rows(self) -> list[int]:
        return self.ledger.rows()


@pytest.fixture
def run(flow: Flow, tmp_path: Path) -> Iterator[Run]:
    ledger = Ledger(tmp_path / "ledger.db")
    with graphs.saver(tmp_path / "checkpoints.db") as saver:
        graph = graphs.builder(flow.planner, flow.writer, ledger).compile(checkpointer=saver)
        yield Run(flow, flow.thread(), graph, ledger, tmp_path)


def test_what_people_approved_is_written_once(run: Run) -> None:
    question = run.begin()
    assert question["kind"] == "state_transition_review"
    assert question["changed_keys"] == ["target_user_id"]
    assert question["redacted_diff"] == [{"pointer": "/target_user_id", "before": 17, "after": 42}]
    found = run.resume(run.approve(question))
    assert (run.rows(), found["countersign"]["outcome"]) == ([42], "confirmed")
    assert run.flow.host.thread(run.made.thread).version == 2
    written = run.flow.host.transition(found["countersign"]["transition"])
    assert written.diff == ({"pointer": "/result_ref", "after": "users:42"},)


def test_a_digest_alone_resumes_as_well(run: Run) -> None:
    question = run.begin()
    run.approve(question)
    run.resume(question["transition_digest"])
    assert run.rows() == [42]


def test_what_people_denied_ends_the_run(run: Run) -> None:
    question = run.begin()
    run.flow.ada.deny(question["review"]["url"], comment="No.")
    with pytest.raises(NotApproved) as no:
        run.resume({**run.decision(question), "approved": True, "decision": "approved"})
    assert (no.value.decision.decision, no.value.decision.comment, run.rows()) == ("denied", "No.", [])


def test_a_graph_that_goes_on_after_a_no_has_nothing_to_write_by(flow: Flow, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    graph = graphs.builder(flow.planner, flow.writer, ledger)
    going_on = approval_gate(flow.planner, node="planner", patch=lambda _: {"target_user_id": 42}, denied="continue")
    gate: Any = graph.nodes["gate"]
    gate.runnable.func = going_on
    run = Run(flow, flow.thread(), graph.compile(checkpointer=InMemorySaver()), ledger, tmp_path)
    question = run.begin()
    flow.ada.deny(question["review"]["url"])
    with pytest.raises(Denied) as no:
        run.resume(run.decision(question))
    assert (no.value.code, run.rows()) == ("receipt_missing", [])


def test_a_process_that_ends_between_the_question_and_the_answer_loses_nothing(run: Run) -> None:
    setup = {
        "folder": str(run.folder),
        "url": run.flow.gateway.url,
        "planner": run.flow.tokens["planner"],
        "writer": run.flow.tokens["writer"],
        "thread": run.made.thread,
        "head": head(run.made),
    }

    def process(step: str, **more: Any) -> Any:
        done = subprocess.run(
            [sys.executable, graphs.__file__, step],
            input=json.dumps({**setup, **more}),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout)

    (question,) = process("begin")["waiting"]
    assert run.rows() == []
    assert process("resume", resume="too early")["waiting"] == [question]
    assert process("resume", resume=run.approve(question)) == {"waiting": [], "outcome": "confirmed"}
    assert run.rows() == [42]


def test_a_node_that_is_run_twice_asks_people_once(run: Run) -> None:
    question = run.begin()
    # The same checkpoint again, as after a crash before anything of the step was kept.
    assert run.begin() == question
    found = run.graph.invoke(None, run.config)
    assert found["__interrupt__"][0].value == question
    run.resume(run.approve(question))
    assert run.rows() == [42]
    # The finished node once more, from the checkpoint before it.
    before = next(it for it in run.graph.get_state_history(run.config) if it.next == ("pay",))
    with pytest.raises(Denied):
        run.graph.invoke(None, before.config)
    assert run.rows() == [42]


def test_what_takes_the_questions_place_is_a_question_of_its_own(own_flow: Flow, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    graph: Graph = graphs.builder(own_flow.planner, own_flow.writer, ledger).compile(checkpointer=InMemorySaver())
    run = Run(own_flow, own_flow.thread(), graph, ledger, tmp_path)
    question = run.begin()
    for file in POLICY.parent.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace('ttl = "15m"', 'ttl = "14m"'))
    own_flow.gateway.activate(tmp_path / POLICY.name)
    ended = own_flow.planner.wait_for_decision(question["transition_digest"], within_secs=30)
    (waiting,) = run.resume(run.decision(question))["__interrupt__"]
    assert (waiting.value["transition_digest"], run.rows()) == (ended.superseded_by, [])
    review = own_flow.host.thread(run.made.thread).review
    assert review is not None
    assert run.resume({"approved": True})["__interrupt__"][0].value == waiting.value
    assert run.rows() == []
    own_flow.ada.approve(review)
    run.resume(waiting.value["transition_digest"])
    assert run.rows() == [42]


# ── attacks: each leaves the row unwritten ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", ["body", "true", "other digest", "nothing", "resume map"])
def test_a_forged_resume_writes_nothing(run: Run, shape: str) -> None:
    question = run.begin()
    digest = question["transition_digest"]
    body = {"approved": True, "decision": "approved", "transition_digest": digest, "receipt": "eyJ.eyJ.sig"}
    forged: dict[str, Any] = {
        "body": body,
        "true": True,
        "other digest": {**body, "transition_digest": "sha256:" + "0" * 64},
        "nothing": {},
        "resume map": {**body, "superseded_by": run.made.transition},
    }
    found = run.resume(forged[shape])
    assert found["__interrupt__"][0].value == question
    assert run.rows() == []
    # And the run is not spoiled by it: the approval still counts.
    run.resume(run.approve(question))
    assert run.rows() == [42]


def test_an_answer_to_another_question_is_none_though_this_one_is_approved(run: Run) -> None:
    question = run.begin()
    run.approve(question)
    found = run.resume({"approved": True, "transition_digest": run.made.transition})
    assert (found["__interrupt__"][0].value, run.rows()) == (question, [])


def test_an_approval_that_is_replayed_on_an_old_checkpoint_writes_nothing(run: Run) -> None:
    question = run.begin()
    answer = run.approve(question)
    old = run.graph.get_state(run.config).config
    run.resume(answer)
    assert run.rows() == [42]
    with pytest.raises(Denied) as no:
        run.graph.invoke(Command(resume=answer), old)
    assert (no.value.code, run.rows()) == ("not_head", [42])
    # On a checkpoint of before, for another value: nobody approved that.
    with pytest.raises(HeadMoved):
        run.graph.invoke(Command(resume=answer, update={"target_user_id": 666}), old)
    assert run.rows() == [42]


def test_an_approval_that_is_replayed_before_the_write_is_confirmed_writes_nothing(run: Run) -> None:
    question = run.begin()
    answer = run.approve(question)
    asked = {"thread": run.made.thread, "transition": question["transition_digest"]}
    run.flow.writer.verify(**asked, receipt=answer["receipt"], write_id="another-hand")
    with pytest.raises(Denied) as no:
        run.resume(answer)
    assert (no.value.code, run.rows()) == ("write_in_progress", [])


def test_a_command_that_changes_the_state_while_it_resumes_writes_nothing(run: Run) -> None:
    question = run.begin()
    answer = run.approve(question)
    with pytest.raises(HeadMoved):
        run.resume(answer, update={"target_user_id": 666})
    assert run.rows() == []


def test_one_that_changes_the_pointer_as_well_is_a_question_of_its_own(run: Run) -> None:
    question = run.begin()
    answer = run.approve(question)
    pointer = {"version": 1, "transition": question["transition_digest"], "receipt": answer["receipt"]}
    found = run.resume(answer, update={"target_user_id": 666, "countersign": pointer})
    assert found["__interrupt__"][0].value["redacted_diff"][0]["after"] == 666
    assert run.rows() == []


@pytest.mark.parametrize("receipt", [None, "forged", "of another thread"])
def test_an_update_of_the_state_in_the_gates_name_writes_nothing(run: Run, receipt: str | None) -> None:
    question = run.begin()
    other = another_approval(run.flow)
    given = {None: None, "forged": "eyJ.eyJ.sig", "of another thread": other[1]}[receipt]
    for transition, version in ((question["transition_digest"], 1), (run.made.transition, 0), (other[0], 1)):
        pointer = {"version": version, "transition": transition, "receipt": given, "approved": True}
        config = run.graph.update_state(run.config, {"target_user_id": 666, "countersign": pointer}, as_node="gate")
        with pytest.raises(Denied):
            run.graph.invoke(None, config)
        assert run.rows() == []


def another_approval(flow: Flow) -> tuple[str, str]:
    """A transition of another thread that people did approve, and its receipt."""
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 43})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    receipt = flow.planner.wait_for_decision(held.transition, within_secs=30).receipt
    assert receipt is not None
    return held.transition, receipt


def test_a_second_resume_writes_nothing_more(run: Run) -> None:
    question = run.begin()
    answer = run.approve(question)
    run.resume(answer)
    assert run.rows() == [42]
    for _ in range(2):
        run.resume(answer)
        assert run.rows() == [42]


def test_a_receipt_of_another_thread_writes_nothing(run: Run) -> None:
    question = run.begin()
    run.approve(question)
    transition, receipt = another_approval(run.flow)
    for pointer in (
        {"version": 1, "transition": question["transition_digest"], "receipt": receipt},
        {"version": 1, "transition": transition, "receipt": receipt},
    ):
        config = run.graph.update_state(run.config, {"countersign": pointer}, as_node="gate")
        with pytest.raises(Denied) as no:
            run.graph.invoke(None, config)
        assert no.value.code in ("thread_mismatch", "not_head")
    assert run.rows() == []


def test_a_gate_that_is_sent_to_a_question_of_another_thread_does_not_ask_it(flow: Flow) -> None:
    made, (transition, _) = flow.thread(), another_approval(flow)
    graph = gates_only(approval_gate(flow.planner, node="planner"))
    begun: Any = {"countersign": {**head(made), "pending": transition}}
    with pytest.raises(UnexpectedAnswer):
        graph.invoke(begun, {"configurable": {"thread_id": made.thread}})


class Branches(TypedDict, total=False):
    countersign: Annotated[Pointer, latest]
    told: Annotated[list[str], operator.add]


def gates_only(*gates: Any) -> Graph:
    """Gates that run at the same time."""
    builder = StateGraph(Branches)
    for index, gate in enumerate(gates):
        builder.add_node(f"gate{index}", gate)
        builder.add_edge(START, f"gate{index}")
        builder.add_edge(f"gate{index}", END)
    return builder.compile(checkpointer=InMemorySaver())


def test_of_two_parallel_branches_one_approval_lets_one_write(flow: Flow, tmp_path: Path) -> None:
    ledger, made = Ledger(tmp_path / "ledger.db"), flow.thread()

    def pay(view: dict[str, Any], write: Write) -> None:
        ledger.pay(view["target_user_id"], write.fence)

    builder = StateGraph(Branches)
    builder.add_node("gate", approval_gate(flow.planner, node="planner", patch=lambda _: {"target_user_id": 42}))
    builder.add_edge(START, "gate")
    for branch in ("left", "right"):
        builder.add_node(branch, guarded_writer(flow.writer)(pay))
        builder.add_edge("gate", branch)
    graph: Graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": made.thread}}
    question = graph.invoke({"countersign": head(made)}, config)["__interrupt__"][0].value
    flow.ada.approve(question["review"]["url"])
    with pytest.raises(Denied):
        graph.invoke(Command(resume=question["transition_digest"]), config)
    assert ledger.rows() == [42]


def sets(target: int) -> Callable[[Any], dict[str, Any]]:
    return lambda _: {"target_user_id": target}


def test_two_parallel_gates_do_not_share_an_approval(flow: Flow) -> None:
    made = flow.thread()
    gates = [approval_gate(flow.planner, node="planner", patch=sets(it)) for it in (42, 666)]
    with pytest.raises(ThreadHeld):
        gates_only(*gates).invoke({"countersign": head(made)}, {"configurable": {"thread_id": made.thread}})
    assert flow.host.thread(made.thread).status == "held"


# ── what the nodes themselves hold to ────────────────────────────────────────────────────────────────────────────────


def one_node(node: Any, saver: Any = None) -> Graph:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(checkpointer=saver)


def approved_pointer(flow: Flow) -> tuple[str, Pointer]:
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    decision = flow.planner.wait_for_decision(held.transition, within_secs=30)
    return made.thread, {"version": 1, "transition": held.transition, "receipt": decision.receipt}


def test_a_body_is_given_the_gateways_view_and_not_the_graphs_state(flow: Flow) -> None:
    thread, pointer = approved_pointer(flow)
    seen: list[Any] = []

    @guarded_writer(flow.writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        seen.append((view, write.thread, write.transition))

    given: Any = {"target_user_id": 666, "countersign": pointer}
    one_node(pay).invoke(given, {"configurable": {"thread_id": thread}})
    assert seen == [
        (
            {"requested_action": "none", "target_user_id": 42, "payment": STATE["payment"]},
            thread,
            pointer["transition"],
        )
    ]


def test_a_body_that_raises_is_aborted_and_what_it_raised_is_told(flow: Flow) -> None:
    thread, pointer = approved_pointer(flow)

    @guarded_writer(flow.writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        raise RuntimeError(f"no account {view['target_user_id']}")

    with pytest.raises(RuntimeError):
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    with pytest.raises(Denied) as no:
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert no.value.code == "already_used"
    told: list[Any] = []
    while not any(it.type == "write.aborted" for it in told):
        told = [it for it in flow.host.events() if it.thread == thread]
    assert "no account" not in str(told)


def test_a_body_that_dies_says_nothing_and_keeps_its_lease(flow: Flow) -> None:
    thread, pointer = approved_pointer(flow)

    @guarded_writer(flow.writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert flow.host.thread(thread).status == "writing"


def test_a_write_that_cannot_be_confirmed_is_named(own_flow: Flow) -> None:
    thread, pointer = approved_pointer(own_flow)
    writer = own_flow.gateway.client(own_flow.tokens["writer"], retries=None)
    ids: list[str] = []

    @guarded_writer(writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        ids.append(write.write_id)
        own_flow.gateway.run("token", "revoke", own_flow.tokens["writer"].split("_")[1])

    with pytest.raises(NotConfirmed) as no:
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert [no.value.write_id] == ids


def test_what_needs_no_approval_is_written_only_where_that_is_said(flow: Flow, tmp_path: Path) -> None:
    made, ledger = flow.thread(), Ledger(tmp_path / "ledger.db")

    def pay(view: dict[str, Any], write: Write) -> None:
        ledger.pay(view["target_user_id"], write.fence)

    config: Any = {"configurable": {"thread_id": made.thread}}
    for receipt in (None, another_approval(flow)[1]):
        given: Any = {"countersign": {**head(made), "receipt": receipt}}
        with pytest.raises(Denied) as no:
            one_node(guarded_writer(flow.writer)(pay)).invoke(given, config)
        assert (no.value.code, ledger.rows()) == ("receipt_missing", [])
    any_version = guarded_writer(flow.writer, approved_only=False)(pay)
    one_node(any_version).invoke({"countersign": head(made)}, config)
    assert ledger.rows() == [17]
    # Without a receipt the gateway was not even asked, so that nothing was reserved.
    assert ledger.fences() == [2]


def test_a_run_without_a_thread_or_a_pointer_goes_nowhere(flow: Flow) -> None:
    gate = approval_gate(flow.planner, node="planner", patch=lambda _: {"target_user_id": 42})
    made = flow.thread()
    for given, thread in (({"target_user_id": 1}, made.thread), ({"countersign": head(made)}, "../else")):
        with pytest.raises(Invalid):
            one_node(gate, InMemorySaver()).invoke(given, {"configurable": {"thread_id": thread}})


def test_a_blocking_client_does_not_go_with_an_async_body(flow: Flow) -> None:
    async def body(view: dict[str, Any], write: Write) -> None: ...

    with pytest.raises(Invalid):
        guarded_writer(flow.writer)(body)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_awaited(flow: Flow) -> None:
    made = flow.thread()
    written: list[int] = []
    async with (
        flow.gateway.async_client(flow.tokens["planner"]) as planner,
        flow.gateway.async_client(flow.tokens["writer"]) as writer,
    ):

        @guarded_writer(writer)
        async def pay(view: dict[str, Any], write: Write) -> dict[str, Any]:
            if not written:
                written.append(view["target_user_id"])
                return {"result_ref": "row 1"}
            raise AssertionError("let through twice")

        builder = StateGraph(State)
        builder.add_node("gate", approval_gate(planner, node="planner", patch=lambda _: {"target_user_id": 42}))
        builder.add_node("pay", pay)
        builder.add_edge(START, "gate")
        builder.add_edge("gate", "pay")
        graph: Graph = builder.compile(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": made.thread}}
        question = (await graph.ainvoke({"countersign": head(made)}, config))["__interrupt__"][0].value
        assert (await graph.ainvoke(Command(resume=True), config))["__interrupt__"][0].value == question
        flow.ada.approve(question["review"]["url"])
        found = await graph.ainvoke(Command(resume=question["transition_digest"]), config)
    assert (written, found["countersign"]["outcome"]) == ([42], "confirmed")
