"""Statements of the tests of PostgreSQL's guard, and waits between two of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import pytest
from psycopg import IsolationLevel

from conftest import Connect
from ids import digest, jti, lease

# A default write, named after the id, so that another id is another write.
TRANSITION = digest("a head")
PASS = f"""
    SELECT countersign_guard.pass(it.id, it.thread, '{TRANSITION}', 'w' || md5(it.id), it.fence, it.lease)
    FROM (VALUES (%s::text, %s::text, %s::bigint, %s::timestamptz)) AS it (id, thread, fence, lease)
"""
WRITE = "INSERT INTO payments (thread, amount) VALUES ('order-17', 40)"
SETTLE = f"""
    SELECT wrote, written_fence, result FROM (VALUES (%s::text, %s::text, %s::bigint)) AS it (id, thread, fence),
        LATERAL countersign_guard.settle(it.thread, '{TRANSITION}', 'w' || md5(it.id), it.fence)
"""
LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]


def refused(code: str) -> pytest.RaisesExc:
    return pytest.raises(psycopg.Error, check=lambda error: error.sqlstate == code)


def rows(connect: Connect) -> int:
    return connect("countersign").execute("SELECT count(*) FROM payments").fetchone()[0]


def write(connection: psycopg.Connection, fence: int = 1, *, id: str = "", thread: str = "order-17") -> None:
    connection.execute(PASS, (id or jti(), thread, fence, lease()))
    connection.execute(WRITE)


class Waiting:
    """A statement in its own thread, which waits for another transaction's lock."""

    def __init__(self, connect: Connect, connection: psycopg.Connection, run: Callable[[], object]) -> None:
        self.code: str | None = None
        self.said: str | None = None
        pid = connection.info.backend_pid

        def body() -> None:
            try:
                run()
                connection.commit()
            except psycopg.Error as error:
                self.code, self.said = error.sqlstate, error.diag.message_primary
                connection.rollback()

        self._thread = threading.Thread(target=body)
        self._thread.start()
        watcher = connect("countersign", autocommit=True)
        until = time.monotonic() + 20
        asked = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        while not watcher.execute(asked, (pid,)).fetchone()[0]:
            assert time.monotonic() < until, "it does not wait"

    def outcome(self) -> str | None:
        self._thread.join(20)
        assert not self._thread.is_alive(), "it still waits"
        return self.code
