"""The middleware: it stops the agent for held calls, and resumes it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, Any, Literal, TypeVar

import anyio.to_thread
from langchain.agents.middleware import AgentMiddleware, AgentState, ToolCallRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, interrupt
from pydantic import PlainValidator, ValidationError, WithJsonSchema
from typing_extensions import NotRequired

from countersign import AsyncClient, Client
from countersign._names import Invalid
from countersign._plans import Plan
from countersign.langgraph import Pointer, latest, of_run
from countersign.langgraph._pointer import CHANNEL, ThreadOf, pointer_of

from ._answers import EVERY, Answer, Change, DecisionType, ResumeShape, Stop, each_answer, read_answer
from ._asking import Runs, Told, ToolCall, Waiting, let_through, settled, still
from ._once import Once

T = TypeVar("T")
EDITS = "countersign_edits"
Result = ToolMessage | Command[Any]
# One for the process, because an application can create an agent for each request.
RAN = Once()
# A response to another review. The run stops again.
OTHER = "sha256:"
# LangGraph before 1.2 has no schemas.
SENDS_SCHEMA = "response_schema" in inspect.signature(interrupt).parameters
NOTICE = "Note: a person changed this call before it ran. Do not repeat your own. It ran with "


class GateState(AgentState[Any]):
    """An agent's state, with the pointer to its version in the thread."""

    countersign: NotRequired[Annotated[Pointer, latest]]
    countersign_edits: NotRequired[Annotated[dict[str, dict[str, Any]], PrivateStateAttr]]


