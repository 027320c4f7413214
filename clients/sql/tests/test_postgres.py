"""The guard of PostgreSQL: who is let through, once, and every way past it that its authors could think of."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import psycopg
import pytest
from psycopg import IsolationLevel, errors

from conftest import SQL
from ids import LEASE, LONG, at_once, digest, jti, lease
from throwaway import Cluster

PASS = "SELECT countersign_guard.pass(%s, %s, %s, %s)"
WRITE = "INSERT INTO payments (thread, amount) VALUES ('order-17', 40)"
LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]

Connect = Callable[..., psycopg.Connection]


def refused(code: str) -> pytest.RaisesExc:
    return pytest.raises(psycopg.Error, check=lambda error: error.sqlstate == code)


def rows(connect: Connect) -> int:
    return connect("countersign").execute("SELECT count(*) FROM payments").fetchone()[0]


def write(connection: psycopg.Connection, fence: int = 1, *, id: str = "", thread: str = "order-17") -> None:
    connection.execute(PASS, (id or jti(), thread, fence, lease()))
    connection.execute(WRITE)


# ── Once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("id", [jti(), digest("no receipt was needed")])
def test_a_pass_lets_its_transaction_write_as_often_as_it_likes(connect: Connect, id: str) -> None:
    with connect() as connection:
        connection.execute(PASS, (id, "order-17", 1, lease()))
        for _ in range(3):
            connection.execute(WRITE)
        connection.execute("UPDATE payments SET amount = 41")
        connection.execute("DELETE FROM payments WHERE id = 1")
    assert rows(connect) == 2


@pytest.mark.parametrize("fence", [3, 2, 1])
def test_a_repeated_and_an_older_fence_is_refused(connect: Connect, fence: int) -> None:
    with connect() as connection:
        write(connection, 3)
    with refused("ZG001"), connect() as connection:
        write(connection, fence)
    assert rows(connect) == 1


def test_each_thread_has_its_own_fence(connect: Connect) -> None:
    for thread, fence in [("a", 5), ("b", 1), ("a", 6), ("b", 2)]:
        with connect() as connection:
            write(connection, fence, thread=thread)
    assert rows(connect) == 4


@pytest.mark.parametrize("thread", ["order-17", "another"])
def test_a_used_id_is_refused_under_any_fence_and_thread(connect: Connect, thread: str) -> None:
    id = jti()
    with connect() as connection:
        write(connection, 1, id=id)
    with connect() as connection:
        write(connection, 2)
    with refused("ZG002"), connect() as connection:
        write(connection, 3, id=id, thread=thread)
    assert rows(connect) == 2


def test_a_transaction_that_is_rolled_back_uses_nothing_up(connect: Connect) -> None:
    id = jti()
    with connect() as connection:
        write(connection, 1, id=id)
        connection.rollback()
    with connect() as connection:
        write(connection, 1, id=id)
    assert rows(connect) == 1


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("ZG004", (None, "order-17", 1, LEASE)),
        ("ZG004", (jti(), None, 1, LEASE)),
        ("ZG004", (jti(), "order-17", None, LEASE)),
        ("ZG004", (jti(), "order-17", 1, None)),
        ("ZG004", (jti(), "order-17", 1, "infinity")),
        ("ZG004", (jti(), "order-17", 1, LONG)),
        ("ZG003", (jti(), "order-17", 1, "-infinity")),
        ("ZG003", (jti(), "order-17", 1, lease(-1))),
        ("23514", (jti(), "order-17", 0, LEASE)),
        ("23514", (jti(), "order-17", -1, LEASE)),
        ("23514", ("short", "order-17", 1, LEASE)),
        ("23514", ("sha256:" + "A" * 64, "order-17", 1, LEASE)),
        ("23514", (jti() + "\n", "order-17", 1, LEASE)),
        ("23514", (jti(), "", 1, LEASE)),
        ("23514", (jti(), "order 17", 1, LEASE)),
        ("23514", (jti(), "a" * 129, 1, LEASE)),
    ],
)
def test_what_no_gateway_answers_is_refused(connect: Connect, code: str, arguments: tuple) -> None:
    with refused(code), connect() as connection:
        connection.execute(PASS, at_once(arguments))


# ── Late ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_lease_counts_by_the_clock_and_not_by_when_the_transaction_began(connect: Connect) -> None:
    connection = connect()
    connection.execute("SELECT 1")
    soon = lease(0.1)
    connection.execute("SELECT pg_sleep(0.2)")
    with refused("ZG003"):
        connection.execute(PASS, (jti(), "order-17", 1, soon))


def test_a_write_after_the_lease_is_refused_although_the_guard_was_passed_in_time(connect: Connect) -> None:
    with refused("ZG003"), connect() as connection:
        # Without the check at the end of the transaction, so that the trigger's own is seen.
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        connection.execute(PASS, (jti(), "order-17", 1, lease(0.3)))
        connection.execute(WRITE)
        connection.execute("SELECT pg_sleep(0.4)")
        connection.execute(WRITE)
    assert rows(connect) == 0


def test_a_transaction_that_was_stopped_before_its_commit_comes_too_late(connect: Connect) -> None:
    with refused("ZG003"), connect() as connection:
        connection.execute(PASS, (jti(), "order-17", 1, lease(0.3)))
        connection.execute(WRITE)
        connection.execute("SELECT pg_sleep(0.4)")
        connection.commit()
    assert rows(connect) == 0


def test_who_waited_for_another_is_looked_at_after_the_wait(connect: Connect) -> None:
    first, second = connect(), connect()
    first.execute(PASS, (jti(), "order-17", 1, lease()))
    soon = lease(0.3)
    waiting = Waiting(connect, second, lambda: second.execute(PASS, (jti(), "order-17", 2, soon)))
    connect("countersign").execute("SELECT pg_sleep(0.4)")
    first.commit()
    assert (waiting.outcome(), waiting.said) == ("ZG003", "countersign guard: the lease is past")


# ── Two at once ──────────────────────────────────────────────────────────────────────────────────────────────────


class Waiting:
    """A statement in a thread of its own, which by the time this is made waits for somebody's lock."""

    def __init__(self, connect: Connect, connection: psycopg.Connection, run: Callable[[], object]) -> None:
        self.code: str | None = None
        self.said: str | None = None
        pid = connection.info.backend_pid

        def body() -> None:
            try:
                run()
                connection.commit()
            except psycopg.Error as error:
                self.code, self.said = error.sqlstate, error.diag.message_primary
                connection.rollback()

        self._thread = threading.Thread(target=body)
        self._thread.start()
        watcher = connect("countersign", autocommit=True)
        until = time.monotonic() + 20
        asked = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        while not watcher.execute(asked, (pid,)).fetchone()[0]:
            assert time.monotonic() < until, "it does not wait"

    def outcome(self) -> str | None:
        self._thread.join(20)
        assert not self._thread.is_alive(), "it still waits"
        return self.code


