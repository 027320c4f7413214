"""A CrewAI agent. Its hooks are global, so a process runs in one mode: `sync` or `decorated`.

A run has stored only its prompt, so a new process starts it again.
"""

import asyncio
import json
import re
from typing import Any

from agentapprovalprotocol.crewai import ApprovalHooks
from crewai import Agent, BaseLLM
from crewai.tools import tool
from stories import FOLDER, TOOLS, decorated_blocking, gate, prompted, serve


class ScriptedLLM(BaseLLM):
    def call(self, messages: Any, *rest: Any, **options: Any) -> str:
        # The framework adds the result of a tool to the answer of the model.
        answers = [it["content"] for it in messages if it["role"] == "assistant"]
        if answers:
            return f"Thought: done\nFinal Answer: {answers[-1].rpartition('Observation:')[2].strip()}"
        prompt = re.search(r"\[\{.*\}\]", messages[-1]["content"], re.DOTALL)
        (call,) = prompted(prompt.group())
        return f"Thought: call it\nAction: {call.tool}\nAction Input: {json.dumps(call.arguments)}"


class CrewAI:
    name = "crewai"

    def __init__(self) -> None:
        self.hooks = ApprovalHooks(gate=gate("sync"))

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        (FOLDER / f"{run}.prompt").write_text(prompt)
        if mode == "sync":
            self.hooks.install()
        tools = [tool(it) for it in (TOOLS if mode == "sync" else decorated_blocking())]
        llm = ScriptedLLM(model="scripted")
        agent = Agent(role="Orders", goal="Help.", backstory="You help.", llm=llm, tools=tools)
        return (await asyncio.to_thread(agent.kickoff, prompt)).raw

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.start(run, mode, (FOLDER / f"{run}.prompt").read_text())


asyncio.run(serve(CrewAI()))
