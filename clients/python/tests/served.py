"""The payments graph in a LangGraph server, on a port of its own, which it prints once it is bound."""

import os
import socket
import sys
from pathlib import Path

from langgraph.graph import END, START, StateGraph

from countersign import Client
from countersign.langgraph import approval_gate, guarded_writer

sys.path.insert(0, str(Path(__file__).parent))
from state import Ledger, State

if __name__ != "__main__":
    url, ledger = os.environ["GATE"], Ledger(Path(os.environ["LEDGER"]))
    planner, writer = (Client(url, os.environ[name]) for name in ("PLANNER", "WRITER"))

    def patch(state):  # type: ignore[no-untyped-def]
        return {"target_user_id": state["target_user_id"]}

    @guarded_writer(writer)
    def pay(view, write):  # type: ignore[no-untyped-def]
        ledger.pay(view["target_user_id"], write.fence)

    builder = StateGraph(State)
    builder.add_node(
        "gate", approval_gate(planner, node="planner", patch=lambda it: {"target_user_id": it["target_user_id"]})
    )
    builder.add_node("pay", pay)
    builder.add_edge(START, "gate")
    builder.add_edge("gate", "pay")
    builder.add_edge("pay", END)
    graph = builder.compile()
else:
    os.environ.update(LANGSMITH_TRACING="false", LANGGRAPH_NO_VERSION_CHECK="true", LANGGRAPH_CLI_NO_ANALYTICS="1")
    from langgraph_api.cli import run_server  # type: ignore[import-not-found]

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    print(listening.getsockname()[1], flush=True)
    run_server(
        host="127.0.0.1",
        port=1,
        fd=listening.fileno(),
        graphs={"agent": f"{Path(__file__).resolve()}:graph"},
        disable_persistence=True,
        n_jobs_per_worker=1,
    )