@pytest.mark.parametrize("level", LEVELS, ids=lambda it: it.name)
@pytest.mark.parametrize(
    ("first_fence", "second_fence", "codes"),
    [(1, 2, {None}), (2, 1, {"ZG001"}), (1, 1, {"ZG001"})],
    ids=["newer waits for older", "older waits for newer", "the same twice"],
)
@pytest.mark.parametrize("known", [True, False], ids=["a known thread", "a new thread"])
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_of_two_at_once_one_waits_and_then_knows(
    connect: Connect, level: IsolationLevel, first_fence: int, second_fence: int, codes: set, known: bool, ends: str
) -> None:
    base = 10
    if known:
        with connect() as connection:
            write(connection, base)
    before = rows(connect)
    first, second = connect(), connect()
    first.isolation_level = second.isolation_level = level
    for each in (first, second):
        each.execute("SELECT count(*) FROM payments")  # both have their snapshot
    write(first, base + first_fence)
    waiting = Waiting(connect, second, lambda: write(second, base + second_fence))
    getattr(first, ends)()
    if ends == "rollback":
        codes = {None}
    elif level is not IsolationLevel.READ_COMMITTED:
        codes = {"40001"}  # it decided by what it saw before, and begins anew
    assert waiting.outcome() in codes
    assert rows(connect) - before == (ends == "commit") + (waiting.code is None)


