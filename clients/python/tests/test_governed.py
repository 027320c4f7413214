"""Nodes under a policy, in a real LangGraph: what they are given, how updates are reduced, and what a no does."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from conftest import Flow
from countersign import AsyncClient, Client, Created, Invalid, Rejected, UnexpectedAnswer
from countersign.langgraph import Pointer, approval_gate, governed, head, latest
from countersign.langgraph._channels import encoded
from countersign.langgraph._patching import patch
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
