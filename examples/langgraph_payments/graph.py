"""The host: the graph, its checkpoints, and the gate. It holds no agent's token and no database's login.

    graph.py begin THREAD MESSAGE     until people are asked
    graph.py resume THREAD DIGEST     waits until they have decided, and goes on
    graph.py go-on THREAD             after a node died

Each is a process of its own: between two of them nothing but the checkpoints is left.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from channels import State
from countersign import Client
from countersign.langgraph import approval_gate, head, of_run
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from serving import NodeFailed, own, remote

WAITS_SECS = 900


def graph_of(client: Client) -> StateGraph[Any, Any, Any, Any]:
    """parser → planner → gate → writer"""
    graph = StateGraph(State)
    graph.add_node("parser", remote("parser", of_run))
    graph.add_node("planner", remote("planner", of_run))
    graph.add_node("gate", approval_gate(client, node="planner"))
    graph.add_node("writer", remote("writer", of_run))
    graph.add_edge(START, "parser")
    graph.add_edge("parser", "planner")
    graph.add_edge("planner", "gate")
    graph.add_edge("gate", "writer")
    graph.add_edge("writer", END)
    return graph


def given(client: Client, step: str, thread: str, rest: list[str]) -> Any:
    """What the graph is invoked with."""
    if step == "begin":
        text = rest[0]
        state = {"raw_text": text, "requested_action": "none", "target_user_id": 17}
        created = client.create_thread(
            "payments",
            {**state, "payment": {"amount": 40, "currency": "EUR"}},
            thread=thread,
            context={"title": "A refund", "on_behalf_of": "Eva Example"},
        )
        return {**state, "countersign": head(created)}
    if step == "resume":
        client.wait_for_decision(rest[0], within_secs=WAITS_SECS)
        # Only which question it is about. What people said the gate asks the gateway itself.
        return Command(resume={"transition_digest": rest[0]})
    return None


def main(step: str, thread: str, *rest: str) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    checkpoints = os.path.join(os.environ["HOME"], "checkpoints.db")
    with Client(*own()) as client, SqliteSaver.from_conn_string(checkpoints) as saver:
        graph = graph_of(client).compile(checkpointer=saver)
        try:
            found = graph.invoke(given(client, step, thread, list(rest)), config)
        except NodeFailed as failed:
            print(json.dumps({"failed": str(failed)}))
            return
        waiting = [it.value["transition_digest"] for it in found.get("__interrupt__", [])]
        review = client.thread(thread).review
        asked = {"waiting": waiting[0], "review": review.url} if waiting and review else {}
        print(json.dumps({**asked, "outcome": found["countersign"].get("outcome")}))


main(*sys.argv[1:])
