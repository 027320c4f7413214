"""A server with a tool that asks the user before it acts, and one that does not. It notes in a file what it did.

    asking_server.py FILE
"""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("asking")


class Confirmation(BaseModel):
    sure: bool


def ask(name: str) -> Elicit[Confirmation]:
    return Elicit(f"Remove {name}?", Confirmation)


@server.tool()
def remove(name: str, confirmation: Annotated[Confirmation, Resolve(ask)]) -> str:
    if not confirmation.sure:
        return f"{name} is kept"
    with open(sys.argv[1], "a") as done:
        done.write(f"{name}\n")
    return f"{name} is removed"


@server.tool()
def mark(name: str) -> str:
    with open(sys.argv[1], "a") as done:
        done.write(f"{name}\n")
    return f"{name} is marked"


server.run()
