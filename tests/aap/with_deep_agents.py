"""A Deep Agent that delegates each call to a subagent, whose calls are gated and pause the whole run."""

import asyncio
from typing import Any

from agentapprovalprotocol.langgraph import ApprovalMiddleware, deep_agent_subagents
from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from stories import TOOLS, Calling, async_gate, decorated, gate
from with_langgraph import LangGraph, ScriptedModel, calling, main


class DelegatingModel(ScriptedModel):
    delegates: bool = False

    def bind_tools(self, tools: Any, **options: Any) -> BaseChatModel:
        return DelegatingModel(delegates=any(it.name == "task" for it in tools))

    def reply(self, messages: list[BaseMessage]) -> AIMessage:
        if self.delegates and not isinstance(messages[-1], ToolMessage):
            task = {"description": messages[-1].text, "subagent_type": "general-purpose"}
            return calling([Calling("task-1", "task", task)])
        return super().reply(messages)


class DeepAgents(LangGraph):
    @staticmethod
    def agent(mode: Any, checkpointer: AsyncSqliteSaver) -> Any:
        if mode == "decorated":
            return create_deep_agent(DelegatingModel(), tools=decorated(), checkpointer=checkpointer)
        approvals = ApprovalMiddleware(mode=mode, gate=gate(mode), async_gate=async_gate(mode))
        subagents = deep_agent_subagents(approvals)
        tools = {"tools": TOOLS, "middleware": [approvals], "subagents": subagents}
        return create_deep_agent(DelegatingModel(), checkpointer=checkpointer, **tools)


asyncio.run(main(DeepAgents))
