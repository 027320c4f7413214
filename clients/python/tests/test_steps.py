"""One effect for each execution of a node: tried again, resumed, and run again after its process died."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

import crashing
from conftest import Flow
from countersign import Created, Rejected, StepReused, _waiting
from countersign.langgraph import governed, head
from countersign.langgraph._channels import encoded
from graphs import Graph
from test_governed import Office, State, kept, office_of

BEAR_STEPS = {"transition.committed", "transition.held", "transition.rejected"}
LOGGED_SECS = 30.0
AT_ONCE = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=5)


@pytest.fixture(scope="module")
def office(flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Office:
    return office_of("retry_once", flow, tmp_path_factory.mktemp("policy"), "steps")


def says_something_else_each_time() -> Callable[[], str]:
    """Returns another value each time, as a model would."""
    said = count(1)
    return lambda: f"take {next(said)}"


def failing_after(node: Any, fails: Iterator[int]) -> Any:
    """The node, whose answer is lost as often as that: its proposal was made, and LangGraph hears of an error."""

    def run(state: Any) -> Any:
        found = node(state)
        if next(fails, None) is not None:
            raise ConnectionError("the answer is lost")
        return found

    return run


def graph_of(*nodes: Any, parallel: bool = False) -> Graph:
    builder = StateGraph(State)
    last = START
    for index, node in enumerate(nodes):
        builder.add_node(f"n{index}", node, retry_policy=AT_ONCE)
        builder.add_edge(START if parallel else last, f"n{index}")
        last = f"n{index}"
    return builder.compile(checkpointer=InMemorySaver())


def config_of(made: Created) -> Any:
    return {"configurable": {"thread_id": made.thread}}


def begin(graph: Graph, made: Created, **state: Any) -> dict[str, Any]:
    found: dict[str, Any] = graph.invoke({"countersign": head(made), "log": ["begun"], **state}, config_of(made))
    return found


def steps_of(office: Office, made: Created, count: int) -> list[Any]:
    """Returns this many step events of the thread. An event gets its log position a moment later."""
    told: list[Any] = []
    until = time.monotonic() + LOGGED_SECS
    while len(told) < count and time.monotonic() < until:
        told = [
            it.data.get("step") for it in office.host.events() if it.thread == made.thread and it.type in BEAR_STEPS
        ]
    assert len(told) == count
    return told


def test_a_try_whose_answer_was_lost_has_its_effect_once(office: Office) -> None:
    made, take, bodies = office.thread(), says_something_else_each_time(), []

    @governed(office.agent, node="planner", state=State)
    def node(state: dict[str, Any]) -> dict[str, Any]:
        bodies.append(1)
        return {"log": [take()], "target": 17}

    found = begin(graph_of(failing_after(node, iter(range(2)))), made)
    assert len(bodies) == 3
    # The first change stays, and the graph receives it, not the last result.
    assert kept(office, made)["log"] == found["log"] == ["begun", "take 1"]
    assert found["countersign"]["version"] == office.host.thread(made.thread).version == 1
    (step,) = steps_of(office, made, 1)
    assert step.endswith(".0.node")


def test_what_others_committed_meanwhile_makes_it_no_other_step(office: Office) -> None:
    made, take = office.thread(), says_something_else_each_time()
    other = office.agent.propose(made.thread, node="clerk", parent=made.transition, patch={"log": ["begun", "other"]})
    assert other.outcome == "committed"
    node = governed(office.agent, node="planner", state=State)(lambda state: {"log": [take()]})
    begin(graph_of(failing_after(node, iter(range(2)))), made)
    assert kept(office, made)["log"] == ["begun", "other", "take 1"]


def test_branches_that_are_tried_again_each_tell_what_they_appended(office: Office) -> None:
    made, take = office.thread(), says_something_else_each_time()

    def branch() -> Any:
        @governed(office.agent, node="planner", state=State)
        def node(state: dict[str, Any]) -> dict[str, Any]:
            return {"log": [take()]}

        return failing_after(node, iter(range(1)))

    found = begin(graph_of(branch(), branch(), parallel=True), made)
    log = kept(office, made)["log"]
    assert (log[0], len(log), sorted(found["log"])) == ("begun", 3, sorted(log))


def test_what_its_reducer_did_more_than_append_is_told_as_it_stands(office: Office) -> None:
    made, take = office.thread(), says_something_else_each_time()
    asks = governed(office.agent, node="planner", state=State)(lambda state: {"messages": [HumanMessage("?", id="m1")]})
    puts = governed(office.agent, node="planner", state=State)(
        lambda state: {"messages": [HumanMessage(take(), id="m1")]}
    )
    found = begin(graph_of(asks, failing_after(puts, iter(range(1)))), made)
    assert [(it.id, it.content) for it in found["messages"]] == [("m1", "take 1")]
    assert encoded(found["messages"]) == kept(office, made)["messages"]


@pytest.mark.parametrize("target", [17, 42])
def test_a_process_that_dies_after_its_proposal_makes_it_once(office: Office, tmp_path: Path, target: int) -> None:
    """17 is the current value, so it commits. 42 is held."""
    made = office.thread()

    def process(step: str, said: str, resume: str | None = None) -> Any:
        setup = {
            "url": office.flow.gateway.url,
            "token": office.token,
            "checkpoints": str(tmp_path / "checkpoints.db"),
            "thread": made.thread,
            "head": head(made),
            "says": {"log": [said], "target": target},
            "resume": resume,
        }
        done = subprocess.run(
            [sys.executable, crashing.__file__, step],
            check=False,
            input=json.dumps(setup),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == (crashing.DIED if step == "begin" else 0), done.stderr
        return json.loads(done.stdout) if done.stdout else None

    assert process("begin", "before it died") is None
    held = office.host.thread(made.thread).review
    assert (held is not None) == (target == 42)
    again = process("resume", "something else")
    assert len(steps_of(office, made, 1)) == 1
    if held is None:
        assert again == {"log": ["begun", "before it died"], "target": None, "version": 1, "waiting": []}
        return
    assert office.host.thread(made.thread).review == held
    assert (len(again["waiting"]), again["version"]) == (1, 0)
    office.flow.ada.approve(held)
    done = process("resume", "a third thing", *again["waiting"])
    # The gate asks the gateway. The first proposal was approved.
    assert (done["log"], done["target"], done["version"]) == (["begun", "before it died"], 42, 1)


def test_what_a_body_asks_before_it_answers_is_the_same_step_when_it_goes_on(office: Office) -> None:
    made, take = office.thread(), says_something_else_each_time()

    @governed(office.agent, node="planner", state=State)
    def node(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": [take()]}

    def asks_after(state: Any) -> Any:
        found = node(state)
        interrupt("is that well?")
        return found

    graph = graph_of(asks_after)
    assert begin(graph, made)["__interrupt__"]
    found = graph.invoke(Command(resume="yes"), config_of(made))
    assert kept(office, made)["log"] == found["log"] == ["begun", "take 1"]


def test_each_turn_of_a_loop_and_each_send_is_a_step_of_its_own(office: Office) -> None:
    made = office.thread()
    node = governed(office.agent, node="planner", state=State)(lambda state: {"log": ["same"]})
    builder = StateGraph(State)
    builder.add_node("loop", node)
    builder.add_node("sent", node)
    builder.add_edge(START, "loop")

    def goes_to(state: Any) -> Any:
        return "loop" if len(state["log"]) < 3 else [Send("sent", {"countersign": state["countersign"]})] * 2

    builder.add_conditional_edges("loop", goes_to, ["loop", "sent"])
    found = begin(builder.compile(checkpointer=InMemorySaver()), made)
    assert kept(office, made)["log"] == found["log"] == ["begun", *["same"] * 4]
    assert len(set(steps_of(office, made, 4))) == 4


def test_two_bodies_within_one_task_are_two_steps(office: Office) -> None:
    made = office.thread()

    @governed(office.agent, node="planner", state=State)
    def first(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": ["first"]}

    @governed(office.agent, node="planner", state=State)
    def second(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": ["second"]}

    def both(state: Any) -> Any:
        one = first(state)
        first({**state, "countersign": one["countersign"]})
        return second(state)

    begin(graph_of(both), made)
    assert kept(office, made)["log"] == ["begun", "first", "first", "second"]


def test_a_no_and_a_second_turn_are_tries_of_one_step(office: Office) -> None:
    made, seen = office.thread(), []

    @governed(office.agent, node="clerk", state=State)
    def clerk(state: dict[str, Any], rejected: Rejected | None) -> dict[str, Any]:
        seen.append(rejected is None)
        return {"log": ["tried"], "secret": "mine"} if rejected is None else {"log": ["behaved"]}

    found = begin(graph_of(failing_after(clerk, iter(range(2)))), made)
    assert (found["countersign"]["version"], kept(office, made)["log"]) == (1, ["begun", "behaved"])
    assert seen == [True, False] * 3
    assert len(set(steps_of(office, made, 2))) == 1


def test_a_name_of_ones_own_lasts_longer_than_its_checkpoints(office: Office) -> None:
    made, take = office.thread(), says_something_else_each_time()

    def run(job: str) -> dict[str, Any]:
        node = governed(office.agent, node="planner", state=State, step=lambda state: job)
        return begin(graph_of(node(lambda state: {"log": [take()]})), made)

    assert run("job-1")["log"] == run("job-1")["log"] == ["begun", "take 1"]
    # Another run without a result is another step, and continues from the current state.
    assert run("job-2")["countersign"]["version"] == 2
    assert kept(office, made)["log"] == ["begun", "take 1", "take 3"]
    assert steps_of(office, made, 2) == ["job-1", "job-2"]


def test_what_people_refused_meanwhile_is_not_gone_on_with(office: Office) -> None:
    made, take, tries = office.thread(), says_something_else_each_time(), []

    @governed(office.agent, node="planner", state=State)
    def node(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": [take()], "target": 42}

    def refused_after(state: Any) -> Any:
        found = node(state)
        review = office.host.thread(made.thread).review
        assert review is not None
        office.flow.ada.deny(review)
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("the answer is lost")
        return found

    found = begin(graph_of(refused_after), made)
    # The further attempt of the same step is no more valid than the first.
    assert found["countersign"]["version"] == office.host.thread(made.thread).version == 0
    assert len(set(steps_of(office, made, 2))) == 1


def test_what_people_refuse_while_it_is_looked_for_is_asked_about_anew(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, take, reviews = office.thread(), says_something_else_each_time(), []
    followed = _waiting.followed

    def refused_first(core: Any, transition: str) -> Any:
        reviews.append(office.host.thread(made.thread).review)
        assert reviews[-1] is not None
        office.flow.ada.deny(reviews[-1])
        return (yield from followed(core, transition))

    monkeypatch.setattr(_waiting, "followed", refused_first)

    @governed(office.agent, node="planner", state=State)
    def node(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": [take()], "target": 42}

    found = begin(graph_of(failing_after(node, iter(range(1)))), made)
    assert (found["countersign"]["version"], len(reviews)) == (0, 1)
    assert office.host.thread(made.thread).review not in (None, *reviews)


def test_outside_of_a_run_it_is_no_step(office: Office) -> None:
    made = office.thread()
    node = governed(office.agent, node="planner", state=State, thread=lambda state: made.thread)
    node(lambda state: {"log": ["alone"]})({"countersign": head(made)})
    assert kept(office, made)["log"] == ["begun", "alone"]
    assert steps_of(office, made, 1) == [None]


def test_a_step_that_somebody_else_of_the_node_took_is_not_taken_twice(office: Office) -> None:
    made = office.thread()
    node = governed(office.agent, node="planner", state=State, step=lambda state: "shared")
    taken = office.agent.propose(
        made.thread, node="planner", parent=made.transition, patch={"log": ["begun", "theirs"]}, step="shared"
    )
    assert taken.outcome == "committed"
    found = begin(graph_of(node(lambda state: {"log": ["mine"]})), made)
    assert kept(office, made)["log"] == found["log"] == ["begun", "theirs"]
    with pytest.raises(StepReused):
        office.agent.propose(made.thread, node="planner", parent=taken.transition, patch={"log": []}, step="shared")
