"""Rows of PostgreSQL that are bound to their thread, and tables that are made of parts."""

from __future__ import annotations

import pytest

from conftest import Connect
from ids import jti, lease
from passing import PASS, refused
from throwaway import Cluster

# ── Bound to the row's thread ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bound(cluster: Cluster, database: str, connect: Connect) -> Connect:
    """`payments` with a row of thread `a` and one of `b`, each row bound to its thread."""
    cluster.execute(database, "SELECT countersign_guard.protect('payments', 'thread')")
    for thread in ("a", "b"):
        with connect() as connection:
            connection.execute(PASS, (jti(), thread, 1, lease()))
            connection.execute("INSERT INTO payments (thread, amount) VALUES (%s, 1)", (thread,))
    return connect


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO payments (thread, amount) VALUES ('b', 1)",
        "UPDATE payments SET amount = 2",
        "UPDATE payments SET amount = 2 WHERE thread = 'b'",
        "UPDATE payments SET thread = 'a' WHERE thread = 'b'",
        "UPDATE payments SET thread = 'b' WHERE thread = 'a'",
        "DELETE FROM payments",
        "DELETE FROM payments WHERE thread = 'b'",
        "TRUNCATE payments",
    ],
)
def test_a_pass_for_one_thread_does_not_touch_rows_of_another(bound: Connect, change: str) -> None:
    with refused("ZG006") as refusal, bound() as connection:
        connection.execute(PASS, (jti(), "a", 2, lease()))
        connection.execute(change)
    assert ("has rows of other threads" in str(refusal.value)) == change.startswith("TRUNCATE")
    found = bound("countersign").execute("SELECT thread, amount FROM payments ORDER BY 1").fetchall()
    assert found == [("a", 1), ("b", 1)]


def test_a_row_without_a_thread_is_nobodys(cluster: Cluster, database: str, bound: Connect) -> None:
    cluster.execute(database, "ALTER TABLE payments ALTER thread DROP NOT NULL")
    with refused("ZG006"), bound() as connection:
        connection.execute(PASS, (jti(), "a", 2, lease()))
        connection.execute("INSERT INTO payments (thread, amount) VALUES (NULL, 1)")


def test_a_transaction_may_pass_for_several_threads(bound: Connect) -> None:
    with bound() as connection:
        connection.execute(PASS, (jti(), "a", 2, lease()))
        connection.execute(PASS, (jti(), "b", 2, lease()))
        connection.execute("UPDATE payments SET amount = 2")
    assert bound("countersign").execute("SELECT sum(amount) FROM payments").fetchone() == (4,)


# ── Parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["partitions", "inheritors"])
def parts(request: pytest.FixtureRequest, cluster: Cluster, database: str) -> str:
    how = {
        "partitions": [
            "CREATE TABLE refunds (thread text, part int) PARTITION BY LIST (part)",
            "CREATE TABLE refunds_1 PARTITION OF refunds FOR VALUES IN (1)",
            "CREATE TABLE refunds_2 PARTITION OF refunds FOR VALUES IN (2) PARTITION BY LIST (part)",
            "CREATE TABLE refunds_3 PARTITION OF refunds_2 FOR VALUES IN (2)",
        ],
        "inheritors": [
            "CREATE TABLE refunds (thread text, part int)",
            "CREATE TABLE refunds_1 () INHERITS (refunds)",
            "CREATE TABLE refunds_2 () INHERITS (refunds)",
            "CREATE TABLE refunds_3 () INHERITS (refunds_2)",
        ],
    }[request.param]
    protect = [
        "SELECT countersign_guard.protect('refunds', 'thread')",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO ledger",
    ]
    cluster.execute(database, *how, *protect)
    return request.param


def test_no_part_of_a_table_is_written_past_it(parts: str, connect: Connect) -> None:
    with connect() as connection:
        connection.execute(PASS, (jti(), "a", 1, lease()))
        connection.execute("INSERT INTO refunds_1 VALUES ('a', 1)")
        connection.execute("INSERT INTO refunds_3 VALUES ('a', 2)")
    for table in ("refunds", "refunds_1", "refunds_3"):
        changes = [f"DELETE FROM {table}", f"UPDATE {table} SET part = part", f"TRUNCATE {table}"]
        changes.append(f"INSERT INTO {table} VALUES ('a', {1 if table != 'refunds_3' else 2})")
        for change in changes:
            with refused("ZG005"), connect() as connection:
                connection.execute(change)
    assert connect("countersign").execute("SELECT count(*) FROM refunds").fetchone() == (2,)


def test_what_stands_unprotected_is_told(parts: str, cluster: Cluster, database: str, connect: Connect) -> None:
    asked = "SELECT countersign_guard.ways_past('ledger')"
    assert not [it for (it,) in connect("countersign").execute(asked) if "lacks" in it]
    added = "PARTITION OF refunds FOR VALUES IN (4)" if parts == "partitions" else "() INHERITS (refunds)"
    cluster.execute(database, f"CREATE TABLE refunds_4 {added}")
    lacking = [it for (it,) in connect("countersign").execute(asked) if "lacks" in it]
    assert any("refunds_4 lacks its trigger countersign_guard_truncate" in it for it in lacking)
    cluster.execute(database, "SELECT countersign_guard.protect('refunds', 'thread')")
    assert not [it for (it,) in connect("countersign").execute(asked) if "lacks" in it]


@pytest.mark.parametrize("what", ["payments_id_seq", "a_view", "part"])
def test_what_is_no_table_cannot_be_protected(cluster: Cluster, database: str, what: str) -> None:
    cluster.execute(
        database,
        "CREATE VIEW a_view AS SELECT 1 AS it",
        "CREATE TABLE whole (it int) PARTITION BY LIST (it)",
        "CREATE TABLE part PARTITION OF whole FOR VALUES IN (1)",
    )
    with refused("ZG004"):
        cluster.execute(database, f"SELECT countersign_guard.protect('{what}')")


def test_a_column_that_is_not_there_cannot_bind(cluster: Cluster, database: str) -> None:
    with refused("ZG004"):
        cluster.execute(database, "SELECT countersign_guard.protect('payments', 'job')")


def test_a_column_that_was_renamed_lets_nothing_through(cluster: Cluster, database: str, bound: Connect) -> None:
    cluster.execute(database, "ALTER TABLE payments RENAME thread TO job")
    with refused("ZG006"), bound() as connection:
        connection.execute(PASS, (jti(), "a", 2, lease()))
        connection.execute("INSERT INTO payments (job, amount) VALUES ('a', 1)")
