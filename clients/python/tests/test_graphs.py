"""A real LangGraph with a real checkpointer and a real table: what gets through."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import graphs
from conftest import POLICY, Flow
from countersign import Denied
from countersign.langgraph import (
    NotApproved,
    approval_gate,
    head,
)
from graphs import Graph
from runs import Run, prepared
from state import Ledger


@pytest.fixture
def run(flow: Flow, tmp_path: Path) -> Iterator[Run]:
    with prepared(flow, tmp_path) as found:
        yield found


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
