"""Putting the guard of PostgreSQL there: again, by whom, and beside what somebody else made first."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from conftest import SQL, Connect
from ids import jti, lease
from passing import PASS, WRITE, refused, write
from throwaway import Cluster


def test_it_can_be_put_there_again_and_forgets_nothing(cluster: Cluster, database: str, connect: Connect) -> None:
    with connect() as connection:
        write(connection, 7)
    cluster.execute(database, (SQL / "postgres.sql").read_text(), "SELECT countersign_guard.protect('payments')")
    with refused("ZG001"), connect() as connection:
        write(connection, 7)


def test_whoever_may_make_roles_can_put_it_there(cluster: Cluster) -> None:
    cluster.execute(
        "postgres",
        "CREATE ROLE deployer LOGIN CREATEROLE CREATEDB",
        "CREATE DATABASE theirs OWNER deployer",
    )
    cluster.execute(
        "theirs",
        (SQL / "postgres.sql").read_text(),
        user="deployer",
    )
    told = "SELECT pg_has_role('deployer', 'countersign_guard', 'MEMBER')"
    with psycopg.connect(cluster.address("theirs")) as connection:
        assert connection.execute(told).fetchone() == (False,)
        assert connection.execute("SELECT count(*) FROM countersign_guard.passes").fetchone() == (0,)


def test_whoever_put_it_there_names_tables_of_their_own(cluster: Cluster) -> None:
    cluster.execute("postgres", *(f"CREATE ROLE {it} LOGIN" for it in ("namer", "neighbour", "scribe")))
    cluster.execute("postgres", "ALTER ROLE namer CREATEROLE", "CREATE DATABASE named OWNER namer")
    table = "CREATE TABLE {} (thread text NOT NULL, amount bigint NOT NULL)"
    cluster.execute(
        "named",
        (SQL / "postgres.sql").read_text(),
        table.format("payments"),
        "SELECT countersign_guard.protect('payments', 'thread')",
        "GRANT countersign_writer TO scribe",
        "GRANT SELECT, INSERT ON payments TO scribe",
        "GRANT CREATE ON SCHEMA public TO neighbour",
        user="namer",
    )
    with psycopg.connect(cluster.address("named", "namer")) as connection:
        assert connection.execute("SELECT countersign_guard.ways_past('scribe')").fetchall() == []
    with refused("ZG005"), psycopg.connect(cluster.address("named", "scribe")) as connection:
        connection.execute(WRITE)
    with psycopg.connect(cluster.address("named", "scribe")) as connection:
        write(connection)
    # A table of somebody else's is theirs to name, once they are let.
    named = "SELECT countersign_guard.protect('ledger')"
    cluster.execute("named", table.format("ledger"), user="neighbour")
    for user in ("neighbour", "scribe", "namer"):
        with refused("42501"):
            cluster.execute("named", named, user=user)
    cluster.execute("named", "GRANT countersign_protector TO neighbour", user="namer")
    cluster.execute("named", named, user="neighbour")
    for change in (
        "DROP TRIGGER countersign_guard_rows ON payments",
        "SELECT countersign_guard.protect('payments')",
        PASS,
    ):
        with refused("42501"), psycopg.connect(cluster.address("named", "neighbour")) as connection:
            connection.execute(change, (jti(), "order-17", 2, lease()) if change == PASS else None)


@pytest.mark.parametrize(
    "first",
    [
        "CREATE SCHEMA countersign_guard",
        "DROP OWNED BY countersign_guard, countersign_writer, countersign_protector CASCADE; ALTER ROLE countersign_guard LOGIN",
    ],
    ids=["a schema of somebody's", "a role that logs in"],
)
def test_what_somebody_else_made_first_is_refused(cluster: Cluster, first: str) -> None:
    cluster.execute("postgres", "DROP DATABASE IF EXISTS prepared", "CREATE DATABASE prepared")
    try:
        cluster.execute("prepared", first)
        with pytest.raises(errors.RaiseException):
            cluster.execute("prepared", (SQL / "postgres.sql").read_text())
    finally:
        cluster.execute("postgres", "ALTER ROLE countersign_guard NOLOGIN")


def test_a_guard_that_keeps_no_write_id_is_not_built_upon(cluster: Cluster) -> None:
    """What it let through could not be told from another write of the thread."""
    cluster.execute("postgres", "DROP DATABASE IF EXISTS prepared", "CREATE DATABASE prepared")
    guard = (SQL / "postgres.sql").read_text()
    cluster.execute("prepared", guard, "ALTER TABLE countersign_guard.passes DROP COLUMN write_id")
    with pytest.raises(errors.RaiseException, match="An earlier guard"):
        cluster.execute("prepared", guard)
    # As the page says it.
    cluster.execute("prepared", "DROP SCHEMA countersign_guard CASCADE", guard)
