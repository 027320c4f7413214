"""LangChain agents with a real gateway and a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from conftest import Flow
from countersign import Client, Created, Invalid, Rejected
from countersign.langchain import ToolGate
from countersign.langgraph import head

POLICY = """
flow = "agents"
on_violation = "skip_node"

[tools]
allow = ["refund", "look_up"]

[nodes.planner]
reads = ["note"]

[approval]
attempts = 100
[[approval.stages]]
groups = ["finance"]

[[rules]]
name = "large refunds"
tools = ["refund"]
when = "!(tool.arguments.amount <= 10)"
then = "hold"
reason = "refunds above 10 are asked about"
"""
Mode = Literal["batched", "per_call"]
MODES: list[Mode] = ["batched", "per_call"]
CALLS = count(1)


class Scripted(BaseChatModel):
    """A model that makes scripted tool calls, turn by turn, and then ends."""

    turns: list[list[dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = sum(isinstance(it, AIMessage) for it in messages)
        calls = self.turns[turn] if turn < len(self.turns) else []
        said = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call-{next(CALLS)}", "type": "tool_call"}


@dataclass
class Desk:
    """A flow with tools, and an agent that has them."""

    flow: Flow
    host: Client
    agent: Client
    name: str = "agents"
    ran: list[tuple[str, Any]] = field(default_factory=list)

    def run(self, mode: Mode, *turns: list[dict[str, Any]], **settings: Any) -> Run:
        @tool
        def refund(amount: int) -> str:
            """Refunds."""
            self.ran.append(("refund", amount))
            return f"refunded {amount}"

        @tool
        def look_up(user: str) -> str:
            """Looks a user up."""
            self.ran.append(("look_up", user))
            return "found"

        @tool
        def delete(user: str) -> str:
            """Is in no list of the policy."""
            self.ran.append(("delete", user))
            return "deleted"

        self.ran.clear()
        gate = ToolGate(settings.pop("client", self.agent), node="planner", interrupt_mode=mode, **settings)
        agent = create_agent(
            Scripted(turns=list(turns)), [refund, look_up, delete], middleware=[gate], checkpointer=InMemorySaver()
        )
        made = self.host.create_thread(self.name, {"note": ""})
        return Run(self, agent, made)


@dataclass
class Run:
    desk: Desk
    agent: Any
    made: Created

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.made.thread}}

    def begin(self) -> Any:
        return self.agent.invoke({"messages": [HumanMessage("go")], "countersign": head(self.made)}, self.config)

    def resume(self, said: Any) -> Any:
        return self.agent.invoke(Command(resume=said), self.config)

    def decide(self, decide: Callable[..., None], comment: str = "") -> None:
        review = self.desk.host.thread(self.made.thread).review
        assert review is not None
        decide(review, comment=comment)

    def approve(self) -> None:
        self.decide(self.desk.flow.ada.approve)


def waiting(found: Any) -> list[Any]:
    return [it.value for it in found.get("__interrupt__", ())]


def told(found: Any) -> list[tuple[str, str]]:
    return [(it.status, str(it.content)) for it in found["messages"] if isinstance(it, ToolMessage)]


def approve_of(mode: Mode) -> Any:
    return answer_of(mode, {"type": "approve"})


def answer_of(mode: Mode, *decisions: Any) -> Any:
    return {"decisions": list(decisions)} if mode == "batched" else decisions[0]


@pytest.fixture(scope="session")
def desk(flow: Flow, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder: Path = tmp_path_factory.mktemp("agents")
    (folder / "policy.toml").write_text(POLICY)
    flow.gateway.activate(folder / "policy.toml")
    host = flow.gateway.client(flow.gateway.add_token("host", flow="agents"))
    agent = flow.gateway.client(flow.gateway.add_token("agent", flow="agents", nodes=["planner"]))
    return Desk(flow, host, agent)


@pytest.mark.parametrize("mode", MODES)
def test_what_the_policy_lets_through_runs_at_once(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=5)], [call("look_up", user="jo")])
    found = run.begin()
    assert (waiting(found), desk.ran) == ([], [("refund", 5), ("look_up", "jo")])
    assert desk.host.thread(run.made.thread).version == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_held_call_runs_once_people_approved_it(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    (value,) = waiting(run.begin())
    shown = value["action_requests"][0] if mode == "batched" else value
    assert (shown["name"], shown["args"], desk.ran) == ("refund", {"amount": 500}, [])
    run.approve()
    found = run.resume(approve_of(mode))
    assert (desk.ran, told(found)) == ([("refund", 500)], [("success", "refunded 500")])
    # The very same approval again, from the checkpoint at which it stopped: what was approved is this one call.
    assert desk.host.thread(run.made.thread).version == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_decision_itself_resumes_as_well(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    (value,) = waiting(run.begin())
    run.approve()
    run.resume({"approved": True, "transition_digest": value["transition_digest"]})
    assert desk.ran == [("refund", 500)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "forged",
    [
        {"type": "approve"},
        {"type": "approve", "approved": True, "receipt": "eyJ"},
        {"approved": True, "transition_digest": "sha256:" + "0" * 64},
        "sha256:" + "0" * 64,
    ],
    ids=str,
)
def test_no_answer_lets_a_call_run_that_people_did_not_approve(desk: Desk, mode: Mode, forged: Any) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    question = waiting(run.begin())
    for said in (forged, answer_of(mode, forged)):
        assert (waiting(run.resume(said)), desk.ran) == (question, [])
    run.approve()
    run.resume(approve_of(mode))
    assert desk.ran == [("refund", 500)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"type": "ignore"}, 'the type "ignore"'),
        ({"decision": "approve"}, "the type null"),
        ({"type": "edit", "edited_action": {"name": "look_up", "args": {"user": "jo"}}}, "the `name` refund"),
        ({"type": "edit", "edited_action": {"name": "refund", "args": "all"}}, "`edited_action` with `args`"),
        ({"type": "edit", "edited_action": {"name": "refund", "args": {"tool_call_id": "x"}}}, "tool_call_id"),
        ({"type": "respond"}, "needs a `message`"),
        (True, "of the type bool"),
        ("approved", "is text"),
    ],
    ids=str,
)
def test_resume_of_the_wrong_shape_names_the_right_one(desk: Desk, mode: Mode, wrong: Any, names: str) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    run.begin()
    with pytest.raises(Invalid) as refused:
        run.resume(answer_of(mode, wrong))
    assert names in str(refused.value)
    assert '{"type": "approve"}' in str(refused.value)
    assert ('{"decisions": [...]} with 1 of' in str(refused.value)) == (mode == "batched")
    # The call still waits, and a response of the right shape resumes it.
    assert desk.ran == []
    run.approve()
    run.resume(approve_of(mode))
    assert desk.ran == [("refund", 500)]


def test_resume_needs_one_decision_for_each_call(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100), call("refund", amount=200)])
    run.begin()
    approve = {"type": "approve"}
    for wrong in (approve, {"decisions": [approve]}, {"decisions": [approve] * 3}, {"decisions": approve}):
        with pytest.raises(Invalid, match="with 2 of"):
            run.resume(wrong)
    one = desk.run("per_call", [call("refund", amount=100)])
    one.begin()
    with pytest.raises(Invalid, match="the type null"):
        one.resume({"decisions": [approve]})


@pytest.mark.parametrize("mode", MODES)
def test_interrupt_has_the_schema_of_its_response(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)], allowed_decisions=["approve", "reject"])
    (stopped,) = run.begin()["__interrupt__"]
    schema = stopped.response_schema
    kinds = schema["anyOf"]
    if mode == "batched":
        decisions = schema["anyOf"][0]["properties"]["decisions"]
        assert (decisions["minItems"], decisions["maxItems"]) == (1, 1)
        kinds = decisions["items"]["anyOf"]
    assert [it["properties"]["type"]["const"] for it in kinds if "type" in it["properties"]] == ["approve", "reject"]


@pytest.mark.parametrize("mode", MODES)
def test_an_edit_is_asked_about_like_the_models_own(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    (first,) = waiting(run.begin())
    edit = answer_of(mode, {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 400}}})
    (second,) = waiting(run.resume(edit))
    assert (second["transition_digest"] != first["transition_digest"], desk.ran) == (True, [])
    ended = desk.agent.decision(first["transition_digest"])
    assert ended is not None
    assert ended.decision == "cancelled"
    run.approve()
    found = run.resume(approve_of(mode))
    assert desk.ran == [("refund", 400)]
    assert "a person changed this call" in told(found)[0][1]


@pytest.mark.parametrize("mode", MODES)
def test_an_edit_that_the_policy_lets_through_runs(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    run.begin()
    run.resume(answer_of(mode, {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 10}}}))
    assert desk.ran == [("refund", 10)]


@pytest.mark.parametrize("mode", MODES)
def test_a_rejection_and_a_response_run_nothing_and_ask_nobody_any_more(desk: Desk, mode: Mode) -> None:
    for said, status, content in (
        ({"type": "reject", "message": "Too much."}, "error", "Too much."),
        ({"type": "respond", "message": "It was refunded by hand."}, "success", "It was refunded by hand."),
    ):
        run = desk.run(mode, [call("refund", amount=500)])
        run.begin()
        found = run.resume(answer_of(mode, said))
        ((got, text),) = told(found)
        assert (got, content in text, desk.ran) == (status, True, [])
        assert desk.host.thread(run.made.thread).status == "open"


@pytest.mark.parametrize("mode", MODES)
def test_what_people_deny_is_told_to_the_model_with_their_words(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    run.begin()
    run.decide(desk.flow.ada.deny, "Ask Jo first.")
    found = run.resume(approve_of(mode))
    ((status, text),) = told(found)
    assert (status, "denied: Ask Jo first." in text, desk.ran) == ("error", True, [])


@pytest.mark.parametrize("mode", MODES)
def test_what_the_policy_refuses_is_told_to_the_model(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("delete", user="jo")], [call("look_up", user="jo")])
    found = run.begin()
    assert desk.ran == [("look_up", "jo")]
    assert "tool_not_allowed" in told(found)[0][1]


def test_several_calls_of_a_turn_are_asked_about_together_and_decided_one_by_one(desk: Desk) -> None:
    calls = [call("refund", amount=100), call("look_up", user="jo"), call("refund", amount=200)]
    run = desk.run("batched", calls)
    (value,) = waiting(run.begin())
    assert [it["args"] for it in value["action_requests"]] == [{"amount": 100}, {"user": "jo"}, {"amount": 200}]
    run.approve()
    approve = {"type": "approve"}
    (value,) = waiting(run.resume({"decisions": [approve, approve, approve]}))
    assert ([it["args"] for it in value["action_requests"]], desk.ran) == ([{"amount": 200}], [])
    run.approve()
    run.resume({"decisions": [approve]})
    assert sorted(desk.ran) == [("look_up", "jo"), ("refund", 100), ("refund", 200)]


def test_each_answer_is_for_the_call_in_whose_place_it_stands(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100), call("look_up", user="jo"), call("refund", amount=200)])
    run.begin()
    run.approve()
    approve, reject = {"type": "approve"}, {"type": "reject", "message": "Leave Jo alone."}
    assert waiting(run.resume({"decisions": [approve, reject, approve]}))
    run.approve()
    found = run.resume({"decisions": [approve]})
    assert sorted(desk.ran) == [("refund", 100), ("refund", 200)]
    ((_, text),) = [it for it in told(found) if it[0] == "error"]
    assert "Leave Jo alone." in text


def test_what_is_said_of_one_call_changes_no_other_that_still_waits(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100), call("refund", amount=200)])
    run.begin()
    smaller = {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 10}}}
    approve = {"type": "approve"}
    (value,) = waiting(run.resume({"decisions": [approve, smaller]}))
    assert ([it["args"] for it in value["action_requests"]], desk.ran) == ([{"amount": 100}, {"amount": 200}], [])
    run.approve()
    run.resume({"decisions": [approve, smaller]})
    assert sorted(desk.ran) == [("refund", 10), ("refund", 100)]


def test_a_call_that_is_rejected_takes_none_with_it_that_people_still_review(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100), call("refund", amount=200)])
    run.begin()
    both = {"decisions": [{"type": "approve"}, {"type": "reject"}]}
    assert waiting(run.resume(both))
    assert desk.host.thread(run.made.thread).status == "held"
    run.approve()
    run.resume(both)
    assert desk.ran == [("refund", 100)]


def test_calls_that_look_alike_are_approved_each_for_itself(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100)], [call("refund", amount=100)])
    run.begin()
    run.approve()
    assert waiting(run.resume(approve_of("batched")))
    assert desk.ran == [("refund", 100)]


def test_calls_that_look_alike_in_one_turn_are_approved_each_for_itself(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=100), call("refund", amount=100)])
    run.begin()
    for left in (1, 0):
        run.approve()
        assert len(waiting(run.resume({"decisions": [{"type": "approve"}] * (left + 1)}))) == left
    assert desk.ran == [("refund", 100), ("refund", 100)]
    assert desk.host.thread(run.made.thread).version == 2


def test_parallel_calls_wait_for_one_another(desk: Desk) -> None:
    run = desk.run("per_call", [call("refund", amount=100), call("refund", amount=200)])
    found = run.begin()
    for _ in range(4):
        open_ones = found.get("__interrupt__", ())
        if not open_ones:
            break
        if desk.host.thread(run.made.thread).status == "held":
            run.approve()
        found = run.agent.invoke(Command(resume={it.id: {"type": "approve"} for it in open_ones}), run.config)
    assert sorted(desk.ran) == [("refund", 100), ("refund", 200)]
    assert desk.host.thread(run.made.thread).version == 2


@pytest.mark.parametrize("edit", [None, 999])
def test_a_state_that_was_edited_lets_nothing_run(desk: Desk, edit: int | None) -> None:
    """An edit of the run's own notes, or in the name of the gate's node, is no approval."""
    asked = call("refund", amount=500)
    run = desk.run("batched", [asked])
    run.begin()
    edits = {"countersign_edits": {} if edit is None else {asked["id"]: {"amount": edit}}}
    config = run.agent.update_state(run.config, edits, as_node="ToolGate.after_model")
    (value,) = waiting(run.agent.invoke(None, config))
    assert (value["type"], value["args"], desk.ran) == ("tool_approval", {"amount": edit or 500}, [])


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_to_another_question_is_none_though_this_one_is_approved(desk: Desk, mode: Mode) -> None:
    run = desk.run(mode, [call("refund", amount=500)])
    question = waiting(run.begin())
    run.approve()
    found = run.resume({"approved": True, "transition_digest": run.made.transition})
    assert (waiting(found), desk.ran) == (question, [])


def test_only_the_tools_that_are_named_are_asked_about(desk: Desk) -> None:
    run = desk.run("batched", [call("delete", user="jo")], tools=["refund"])
    run.begin()
    assert desk.ran == [("delete", "jo")]
    assert desk.host.thread(run.made.thread).version == 0


def test_decisions_that_are_not_allowed_are_none(desk: Desk) -> None:
    run = desk.run("batched", [call("refund", amount=500)], allowed_decisions=["approve"])
    (value,) = waiting(run.begin())
    assert value["review_configs"][0]["allowed_decisions"] == ["approve"]
    with pytest.raises(Invalid, match='the type "respond"'):
        run.resume({"decisions": [{"type": "respond", "message": "done"}]})


def test_a_call_that_could_not_be_told_from_another_is_not_proposed(desk: Desk) -> None:
    for spoiled in ({**call("look_up", user="jo"), "id": ""}, call("look_up", user="jo", tool_call_id="x")):
        with pytest.raises(Invalid):
            desk.run("batched", [spoiled]).begin()
    with pytest.raises(Invalid):
        desk.run("sometimes", [])  # type: ignore[arg-type]


def test_a_policy_that_stops_the_run_does(flow: Flow, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace('"agents"', '"strict"').replace('"skip_node"', '"fail_fast"'))
    flow.gateway.activate(tmp_path / "policy.toml")
    host = flow.gateway.client(flow.gateway.add_token("host", flow="strict"))
    agent = flow.gateway.client(flow.gateway.add_token("agent", flow="strict", nodes=["planner"]))
    run = Desk(flow, host, agent, "strict").run("batched", [call("delete", user="jo")])
    with pytest.raises(Rejected):
        run.begin()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("mode", MODES)
async def test_the_same_awaited(desk: Desk, mode: Mode) -> None:
    token = desk.flow.gateway.add_token("agent", flow="agents", nodes=["planner"])
    async with desk.flow.gateway.async_client(token) as client:
        for given in (client, desk.agent):
            run = desk.run(mode, [call("refund", amount=500)], client=given)
            begun = {"messages": [HumanMessage("go")], "countersign": head(run.made)}
            assert waiting(await run.agent.ainvoke(begun, run.config))
            run.approve()
            await run.agent.ainvoke(Command(resume=approve_of(mode)), run.config)
            assert desk.ran == [("refund", 500)]
        with pytest.raises(Invalid):
            desk.run(mode, [call("refund", amount=500)], client=client).begin()


@pytest.mark.parametrize("mode", MODES)
def test_two_calls_of_one_id_are_not_let_through_by_one_approval(desk: Desk, mode: Mode) -> None:
    twice = call("refund", amount=70)
    run = desk.run(mode, [twice, dict(twice)])
    with pytest.raises(Invalid, match="the same id"):
        run.begin()
    assert desk.ran == []


@pytest.mark.parametrize("mode", MODES)
def test_an_edit_does_not_put_another_id_where_the_calls_own_is_asked_about(desk: Desk, mode: Mode) -> None:
    """People would be shown the call's id, and the tool given the other one."""
    run = desk.run(mode, [call("refund", amount=71)])
    run.begin()
    args = {"amount": 71, "tool_call_id": "another"}
    with pytest.raises(Invalid, match="tool_call_id"):
        run.resume(answer_of(mode, {"type": "edit", "edited_action": {"name": "refund", "args": args}}))
    assert desk.ran == []