@pytest.mark.parametrize("level", LEVELS, ids=lambda it: it.name)
def test_of_two_threads_that_use_one_id_at_once_one_writes(connect: Connect, level: IsolationLevel) -> None:
    id = jti()
    first, second = connect(), connect()
    first.isolation_level = second.isolation_level = level
    for each in (first, second):
        each.execute("SELECT count(*) FROM payments")
    write(first, id=id, thread="a")
    waiting = Waiting(connect, second, lambda: write(second, id=id, thread="b"))
    first.commit()
    assert waiting.outcome() == ("ZG002" if level is IsolationLevel.READ_COMMITTED else "40001")
    assert rows(connect) == 1


@pytest.mark.parametrize("level", LEVELS, ids=lambda it: it.name)
def test_of_twenty_at_once_with_one_fence_one_writes(connect: Connect, level: IsolationLevel) -> None:
    connections = [connect() for _ in range(20)]
    begin = threading.Barrier(len(connections))

    def run(connection: psycopg.Connection) -> None:
        connection.isolation_level = level
        connection.execute("SELECT count(*) FROM payments")
        begin.wait(20)
        try:
            write(connection, 1)
            connection.commit()
        except psycopg.Error:
            connection.rollback()

    threads = [threading.Thread(target=run, args=(it,)) for it in connections]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert rows(connect) == 1


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
        write(connection)
    # Even the superuser, for whom the triggers fire as well, as long as they do not take them away.
    for user in ("ledger", "countersign"):
        with pytest.raises(psycopg.Error) as refusal, connect(user) as connection:
            connection.execute(change)
        # The setting, and the sequence that TRUNCATE restarts, are not the writer's; the rest is refused by the guard.
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
            f"DO $$ BEGIN PERFORM countersign_guard.pass('{jti()}', 'order-17', 1, '{lease()}'); RAISE division_by_zero;"
            " EXCEPTION WHEN division_by_zero THEN NULL; END $$"
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
    """Numbers of transactions begin anew in a database that was restored from a dump."""
    with refused("ZG003"), connect("countersign") as connection:
        connection.execute(
            "INSERT INTO countersign_guard.passes (id, thread, fence, lease_expires_at, wrote, transaction) "
            "SELECT %s, 'order-17', 1, clock_timestamp() - interval '1 day', true, pg_current_xact_id()",
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


# ── The writer's own login ───────────────────────────────────────────────────────────────────────────────────────

TAMPERING = {
    "make a pass": "INSERT INTO countersign_guard.passes (id, thread, fence, lease_expires_at, wrote) VALUES "
    f"('{jti()}', 'order-17', 1, now() + interval '1 hour', true)",
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
    "overload the function": "CREATE FUNCTION countersign_guard.pass(text, text, int, text) RETURNS void "
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
    # Where the guard's owner may not look, nothing is found.
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
        f"SELECT countersign_guard.pass('{jti()}', 'order-17', 1, now() + interval '1 minute')",
        f"SELECT countersign_guard.settle('{jti()}', 'order-17')",
        WRITE,
    ):
        with pytest.raises(psycopg.Error) as refusal, connect("stranger") as connection:
            connection.execute(change)
        assert refusal.value.sqlstate in ("42501", "ZG005")
    cluster.execute(database, "REVOKE ALL ON payments FROM stranger")
    cluster.execute("postgres", "DROP ROLE stranger")


# ── What is told of ways past ────────────────────────────────────────────────────────────────────────────────────

OPENED = {
    "is a superuser": "ALTER ROLE {} SUPERUSER",
    "may create roles": "ALTER ROLE {} CREATEROLE",
    "can be countersign_guard": "GRANT countersign_guard TO {}",
    "can be pg_write_all_data": "GRANT pg_write_all_data TO {}",
    "can be the owner of public.payments": "GRANT keeper TO {}",
    "or of its schema": "ALTER SCHEMA public OWNER TO {}",
    "and drop it": "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO {}', current_database()); END $$",
    "may make triggers on public.payments": "GRANT TRIGGER ON payments TO {}",
    "may write to countersign_guard.threads": "GRANT UPDATE ON countersign_guard.threads TO {}",
    "may write to countersign_guard.passes": "GRANT INSERT ON countersign_guard.passes TO {}",
    "may write to countersign_guard.passes itself": "GRANT UPDATE (transaction) ON countersign_guard.passes TO {}",
    "may make things in the schema": "GRANT CREATE ON SCHEMA countersign_guard TO {}",
    "public.payments lacks its trigger countersign_guard_rows": "ALTER TABLE payments DISABLE TRIGGER countersign_guard_rows",
    "public.payments lacks its trigger countersign_guard_truncate": "DROP TRIGGER countersign_guard_truncate ON payments",
    "or it does not fire always": "ALTER TABLE payments ENABLE TRIGGER countersign_guard_rows",
}


@pytest.mark.parametrize(("sentence", "opening"), OPENED.items(), ids=OPENED.keys())
def test_a_way_past_is_told(cluster: Cluster, database: str, connect: Connect, sentence: str, opening: str) -> None:
    asked = "SELECT countersign_guard.ways_past('clerk')"
    cluster.execute(database, "CREATE ROLE clerk LOGIN", "GRANT countersign_writer TO clerk")
    cluster.execute(database, "GRANT SELECT, INSERT, UPDATE, DELETE ON payments TO clerk")
    try:
        assert connect("countersign").execute(asked).fetchall() == []
        cluster.execute(database, opening.format("clerk"))
        assert any(sentence in it for (it,) in connect("countersign").execute(asked))
    finally:
        cluster.execute(
            database,
            "ALTER SCHEMA public OWNER TO pg_database_owner",
            "REASSIGN OWNED BY clerk TO countersign",
            "DROP OWNED BY clerk",
            "DROP ROLE clerk",
        )


# ── Looking back ─────────────────────────────────────────────────────────────────────────────────────────────────

SETTLE = "SELECT wrote, written_fence, result FROM countersign_guard.settle(%s, %s, %s)"


def test_what_was_written_is_told_with_what_was_noted(connect: Connect) -> None:
    id = jti()
    with connect() as connection:
        write(connection, 4, id=id)
        connection.execute("SELECT countersign_guard.note(%s, %s)", (id, '{"result_ref": "payments:1"}'))
    for fence in (4, None):
        with connect() as connection:
            assert connection.execute(SETTLE, (id, "order-17", fence)).fetchone() == (
                True,
                4,
                {"result_ref": "payments:1"},
            )


@pytest.mark.parametrize("fence", [4, None], ids=["by its fence", "by its id"])
def test_what_was_settled_as_not_written_is_never_written(connect: Connect, fence: int | None) -> None:
    id = jti()
    with connect() as connection:
        assert connection.execute(SETTLE, (id, "order-17", fence)).fetchone()[0] is False
    with refused("ZG001" if fence else "ZG002"), connect() as connection:
        write(connection, 4, id=id)
    with connect() as connection:
        assert connection.execute(SETTLE, (id, "order-17", fence)).fetchone()[0] is False
    assert rows(connect) == 0


@pytest.mark.parametrize(("settled", "then", "code"), [(4, 4, "ZG001"), (2, 3, "ZG001"), (4, 5, None), (2, 4, None)])
def test_settling_ends_its_fence_and_brings_none_back(
    connect: Connect, settled: int, then: int, code: str | None
) -> None:
    with connect() as connection:
        write(connection, 3)
    with connect() as connection:
        connection.execute(SETTLE, (jti(), "order-17", settled))
    with refused(code) if code else contextlib.nullcontext(), connect() as connection:
        write(connection, then)
    assert rows(connect) == (1 if code else 2)


def test_a_fence_that_was_settled_leaves_its_transition_to_the_next_one(connect: Connect) -> None:
    """A head that needs no receipt is free again after an abort, and is then known by the same digest."""
    id = digest("a head")
    with connect() as connection:
        connection.execute(SETTLE, (id, "order-17", 4))
    with connect() as connection:
        write(connection, 5, id=id)
    with connect() as connection:
        assert connection.execute(SETTLE, (id, "order-17", 4)).fetchone()[:2] == (True, 5)


@pytest.mark.parametrize("fence", [1, None], ids=["by its fence", "by its id"])
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_settling_waits_for_whoever_is_about_to_commit(connect: Connect, fence: int | None, ends: str) -> None:
    id, told = jti(), []
    writer, other = connect(), connect()
    write(writer, 1, id=id)
    waiting = Waiting(connect, other, lambda: told.append(other.execute(SETTLE, (id, "order-17", fence)).fetchone()[0]))
    getattr(writer, ends)()
    assert waiting.outcome() is None
    assert told == [ends == "commit"]
    assert rows(connect) == (ends == "commit")


def test_who_falls_silent_keeps_nobody_waiting_for_longer_than_its_lease(connect: Connect) -> None:
    """As a machine that lost its power does: the server does not hear of that."""
    id = jti()
    silent, other = connect(), connect()
    silent.execute(PASS, (id, "order-17", 1, lease(0.2)))
    silent.execute(WRITE)
    other.execute("SET statement_timeout = '20s'")
    assert other.execute(SETTLE, (id, "order-17", 1)).fetchone()[0] is False
    other.commit()
    with pytest.raises(errors.IdleInTransactionSessionTimeout):
        silent.commit()
    silent.close()
    assert rows(connect) == 0


@pytest.mark.parametrize(("own", "then"), [("0", "32s"), ("1h", "32s"), ("5s", "5s")])
def test_a_login_that_is_more_impatient_stays_so(connect: Connect, own: str, then: str) -> None:
    connection = connect(autocommit=True)
    connection.execute(f"SET idle_in_transaction_session_timeout = '{own}'")
    with connection.transaction():
        connection.execute(PASS, (jti(), "order-17", 1, lease(29.9)))
        within = connection.execute(
            "SELECT current_setting('idle_in_transaction_session_timeout')::interval"
        ).fetchone()[0]
    after = connection.execute("SELECT current_setting('idle_in_transaction_session_timeout')").fetchone()[0]
    assert after == own
    assert 0 <= float(then[:-1]) - within.total_seconds() < (5 if then == "32s" else 1e-9)


def test_nobody_settles_what_they_are_about_to_write(connect: Connect) -> None:
    id = jti()
    with refused("ZG004"), connect() as connection:
        write(connection, 1, id=id)
        connection.execute(SETTLE, (id, "order-17", 1))


def test_only_the_transaction_that_passed_notes_what_it_did(connect: Connect) -> None:
    id = jti()
    with connect() as connection:
        write(connection, 1, id=id)
    for another in (id, jti()):
        with refused("ZG005"), connect() as connection:
            connection.execute("SELECT countersign_guard.note(%s, '{}')", (another,))


# ── Putting it there ─────────────────────────────────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize(
    "first",
    [
        "CREATE SCHEMA countersign_guard",
        "DROP OWNED BY countersign_guard, countersign_writer CASCADE; ALTER ROLE countersign_guard LOGIN",
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
