"""Guarantees of the nodes themselves, in any graph."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import main_thread
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from conftest import STATE, Flow
from countersign import AsyncClient, Client, Denied, Held, Invalid
from countersign.langgraph import (
    NotConfirmed,
    Pointer,
    Write,
    approval_gate,
    guarded_writer,
    head,
)
from countersign.verify import Keys, Refused
from faulty import Changed, between, cancelling
from graphs import Graph
from runs import another_approval
from state import Ledger, State


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


def test_a_writer_with_keys_writes_only_what_was_signed(flow: Flow, tmp_path: Path) -> None:
    ledger, (thread, pointer) = Ledger(tmp_path / "ledger.db"), approved_pointer(flow)

    def pay(view: dict[str, Any], write: Write) -> None:
        ledger.pay(view["target_user_id"], write.fence)

    config: Any = {"configurable": {"thread_id": thread}}
    with pytest.raises(Refused, match="unknown_key"):
        one_node(guarded_writer(flow.writer, keys=Keys({}))(pay)).invoke({"countersign": pointer}, config)
    assert ledger.rows() == []
    # An unverified response is not written, and its lease expires. Another approval works with the right keys.
    thread, pointer = approved_pointer(flow)
    keys = Keys.read(flow.host.jwks())
    config = {"configurable": {"thread_id": thread}}
    one_node(guarded_writer(flow.writer, keys=keys)(pay)).invoke({"countersign": pointer}, config)
    assert ledger.rows() == [42]


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


@pytest.mark.parametrize(
    ("at", "written", "again"), [("start", False, ""), ("verify", False, "already_used"), ("confirm", True, "not_head")]
)
def test_a_cancelled_run_reports_a_write_whose_outcome_is_known(flow: Flow, at: str, written: bool, again: str) -> None:
    """The run is cancelled before anything is sent, when the gateway is asked, or when the body has written."""
    thread, pointer = approved_pointer(flow)
    ran: list[str] = []

    async def scenario() -> None:
        with between(flow.gateway.url) as proxy:
            async with AsyncClient(proxy.url, flow.tokens["writer"]) as writer:
                task = asyncio.current_task()
                assert task is not None
                if at == "start":
                    task.cancel()
                elif at == "verify":
                    proxy.todo.append(cancelling(task.cancel))

                @guarded_writer(writer, thread=lambda state: thread)
                async def pay(view: dict[str, Any], write: Write) -> None:
                    ran.append(write.write_id)
                    task.cancel()

                await pay({"countersign": pointer})

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    found = flow.host.thread(thread)
    assert (len(ran), found.status, found.version) == (written, "open", 1 + written)
    pay = guarded_writer(flow.writer, thread=lambda state: thread)(lambda view, write: None)
    with pytest.raises(Denied, match=again) if again else nullcontext():
        pay({"countersign": pointer})


def test_a_run_that_is_interrupted_before_its_body_aborts_the_write(flow: Flow) -> None:
    thread, pointer = approved_pointer(flow)
    ran: list[str] = []

    def interrupt(body: Any) -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["writer"]) as writer:
        proxy.todo.append(Changed(interrupt))
        pay = guarded_writer(writer, thread=lambda state: thread)(lambda view, write: ran.append(write.write_id))
        with pytest.raises(KeyboardInterrupt):
            pay({"countersign": pointer})
    assert (ran, flow.host.thread(thread).status) == ([], "open")


@pytest.mark.parametrize("said", [True, ["row 1"], {"row": 2**60 + 1}, {"row": float("nan")}], ids=str)
def test_a_write_is_confirmed_whatever_its_body_says_of_it(flow: Flow, said: Any, caplog: Any) -> None:
    thread, pointer = approved_pointer(flow)
    config: Any = {"configurable": {"thread_id": thread}}
    found = one_node(guarded_writer(flow.writer)(lambda view, write: said)).invoke({"countersign": pointer}, config)
    assert (found["countersign"]["outcome"], flow.host.thread(thread).status) == ("confirmed", "open")
    assert "without its result" in caplog.text


def test_a_write_that_cannot_be_confirmed_is_told_and_not_tried_again(own_flow: Flow, caplog: Any) -> None:
    thread, pointer = approved_pointer(own_flow)
    writer = own_flow.gateway.client(own_flow.tokens["writer"], retries=None)
    ids: list[str] = []

    @guarded_writer(writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        ids.append(write.write_id)
        own_flow.gateway.run("token", "revoke", own_flow.tokens["writer"].split("_")[1])

    builder = StateGraph(State)
    builder.add_node("pay", pay, retry_policy=RetryPolicy(initial_interval=0.01))
    builder.add_edge(START, "pay")
    with pytest.raises(NotConfirmed) as no:
        builder.compile().invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert ([no.value.write_id], ids[0] in caplog.text) == (ids, True)


@pytest.mark.parametrize("fails", [False, True])
def test_a_closed_client_hides_neither_the_write_nor_the_error_of_the_body(flow: Flow, fails: bool) -> None:
    thread, pointer = approved_pointer(flow)
    writer = flow.gateway.client(flow.tokens["writer"])
    ids: list[str] = []

    @guarded_writer(writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        ids.append(write.write_id)
        writer.close()
        if fails:
            raise LookupError("no such account")

    with pytest.raises(LookupError if fails else NotConfirmed) as no:
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert fails or getattr(no.value, "write_id", None) == ids[0]


def test_a_writer_cannot_stop_the_run_and_what_it_left_is_told(flow: Flow) -> None:
    thread, pointer = approved_pointer(flow)

    @guarded_writer(flow.writer)
    def pay(view: dict[str, Any], write: Write) -> None:
        interrupt("really?")

    with pytest.raises(Invalid, match="cannot interrupt the run"):
        one_node(pay, InMemorySaver()).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    assert flow.host.thread(thread).status == "open"


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


class Later:
    """A callable object with an async call."""

    def __init__(self, ran: list[str]) -> None:
        self.ran = ran

    async def __call__(self, view: dict[str, Any], write: Write) -> None:
        self.ran.append(write.write_id)

    def one_by_one(self, view: dict[str, Any], write: Write) -> Iterator[None]:
        self.ran.append(write.write_id)
        yield

    async def one_by_one_later(self, view: dict[str, Any], write: Write) -> AsyncIterator[None]:
        self.ran.append(write.write_id)
        yield


def bodies_that_do_not_run(ran: list[str]) -> dict[str, Any]:
    later = Later(ran)

    async def apay(view: dict[str, Any], write: Write) -> None:
        await later(view, write)

    return {
        "lambda": lambda view, write: apay(dict(view), write),
        "object": later,
        "generator": later.one_by_one,
        "async generator": later.one_by_one_later,
    }


@pytest.mark.parametrize("kind", bodies_that_do_not_run([]))
def test_a_body_that_returns_what_is_yet_to_run_has_written_nothing(flow: Flow, kind: str) -> None:
    (thread, pointer), ran = approved_pointer(flow), list[str]()
    pay = guarded_writer(flow.writer)(bodies_that_do_not_run(ran)[kind])
    with pytest.raises(Invalid, match="yet to run"):
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    # The write was allowed, and is neither confirmed nor in progress.
    stands = flow.host.thread(thread)
    assert (ran, stands.status, stands.version) == ([], "open", 1)
    with pytest.raises(Denied, match="already_used"):
        one_node(pay).invoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", ["coroutine", "task"])
async def test_a_body_that_was_awaited_and_returns_what_is_yet_to_run_has_written_nothing(
    flow: Flow, kind: str
) -> None:
    (thread, pointer), ran = approved_pointer(flow), list[str]()
    async with flow.gateway.async_client(flow.tokens["writer"]) as writer:

        @guarded_writer(writer)
        async def pay(view: dict[str, Any], write: Write) -> Any:
            later = Later(ran)(view, write)
            return later if kind == "coroutine" else asyncio.create_task(later)

        with pytest.raises(Invalid, match="yet to run"):
            await one_node(pay).ainvoke({"countersign": pointer}, {"configurable": {"thread_id": thread}})
    stands = flow.host.thread(thread)
    assert (ran, stands.status, stands.version) == ([], "open", 1)


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
