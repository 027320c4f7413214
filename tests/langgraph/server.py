"""A LangGraph server with one graph, on a port of its own, which it prints once it is bound. Nothing is sent elsewhere."""

import os
import socket

os.environ.update(LANGSMITH_TRACING="false", LANGGRAPH_NO_VERSION_CHECK="true", LANGGRAPH_CLI_NO_ANALYTICS="1")

from langgraph_api.cli import run_server  # noqa: E402

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(64)
print(listening.getsockname()[1], flush=True)
run_server(
    host="127.0.0.1",
    port=1,
    fd=listening.fileno(),
    graphs={"agent": os.path.join(os.path.dirname(os.path.abspath(__file__)), "graph.py:graph")},
    disable_persistence=True,
    n_jobs_per_worker=1,
)
