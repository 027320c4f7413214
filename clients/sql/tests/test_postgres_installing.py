"""Installing PostgreSQL's guard: again, by other logins, and next to objects of others."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from conftest import SQL, Connect
from passing import WRITE, refused, write
from throwaway import Cluster


def test_it_can_be_put_there_again_and_forgets_nothing(cluster: Cluster, database: str, connect: Connect) -> None:
    with connect() as connection:
        write(connection, 7)
    cluster.execute(database, (SQL / "postgres.sql").read_text(), "SELECT countersign_guard.protect('payments')")
    with refused("ZG001"), connect() as connection:
        write(connection, 7)


PAYMENTS = "CREATE TABLE payments (thread text, amount bigint)"
PROTECT = "SELECT countersign_guard.protect('payments', 'thread')"


# Rights of a role's creator on PostgreSQL 16 and later. Before, CREATEROLE was enough for any role.
ADMINISTERS = """
    DO $$ BEGIN
        IF current_setting('server_version_num')::integer >= 160000 AND to_regrole('countersign_guard') IS NOT NULL THEN
            EXECUTE 'GRANT countersign_guard, countersign_writer, countersign_protector TO deployer '
                'WITH ADMIN TRUE, INHERIT FALSE, SET FALSE';
        END IF;
    END $$
"""


@pytest.fixture
def theirs(cluster: Cluster) -> Iterator[str]:
    """A database with the guard, which `deployer` put there, who is no superuser, and with `owner`, who did not."""
    cluster.execute(
        "postgres",
        "CREATE ROLE deployer LOGIN CREATEROLE",
        ADMINISTERS,
        "CREATE ROLE owner LOGIN",
        "CREATE DATABASE theirs",
        "GRANT CREATE ON DATABASE theirs TO deployer",
    )
    try:
        cluster.execute(
            "theirs", "CREATE SCHEMA owner AUTHORIZATION owner", "GRANT CREATE ON SCHEMA public TO deployer"
        )
        cluster.execute("theirs", (SQL / "postgres.sql").read_text(), user="deployer")
        yield "theirs"
    finally:
        cluster.execute(
            "postgres", "DROP DATABASE theirs", "DROP OWNED BY deployer CASCADE", "DROP ROLE owner, deployer"
        )


def test_whoever_may_make_roles_can_put_it_there(cluster: Cluster, theirs: str) -> None:
    told = "SELECT pg_has_role('deployer', 'countersign_guard', 'USAGE'), countersign_guard.ways_past('deployer')"
    with psycopg.connect(cluster.address(theirs)) as connection:
        found = connection.execute(told).fetchall()
        # It is no member of the owner, but can become one, which `ways_past` reports.
        assert {inherits for inherits, _ in found} == {False}
        sentences = ("may create roles", "can be countersign_guard, which owns the schema countersign_guard")
        assert any(it in way for _, way in found for it in sentences)
        assert connection.execute("SELECT count(*) FROM countersign_guard.passes").fetchone() == (0,)
    # Again, as a member of the role.
    cluster.execute(theirs, (SQL / "postgres.sql").read_text(), user="deployer")


def protects(cluster: Cluster, database: str, user: str) -> None:
    """`user` protects a table of their own, as the page says it, and then `ledger` writes there only through the guard."""
    cluster.execute(
        database,
        PAYMENTS,
        PROTECT,
        "GRANT INSERT ON payments TO ledger",
        user=user,
    )
    with psycopg.connect(cluster.address(database, user)) as connection:
        assert connection.execute("SELECT countersign_guard.ways_past('ledger')").fetchall() == []
    ledger = f"{cluster.address(database, 'ledger')} options=-csearch_path={'public' if user == 'deployer' else user}"
    with refused("ZG005"), psycopg.connect(ledger) as connection:
        connection.execute(WRITE)
    with refused("ZG006"), psycopg.connect(ledger) as connection:
        write(connection, thread="order-18")
    with psycopg.connect(ledger) as connection:
        write(connection)
    with psycopg.connect(cluster.address(database, user)) as connection:
        assert connection.execute("SELECT thread FROM payments").fetchall() == [("order-17",)]


def test_who_put_it_there_protects_their_own_tables(cluster: Cluster, theirs: str) -> None:
    cluster.execute(theirs, "GRANT countersign_writer TO ledger", user="deployer")
    protects(cluster, theirs, "deployer")


def test_another_owner_protects_theirs_once_they_are_let(cluster: Cluster, theirs: str) -> None:
    cluster.execute(theirs, "GRANT countersign_writer TO ledger", user="deployer")
    for call in (PROTECT, "SELECT countersign_guard.ways_past('ledger')"):
        with pytest.raises(errors.InsufficientPrivilege, match="schema countersign_guard"):
            cluster.execute(theirs, f"{PAYMENTS}; {call}", user="owner")
    cluster.execute(theirs, "GRANT USAGE ON SCHEMA owner TO ledger", user="owner")
    cluster.execute(theirs, "GRANT countersign_protector TO owner", user="deployer")
    protects(cluster, theirs, "owner")


@pytest.mark.parametrize("call", ["protect('it')", "ways_past('ledger')", "parts_of('it')"])
def test_a_writer_protects_nothing(cluster: Cluster, theirs: str, call: str) -> None:
    """Not even what is its own."""
    cluster.execute(theirs, "GRANT countersign_writer TO ledger", user="deployer")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for function"):
        cluster.execute(theirs, "CREATE TEMP TABLE it (a int)", f"SELECT countersign_guard.{call}", user="ledger")


@pytest.mark.parametrize(
    "first",
    [
        "CREATE SCHEMA countersign_guard",
        "DROP OWNED BY countersign_guard, countersign_writer CASCADE; ALTER ROLE countersign_guard LOGIN",
        "ALTER ROLE countersign_protector LOGIN",
    ],
    ids=["a schema of somebody's", "a role that logs in", "another one that does"],
)
def test_what_somebody_else_made_first_is_refused(cluster: Cluster, first: str) -> None:
    cluster.execute("postgres", "DROP DATABASE IF EXISTS prepared", "CREATE DATABASE prepared")
    try:
        cluster.execute("prepared", first)
        with pytest.raises(errors.RaiseException):
            cluster.execute("prepared", (SQL / "postgres.sql").read_text())
    finally:
        cluster.execute("postgres", "ALTER ROLE countersign_guard NOLOGIN", "ALTER ROLE countersign_protector NOLOGIN")


def test_a_guard_that_keeps_no_write_id_is_not_built_upon(cluster: Cluster) -> None:
    """Its writes cannot be distinguished within a thread."""
    cluster.execute("postgres", "DROP DATABASE IF EXISTS prepared", "CREATE DATABASE prepared")
    guard = (SQL / "postgres.sql").read_text()
    cluster.execute("prepared", guard, "ALTER TABLE countersign_guard.passes DROP COLUMN write_id")
    with pytest.raises(errors.RaiseException, match="An earlier guard"):
        cluster.execute("prepared", guard)
    # As the page says it.
    cluster.execute("prepared", "DROP SCHEMA countersign_guard CASCADE", guard)
