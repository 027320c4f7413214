"""An agent of the Claude Agent SDK. The SDK and the hooks of the adapter are real, and `claude_cli.py` is its CLI.

The tools are on an MCP server in this process, so their requests name the server `crm`. The CLI stores the sessions in
the folder.
"""

import asyncio
import inspect
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentapprovalprotocol.claude_agent_sdk import ApprovalHooks, resumer
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, get_session_messages, query, tool
from stories import FOLDER, MODES, TOOLS, async_gate, decorated, serve


def served(function: Any) -> Any:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        said = function(**arguments)
        return {"content": [{"type": "text", "text": await said if inspect.isawaitable(said) else said}]}

    return tool(function.__name__, function.__doc__, {"type": "object", "properties": {}})(handle)


def session(run: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, run))


class ClaudeAgentSDK:
    name = "claude-agent-sdk"

    def __init__(self) -> None:
        self.options = {it: self.make_options(it) for it in MODES}

    @staticmethod
    def make_options(mode: str) -> ClaudeAgentOptions:
        cli = Path(__file__).with_name("claude_cli.py")
        tools = decorated() if mode == "decorated" else TOOLS
        servers = {"crm": create_sdk_mcp_server("crm", tools=[served(it) for it in tools])}
        if mode == "decorated":
            allowed = [f"mcp__crm__{it.__name__}" for it in tools]
            return ClaudeAgentOptions(cli_path=cli, mcp_servers=servers, allowed_tools=allowed)
        return ApprovalHooks(gate=async_gate(mode)).options(cli_path=cli, mcp_servers=servers)

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        return await self.query(run, prompt, replace(self.options[mode], session_id=session(run)))

    async def resume(self, run: str, mode: str) -> str | None:
        return await self.query(run, None, replace(self.options[mode], resume=session(run)))

    async def query(self, run: str, prompt: str | None, options: ClaudeAgentOptions) -> str | None:
        ended = asyncio.Event()

        async def prompts() -> AsyncIterator[dict[str, Any]]:
            if prompt:
                yield {"type": "user", "message": {"role": "user", "content": prompt}}
            await ended.wait()

        async for message in query(prompt=prompts(), options=options):
            if type(message).__name__ == "ResultMessage":
                ended.set()
        return await self.outcome(run)

    async def outcome(self, run: str) -> str | None:
        last = get_session_messages(session(run))[-1].message["content"][-1]
        return last["text"] if last["type"] == "text" else None

    def resumer(self) -> Any:
        return resumer(self.options["async"])


os.environ["CLAUDE_CONFIG_DIR"] = str(FOLDER)
asyncio.run(serve(ClaudeAgentSDK()))
