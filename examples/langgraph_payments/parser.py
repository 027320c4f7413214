"""The parser: what a model makes of a stranger's words. This one believes all of them, as a model does that was talked
into it; nothing here is clever, and nothing has to be."""

from __future__ import annotations

from typing import Any

from channels import State
from countersign import Client
from countersign.langgraph import governed
from serving import own, serve, thread_of

with Client(*own()) as client:

    @governed(client, node="input_parser", state=State, thread=thread_of)
    def parser(state: dict[str, Any]) -> dict[str, Any]:
        text = state["raw_text"]
        said: dict[str, Any] = {"raw_text": text.strip()}
        if "is_admin" in text:
            said["is_admin"] = True
        return said

    serve(parser)
