"""An agent that speaks with the official client: each line of standard input is a call, each line of output its answer.

    client.py legacy|auto http ADDRESS          with the token in COUNTERSIGN_TOKEN
    client.py legacy|auto stdio COMMAND [ARG…]  which is given the token by its environment
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import URL_ELICITATION_REQUIRED, ElicitResult


def server(kind: str, rest: list[str]):
    token = os.environ["COUNTERSIGN_TOKEN"]
    if kind == "stdio":
        return StdioServerParameters(command=rest[0], args=rest[1:], env={"COUNTERSIGN_TOKEN": token})
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(rest[0], http_client=http)


pages: list[str] = []


async def confirm(context, params) -> ElicitResult:
    """Answers each question of a server with yes, and notes the pages that it would open."""
    if params.mode == "url":
        pages.append(params.url)
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content={"sure": True})


async def answer(client: Client, asked: dict) -> dict:
    if asked.get("ask") == "about":
        return {"protocol": client.protocol_version, "name": client.server_info.name, "instructions": client.instructions}
    if asked.get("ask") == "tools":
        return {"tools": [it.model_dump(by_alias=True, exclude_none=True) for it in (await client.list_tools()).tools]}
    pages.clear()
    try:
        result = await call(client, asked)
    except MCPError as error:
        return {"failed": error.error.message, "data": error.error.data, "pages": pages}
    text = [it.text for it in result.content]
    return {"is_error": bool(result.is_error), "told": result.structured_content, "text": text, "pages": pages}


async def call(client: Client, asked: dict):
    """Calls a tool, and calls it again after the pages that the server asks to open."""
    try:
        return await client.call_tool(asked["tool"], asked["arguments"])
    except MCPError as error:
        if error.error.code != URL_ELICITATION_REQUIRED:
            raise
        pages.extend(it["url"] for it in error.error.data["elicitations"])
        return await client.call_tool(asked["tool"], asked["arguments"])


async def main(mode: str, kind: str, *rest: str) -> None:
    loop = asyncio.get_running_loop()
    async with Client(server(kind, list(rest)), mode=mode, elicitation_callback=confirm) as client:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await answer(client, json.loads(line))), flush=True)


asyncio.run(main(*sys.argv[1:]))
