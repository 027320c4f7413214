"""A run whose process dies right after its node's proposal, before LangGraph has kept anything of it.

`crashing.py begin|resume SETUP`: what the node says is in the setup, and is another thing each time, as a model's is.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from countersign import Client
from countersign.langgraph import Pointer, approval_gate, governed, latest
from graphs import Graph, saver

DIED = 9


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    target: int
    countersign: Annotated[Pointer, latest]


def main(step: str, setup: dict[str, Any]) -> None:
    config: Any = {"configurable": {"thread_id": setup["thread"]}}
    with Client(setup["url"], setup["token"]) as agent, saver(Path(setup["checkpoints"])) as checkpointer:
        body = governed(agent, node="planner", state=State)(lambda state: setup["says"])

        def node(state: Any) -> Any:
            found = body(state)
            if step == "begin":
                os._exit(DIED)
            return found

        builder = StateGraph(State)
        builder.add_node("node", node)
        builder.add_node("gate", approval_gate(agent, node="planner", state=State))
        builder.add_edge(START, "node")
        builder.add_edge("node", "gate")
        builder.add_edge("gate", END)
        graph: Graph = builder.compile(checkpointer=checkpointer)
        begun: Any = {"log": ["begun"], "countersign": setup["head"]}
        goes_on: Any = Command(resume=setup["resume"]) if setup["resume"] else None
        found = graph.invoke(begun if step == "begin" else goes_on, config, durability="sync")
        waiting = [it.value["transition_digest"] for it in found.get("__interrupt__", [])]
        told = {"log": found.get("log"), "target": found.get("target"), "version": found["countersign"]["version"]}
        print(json.dumps({**told, "waiting": waiting}))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.stdin.read()))
