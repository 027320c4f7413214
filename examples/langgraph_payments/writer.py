"""The writer: the only process with the database's login, which can write only through the database's guard.

`DIES` kills it at one of two moments, for the run that shows what becomes of that.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import psycopg

from countersign import Client, Ended, Verified
from countersign.guarded import guarded_write
from serving import own, serve, thread_of


def dies(moment: str) -> None:
    if os.environ.get("DIES") == moment:
        os.kill(os.getpid(), signal.SIGKILL)


class Asking(Client):
    """The client, with a moment to die in."""

    def confirm(self, *what: Any, **how: Any) -> Ended:  # type: ignore[override]
        dies("before it confirms")
        return super().confirm(*what, **how)


def writer(state: dict[str, Any]) -> dict[str, Any]:
    thread, at = thread_of(state), state["countersign"]

    def pay(connection: psycopg.Connection[Any], verified: Verified) -> dict[str, str]:
        payment = verified.view["payment"]
        row = (thread, verified.view["target_user_id"], payment["amount"], payment["currency"])
        connection.execute("INSERT INTO payments (thread, user_id, amount, currency) VALUES (%s, %s, %s, %s)", row)
        dies("before it commits")
        return {"result_ref": f"payments:{thread}"}

    # The same for the same approved transition, in whatever process: so a second run is this very write.
    write_id = f"write-{at['transition'][7:39]}"
    with psycopg.connect(os.environ["DATABASE"]) as connection:
        job = {"thread": thread, "transition": at["transition"], "receipt": at.get("receipt"), "write_id": write_id}
        ended = guarded_write(connection, client, pay, **job).ended
    return {"countersign": {"version": ended.version, "transition": ended.transition, "outcome": ended.outcome}}


with Asking(*own()) as client:
    serve(writer)
