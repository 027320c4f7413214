"""Two gateways on one PostgreSQL, agents, writers, and random kills.

`SOAK_SECS` is the duration (20, five minutes is 300), `SOAK_THREADS` the number of threads (24, a long run uses 200).
With `SOAK_SEED` the run is repeatable.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from countersign import Client, CountersignError
from countersign.testing import NotCounted, Reviewer
from countersign.testing._program import program
from soaking import target_of

from conftest import SQL
from ids import digest, jti, lease
from throwaway import Cluster

SECS = float(os.environ.get("SOAK_SECS", "20"))
THREADS = int(os.environ.get("SOAK_THREADS", "24"))
SEED = int(os.environ.get("SOAK_SEED", str(random.getrandbits(32))))
# After the last kill: a lease, what agents wait between two looks, and what a slow machine needs for all that is left.
SETTLES_SECS = 60 + THREADS
# Agents, writers and gateways: each is killed at least once.
KINDS = 3
PASSWORD = "correct horse battery staple"
LEASE = "2s"
PAYMENTS = SQL.parents[1] / "examples" / "payments"


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


class House:
    """All processes by name. Each can be killed and is started again."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        for name in ("jobs", "results", "ended", "policy", "logs"):
            (folder / name).mkdir()
        cluster.execute("postgres", "CREATE DATABASE gateways", "CREATE DATABASE soaked")
        cluster.execute(
            "soaked",
            (SQL / "postgres.sql").read_text(),
            # Nothing but the guard keeps a second row out.
            "CREATE TABLE payments (thread text, user_id bigint)",
            "ALTER TABLE payments OWNER TO keeper",
            "SELECT countersign_guard.protect('payments', 'thread')",
            "GRANT countersign_writer TO ledger",
            "GRANT SELECT, INSERT ON payments TO ledger",
        )
        database = f"postgres://countersign@{cluster.socket.replace('/', '%2F')}/gateways"
        self.ports = {"gateway 1": free_port(), "gateway 2": free_port()}
        self.site = f"http://localhost:{self.ports['gateway 1']}"
        self.environment = {
            "PATH": os.environ["PATH"],
            "COUNTERSIGN_DATABASE": database,
            "COUNTERSIGN_PUBLIC_URL": self.site,
        }
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.threads = [f"order-{number}" for number in range(THREADS)]
        self.begun = time.time()

    def command(self, *arguments: str, typed: str | None = None) -> str:
        done = subprocess.run(
            [program(), "--data", str(self.folder / "data"), *arguments],
            input=typed, env=self.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments[:2]}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def gateway(self, name: str) -> None:
        """A gateway on its own port. Reviewers use one address for both."""
        said = self.folder / "logs" / name
        with said.open("w") as out, (self.folder / "logs" / f"{name}.log").open("a") as log:
            self.running[name] = subprocess.Popen(
                [program(), "--data", str(self.folder / "data"), "serve", "--listen", f"127.0.0.1:{self.ports[name]}"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=self.environment, text=True,
            )  # fmt: skip
        until = time.monotonic() + 30
        while "Countersign listens at " not in said.read_text():
            told = (self.folder / "logs" / f"{name}.log").read_text()
            assert self.running[name].poll() is None, told[-2000:]
            assert time.monotonic() < until, "a gateway does not start"
            time.sleep(0.02)

    def settled(self) -> None:
        """Returns the flow with leases of two seconds, its tokens and its reviewer."""
        for file in PAYMENTS.iterdir():
            text = file.read_text().replace('write_lease = "30s"', f'write_lease = "{LEASE}"')
            (self.folder / "policy" / file.name).write_text(text)
        self.command("policy", "activate", str(self.folder / "policy" / "policy.toml"))
        self.command(
            "user", "add", "ada", "--role", "reviewer", "--group", "finance", "--password-stdin", typed=PASSWORD
        )
        how = {
            "host": ["host"],
            "planner": ["agent", "--node", "planner"],
            "writer": ["writer", "--node", "database_writer"],
        }
        self.tokens = {
            name: self.command(
                "token", "add", name, "--owner", "platform", "--new-group", "--flow", "payments", "--role", *role
            )
            for name, role in how.items()
        }

    def part(self, name: str) -> None:
        """Starts an agent or a writer with only the arguments that it needs."""
        role, number = name.split()
        told: dict[str, object] = {"folder": str(self.folder), "urls": [self.url("gateway 1"), self.url("gateway 2")]}
        if role == "agent":
            told |= {it: self.tokens[it] for it in ("host", "planner")}
            # New work arrives all the time, so that a killed process was busy.
            at = {it: self.begun + SECS * 0.9 * index / THREADS for index, it in enumerate(self.threads)}
            told |= {"threads": {it: at[it] for it in self.threads[int(number) - 1 :: 2]}}
        else:
            told |= {"writer": self.tokens["writer"], "database": self.cluster.address("soaked", "ledger")}
        with (self.folder / "logs" / name).open("a") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("soaking.py")), role],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
            )  # fmt: skip
        stdin = self.running[name].stdin
        assert stdin is not None
        with stdin:
            stdin.write(json.dumps(told) + "\n")

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def begin(self, name: str) -> None:
        self.gateway(name) if name.startswith("gateway") else self.part(name)

    def kill(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait(30)

    def end(self) -> None:
        for name, process in self.running.items():
            if process.poll() is None:
                self.kill(name)

    def ended(self) -> dict[str, str]:
        return {it.name: json.loads(it.read_text()) for it in (self.folder / "ended").iterdir() if it.suffix != ".part"}


@pytest.fixture
def house(cluster: Cluster, tmp_path: Path) -> Iterator[House]:
    house = House(cluster, tmp_path)
    try:
        house.gateway("gateway 1")
        house.settled()
        house.gateway("gateway 2")
        for name in ("agent 1", "agent 2", "writer 1", "writer 2"):
            house.begin(name)
        yield house
    finally:
        house.end()
        cluster.execute("postgres", "DROP DATABASE gateways WITH (FORCE)", "DROP DATABASE soaked WITH (FORCE)")


def denied(thread: str) -> bool:
    """A fifth of what is asked for is refused."""
    return target_of(thread) % 5 == 0


class People:
    """Ada, who looks at what waits, and is signed in at a gateway that comes and goes."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.host = Client(house.url("gateway 1"), house.tokens["host"], timeout_secs=5)
        self.ada = Reviewer(house.site, "ada", PASSWORD)

    def look(self, thread: str) -> None:
        # A vote that is refused now (write in progress, gateway down) is repeated later.
        with contextlib.suppress(CountersignError, NotCounted, httpx.HTTPError):
            review = self.host.thread(thread).review
            if review is not None:
                self.ada.vote(review, "deny" if denied(thread) else "approve", knows_outcome=True)

    def close(self) -> None:
        self.host.close()
        self.ada.close()


def test_every_approved_row_is_written_once_and_no_other_ever(house: House) -> None:
    chance, killed = random.Random(SEED), Counter[str]()
    people = People(house)
    begun = time.monotonic()
    next_kill = begun + 0.5
    while len(ended := house.ended()) < THREADS or time.monotonic() < begun + SECS or len(killed) < KINDS:
        now = time.monotonic()
        assert now < begun + SECS + SETTLES_SECS, f"seed {SEED}: stuck: {sorted(set(house.threads) - set(ended))}"
        if next_kill < now and (now < begun + SECS or len(killed) < KINDS):
            # One of each kind first, because a slow machine completes only a few.
            names = [it for it in sorted(house.running) if it.split()[0] not in killed] or sorted(house.running)
            name = chance.choice(names)
            house.kill(name)
            house.begin(name)
            killed[name.split()[0]] += 1
            next_kill = time.monotonic() + chance.uniform(0.1, 0.6)
        waiting = [it for it in house.threads if it not in ended]
        for thread in chance.sample(waiting, min(len(waiting), 10)):
            people.look(thread)
        intrude(house)
    results = Counter(json.loads(it.read_text()) for it in (house.folder / "results").iterdir() if it.suffix != ".part")
    told = f"killed {dict(killed)}, threads {dict(Counter(ended.values()))}, writes {dict(results)}"
    print(f"seed {SEED}: {time.monotonic() - begun:.0f} s, {told}")

    assert ended == {it: "denied" if denied(it) else "confirmed" for it in house.threads}, f"seed {SEED}"
    with psycopg.connect(house.cluster.address("soaked")) as connection:
        rows = connection.execute("SELECT thread, user_id FROM payments").fetchall()
    approved = [(it, target_of(it)) for it in house.threads if not denied(it)]
    assert sorted(rows) == sorted(approved), f"seed {SEED}"
    left = {it: people.host.thread(it).status for it in house.threads}
    assert set(left.values()) == {"open"}, f"seed {SEED}: {left}"
    for thread, _ in approved:
        assert list(people.host.chain(thread))[-1].statement["type"] == "confirm", f"seed {SEED}"
    assert killed.keys() == {"agent", "writer", "gateway"}
    people.close()
    house.command("audit")


def intrude(house: House) -> None:
    """Writes with the writer's login and without a permission."""
    with psycopg.connect(house.cluster.address("soaked", "ledger"), autocommit=True) as connection:
        with pytest.raises(psycopg.Error, check=lambda it: it.sqlstate == "ZG005"):
            connection.execute("INSERT INTO payments VALUES ('order-0', 1)")
        arguments = (jti(), digest("a head"), lease(-1))
        with pytest.raises(psycopg.Error, check=lambda it: it.sqlstate in ("ZG003", "ZG001")):
            connection.execute("SELECT countersign_guard.pass(%s, 'order-0', %s, 'write', 1, %s)", arguments)