class ToolGate(AgentMiddleware[Any, Any, Any]):
    """Runs a tool call only if the policy allows it, or reviewers approved it.

    Each call of `tools` (of every tool, unless they are named) is proposed as the policy's `node`, under the tool's own
    name. A committed call runs. A held call stops the agent, with one interrupt for all calls of a turn (`batched`), or
    with one for each as it would run (`per_call`). The interrupt has the form of LangChain's `HITLRequest` or
    `ToolApprovalRequest`, and the digest of the review. A response of `approve`, or the decision itself, makes the gate
    ask the gateway. `edit` proposes the other arguments. `reject` and `respond` cancel the proposal. A rejected call
    ends the run or is reported to the model, as the policy's `on_violation` says. Right before a call runs, the gateway
    is asked again. If the approval was revoked or has expired, the model is informed. If the flow is halted, `Halted`
    is raised.

    One approval runs a call once in a process, failed or not. A retrying middleware that is listed before this one
    receives that as the tool's result. One that is listed after it runs the tool without this one.
    """

    state_schema = GateState

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        node: str,
        tools: Collection[str] | None = None,
        interrupt_mode: Literal["batched", "per_call"] = "batched",
        allowed_decisions: Collection[DecisionType] = EVERY,
        thread: ThreadOf = of_run,
    ) -> None:
        super().__init__()
        if interrupt_mode not in ("batched", "per_call") or not set(allowed_decisions) <= set(EVERY):
            raise Invalid("ToolGate", "interrupt_mode is batched or per_call, and decisions are those of LangChain")
        self._client, self._node, self._thread = client, node, thread
        self._tools = None if tools is None else frozenset(tools)
        self._batched = interrupt_mode == "batched"
        self._allowed = tuple(it for it in EVERY if it in allowed_decisions)

    # ── LangChain's hooks ─────────────────────────────────────────────────────────────────────────────────────

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Proposes the calls of a turn before any of them runs."""
        calls = self._calls_of(state) if self._batched else []
        return self._run(self._batch(state, calls)) if calls else None

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """The awaited variant."""
        calls = self._calls_of(state) if self._batched else []
        return await self._arun(self._batch(state, calls)) if calls else None

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Proposes a call before it runs. If it was proposed before, the same outcome is returned."""
        if not self._is_gated(request.tool_call):
            return handler(request)
        made = self._made(request)
        found = _ran(request) if RAN.has(made) else self._run(self._single(request))
        if isinstance(found, Told):
            return _message(found)
        with RAN.run(made, found.transition) as first:
            return _after(found, handler(_with_args(request, found))) if first else _message(_ran(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The awaited variant."""
        if not self._is_gated(request.tool_call):
            return await handler(request)
        made = self._made(request)
        found = _ran(request) if RAN.has(made) else await self._arun(self._single(request))
        if isinstance(found, Told):
            return _message(found)
        with RAN.run(made, found.transition) as first:
            return _after(found, await handler(_with_args(request, found))) if first else _message(_ran(request))

    # ── proposals ────────────────────────────────────────────────────────────────────────────────────────────

    def _batch(self, state: Any, calls: list[ToolCall]) -> Plan[dict[str, Any]]:
        """Handles one call after the other, because a thread has one pending review at a time. Responses to all
        calls are kept for their turn."""
        thread, pointer = self._thread(state), pointer_of(state, CHANNEL)
        answers: dict[str, object] = {}
        told: list[ToolMessage] = []
        edits: dict[str, dict[str, Any]] = {}
        for index, made in enumerate(calls):
            said = self._said_before(made, answers)
            found: Runs | Told
            if isinstance(said, Stop):
                found = Told(made, said.said, said.status)
            else:
                ask = self._asks_with_all(calls[index:], answers)
                found = yield from let_through(self._core, thread, self._node, pointer, _changed(made, said), ask)
            if isinstance(found, Told):
                told.append(_message(found))
            elif found.call.edited:
                edits[made.id] = found.call.args
        # The pointer stays at the start of the turn, so that each call finds its proposal from there.
        return {"messages": told, EDITS: edits}

    def _single(self, request: ToolCallRequest) -> Plan[Runs | Told]:
        state = request.state
        _turn_of(state)
        call = ToolCall.of(request.tool_call)
        # The message decides which call the gateway is asked about.
        edited = (state.get(EDITS) or {}).get(call.id)
        if edited is not None:
            call = dataclasses.replace(call, args=dict(edited), edited=True)
        pointer = pointer_of(state, CHANNEL)
        plan = settled if self._batched else let_through
        found = yield from plan(self._core, self._thread(state), self._node, pointer, call, self._asks_alone)
        return (yield from still(self._core, found)) if isinstance(found, Runs) else found

    def _made(self, request: ToolCallRequest) -> str:
        """Returns the identity of a call: its thread, its version and its own identity."""
        state, call = request.state, ToolCall.of(request.tool_call)
        return call.made(self._thread(state), pointer_of(state, CHANNEL)["transition"])

    def _asks_with_all(self, calls: list[ToolCall], answers: dict[str, object]) -> Callable[[Waiting], Answer | None]:
        """Maps each response to the call at its position. A response that lets one call wait does not use up
        another's."""

        def ask(waiting: Waiting) -> Answer | None:
            call = waiting.call
            if call.id not in answers:
                remaining = [call, *calls[1:]]
                shape = self._shape(remaining)
                said = _interrupt(self._request(remaining, waiting), shape)
                answers.update(zip([it.id for it in remaining], each_answer(said, shape), strict=False))
            return read_answer(answers.pop(call.id), call.name, waiting.transition, self._shape(calls))

        return ask

    def _said_before(self, call: ToolCall, answers: dict[str, object]) -> Change | Stop | None:
        """Returns the earlier response to a call, which can stop or change it before its turn."""
        if call.id not in answers:
            return None
        said = read_answer(answers[call.id], call.name, None, self._shape([call]))
        if not isinstance(said, Change | Stop):
            return None
        del answers[call.id]
        return said

    def _asks_alone(self, waiting: Waiting) -> Answer | None:
        call = waiting.call
        value = {
            "type": "tool_approval",
            "tool_call_id": call.id,
            "name": call.name,
            "args": call.args,
            "description": _described(call),
            **_asked_about(waiting),
        }
        shape = ResumeShape((call.name,), self._allowed, batched=False)
        return read_answer(_interrupt(value, shape), call.name, waiting.transition, shape)

    def _shape(self, calls: list[ToolCall]) -> ResumeShape:
        return ResumeShape(tuple(it.name for it in calls), self._allowed, batched=True)

    def _request(self, calls: list[ToolCall], waiting: Waiting) -> dict[str, Any]:
        return {
            "action_requests": [{"name": it.name, "args": it.args, "description": _described(it)} for it in calls],
            "review_configs": [{"action_name": it.name, "allowed_decisions": list(self._allowed)} for it in calls],
            **_asked_about(waiting),
        }

    def _calls_of(self, state: Any) -> list[ToolCall]:
        answered = _answered(state)
        return [ToolCall.of(it) for it in _turn_of(state) if it["id"] not in answered and self._is_gated(it)]

    def _is_gated(self, call: Any) -> bool:
        return self._tools is None or call["name"] in self._tools

    # ── drivers ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _core(self) -> Any:
        return self._client._settings.core

    def _run(self, plan: Plan[T]) -> T:
        if isinstance(self._client, AsyncClient):
            raise Invalid("client", "use ainvoke and astream with an AsyncClient")
        return self._client._run(plan)

    async def _arun(self, plan: Plan[T]) -> T:
        if isinstance(self._client, AsyncClient):
            return await self._client._run(plan)
        return await anyio.to_thread.run_sync(self._client._run, plan)


def _interrupt(value: dict[str, Any], shape: ResumeShape) -> Any:
    """Stops the run until it is resumed, and returns the response. LangGraph checks the response before it saves it, so
    after one of the wrong shape the run can be resumed again."""
    if not SENDS_SCHEMA:
        said = interrupt(value)
        try:
            return shape.check(said)
        except Invalid:
            # It is saved already, so the run stops again.
            return OTHER
    checked: Any = Annotated[Any, PlainValidator(shape.check), WithJsonSchema(shape.schema())]
    try:
        return interrupt(value, response_schema=checked)
    except ValidationError as error:
        raise error.errors()[0]["ctx"]["error"] from None


def _turn_of(state: Any) -> list[Any]:
    """Returns the calls of the model's last turn. Two calls with one id are refused, because the approval of one
    would be found by the other."""
    last = next((it for it in reversed(state["messages"]) if isinstance(it, AIMessage)), None)
    calls: list[Any] = list(last.tool_calls) if last else []
    if len({it["id"] for it in calls}) != len(calls):
        raise Invalid("tool_call", "two calls of a turn have the same id")
    return calls


def _changed(call: ToolCall, said: Change | None) -> ToolCall:
    return call if said is None or said.args == call.args else dataclasses.replace(call, args=said.args, edited=True)


def _answered(state: Any) -> set[str]:
    """Returns the ids of calls that already have a result and will not run, such as the output of a `ToolStrategy`."""
    messages = state["messages"]
    last = max((index for index, it in enumerate(messages) if isinstance(it, AIMessage)), default=len(messages))
    return {it.tool_call_id for it in messages[last + 1 :] if isinstance(it, ToolMessage)}


def _asked_about(waiting: Waiting) -> dict[str, Any]:
    return {"kind": "state_transition_review", "transition_digest": waiting.transition, "review": waiting.review}


def _described(call: ToolCall) -> str:
    return f"The call of `{call.name}` requires approval. Decide it at the gateway. A response here cannot allow it."


def _message(told: Told) -> ToolMessage:
    return ToolMessage(content=told.said, name=told.call.name, tool_call_id=told.call.id, status=told.status)


def _ran(request: ToolCallRequest) -> Told:
    """Returns the message for a second run by one approval: of a retry, a resumed run, or an old checkpoint."""
    call = ToolCall.of(request.tool_call)
    said = f"`{call.name}` already ran by this approval, and does not run again. To try again, make another call."
    return Told(call, said, "error")


def _with_args(request: ToolCallRequest, found: Runs) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": found.call.args})


def _after(found: Runs, result: Result) -> Result:
    """Returns the tool's result, with the new pointer and a note about an edit."""
    if isinstance(result, Command):
        update = result.update
        if not isinstance(update, dict):
            raise Invalid("tool", "a tool that returns a Command updates by the names of channels")
        return dataclasses.replace(result, update={**update, CHANNEL: found.pointer})
    if found.call.edited:
        notice = f"{NOTICE}{json.dumps(found.call.args)}.\n\n"
        result = result.model_copy(update={"content": notice + str(result.content)})
    return Command(update={"messages": [result], CHANNEL: found.pointer})
