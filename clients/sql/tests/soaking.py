"""Agents and writers of the soak test, each a process that can be killed at any time and starts again.

    python soaking.py agent|writer    with its arguments as JSON on its input

They share a folder: `jobs/` has the writers' jobs, `results/` their outcomes, and `ended/` the end of each thread. Each
file is written atomically.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from countersign import (
    Client,
    Conflict,
    CountersignError,
    Decision,
    Denied,
    Failed,
    Held,
    Retries,
    StillHeld,
    TooManyRequests,
    Unreachable,
    Verified,
)
from countersign.guarded import guarded_write, settle

T = TypeVar("T")
AT_ONCE = 8
STATE = {
    "raw_text": "Please refund 40 EUR.",
    "requested_action": "refund",
    "target_user_id": 17,
    "payment": {"amount": 40, "currency": "EUR"},
}


def target_of(thread: str) -> int:
    """Returns the recipient of a thread's money, if it is approved."""
    return 1000 + int(thread.rpartition("-")[2])


def put(path: Path, value: Any) -> None:
    """Writes a file atomically. The first writer wins."""
    part = path.with_suffix(f".{os.getpid()}.{random.getrandbits(32)}.part")
    part.write_text(json.dumps(value))
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()


class Gateways:
    """Two gateways: if one does not respond, the other is asked, until one responds."""

    def __init__(self, urls: list[str], token: str) -> None:
        self.clients = [Client(url, token, retries=Retries(tries=1), timeout_secs=10) for url in urls]

    def ask(self, call: Callable[[Client], T]) -> T:
        while True:
            with contextlib.suppress(Unreachable, Failed, TooManyRequests):
                return call(random.choice(self.clients))
            time.sleep(0.05)


class Agent:
    """Begins threads, asks people, and hands what they approved to the writers."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.folder = Path(told["folder"])
        self.host = Gateways(told["urls"], told["host"])
        self.planner = Gateways(told["urls"], told["planner"])
        # Each with the moment from which on there is work in it.
        self.threads: dict[str, float] = told["threads"]

    def run(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.thread, self.threads))

    def thread(self, name: str) -> None:
        if (self.folder / "ended" / name).exists():
            return
        time.sleep(max(0.0, self.threads[name] - time.time()))
        made = self.host.ask(lambda it: it.create_thread("payments", STATE, thread=name))
        patch = {"target_user_id": target_of(name)}
        held = self.asked(
            lambda it: it.propose(name, node="planner", parent=made.transition, patch=patch),
        )
        for attempt in itertools.count(1):
            decision = self.decision(held.transition)
            if not decision.approved:
                put(self.folder / "ended" / name, decision.decision)
                return
            job = {"thread": name, "transition": held.transition, "receipt": decision.receipt}
            put(self.folder / "jobs" / f"{name}.{attempt}", {**job, "write_id": f"{name}.{attempt}"})
            if self.result(f"{name}.{attempt}") == "confirmed":
                put(self.folder / "ended" / name, "confirmed")
                return
            parent = held.transition
            held = self.asked(lambda it, parent=parent: it.reaffirm(name, node="planner", parent=parent))

    def asked(self, call: Callable[[Client], Any]) -> Held:
        while True:
            with contextlib.suppress(Conflict):  # a write is in progress
                found = self.planner.ask(call)
                assert isinstance(found, Held)
                return found
            time.sleep(0.1)

    def decision(self, transition: str) -> Decision:
        while True:
            with contextlib.suppress(StillHeld):
                return self.planner.ask(lambda it: it.wait_for_decision(transition, within_secs=5))

    def result(self, job: str) -> str:
        path = self.folder / "results" / job
        while not path.exists():
            time.sleep(0.05)
        return str(json.loads(path.read_text()))


class Writer:
    """Writes what it finds to be written. Several of them take the same jobs, so they also come at once."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.folder = Path(told["folder"])
        self.gateways = Gateways(told["urls"], told["writer"])
        self.address: str = told["database"]

    def run(self) -> None:
        with self.connected() as connection:
            while True:
                for job in self.jobs():
                    outcome = self.written(connection, job)
                    if outcome:
                        put(self.folder / "results" / job["write_id"], outcome)
                time.sleep(0.05)

    @contextlib.contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.address) as connection:
            yield connection

    def jobs(self) -> list[dict[str, Any]]:
        done = {it.name for it in (self.folder / "results").iterdir()}
        names = [it for it in (self.folder / "jobs").iterdir() if it.suffix != ".part" and it.name not in done]
        return [json.loads(it.read_text()) for it in random.sample(names, len(names))]

    def written(self, connection: psycopg.Connection[Any], job: dict[str, Any]) -> str | None:
        """Returns `confirmed` or `aborted`, or nothing if the outcome is unknown until a later attempt."""

        def pay(connection: psycopg.Connection[Any], verified: Verified) -> dict[str, str]:
            row = (job["thread"], verified.view["target_user_id"])
            connection.execute("INSERT INTO payments (thread, user_id) VALUES (%s, %s)", row)
            time.sleep(random.random() / 20)  # long enough to be killed in
            return {"result_ref": job["write_id"]}

        def write(client: Client) -> str:
            try:
                guarded_write(connection, client, pay, **job)
            except Denied as denied:
                if denied.code != "already_used":
                    raise
                ended = settle(connection, client, **{key: it for key, it in job.items() if key != "receipt"})
                return "aborted" if ended.outcome == "aborted" else "confirmed"
            return "confirmed"

        # The next attempt settles a refused write, and finds out whether the gateway was notified.
        with contextlib.suppress(CountersignError):
            return self.gateways.ask(write)
        return None


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    {"agent": Agent, "writer": Writer}[sys.argv[1]](given).run()
