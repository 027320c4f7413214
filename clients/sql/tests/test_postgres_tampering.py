"""PostgreSQL's guard against the writer's own login, and against members of countersign_protector."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from conftest import Connect
from ids import jti, lease
from passing import PASS, SETTLE, TRANSITION, WRITE, refused, rows, write
from throwaway import Cluster

# ── The writer's own login ───────────────────────────────────────────────────────────────────────────────────────

TAMPERING = {
    "make a pass": "INSERT INTO countersign_guard.passes (id, thread, transition, write_id, fence, lease_expires_at, wrote) "
    f"VALUES ('{jti()}', 'order-17', '{TRANSITION}', 'write', 1, now() + interval '1 hour', true)",
    "move a pass": "UPDATE countersign_guard.passes SET transaction = pg_current_xact_id()",
    "prolong a lease": "UPDATE countersign_guard.passes SET lease_expires_at = now() + interval '1 hour'",
    "forget a pass": "DELETE FROM countersign_guard.passes",
    "forget all": "TRUNCATE countersign_guard.passes",
    "turn a fence back": "UPDATE countersign_guard.threads SET fence = 1",
    "forget a fence": "DELETE FROM countersign_guard.threads",
    "drop a trigger": "DROP TRIGGER countersign_guard_rows ON payments",
    "disable a trigger": "ALTER TABLE payments DISABLE TRIGGER ALL",
    "disable user triggers": "ALTER TABLE payments DISABLE TRIGGER USER",
    "rename a trigger": "ALTER TRIGGER countersign_guard_rows ON payments RENAME TO it",
    "add a trigger": "CREATE TRIGGER it BEFORE INSERT ON payments FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "add a rule": "CREATE RULE it AS ON INSERT TO payments DO INSTEAD NOTHING",
    "drop the table": "DROP TABLE payments",
    "own the table": "ALTER TABLE payments OWNER TO ledger",
    "a child of the table": "CREATE TABLE mine () INHERITS (payments)",
    "be the owner": "SET ROLE countersign_guard",
    "be the keeper": "SET SESSION AUTHORIZATION keeper",
    "join the owner": "GRANT countersign_guard TO ledger",
    "replace the function": "CREATE OR REPLACE FUNCTION countersign_guard.require_pass() RETURNS trigger "
    "LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    "overload the function": "CREATE FUNCTION countersign_guard.pass(text, text, text, text, int, text) RETURNS void "
    "LANGUAGE sql AS $$ $$",
    "alter the function": "ALTER FUNCTION countersign_guard.require_pass() SECURITY INVOKER",
    "drop the function": "DROP FUNCTION countersign_guard.require_pass() CASCADE",
    "drop the schema": "DROP SCHEMA countersign_guard CASCADE",
    "rename the schema": "ALTER SCHEMA countersign_guard RENAME TO it",
    "switch triggers off": "SET session_replication_role = 'replica'",
    "protect otherwise": "SELECT countersign_guard.protect('payments', 'thread')",
    "use the trigger elsewhere": "CREATE TEMP TABLE it (a int); CREATE TRIGGER it AFTER INSERT ON it "
    "FOR EACH ROW EXECUTE FUNCTION countersign_guard.require_pass()",
    "make an event trigger": "CREATE EVENT TRIGGER it ON ddl_command_start EXECUTE FUNCTION countersign_guard.require_pass()",
    "edit the catalogue": "UPDATE pg_catalog.pg_trigger SET tgenabled = 'D'",
}


@pytest.mark.parametrize("change", TAMPERING.values(), ids=TAMPERING.keys())
def test_the_writers_login_cannot_tamper_with_the_guard(connect: Connect, change: str) -> None:
    with connect() as connection:
        write(connection)
    with pytest.raises(psycopg.Error) as refusal, connect() as connection:
        connection.execute(change)
    assert refusal.value.sqlstate in ("42501", "42883", "42809")
    with refused("ZG005"), connect() as connection:
        connection.execute(WRITE)


SHADOWS = [
    # The guard's owner cannot look there, so nothing is found.
    "GRANT USAGE ON SCHEMA mine TO PUBLIC",
    "CREATE TABLE mine.passes AS SELECT * FROM countersign_guard.passes",
    "CREATE FUNCTION mine.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2000-01-01' $$",
    "CREATE FUNCTION mine.bool_and(boolean) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
    "CREATE FUNCTION mine.yes(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
    "CREATE FUNCTION mine.no(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$",
    "CREATE FUNCTION mine.same(xid8, xid8) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
    "CREATE OPERATOR mine.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = mine.yes)",
    "CREATE OPERATOR mine.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = mine.no)",
    "CREATE OPERATOR mine.= (LEFTARG = xid8, RIGHTARG = xid8, FUNCTION = mine.same)",
    "SET search_path = mine, pg_catalog, public",
]


def test_names_in_the_writers_own_schema_do_not_shadow_the_guards(
    cluster: Cluster, database: str, connect: Connect
) -> None:
    cluster.execute(database, "CREATE SCHEMA mine AUTHORIZATION ledger")
    connection = connect(autocommit=True)
    id = jti()
    with connection.transaction():
        write(connection, id=id)
    for shadow in SHADOWS:
        connection.execute(shadow)
    with refused("ZG005"):
        connection.execute("INSERT INTO public.payments (thread, amount) VALUES ('order-17', 40)")
    with refused("ZG003") as refusal:
        connection.execute(PASS, (jti(), "order-17", 2, lease(-1)))
    assert refusal.value.diag.message_primary == "countersign guard: the lease is past"
    with refused("ZG005"):
        connection.execute("SELECT countersign_guard.note(%s, '{}')", (id,))
    with refused("ZG003"), connection.transaction():
        connection.execute(PASS, (jti(), "order-17", 2, lease(0.1)))
        connection.execute("SELECT pg_sleep(0.2)")
    with connection.transaction():
        assert connection.execute(SETTLE, (id, "order-17", None)).fetchone()[0] is True


SETTINGS = [
    "SET datestyle = 'German'",
    "SET timezone = 'Pacific/Kiritimati'",
    "SET transform_null_equals = on",
    "SET row_security = off",
    "SET standard_conforming_strings = off",
    "SET array_nulls = off",
    "SET check_function_bodies = off",
    "SET default_transaction_deferrable = on",
    "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_the_writers_changes_what_the_guard_says(connect: Connect, setting: str) -> None:
    connection = connect(autocommit=True)
    connection.execute(setting)
    with refused("ZG005"):
        connection.execute(WRITE)
    with refused("ZG003"):
        connection.execute(PASS, (jti(), "order-17", 1, lease(-1)))
    with connection.transaction():
        write(connection)
    with refused("ZG001"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
    assert rows(connect) == 1


def test_a_login_without_the_role_reaches_nothing_of_the_guard(
    cluster: Cluster, database: str, connect: Connect
) -> None:
    cluster.execute("postgres", "DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN")
    cluster.execute(database, "GRANT ALL ON payments TO stranger")
    for change in (
        "SELECT * FROM countersign_guard.passes",
        f"SELECT countersign_guard.pass('{jti()}', 'order-17', '{TRANSITION}', 'write', 1, now() + interval '1 minute')",
        f"SELECT countersign_guard.settle('order-17', '{TRANSITION}', 'write')",
        WRITE,
    ):
        with pytest.raises(psycopg.Error) as refusal, connect("stranger") as connection:
            connection.execute(change)
        assert refusal.value.sqlstate in ("42501", "ZG005")
    cluster.execute(database, "REVOKE ALL ON payments FROM stranger")
    cluster.execute("postgres", "DROP ROLE stranger")


# ── Protectors, and tables of other owners ──────────────────────────────────────────────────────────────────


@pytest.fixture
def owner(cluster: Cluster, database: str) -> Iterator[str]:
    """A login that may protect tables, has a schema for its own, and on `payments` every right but the owner's."""
    cluster.execute(
        database,
        "CREATE ROLE owner LOGIN",
        "CREATE SCHEMA owner AUTHORIZATION owner",
        "GRANT countersign_protector, countersign_writer TO owner",
        "GRANT ALL ON payments TO owner",
    )
    try:
        yield "owner"
    finally:
        cluster.execute(database, "DROP OWNED BY owner CASCADE", "DROP ROLE owner")


