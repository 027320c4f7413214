"""A payments graph as its developer would write it: a planner, the gate, and a writer to a real table.

Run as a program it is one process of a run that others begin or resume: `graphs.py begin|resume SETUP`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from countersign import Client
from countersign.langgraph import Write, approval_gate, guarded_writer
from state import Ledger, State

Graph = CompiledStateGraph[Any, Any, Any, Any]


def builder(planner: Client, writer: Client, ledger: Ledger, **settings: Any) -> StateGraph[Any, Any, Any, Any]:
    """START → gate → pay → END."""

    @guarded_writer(writer, **settings)
    def pay(view: dict[str, Any], write: Write) -> dict[str, Any]:
        ledger.pay(view["target_user_id"], write.fence)
        return {"result_ref": f"users:{view['target_user_id']}"}

    def patch(state: Any) -> dict[str, Any]:
        return {"target_user_id": state["target_user_id"]}

    graph = StateGraph(State)
    graph.add_node("gate", approval_gate(planner, node="planner", patch=patch))
    graph.add_node("pay", pay)
    graph.add_edge(START, "gate")
    graph.add_edge("gate", "pay")
    graph.add_edge("pay", END)
    return graph


@contextmanager
def saver(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(path)) as found:
        yield found


def main(step: str, setup: dict[str, Any]) -> None:
    folder = Path(setup["folder"])
    config: Any = {"configurable": {"thread_id": setup["thread"]}}
    with (
        Client(setup["url"], setup["planner"]) as planner,
        Client(setup["url"], setup["writer"]) as writer,
        saver(folder / "checkpoints.db") as checkpointer,
    ):
        graph: Graph = builder(planner, writer, Ledger(folder / "ledger.db")).compile(checkpointer=checkpointer)
        begun: Any = {"target_user_id": 42, "countersign": setup["head"]}
        given: Any = begun if step == "begin" else Command(resume=setup["resume"])
        found = graph.invoke(given, config)
        waiting = [it.value for it in found.get("__interrupt__", [])]
        print(json.dumps({"waiting": waiting, "outcome": found["countersign"].get("outcome")}))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.stdin.read()))
