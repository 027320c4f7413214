"""Databases for the tests of the guards: a PostgreSQL cluster that is thrown away, and files of SQLite."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from countersign.testing import Gateway

from passing_sqlite import opened
from scene import Scene
from targets import Target
from throwaway import Cluster

SQL = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster() as it:
        it.execute("postgres", "CREATE ROLE ledger LOGIN", "CREATE ROLE keeper NOLOGIN")
        yield it


@pytest.fixture(scope="session")
def _template(cluster: Cluster) -> str:
    cluster.execute("postgres", "CREATE DATABASE template_of_guarded")
    cluster.execute(
        "template_of_guarded",
        (SQL / "postgres.sql").read_text(),
        "CREATE TABLE payments (id bigserial PRIMARY KEY, thread text NOT NULL, amount bigint NOT NULL)",
        "ALTER TABLE payments OWNER TO keeper",
        "SELECT countersign_guard.protect('payments')",
        "GRANT countersign_writer TO ledger",
        "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON payments TO ledger",
        "GRANT USAGE ON SEQUENCE payments_id_seq TO ledger",
    )
    return "template_of_guarded"


@pytest.fixture(scope="session")
def _shared(cluster: Cluster, _template: str) -> str:
    cluster.execute("postgres", f"CREATE DATABASE guarded TEMPLATE {_template}")
    return "guarded"


_numbers = itertools.count()


@pytest.fixture
def database(cluster: Cluster, _template: str) -> str:
    """A new database with the guard, and `payments`, which `ledger` may write to, and only through it."""
    name = f"guarded_{next(_numbers)}"
    cluster.execute("postgres", f"CREATE DATABASE {name} TEMPLATE {_template}")
    return name


Connect = Callable[..., psycopg.Connection]


RESET = """
    TRUNCATE countersign_guard.passes, countersign_guard.threads;
    ALTER TABLE payments DISABLE TRIGGER countersign_guard_truncate;
    TRUNCATE payments RESTART IDENTITY;
    ALTER TABLE payments ENABLE ALWAYS TRIGGER countersign_guard_truncate
"""


@pytest.fixture
def connect(request: pytest.FixtureRequest, cluster: Cluster, _shared: str) -> Iterator[Connect]:
    """Returns connections, as the writer's login by default. A test that changes more than rows asks for its own
    `database`. All others share one, and leave it empty."""
    own = "database" in request.fixturenames
    name = request.getfixturevalue("database") if own else _shared
    if not own:
        cluster.execute(name, RESET)
    with contextlib.ExitStack() as stack:

        def make(user: str = "ledger", **how: object) -> psycopg.Connection:
            return stack.enter_context(psycopg.connect(cluster.address(name, user), **how))

        yield make


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite file with the guard, and `payments` under it, each row bound to its thread."""
    path = tmp_path / "ledger.db"
    template = (SQL / "sqlite_protect.sql").read_text()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((SQL / "sqlite.sql").read_text())
        connection.executescript("CREATE TABLE payments (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, amount INTEGER)")
        connection.executescript(template.replace("PROTECTED", "payments").replace("THREAD", "thread"))
    return path


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to that file with the two settings that the guard needs."""
    with opened(file) as it:
        yield it


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scene]]:
    with Gateway.start() as gateway:
        ada, folder = gateway.reviewer("ada", groups=["finance"]), tmp_path_factory.mktemp("flows")
        yield {lease: Scene.on(gateway, ada, folder, f"payments-{lease}", lease) for lease in ("30s", "4s")}


@pytest.fixture
def scene(scenes: dict[str, Scene]) -> Scene:
    return scenes["30s"]


@pytest.fixture
def short(scenes: dict[str, Scene]) -> Scene:
    """The same with leases of four seconds: who is killed within them has written in time, or not at all."""
    return scenes["4s"]


@pytest.fixture(params=["postgres", "sqlite"])
def target(request: pytest.FixtureRequest) -> Target:
    if request.param == "sqlite":
        return Target("sqlite", str(request.getfixturevalue("file")))
    request.getfixturevalue("connect")
    cluster = request.getfixturevalue("cluster")
    return Target("postgres", cluster.address("guarded", "ledger"))
