"""Writers, each its own process, which die at a named step.

Each input line is one writer, in JSON: `url`, `token`, `database` (the path of a SQLite file, or psycopg's connection
string), `step`, and `job`, the writer's job. An output line is the signal or the result that ended it. Processes are
forked from this one, which does nothing else, so that modules are loaded once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
from typing import Any

import psycopg

from countersign import Client, Verified
from countersign.guarded import _writing, guarded_write

DIES_AT = THREAD = ""


def at(step: str) -> None:
    if step == DIES_AT:
        os.kill(os.getpid(), signal.SIGKILL)


class Dying(Client):
    """A client whose process dies right before or after it asks."""

    def verify(self, **how: Any) -> Verified:  # type: ignore[override]
        at("before verify")
        verified = super().verify(**how)
        at("after verify")
        return verified

    def confirm(self, *what: Any, **how: Any) -> Any:  # type: ignore[override]
        at("after commit")
        ended = super().confirm(*what, **how)
        at("after confirm")
        return ended


def body(connection: Any, verified: Verified) -> dict[str, str]:
    at("before the row")
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    row = (verified.view["target_user_id"], verified.view["payment"]["amount"])
    connection.execute(f"INSERT INTO payments (thread, amount) VALUES ({mark}, {mark})", (THREAD, row[1]))
    at("after the row")
    return {"result_ref": f"users:{row[0]}"}


def in_steps(database: Any) -> Any:
    """The real one, with somewhere to die between what it does."""
    enter, leave = database.enter, database.leave

    def entering(it: Any) -> None:
        enter(it)
        at("in the guard")

    def leaving(it: Any, result: Any) -> None:
        leave(it, result)
        at("before commit")
        if DIES_AT == "in commit" and isinstance(database.connection, psycopg.Connection):
            # It is sent, and no process is left to read the response.
            database.connection.pgconn.send_query(b"COMMIT")
            while database.connection.pgconn.flush():
                pass
            at("in commit")
        elif DIES_AT == "in commit":
            # After the journal is written, when the first page of the database itself is.
            database.connection.execute("PRAGMA cache_size = 0")
            database.connection.set_progress_handler(lambda: at("in commit"), 1)

    database.enter, database.leave = entering, leaving
    return database


def write(url: str, token: str, database: str, job: dict[str, Any]) -> int:
    connect = sqlite3.connect if os.path.exists(database) else psycopg.connect
    with contextlib.closing(connect(database)) as connection, Dying(url, token) as client:
        return 0 if guarded_write(connection, client, body, **job).by_this_call else 1


found = _writing.database_of
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        DIES_AT, THREAD = order.pop("step"), order["job"]["thread"]
        _writing.database_of = lambda connection: in_steps(found(connection))
        os._exit(write(**order))
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
