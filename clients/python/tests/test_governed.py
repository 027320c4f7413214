"""Nodes under a policy, in a real LangGraph: what they are given, how updates are reduced, and what a no does."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import count, permutations
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite

from conftest import Flow
from countersign import AsyncClient, Client, Created, Invalid, Rejected, UnexpectedAnswer
from countersign.langgraph import NotApproved, Pointer, approval_gate, governed, head, latest
from countersign.langgraph._channels import encoded
from countersign.langgraph._patching import patch
from countersign.langgraph._pointer import TOLD_MAX, WAITED_MAX, asking, told_of, waited_for
from graphs import Graph

POLICY = """
flow = "%(flow)s"
on_violation = "%(on_violation)s"
trust_initial = true
protected = ["target"]

[nodes.planner]
reads = ["messages", "log", "target"]
writes = ["messages", "log", "target"]

[nodes.clerk]
reads = ["log"]
writes = ["log"]

[nodes.ledger]
reads = ["target"]
writes = []
writer = true

[approval]
[[approval.stages]]
groups = ["finance"]
need = 1
"""
BEGIN: dict[str, Any] = {"messages": [], "log": ["begun"], "target": 17, "secret": "s3cret"}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    target: int
    secret: str
    scratch: str
    countersign: Annotated[Pointer, latest]


@dataclass(frozen=True)
class Office:
    """A flow whose nodes are governed."""

    flow: Flow
    name: str
    host: Client
    token: str
    agent: Client
    numbers: Iterator[int]

    def thread(self) -> Created:
        return self.host.create_thread(self.name, BEGIN, thread=f"{self.name}-{next(self.numbers)}")


@pytest.fixture(scope="session", params=["fail_fast", "retry_once", "skip_node"])
def any_office(request: pytest.FixtureRequest, flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Office:
    return office_of(request.param, flow, tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="session")
def office(flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Office:
    return office_of("fail_fast", flow, tmp_path_factory.mktemp("policy"), "office")


def office_of(on_violation: str, flow: Flow, folder: Path, name: str | None = None) -> Office:
    called = name or on_violation
    (folder / "policy.toml").write_text(POLICY % {"flow": called, "on_violation": on_violation})
    flow.gateway.activate(folder / "policy.toml")
    host = flow.gateway.client(flow.gateway.add_token("host", flow=called))
    token = flow.gateway.add_token("agent", flow=called, nodes=["planner", "clerk"])
    return Office(flow, called, host, token, flow.gateway.client(token), count(1))


def graph_of(*nodes: Any, parallel: bool = False) -> Graph:
    builder = StateGraph(State)
    last = START
    for index, node in enumerate(nodes):
        builder.add_node(f"n{index}", node)
        builder.add_edge(START if parallel else last, f"n{index}")
        last = f"n{index}"
    builder.add_edge(last, END)
    return builder.compile(checkpointer=InMemorySaver())


def run(graph: Graph, made: Created, **state: Any) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": made.thread}}
    found: dict[str, Any] = graph.invoke({"countersign": head(made), **state}, config)
    return found


def kept(office: Office, made: Created, node: str = "planner") -> dict[str, Any]:
    return office.agent.state(made.thread, node).state


def test_a_node_is_given_what_its_policy_lets_it_read_and_nothing_of_the_graphs(office: Office) -> None:
    seen: list[Any] = []

    @governed(office.agent, node="clerk", state=State, local=["scratch"])
    def clerk(state: dict[str, Any]) -> None:
        seen.append(state)

    run(graph_of(clerk), office.thread(), secret="injected", log=["injected"], target=666, scratch="mine")
    assert seen == [{"log": ["begun"], "scratch": "mine"}]


def test_channels_are_reduced_by_their_reducers_before_they_are_proposed(office: Office) -> None:
    made = office.thread()

    @governed(office.agent, node="planner", state=State, local=["scratch"])
    def first(state: dict[str, Any]) -> dict[str, Any]:
        asked = HumanMessage("Refund 10.", id="m1")
        return {"messages": [asked, AIMessage("Why?", id="m2")], "log": ["asked"], "scratch": "x"}

    @governed(office.agent, node="planner", state=State)
    def second(state: dict[str, Any]) -> dict[str, Any]:
        assert [type(it) for it in state["messages"]] == [HumanMessage, AIMessage]
        call = {"name": "refund", "args": {"cents": 1000}, "id": "c1", "type": "tool_call"}
        return {"messages": [RemoveMessage("m2"), AIMessage("", tool_calls=[call])], "log": ["answered"]}

    @governed(office.agent, node="planner", state=State)
    def third(state: dict[str, Any]) -> dict[str, Any]:
        assert state["messages"][1].tool_calls[0]["args"] == {"cents": 1000}
        return {}

    found = run(graph_of(first, second, third), made)
    held = kept(office, made)
    assert held["log"] == ["begun", "asked", "answered"]
    assert [(it["type"], it["content"]) for it in held["messages"]] == [("human", "Refund 10."), ("ai", "")]
    assert encoded(found["messages"]) == held["messages"]
    assert found["scratch"] == "x"
    assert found["countersign"]["version"] == office.host.thread(made.thread).version == 2


def test_what_is_held_waits_at_the_gate_and_comes_with_what_was_approved(office: Office) -> None:
    made = office.thread()

    @governed(office.agent, node="planner", state=State)
    def planner(state: dict[str, Any]) -> dict[str, Any]:
        return {"target": 42, "log": ["planned"]}

    graph = graph_of(planner, approval_gate(office.agent, node="planner", state=State))
    stopped = run(graph, made, log=["begun"])
    assert "target" not in stopped
    (waiting,) = stopped["__interrupt__"]
    assert waiting.value["changed_keys"] == ["log", "target"]
    review = office.host.thread(made.thread).review
    assert review is not None
    office.flow.ada.approve(review)
    config: Any = {"configurable": {"thread_id": made.thread}}
    found = graph.invoke(Command(resume=waiting.value["transition_digest"]), config)
    assert (found["target"], found["log"]) == (42, ["begun", "planned"])
    assert found["countersign"]["receipt"]


def resume(graph: Graph, made: Created, found: dict[str, Any]) -> dict[str, Any]:
    """The run goes on with the answer to what it stopped with."""
    (waiting,) = found["__interrupt__"]
    answered: dict[str, Any] = graph.invoke(
        Command(resume=waiting.value["transition_digest"]), {"configurable": {"thread_id": made.thread}}
    )
    return answered


def decides(office: Office, made: Created, how: str) -> None:
    """Decides the pending review of the thread."""
    review = office.host.thread(made.thread).review
    assert review is not None
    getattr(office.flow.ada, how)(review)


def sets(office: Office, target: int, **settings: Any) -> Any:
    """A node whose proposal is held."""
    return governed(office.agent, node="planner", state=State, **settings)(lambda state: {"target": target})


def goes_on(office: Office, made: Created, how: str) -> Any:
    """Returns a node that commits a harmless change, while its body decides an earlier review."""

    @governed(office.agent, node="clerk", state=State)
    def node(state: dict[str, Any]) -> dict[str, Any]:
        decides(office, made, how)
        return {"log": ["went on"]}

    return node


def gate_of(office: Office, **settings: Any) -> Any:
    return approval_gate(office.agent, node="planner", state=State, **settings)


def acts(acted: list[Any]) -> Any:
    """A node that may run only after the gate."""

    def act(state: State) -> dict[str, Any]:
        acted.append(state["countersign"])
        return {}

    return act


def test_a_gate_tells_what_was_refused_though_another_node_has_gone_on(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    graph = graph_of(sets(office, 42), goes_on(office, made, "deny"), gate_of(office), acts(acted))
    found = run(graph, made)
    assert (found["countersign"]["version"], acted) == (1, [])
    with pytest.raises(NotApproved):
        resume(graph, made, found)
    assert acted == []


@pytest.mark.parametrize("held_first", [True, False])
def test_a_gate_waits_for_what_is_held_though_a_branch_beside_it_has_committed(
    office: Office, held_first: bool
) -> None:
    made, acted, committed = office.thread(), list[Any](), threading.Event()
    clerk = governed(office.agent, node="clerk", state=State)(lambda state: {"log": ["beside"]})

    def commits(state: Any) -> Any:
        found = clerk(state)
        committed.set()
        return found

    @governed(office.agent, node="planner", state=State)
    def holds(state: dict[str, Any]) -> dict[str, Any]:
        assert committed.wait(20)
        return {"target": 42}

    builder = StateGraph(State)
    # LangGraph reduces what branches said at the same time in the order of their names.
    for name, node in zip(("n0", "n1"), (holds, commits) if held_first else (commits, holds), strict=True):
        builder.add_node(name, node)
        builder.add_edge(START, name)
    builder.add_node("gate", gate_of(office))
    builder.add_node("act", acts(acted))
    builder.add_edge(["n0", "n1"], "gate")
    builder.add_edge("gate", "act")
    graph: Graph = builder.compile(checkpointer=InMemorySaver())
    found = run(graph, made, log=["begun"])
    assert (found["countersign"]["version"], found["__interrupt__"][0].value["changed_keys"]) == (1, ["target"])
    assert acted == []
    decides(office, made, "approve")
    done = resume(graph, made, found)
    assert (done["target"], done["log"], len(acted)) == (42, ["begun", "beside"], 1)
    assert (done["countersign"]["version"], bool(done["countersign"]["receipt"])) == (2, True)


def test_of_two_that_were_held_a_gate_forgets_neither(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    nodes = (sets(office, 42), goes_on(office, made, "deny"), sets(office, 43))
    graph = graph_of(*nodes, gate_of(office), acts(acted))
    found = run(graph, made)
    # A later approval does not replace an earlier denial.
    decides(office, made, "approve")
    with pytest.raises(NotApproved):
        resume(graph, made, found)
    assert acted == []


def test_a_gate_that_goes_on_tells_each_refusal_once_and_gives_no_receipt(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    nodes = (sets(office, 42), goes_on(office, made, "deny"), sets(office, 43))
    graph = graph_of(*nodes, gate_of(office, denied="continue"), gate_of(office), acts(acted))
    found = run(graph, made)
    decides(office, made, "approve")
    found = resume(graph, made, resume(graph, made, found))
    assert "__interrupt__" not in found
    assert (found["target"], found["countersign"]["version"], found["countersign"]["receipt"]) == (43, 2, None)
    assert waited_for(acted[0]) == []


def test_what_was_approved_while_others_went_on_takes_nothing_of_theirs_back(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    graph = graph_of(sets(office, 42), goes_on(office, made, "approve"), gate_of(office), acts(acted))
    found = resume(graph, made, run(graph, made, log=["begun"]))
    assert (found["target"], found["log"]) == (42, ["begun", "went on"])
    assert (found["countersign"]["version"], len(acted)) == (2, 1)


def test_what_is_asked_again_after_its_refusal_was_told_is_told_again(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    # The same step: the gateway answers with the review that has ended.
    again = sets(office, 42, step=lambda state: "job")
    graph = graph_of(again, gate_of(office, denied="continue"), again, gate_of(office), acts(acted))
    found = run(graph, made)
    decides(office, made, "deny")
    found = resume(graph, made, found)
    with pytest.raises(NotApproved):
        resume(graph, made, found)
    assert acted == []


def test_what_was_refused_within_one_task_is_waited_for_behind_it(office: Office) -> None:
    made, acted = office.thread(), list[Any]()
    holds, clerk = sets(office, 42), goes_on(office, made, "deny")

    def both(state: Any) -> Any:
        return clerk({**state, **holds(state)})

    graph = graph_of(both, gate_of(office), acts(acted))
    found = run(graph, made)
    with pytest.raises(NotApproved):
        resume(graph, made, found)
    assert acted == []


def test_a_gate_that_proposes_leaves_what_others_wait_for(office: Office) -> None:
    made, acted = office.thread(), list[Any]()

    def rewords(state: State) -> State:
        decides(office, made, "deny")
        return {}

    gate = approval_gate(office.agent, node="planner", patch=lambda _: {"log": ["begun", "said"]})
    graph = graph_of(sets(office, 42), rewords, gate, gate_of(office), acts(acted))
    found = run(graph, made)
    assert (found["countersign"]["version"], acted) == (1, [])
    with pytest.raises(NotApproved):
        resume(graph, made, found)


def test_a_run_that_is_begun_anew_waits_for_nothing_of_the_one_before(office: Office) -> None:
    made, acted = office.thread(), list[Any]()

    def begins(state: State) -> State:
        return {}

    def goes_to(state: State) -> str:
        return "gate" if state.get("scratch") else "holds"

    builder = StateGraph(State)
    builder.add_node("begins", begins)
    builder.add_node("holds", sets(office, 42))
    builder.add_node("gate", gate_of(office))
    builder.add_node("act", acts(acted))
    builder.add_edge(START, "begins")
    builder.add_conditional_edges("begins", goes_to, ["gate", "holds"])
    builder.add_edge("holds", "gate")
    builder.add_edge("gate", "act")
    graph: Graph = builder.compile(checkpointer=InMemorySaver())
    found = run(graph, made)
    decides(office, made, "deny")
    with pytest.raises(NotApproved):
        resume(graph, made, found)
    # The pointer does not record which gate reported a review, so it interrupts again.
    assert run(graph, made, scratch="second")["__interrupt__"]
    assert acted == []
    run(graph, made, scratch="third", countersign=Overwrite(head(made)))
    assert len(acted) == 1


P, Q = (f"sha256:{digit * 64}" for digit in "12")
BASE: Pointer = {"version": 0, "transition": f"sha256:{'0' * 64}"}
LATER: Pointer = {"version": 1, "transition": f"sha256:{'a' * 64}"}
KEPT_EARLIER: Pointer = {**BASE, "pending": P}


@pytest.mark.parametrize(
    ("said", "waits_for"),
    [
        ([asking(BASE, P), LATER], [P]),
        ([KEPT_EARLIER, LATER], [P]),
        ([asking(BASE, P), asking(BASE, Q), LATER], [P, Q]),
        ([asking(BASE, P), told_of(asking(BASE, P), [P]), LATER], []),
        ([KEPT_EARLIER, told_of(KEPT_EARLIER, [P]), LATER], []),
        # A gate that reported one review has not reported another that it never saw.
        ([told_of(asking(BASE, P), [P]), asking(LATER, Q)], [Q]),
        ([told_of(asking(BASE, P), [P]), asking(told_of(asking(BASE, P), [P]), P)], [P]),
    ],
)
def test_in_whatever_order_branches_come_together_no_question_is_lost(said: Any, waits_for: list[str]) -> None:
    for order in permutations(said):
        once = reduce(latest, order)
        assert sorted(waited_for(once)) == waits_for
        assert once["version"] == max(it["version"] for it in said)
        # Said twice it is the same, and so is what a part of them made of it before.
        assert latest(once, order[0]) == latest(order[-1], once) == once


def test_what_was_told_is_forgotten_in_time_and_what_was_not_never_is() -> None:
    pointer = asking(BASE, P)
    for number in range(TOLD_MAX + 5):
        asked = f"sha256:{number:064}"
        pointer = told_of(asking(pointer, asked), [asked])
    assert (waited_for(pointer), len(pointer["asked"])) == ([P], TOLD_MAX + 1)
    for number in range(WAITED_MAX):
        pointer = asking(pointer, f"sha256:{'a' * 32}{number:032}")
    with pytest.raises(Invalid, match="asked"):
        waited_for(pointer)


@pytest.mark.parametrize("asked", [[P], {P: 0}, {P: True}, {P: "1"}, {"else": 1}])
def test_a_pointer_whose_questions_are_none_is_refused(office: Office, asked: Any) -> None:
    made = office.thread()
    with pytest.raises(Invalid):
        run(graph_of(gate_of(office)), made, countersign={**head(made), "asked": asked})


def test_parallel_branches_are_both_kept(office: Office) -> None:
    made = office.thread()

    def says(word: str) -> Any:
        @governed(office.agent, node="planner", state=State)
        def node(state: dict[str, Any]) -> dict[str, Any]:
            assert state["log"] == ["begun"]
            return {"log": [word]}

        return node

    found = run(graph_of(says("left"), says("right"), says("middle"), parallel=True), made)
    log = kept(office, made)["log"]
    assert (log[0], sorted(log[1:])) == ("begun", ["left", "middle", "right"])
    assert found["countersign"]["version"] == 3


def test_what_changes_nothing_is_not_proposed(office: Office) -> None:
    made = office.thread()
    run(graph_of(governed(office.agent, node="planner", state=State)(lambda state: {"target": state["target"]})), made)
    assert office.host.thread(made.thread).version == 0


def test_a_no_does_what_the_policy_says(any_office: Office) -> None:
    made, turns = any_office.thread(), []

    @governed(any_office.agent, node="clerk", state=State)
    def clerk(state: dict[str, Any], rejected: Rejected | None) -> dict[str, Any]:
        turns.append(rejected and rejected.errors[0].code)
        return {"log": ["tried"], "secret": "mine"} if rejected is None else {"log": ["behaved"]}

    if any_office.name == "fail_fast":
        with pytest.raises(Rejected):
            run(graph_of(clerk), made)
        assert (turns, kept(any_office, made)["log"]) == ([None], ["begun"])
    elif any_office.name == "skip_node":
        assert run(graph_of(clerk), made)["countersign"]["version"] == 0
        assert (turns, kept(any_office, made)["log"]) == ([None], ["begun"])
    else:
        assert run(graph_of(clerk), made)["countersign"]["version"] == 1
        assert turns == [None, "write_not_allowed"]
        assert kept(any_office, made)["log"] == ["begun", "behaved"]


def test_a_node_that_does_not_learn_ends_the_run(any_office: Office) -> None:
    made, turns = any_office.thread(), []

    @governed(any_office.agent, node="clerk", state=State)
    def clerk(state: dict[str, Any]) -> dict[str, Any]:
        turns.append(1)
        return {"secret": "mine"}

    if any_office.name == "skip_node":
        run(graph_of(clerk), made)
    else:
        with pytest.raises(Rejected) as no:
            run(graph_of(clerk), made)
        assert no.value.action == {"fail_fast": "stop", "retry_once": "no_more_tries"}[any_office.name]
    assert len(turns) == (2 if any_office.name == "retry_once" else 1)
    assert any_office.host.thread(made.thread).version == 0


def test_a_command_goes_where_it_says_with_what_was_let_through(office: Office) -> None:
    made = office.thread()

    @governed(office.agent, node="planner", state=State)
    def node(state: dict[str, Any]) -> Any:
        return Command(update={"log": ["went"]}, goto="n1")

    builder = StateGraph(State)
    builder.add_node("n0", node)
    builder.add_node("n1", governed(office.agent, node="clerk", state=State)(lambda state: {"log": ["arrived"]}))
    builder.add_edge(START, "n0")
    graph: Graph = builder.compile(checkpointer=InMemorySaver())
    run(graph, made)
    assert kept(office, made)["log"] == ["begun", "went", "arrived"]


def test_a_run_that_points_elsewhere_is_not_begun(office: Office) -> None:
    made, other = office.thread(), office.thread()
    graph = graph_of(governed(office.agent, node="planner", state=State)(lambda state: {"log": ["x"]}))
    with pytest.raises(UnexpectedAnswer):
        run(graph, made, countersign=head(other))


@pytest.mark.parametrize(
    "update", [{"unknown": 1}, ["log"], {"log": [{1, 2}]}, {"target": object()}, {"log": [{1: 2}]}]
)
def test_what_is_no_update_is_refused_before_anything_is_proposed(office: Office, update: Any) -> None:
    made = office.thread()
    with pytest.raises(Invalid):
        run(graph_of(governed(office.agent, node="planner", state=State)(lambda state: update)), made)
    assert office.host.thread(made.thread).version == 0


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_awaited(office: Office) -> None:
    made = office.thread()
    async with AsyncClient(office.flow.gateway.url, office.token) as agent:

        @governed(agent, node="planner", state=State)
        async def node(state: dict[str, Any]) -> dict[str, Any]:
            return {"log": ["awaited"]}

        config: Any = {"configurable": {"thread_id": made.thread}}
        await graph_of(node).ainvoke({"countersign": head(made)}, config)
    assert kept(office, made)["log"] == ["begun", "awaited"]


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": [1]}, {"a": [True]}, [{"op": "replace", "path": "/a", "value": [True]}]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, [
            {"op": "remove", "path": "/a/c"},
            {"op": "replace", "path": "/a/b", "value": 3},
        ]),
        ({"a": [1]}, {"a": [1, 2, 3]}, [
            {"op": "add", "path": "/a/-", "value": 2},
            {"op": "add", "path": "/a/-", "value": 3},
        ]),
        ({"a": [1, 2]}, {"a": [1]}, [{"op": "replace", "path": "/a", "value": [1]}]),
        ({}, {"a/b~": None}, [{"op": "add", "path": "/a~1b~0", "value": None}]),
    ],
)  # fmt: skip
def test_a_patch_names_what_differs_and_nothing_else(before: Any, after: Any, steps: Any) -> None:
    assert patch(before, after) == steps
