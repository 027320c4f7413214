"""An agent of the OpenAI Agents SDK.

The state of a paused run is stored in the folder. A run that waited has stored only its prompt, so a new process starts
it again. It finds its request if the model repeats the call with the same id, as the scripted model does.
"""

import asyncio
import json
from typing import Any

from agentapprovalprotocol.openai_agents import Approvals
from agents import Agent, Model, ModelResponse, Runner, RunState, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from stories import FOLDER, TOOLS, Calling, async_gate, decorated, prompted, serve


class ScriptedModel(Model):
    async def get_response(self, *rest: Any, **options: Any) -> ModelResponse:
        return ModelResponse(output=reply(options["input"]), usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **options: Any) -> Any:
        raise NotImplementedError


def reply(items: Any) -> list[Any]:
    items = [{"content": items}] if isinstance(items, str) else items
    results = [it["output"] for it in items if it.get("type") == "function_call_output"]
    if results:
        return [message("\n".join(results))]
    return [message("The order is late."), *(function_call(it) for it in prompted(items[0]["content"]))]


def function_call(call: Calling) -> ResponseFunctionToolCall:
    arguments = json.dumps(call.arguments)
    return ResponseFunctionToolCall(name=call.tool, arguments=arguments, call_id=call.id, type="function_call")


def message(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return ResponseOutputMessage(id="m-1", role="assistant", type="message", status="completed", content=content)


def save(run: str, state: str) -> None:
    (FOLDER / f"{run}.state").write_text(state)


def load(run: str) -> str:
    return (FOLDER / f"{run}.state").read_text()


class OpenAIAgents:
    name = "openai-agents"

    def __init__(self) -> None:
        modes = ("sync", "async")
        self.approvals = {it: Approvals(gate=async_gate(it), save=save, load=load) for it in modes}
        self.agents = {it: self.approvals[it].protect(self.agent(TOOLS)) for it in modes}
        self.decorated = self.agent(decorated())

    @staticmethod
    def agent(tools: list[Any]) -> Any:
        tools = [function_tool(it, strict_mode=False) for it in tools]
        return Agent(name="Orders", model=ScriptedModel(), tools=tools)

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        (FOLDER / f"{run}.prompt").write_text(prompt)
        if mode == "decorated":
            return (await Runner.run(self.decorated, prompt)).final_output
        result = await self.approvals[mode].run(self.agents[mode], prompt, run_id=run)
        return None if result.interruptions else result.final_output

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.start(run, mode, (FOLDER / f"{run}.prompt").read_text())

    async def outcome(self, run: str) -> str | None:
        state = await RunState.from_string(self.agents["async"], load(run))
        if state.get_interruptions():
            return None
        items = json.loads(load(run))["generated_items"]
        return items[-1]["raw_item"]["content"][0]["text"]

    def resumer(self) -> Any:
        return self.approvals["async"].resumer(self.agents["async"])


set_tracing_disabled(True)
asyncio.run(serve(OpenAIAgents()))
