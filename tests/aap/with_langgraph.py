"""A LangGraph agent. In mode `sync` it runs by `invoke`, otherwise by `ainvoke`, so both gates are used.

`FOLDER/checkpoints.db` has the checkpoints, and a run continues by its thread. The durability is `sync`: by default
LangGraph stores the checkpoint of the model while the tool runs already. After a crash in that time the model calls the
tool again, in a new task, and the adapter asks for a new approval.
"""

import asyncio
from typing import Any

from agentapprovalprotocol.langgraph import ApprovalMiddleware, resumer
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from stories import FOLDER, MODES, TOOLS, Calling, async_gate, decorated, gate, prompted, serve


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> BaseChatModel:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage(content="\n".join(it.text for it in messages if isinstance(it, ToolMessage)))
        return calling(prompted(messages[-1].text))


def calling(calls: list[Calling]) -> AIMessage:
    calls = [{"name": it.tool, "args": it.arguments, "id": it.id, "type": "tool_call"} for it in calls]
    return AIMessage(content="The order is late.", tool_calls=calls)


def settings(run: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": run}}


class LangGraph:
    name = "langgraph"

    def __init__(self, checkpointer: AsyncSqliteSaver):
        self.agents = {it: self.agent(it, checkpointer) for it in MODES}

    @staticmethod
    def agent(mode: Any, checkpointer: AsyncSqliteSaver) -> Any:
        if mode == "decorated":
            return create_agent(ScriptedModel(), tools=decorated(), checkpointer=checkpointer)
        approvals = ApprovalMiddleware(mode=mode, gate=gate(mode), async_gate=async_gate(mode))
        return create_agent(ScriptedModel(), tools=TOOLS, middleware=[approvals], checkpointer=checkpointer)

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        return await self.invoke(run, mode, {"messages": [("user", prompt)]})

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.invoke(run, mode, None)

    async def invoke(self, run: str, mode: str, start: Any) -> str | None:
        agent = self.agents[mode]
        if mode == "sync":
            await asyncio.to_thread(agent.invoke, start, settings(run), durability="sync")
        else:
            await agent.ainvoke(start, settings(run), durability="sync")
        return await self.outcome(run)

    async def outcome(self, run: str) -> str | None:
        state = await self.agents["async"].aget_state(settings(run))
        return None if state.next else state.values["messages"][-1].text

    def resumer(self) -> Any:
        return resumer(self.agents["async"])


async def main(framework: type[LangGraph]) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(FOLDER / "checkpoints.db")) as checkpointer:
        await serve(framework(checkpointer))


if __name__ == "__main__":
    asyncio.run(main(LangGraph))
