"""A Pydantic AI agent.

A paused conversation is stored in the folder. A run that waited has stored only its prompt, so a new process starts it
again. It finds its request if the model repeats the call with the same id, as the scripted model does.
"""

import asyncio
from typing import Any

from agentapprovalprotocol.pydantic_ai import ApprovalCapability, resumer
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from stories import FOLDER, MODES, TOOLS, async_gate, decorated, prompted, serve


def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    parts = messages[-1].parts
    results = [it.model_response_str() for it in parts if isinstance(it, ToolReturnPart)]
    if results:
        return ModelResponse(parts=[TextPart("\n".join(results))])
    calls = prompted(str(parts[-1].content))
    calls = [ToolCallPart(it.tool, it.arguments, tool_call_id=it.id) for it in calls]
    return ModelResponse(parts=[TextPart("The order is late."), *calls])


def save(conversation: Conversation) -> None:
    stored = ConversationTypeAdapter.dump_json(conversation)
    (FOLDER / f"{conversation.conversation_id}.conversation").write_bytes(stored)


def load(run: str) -> Conversation:
    return ConversationTypeAdapter.validate_json((FOLDER / f"{run}.conversation").read_bytes())


class PydanticAI:
    name = "pydantic-ai"

    def __init__(self) -> None:
        self.agents = {it: self.agent(it) for it in MODES}

    @staticmethod
    def agent(mode: str) -> Any:
        if mode == "decorated":
            return Agent(FunctionModel(reply), tools=decorated())
        approvals = ApprovalCapability(gate=async_gate(mode))
        output = [str, DeferredToolRequests]
        return Agent(FunctionModel(reply), tools=TOOLS, capabilities=[approvals], output_type=output)

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        (FOLDER / f"{run}.prompt").write_text(prompt)
        result = await self.agents[mode].run(prompt, conversation_id=run)
        save(result.conversation)
        return await self.outcome(run)

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.start(run, mode, (FOLDER / f"{run}.prompt").read_text())

    async def outcome(self, run: str) -> str | None:
        conversation = load(run)
        if conversation.deferred_tool_requests:
            return None
        return conversation.messages[-1].parts[-1].content

    def resumer(self) -> Any:
        return resumer(self.agents["async"], load=load, save=save)


asyncio.run(serve(PydanticAI()))
