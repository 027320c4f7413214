"""A LangGraph server whose run stops at the gate, and is resumed by the gateway's own endpoint."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import countersign
from conftest import STATE, flow_on
from countersign.langgraph import head
from countersign.testing import Gateway
from state import Ledger

# The server has many packages, so it has its own environment.
PYTHON = "LANGGRAPH_SERVER_PYTHON"
STARTS_SECS = 120.0
LOOKS_SECS = 0.1


@contextmanager
def server(environment: dict[str, str], folder: Path) -> Iterator[httpx.Client]:
    """A server with the payments graph, for one test."""
    script = Path(__file__).with_name("served.py")
    package = str(Path(countersign.__file__).parent.parent)
    given = {**os.environ, **environment, "PYTHONPATH": package}
    with (folder / "server.log").open("wb") as log:
        # It keeps notes where it is run.
        process = subprocess.Popen(
            [os.environ[PYTHON], str(script)], env=given, cwd=folder, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, (folder / "server.log").read_text()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=STARTS_SECS) as http:
            # The socket listens already: the first answer comes when the server has started.
            assert http.get("/ok").status_code == 200
            yield http
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_a_decision_resumes_the_run_that_stopped_for_it(tmp_path: Path) -> None:
    with Gateway.start({"COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.1"}) as gateway:
        flow, ledger = flow_on(gateway), Ledger(tmp_path / "ledger.db")
        tokens = {"PLANNER": flow.tokens["planner"], "WRITER": flow.tokens["writer"]}
        with server({**tokens, "GATE": gateway.url, "LEDGER": str(ledger.path)}, tmp_path) as http:
            endpoint = {
                "name": "agents",
                "kind": "langgraph",
                "url": str(http.base_url),
                "assistant": "agent",
                "flows": ["payments"],
            }
            admin = {"Authorization": f"Bearer {gateway.add_token('admin')}"}
            added = httpx.post(f"{gateway.url}/v1/endpoints", json=endpoint, headers=admin, trust_env=False)
            assert added.status_code == 201, added.text

            thread = http.post("/threads", json={}).raise_for_status().json()["thread_id"]
            made = flow.host.create_thread("payments", STATE, thread=thread)
            begun = {"assistant_id": "agent", "input": {"target_user_id": 42, "countersign": head(made)}}
            http.post(f"/threads/{thread}/runs/wait", json=begun).raise_for_status()
            (interrupts,) = http.get(f"/threads/{thread}").json()["interrupts"].values()
            review = flow.host.thread(thread).review
            assert review is not None
            assert interrupts[0]["value"]["review"]["id"] == review.id
            assert ledger.rows() == []

            flow.ada.approve(review)
            until = time.monotonic() + STARTS_SECS
            while not ledger.rows() and time.monotonic() < until:
                time.sleep(LOOKS_SECS)
            assert ledger.rows() == [42]
            while flow.host.thread(thread).version < 2 and time.monotonic() < until:
                time.sleep(LOOKS_SECS)
            assert flow.host.thread(thread).version == 2
