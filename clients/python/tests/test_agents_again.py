"""One approval and a repeated tool run, and agent output by a tool that is none."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from conftest import Flow
from countersign.langchain import ToolGate, _asking, _middleware
from countersign.langchain._once import Once
from test_agents import MODES, POLICY, Desk, Mode, Run, Scripted, approve_of, call, told, waiting


@pytest.fixture(scope="module")
def desk(flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("again")
    (folder / "policy.toml").write_text(POLICY.replace('flow = "agents"', 'flow = "again"'))
    flow.gateway.activate(folder / "policy.toml")
    host = flow.gateway.client(flow.gateway.add_token("host", flow="again"))
    agent = flow.gateway.client(flow.gateway.add_token("agent", flow="again", nodes=["planner"]))
    return Desk(flow, host, agent, "again")


@pytest.fixture
def failing(desk: Desk) -> list[Any]:
    """Returns a tool that fails, interrupts or succeeds, run by run."""
    desk.ran.clear()
    return []


def run_of(desk: Desk, mode: Mode, todo: list[Any], *turns: Any, before: Any = (), **how: Any) -> Run:
    @tool
    def refund(amount: int) -> str:
        """Refunds, if it does not fail."""
        desk.ran.append(("refund", amount))
        step = todo.pop(0) if todo else "succeed"
        if step == "fail":
            raise ConnectionError("the bank did not answer")
        return f"refunded {amount}" if step == "succeed" else f"asked: {interrupt('which account?')}"

    gate = ToolGate(desk.agent, node="planner", interrupt_mode=mode)
    saver = how.pop("saver", None) or InMemorySaver()
    agent: Any = create_agent(
        Scripted(turns=list(turns)), [refund], middleware=[*before, gate], checkpointer=saver, **how
    )
    return Run(desk, agent, desk.host.create_thread(desk.name, {"note": ""}))


def retrying() -> ToolRetryMiddleware:
    return ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_retry_does_not_run_a_tool_again_by_the_same_approval(desk: Desk, failing: list[Any], mode: Mode) -> None:
    """The bank may have paid, and only its answer been lost."""
    failing.append("fail")
    run = run_of(desk, mode, failing, [call("refund", amount=500)], before=[retrying()])
    run.begin()
    run.approve()
    ((status, said),) = told(run.resume(approve_of(mode)))
    assert (desk.ran, status) == ([("refund", 500)], "error")
    assert "does not run again" in said


@pytest.mark.parametrize("mode", MODES)
def test_nor_does_it_run_what_the_policy_let_through_once(desk: Desk, failing: list[Any], mode: Mode) -> None:
    failing.append("fail")
    run = run_of(desk, mode, failing, [call("refund", amount=5)], [call("refund", amount=5)], before=[retrying()])
    # The model calls it again, which is another call.
    assert [it for it, _ in told(run.begin())] == ["error", "success"]
    assert desk.ran == [("refund", 5), ("refund", 5)]
    assert desk.host.thread(run.made.thread).version == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_is_asked_about_again_is_one_step_however_far_others_went_on(
    desk: Desk, failing: list[Any], mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = InMemorySaver()
    run = run_of(desk, mode, failing, [call("refund", amount=5)], saver=saver)
    others = {"name": "look_up", "arguments": {"user": "jo"}}
    desk.agent.propose(run.made.thread, node="planner", parent=run.made.transition, patch={}, tool=others)
    found = run.begin()
    assert (told(found), found["countersign"]["version"]) == ([("success", "refunded 5")], 2)
    # Resumes from the checkpoint before the proposal, as another process would after a crash. No search version by
    # version is needed. Only this process knows that the tool ran.
    monkeypatch.setattr(_asking, "REBASED_MAX", 1)
    monkeypatch.setattr(_middleware, "RAN", Once())
    asks = "ToolGate.after_model" if mode == "batched" else "tools"
    *_, before = (it for it in run.agent.get_state_history(run.config) if it.next == (asks,))
    again = run.agent.invoke(None, before.config)
    assert (told(again), again["countersign"]["version"]) == ([("success", "refunded 5")], 2)
    assert desk.host.thread(run.made.thread).version == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_call_of_a_later_turn_is_another_step_though_its_id_is_the_same(
    desk: Desk, failing: list[Any], mode: Mode
) -> None:
    same = call("refund", amount=5)
    run = run_of(desk, mode, failing, [same], [same])
    assert told(run.begin()) == [("success", "refunded 5")] * 2
    assert (desk.host.thread(run.made.thread).version, len(desk.ran)) == (2, 2)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("mode", MODES)
async def test_the_same_awaited(desk: Desk, failing: list[Any], mode: Mode) -> None:
    from countersign.langgraph import head

    failing.append("fail")
    run = run_of(desk, mode, failing, [call("refund", amount=500)], before=[retrying()])
    await run.agent.ainvoke({"messages": [("user", "go")], "countersign": head(run.made)}, run.config)
    run.approve()
    ((status, _),) = told(await run.agent.ainvoke(Command(resume=approve_of(mode)), run.config))
    assert (desk.ran, status) == ([("refund", 500)], "error")


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_failed_and_is_resumed_does_not_run_the_tool_again(
    desk: Desk, failing: list[Any], mode: Mode
) -> None:
    failing.append("fail")
    run = run_of(desk, mode, failing, [call("refund", amount=500)])
    run.begin()
    run.approve()
    with pytest.raises(ConnectionError):
        run.resume(approve_of(mode))
    # With a new agent, as a server creates for each request.
    again = run_of(desk, mode, failing, [call("refund", amount=500)], saver=run.agent.checkpointer).agent
    ((status, _),) = told(again.invoke(None, run.config))
    assert (desk.ran, status) == ([("refund", 500)], "error")


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_stops_to_ask_goes_on_by_its_approval(desk: Desk, failing: list[Any], mode: Mode) -> None:
    failing.extend(["ask", "ask"])
    run = run_of(desk, mode, failing, [call("refund", amount=500)], before=[retrying()])
    run.begin()
    run.approve()
    assert waiting(run.resume(approve_of(mode))) == ["which account?"]
    assert told(run.resume("42")) == [("success", "asked: 42")]


def test_only_so_many_runs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.langchain._once.KEPT_MAX", 2)
    once = Once()
    for name, first in (("a", True), ("b", True), ("a", False), ("c", True), ("b", False), ("a", True)):
        with once.run(f"made {name}", f"approved {name}") as found:
            assert found == first, name


def test_an_approval_is_used_up_by_whichever_call_ran_by_it() -> None:
    """The original call, an edited one, or the edited one in a checkpoint."""
    once = Once()
    for made, approval, first in (("a", "x", True), ("b", "x", False), ("a", "y", False), ("b", "y", True)):
        with once.run(made, approval) as found:
            assert found == first


class Outcome(BaseModel):
    """The agent's structured output."""

    refunded: int


