"""An agent of the Agent Development Kit. `FOLDER/sessions.db` has the sessions. A run continues by its invocation."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from agentapprovalprotocol.adk import ApprovalPlugin, check_coverage, resumer
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from stories import FOLDER, MODES, TOOLS, async_gate, decorated, prompted, serve

USER = "user"


class ScriptedModel(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = reply(llm_request.contents[-1].parts)
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def reply(parts: list[types.Part]) -> list[types.Part]:
    results = [it.function_response.response for it in parts if it.function_response]
    if results:
        return [types.Part(text="\n".join(text for it in results for text in it.values()))]
    if not parts[-1].text.startswith("["):
        # An invocation that has ended is resumed.
        return parts
    calls = [types.FunctionCall(id=it.id, name=it.tool, args=it.arguments) for it in prompted(parts[-1].text)]
    return [types.Part(text="The order is late."), *(types.Part(function_call=it) for it in calls)]


class ADK:
    name = "adk"

    def __init__(self) -> None:
        self.sessions = SqliteSessionService(str(FOLDER / "sessions.db"))
        self.runners = {it: self.runner(it) for it in MODES}

    def runner(self, mode: str) -> Runner:
        model, resumable = ScriptedModel(model="scripted"), ResumabilityConfig(is_resumable=True)
        tools = decorated() if mode == "decorated" else TOOLS
        agent = LlmAgent(name="orders", model=model, tools=tools)
        plugins = [] if mode == "decorated" else [ApprovalPlugin(gate=async_gate(mode))]
        app = App(name="orders", root_agent=agent, plugins=plugins, resumability_config=resumable)
        for approvals in plugins:
            check_coverage(app, approvals)
        return Runner(app=app, session_service=self.sessions)

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        if not await self.sessions.get_session(app_name="orders", user_id=USER, session_id=run):
            await self.sessions.create_session(app_name="orders", user_id=USER, session_id=run)
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        return await self.run(run, mode, new_message=message)

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.run(run, mode, invocation_id=(await self.events(run))[0].invocation_id)

    async def run(self, run: str, mode: str, **start: Any) -> str | None:
        async for _ in self.runners[mode].run_async(user_id=USER, session_id=run, **start):
            pass
        return await self.outcome(run)

    async def outcome(self, run: str) -> str | None:
        texts = [it for it in await self.events(run) if it.author == "orders" and not it.get_function_calls()]
        last = [it.content.parts[-1].text for it in texts if it.content and it.content.parts[-1].text]
        return last[-1] if last else None

    async def events(self, run: str) -> list[Any]:
        session = await self.sessions.get_session(app_name="orders", user_id=USER, session_id=run)
        return session.events

    def resumer(self) -> Any:
        return resumer(self.runners["async"])


# Warnings about token counts, which the scripted model does not have.
logging.getLogger("google_adk").setLevel(logging.ERROR)
asyncio.run(serve(ADK()))
