"""A proxy between client and gateway that loses or replaces responses."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx


@dataclass
class Instead:
    """A response in place of the gateway's, which receives no request."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Lose:
    """The gateway is asked, and its answer is lost."""


@dataclass
class Changed:
    """The gateway is asked, and its answer is changed."""

    change: Callable[[Any], object]


@dataclass
class Before:
    """The gateway is asked after this call."""

    call: Callable[[], object]


def cancelling(cancel: Callable[[], object]) -> Before:
    """Cancels a caller in the running event loop, which has time to act on it before the gateway is asked."""
    loop = asyncio.get_running_loop()

    def call() -> None:
        loop.call_soon_threadsafe(cancel)
        time.sleep(0.3)

    return Before(call)


@dataclass
class Between:
    """The received requests, and the faults for the next ones. Later requests are passed on."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    todo: deque[Instead | Lose | Changed | Before | None] = field(default_factory=deque)
    # A part of each path that the gateway gets, and its replacement.
    renames: tuple[str, str] = ("", "")


@contextmanager
def between(gateway: str) -> Iterator[Between]:
    """A proxy in front of a gateway, on a port of its own."""
    state = Between()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def do_GET(self) -> None:
            self.answer()

        do_POST = do_DELETE = do_GET

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            state.asked.append((self.command, self.path))
            state.headers.append({key.lower(): value for key, value in self.headers.items()})
            step = state.todo.popleft() if state.todo else None
            if isinstance(step, Instead):
                return self.say(step.status, step.body, step.headers)
            if isinstance(step, Before):
                step.call()
            kept = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection")}
            with httpx.Client(trust_env=False, timeout=60) as http:
                found = http.request(
                    self.command, gateway + self.path.replace(*state.renames), headers=kept, content=body
                )
            if isinstance(step, Lose):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return None
            content = found.content
            if isinstance(step, Changed):
                body = found.json()
                step.change(body)
                content = json.dumps(body).encode()
            named = {
                key: found.headers[key] for key in found.headers if key.startswith(("content-type", "countersign-"))
            }
            return self.say(found.status_code, content, named)

        def say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
