"""Attacks on a graph by resume, replay or update. None writes the row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from conftest import Flow
from countersign import Denied, HeadMoved, ThreadHeld, UnexpectedAnswer
from countersign.langgraph import (
    Pointer,
    Write,
    approval_gate,
    guarded_writer,
    head,
    latest,
)
from graphs import Graph
from runs import Run, another_approval, prepared
from state import Ledger


@pytest.fixture
def run(flow: Flow, tmp_path: Path) -> Iterator[Run]:
    with prepared(flow, tmp_path) as found:
        yield found


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
    # An old checkpoint with another value, which was not approved.
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