def answers(refunded: Any) -> dict[str, Any]:
    return call("Outcome", refunded=refunded)


@pytest.mark.parametrize("mode", MODES)
def test_what_an_agent_answers_by_a_tool_strategy_is_not_asked_about(
    desk: Desk, failing: list[Any], mode: Mode
) -> None:
    turns = [[call("refund", amount=5)], [answers("not a number")], [answers(5)]]
    found = run_of(desk, mode, failing, *turns, response_format=ToolStrategy(Outcome)).begin()
    assert (found["structured_response"], desk.ran) == (Outcome(refunded=5), [("refund", 5)])
    # Each call has one answer, and none of them is the policy's.
    assert len(told(found)) == 3
    assert not [said for _, said in told(found) if "tool_not_allowed" in said]


@pytest.mark.parametrize("mode", MODES)
def test_a_call_beside_such_an_answer_is_asked_about_all_the_same(desk: Desk, failing: list[Any], mode: Mode) -> None:
    turn = [answers(500), call("refund", amount=500)]
    run = run_of(desk, mode, failing, turn, response_format=ToolStrategy(Outcome))
    (value,) = waiting(run.begin())
    shown = value["action_requests"] if mode == "batched" else [value]
    assert ([it["name"] for it in shown], desk.ran) == (["refund"], [])
    run.approve()
    found = run.resume(approve_of(mode))
    assert (desk.ran, len(told(found))) == ([("refund", 500)], 2)
