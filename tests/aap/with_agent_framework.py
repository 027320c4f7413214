"""An agent of the Microsoft Agent Framework, in mode `decorated` only.

A run has stored only its prompt, so a new process starts it again.
"""

import asyncio
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from stories import FOLDER, decorated, prompted, serve


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **rest: Any) -> Any:
        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=reply(messages))])

        return respond()


def reply(messages: list[Message]) -> list[Content]:
    results = [str(it.result) for message in messages for it in message.contents if it.type == "function_result"]
    if results:
        return [Content.from_text("\n".join(results))]
    calls = prompted(messages[-1].text)
    return [Content.from_function_call(call_id=it.id, name=it.tool, arguments=it.arguments) for it in calls]


class AgentFramework:
    name = "agent-framework"

    def __init__(self) -> None:
        self.agent = Agent(ScriptedClient(), tools=decorated())

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        (FOLDER / f"{run}.prompt").write_text(prompt)
        return (await self.agent.run(prompt)).text

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.start(run, mode, (FOLDER / f"{run}.prompt").read_text())


asyncio.run(serve(AgentFramework()))
