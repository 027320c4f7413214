"""A node as a process of its own: it has its token, and is asked over a socket. One connection is one turn.

What goes over the socket is the thread, and where the run stands in it. The graph's state stays where it is: a node is
given what it may read by the gateway.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
from collections.abc import Callable
from typing import Any

from countersign import CountersignError, Problem

Node = Callable[[dict[str, Any]], dict[str, Any]]
TURN_SECS = 120


class NodeFailed(Exception):
    """The node said no, or is not there; the graph stops here, and may be gone on with."""


def own() -> tuple[str, str]:
    """Where the gateway is, and this process's own token."""
    return os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_TOKEN"]


def thread_of(state: dict[str, Any]) -> str:
    """The thread as the graph's process says it, by the run's own configuration."""
    return str(state["thread"])


def serve(node: Node) -> None:
    """Answers until it is ended. The socket's address is the one argument of the program."""

    class Turn(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer: dict[str, Any]
            try:
                answer = {"update": node(json.loads(self.rfile.readline()))}
            except CountersignError as error:
                faults = [f"{it.code} {it.pointer}" for it in error.errors] if isinstance(error, Problem) else []
                answer = {"error": type(error).__name__, "faults": faults or [str(error)]}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    with socketserver.UnixStreamServer(sys.argv[1], Turn) as server:
        server.serve_forever()


def remote(name: str, thread: Callable[[Any], str]) -> Callable[[Any], dict[str, Any]]:
    """The node of that name, as the graph sees it."""

    def node(state: Any) -> dict[str, Any]:
        asked = {"thread": thread(state), "countersign": state["countersign"]}
        try:
            with socket.socket(socket.AF_UNIX) as there:
                there.settimeout(TURN_SECS)
                there.connect(os.path.join(os.environ["HOME"], f"{name}.socket"))
                there.sendall(json.dumps(asked).encode() + b"\n")
                line = there.makefile().readline()
        except OSError as error:
            raise NodeFailed(f"{name}: {type(error).__name__}") from error
        if not line:
            raise NodeFailed(f"{name}: it died")
        answer = json.loads(line)
        if "error" in answer:
            raise NodeFailed(f"{name}: {answer['error']}: {', '.join(answer['faults'])}")
        update: dict[str, Any] = answer["update"]
        return update

    node.__name__ = name
    return node
