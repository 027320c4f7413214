"""A protected table of PostgreSQL: what is refused without a pass, and whose pass it is."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from conftest import Connect
from ids import jti, lease
from passing import PASS, TRANSITION, WRITE, refused, rows, write
from throwaway import Cluster

# ── Without a pass ───────────────────────────────────────────────────────────────────────────────────────────────

CHANGES = {
    "insert": WRITE,
    "update": "UPDATE payments SET amount = 0",
    "delete": "DELETE FROM payments",
    "truncate": "TRUNCATE payments",
    "restart": "TRUNCATE payments RESTART IDENTITY CASCADE",
    "upsert": "INSERT INTO payments VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET amount = 0",
    "with": "WITH gone AS (DELETE FROM payments RETURNING 1) SELECT * FROM gone",
    "merge": "MERGE INTO payments USING (SELECT 1) AS it ON true WHEN MATCHED THEN DELETE",
    "do": "DO $$ BEGIN DELETE FROM payments; EXCEPTION WHEN SQLSTATE '23505' THEN NULL; END $$",
    "prepared": "PREPARE it AS DELETE FROM payments; EXECUTE it",
    "replica": "SET session_replication_role = 'replica'; DELETE FROM payments",
    "without constraints": "SET CONSTRAINTS ALL DEFERRED; DELETE FROM payments",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nobody_changes_a_protected_table_without_a_pass(cluster: Cluster, connect: Connect, change: str) -> None:
    with connect() as connection:
        if change == CHANGES["merge"] and connection.info.server_version < 150000:
            pytest.skip("PostgreSQL has this from 15 on")
        write(connection)
    # Even the superuser, for whom the triggers fire as well, as long as they do not take them away.
    for user in ("ledger", "countersign"):
        with pytest.raises(psycopg.Error) as refusal, connect(user) as connection:
            connection.execute(change)
        # The setting and the sequence are not the writer's. The guard refuses the rest.
        own = user == "ledger" and change in (CHANGES["replica"], CHANGES["restart"])
        assert refusal.value.sqlstate == ("42501" if own else "ZG005")
    assert connect("countersign").execute("SELECT amount FROM payments").fetchall() == [(40,)]


def test_copy_is_a_write_too(connect: Connect) -> None:
    with refused("ZG005"), connect() as connection:
        with connection.cursor().copy("COPY payments (thread, amount) FROM STDIN") as copy:
            copy.write_row(("order-17", 1))
    assert rows(connect) == 0


def test_a_row_that_goes_with_another_one_is_guarded_as_well(cluster: Cluster, database: str, connect: Connect) -> None:
    cluster.execute(
        database,
        "CREATE TABLE customers (id int PRIMARY KEY)",
        "CREATE TABLE limits (customer int REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO customers VALUES (1)",
        "INSERT INTO limits VALUES (1)",
        "SELECT countersign_guard.protect('limits')",
        "GRANT ALL ON customers TO ledger",
    )
    for change in ("DELETE FROM customers", "UPDATE customers SET id = 2", "TRUNCATE customers CASCADE"):
        with pytest.raises(psycopg.Error) as refusal, connect() as connection:
            connection.execute(change)
        assert refusal.value.sqlstate in ("ZG005", "42501")
    assert connect("countersign").execute("SELECT customer FROM limits").fetchall() == [(1,)]


def test_a_view_and_a_function_of_somebody_else_are_no_way_around(
    cluster: Cluster, database: str, connect: Connect
) -> None:
    cluster.execute(
        database,
        "CREATE VIEW all_payments AS SELECT * FROM payments",
        "GRANT ALL ON all_payments TO ledger",
        "CREATE FUNCTION pay() RETURNS void LANGUAGE sql SECURITY DEFINER AS "
        "$$ INSERT INTO public.payments (thread, amount) VALUES ('x', 1) $$",
    )
    for change in ("DELETE FROM all_payments", "INSERT INTO all_payments VALUES (9, 'x', 1)", "SELECT pay()"):
        if change.startswith("DELETE"):
            with connect() as connection:
                write(connection)
        with refused("ZG005"), connect() as connection:
            connection.execute(change)
    assert rows(connect) == 1


# ── A pass of another transaction ────────────────────────────────────────────────────────────────────────────────


def test_a_pass_ends_with_its_transaction(connect: Connect) -> None:
    connection = connect()
    write(connection)
    connection.commit()
    with refused("ZG005"):
        connection.execute(WRITE)
    connection.rollback()
    assert rows(connect) == 1


def test_a_pass_without_a_transaction_around_it_opens_nothing(connect: Connect) -> None:
    connection = connect(autocommit=True)
    connection.execute(PASS, (jti(), "order-17", 1, lease()))
    with refused("ZG005"):
        connection.execute(WRITE)


def test_a_pass_that_a_savepoint_took_back_opens_nothing(connect: Connect) -> None:
    with refused("ZG005"), connect() as connection:
        connection.execute("SAVEPOINT before")
        write(connection)
        connection.execute("ROLLBACK TO before")
        connection.execute(WRITE)
    assert rows(connect) == 0


def test_a_pass_that_an_exception_took_back_opens_nothing(connect: Connect) -> None:
    with refused("ZG005"), connect() as connection:
        connection.execute(
            f"DO $$ BEGIN PERFORM countersign_guard.pass('{jti()}', 'order-17', '{TRANSITION}', 'write', 1, '{lease()}');"
            " RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $$"
        )
        connection.execute(WRITE)


def test_a_pass_within_a_savepoint_that_stays_is_the_transactions(connect: Connect) -> None:
    with connect() as connection:
        connection.execute("SAVEPOINT within")
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
        connection.execute("RELEASE within")
        connection.execute("SAVEPOINT other")
        connection.execute(WRITE)
        connection.execute("ROLLBACK TO other")
        connection.execute(WRITE)
    assert rows(connect) == 1


def test_a_pass_that_is_not_committed_opens_nothing_to_others(connect: Connect) -> None:
    first = connect()
    first.execute(PASS, (jti(), "order-17", 1, lease()))
    with refused("ZG005"), connect() as second:
        second.execute(WRITE)


def test_a_pass_that_a_dump_brought_along_opens_nothing(connect: Connect) -> None:
    """Transaction numbers start again in a database that was restored from a dump."""
    with refused("ZG003"), connect("countersign") as connection:
        connection.execute(
            "INSERT INTO countersign_guard.passes "
            "(id, thread, transition, write_id, fence, lease_expires_at, wrote, transaction) "
            f"SELECT %s, 'order-17', '{TRANSITION}', 'write', 1, clock_timestamp() - interval '1 day', true, pg_current_xact_id()",
            (jti(),),
        )
        connection.execute(WRITE)


def test_a_transaction_that_passed_cannot_be_prepared_for_later(connect: Connect) -> None:
    connection = connect(autocommit=True)
    connection.execute("BEGIN")
    write(connection)
    with pytest.raises(errors.FeatureNotSupported):
        connection.execute("PREPARE TRANSACTION 'for later'")
    assert connection.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)
    assert rows(connect) == 0