# A role with TRIGGER can create other triggers, which `ways_past` reports.
ALLOWED = ("add a trigger", "use the trigger elsewhere")
ELSEWHERE = {it: change for it, change in TAMPERING.items() if it not in ALLOWED} | {
    "protect another column": "SELECT countersign_guard.protect('payments', 'amount')",
    "disable one": "ALTER TABLE payments DISABLE TRIGGER countersign_guard_rows",
    "a trigger in the place of one": "CREATE TRIGGER countersign_guard_rows AFTER INSERT ON payments "
    "FOR EACH ROW EXECUTE FUNCTION countersign_guard.require_pass('amount')",
    "let another protect": "GRANT countersign_protector TO ledger",
    "call the trigger": "SELECT countersign_guard.require_pass()",
}


@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_who_may_protect_tables_changes_nothing_of_anothers(connect: Connect, owner: str, change: str) -> None:
    with pytest.raises(psycopg.Error) as refusal, connect(owner) as connection:
        connection.execute(change)
    assert refusal.value.sqlstate in ("42501", "42883", "42809", "42710", "0A000")
    with refused("ZG005"), connect() as connection:
        connection.execute(WRITE)


@pytest.mark.parametrize("into", ["json", "jsonb", "text", "varchar"])
def test_no_function_of_a_tables_owner_runs_as_the_guards(
    cluster: Cluster, database: str, connect: Connect, owner: str, into: str
) -> None:
    """By a cast of a type of theirs they could have had every pass deleted."""
    cluster.execute(
        database,
        "CREATE TYPE thread AS ENUM ('order-17')",
        f"CREATE FUNCTION as_{into}(thread) RETURNS {into} LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'it ran as %', current_user; END $$",
        f"CREATE CAST (thread AS {into}) WITH FUNCTION as_{into}(thread) AS IMPLICIT",
        "CREATE TABLE theirs (thread thread, others thread[])",
        "SELECT countersign_guard.protect('theirs', 'thread')",
        user=owner,
    )
    with connect(owner) as connection:
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
        connection.execute("INSERT INTO theirs VALUES ('order-17', '{order-17}')")
        connection.execute("UPDATE theirs SET thread = thread")
    with refused("ZG006"), connect(owner) as connection:
        connection.execute(PASS, (jti(), "order-18", 1, lease()))
        connection.execute("DELETE FROM theirs")
