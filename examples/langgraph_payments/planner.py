"""The planner: makes a plan of it, which people have to decide about."""

from __future__ import annotations

import re
from typing import Any

from channels import State
from countersign import Client
from countersign.langgraph import governed
from serving import own, serve, thread_of

with Client(*own()) as client:

    @governed(client, node="planner", state=State, thread=thread_of)
    def planner(state: dict[str, Any]) -> dict[str, Any]:
        user = re.search(r"user (\d+)", state["raw_text"])
        target = int(user[1]) if user else state["target_user_id"]
        return {"requested_action": "refund", "target_user_id": target}

    serve(planner)
