"""Target databases, unsigned receipts, and waits for the end of a lease."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from contextlib import closing
from typing import Any

import psycopg

from countersign import Verified

from ids import lease
from scene import Job


class Target:
    """A target database: how to reach it, and what is in it."""

    def __init__(self, kind: str, address: str) -> None:
        self.kind, self.address = kind, address
        self.mark = "?" if kind == "sqlite" else "%s"

    def connect(self) -> Any:
        return sqlite3.connect(self.address) if self.kind == "sqlite" else psycopg.connect(self.address)

    def rows(self, job: Job) -> int:
        with closing(self.connect()) as connection:
            query = f"SELECT count(*) FROM payments WHERE thread = {self.mark}"
            return connection.execute(query, (job.thread,)).fetchone()[0]

    def passes(self, connection: Any, id: str, transition: str) -> None:
        """Takes a pass in its own transaction, as any holder of the writer's login can."""
        if self.kind == "sqlite":
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA recursive_triggers = ON")
            connection.execute(
                "INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at) "
                "VALUES (?, 'made-up', ?, 'made-up', 1, ?)",
                (id, transition, lease()),
            )
            connection.execute("UPDATE countersign_guard SET open = NULL")
        else:
            asked = "SELECT countersign_guard.pass(%s, 'made-up', %s, 'made-up', 1, %s)"
            connection.execute(asked, (id, transition, lease()))
        connection.commit()

    def body(self, job: Job) -> Any:
        def write(connection: Any, verified: Verified) -> dict[str, str]:
            row = (job.thread, verified.view["payment"]["amount"])
            connection.execute(f"INSERT INTO payments (thread, amount) VALUES ({self.mark}, {self.mark})", row)
            return {"result_ref": f"payments:{job.thread}"}

        return write


def forged(job: Job, **claims: Any) -> str:
    """The job's receipt with other claims, under a signature that does not hold."""
    assert job.receipt is not None
    header, payload, signature = job.receipt.split(".")
    said = {**json.loads(base64.urlsafe_b64decode(payload + "==")), **claims}
    return ".".join((header, base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("="), signature))


def wait_for(moment: float) -> None:
    """Leases are by the clocks of gateway and database, which nothing here can move."""
    while time.time() < moment:
        time.sleep(0.01)
