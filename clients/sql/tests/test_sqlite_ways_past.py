"""Bypasses of SQLite's guard by statements of a connection with an open pass, and by writes without triggers.

A program that may change the schema, register functions or disable triggers can do anything, as the page says.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SQL
from ids import jti, lease
from passing_sqlite import END, PASS, TRANSITION, WRITE, opened, refused, rows, write

# ── Settings of a connection ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def of_two(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A row of thread `b` and one of `a`, which has an open pass."""
    for thread in ("b", "a"):
        write(connection, thread=thread)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(PASS, (jti(), "a", 2, lease()))
    return connection


@pytest.mark.parametrize(
    "change",
    [
        "REPLACE INTO payments (id, thread, amount) VALUES (1, 'a', 9)",
        "INSERT OR REPLACE INTO payments (id, thread, amount) VALUES (1, 'a', 9)",
        "UPDATE OR REPLACE payments SET id = 1 WHERE thread = 'a'",
        "UPDATE OR REPLACE countersign_guard SET rowid = 1, open = NULL WHERE open = 1",
    ],
)
def test_nothing_is_replaced_unseen_once_the_pass_is_taken(of_two: sqlite3.Connection, change: str) -> None:
    of_two.execute("PRAGMA recursive_triggers = OFF")
    with refused("recursive_triggers = ON is needed"):
        of_two.execute(change)
    of_two.execute("ROLLBACK")
    assert of_two.execute("SELECT thread FROM payments ORDER BY 1").fetchall() == [("a",), ("b",)]
    assert of_two.execute("SELECT count(*) FROM countersign_guard").fetchone() == (2,)


def test_a_pass_keeps_its_place(of_two: sqlite3.Connection) -> None:
    with refused("can only be ended"):
        of_two.execute("UPDATE countersign_guard SET rowid = 9, open = NULL WHERE open = 1")


def test_an_open_pass_is_not_forgotten_by_deferring_keys(file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA defer_foreign_keys = ON")
    connection.execute("BEGIN")
    with refused("defer_foreign_keys = OFF is needed"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    connection.execute(PASS, (jti(), "order-17", 1, lease()))
    connection.execute(WRITE)
    for setting in ("ON", "OFF"):
        connection.execute(f"PRAGMA defer_foreign_keys = {setting}")
    connection.execute("PRAGMA foreign_keys = OFF")
    with refused("FOREIGN KEY"):
        connection.execute("COMMIT")
    connection.execute("ROLLBACK")
    assert rows(file) == 0


def test_no_pass_is_given_where_nothing_can_be_rolled_back(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = OFF")
    with refused("journal_mode = OFF takes no write back"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))


def test_a_pass_is_one_of_two_kinds_also_where_checks_are_ignored(connection: sqlite3.Connection) -> None:
    write(connection)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    with refused("wrote is 0 or 1"):
        connection.execute(
            "INSERT INTO countersign_guard (thread, transition, write_id, lease_expires_at, wrote, open) "
            f"VALUES ('order-17', '{TRANSITION}', 'write', '{lease()}', 2, 1)"
        )


# ── Without a trigger ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python opens BLOBs from 3.11 on")
@pytest.mark.parametrize(
    ("table", "column"),
    [("payments", "thread"), ("countersign_guard", "lease_expires_at"), ("countersign_guard", "result")],
)
def test_no_text_is_written_by_blob_io(connection: sqlite3.Connection, table: str, column: str) -> None:
    write(connection)
    with pytest.raises(sqlite3.OperationalError, match="indexed column"):
        connection.blobopen(table, column, 1)


def test_what_has_no_triggers_cannot_be_protected(tmp_path: Path) -> None:
    template = (SQL / "sqlite_protect.sql").read_text().replace("PROTECTED", "notes").replace("THREAD", "thread")
    for made in ("CREATE VIRTUAL TABLE notes USING fts5(thread)", "CREATE VIEW notes AS SELECT 'a' AS thread"):
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.executescript((SQL / "sqlite.sql").read_text())
            connection.execute(made)
            with pytest.raises(sqlite3.OperationalError, match="may not be indexed"):
                connection.executescript(template)


# ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "shadow",
    [
        "CREATE TEMP TABLE countersign_guard AS SELECT 1 AS open, '9999' AS lease_expires_at, 'order-17' AS thread",
        "CREATE TEMP VIEW countersign_guard AS SELECT 1 AS open, '9999' AS lease_expires_at, 'order-17' AS thread",
        "CREATE TEMP TRIGGER it BEFORE INSERT ON main.payments BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TEMP TRIGGER it AFTER INSERT ON main.payments BEGIN UPDATE payments SET amount = 0; END",
    ],
)
def test_temporary_names_do_not_shadow_the_guards(file: Path, connection: sqlite3.Connection, shadow: str) -> None:
    write(connection)
    connection.execute(shadow)
    with contextlib.suppress(sqlite3.IntegrityError):
        connection.execute("INSERT INTO main.payments (thread, amount) VALUES ('order-17', 41)")
    with opened(file) as other:
        assert other.execute("SELECT amount FROM payments").fetchall() == [(40,)]


def test_temporary_tables_do_not_shadow_the_settings(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE pragma_foreign_keys AS SELECT 1 AS foreign_keys")
    connection.execute("PRAGMA foreign_keys = OFF")
    with refused("foreign_keys = ON is needed"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))


def test_a_file_that_is_attached_is_guarded_as_well(file: Path, connection: sqlite3.Connection) -> None:
    write(connection)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as other:
        other.execute("ATTACH ? AS ledger", (str(file),))
        other.execute("CREATE TABLE countersign_guard AS SELECT 1 AS open, '9999' AS lease_expires_at, 'a' AS thread")
        for change in (
            "INSERT INTO ledger.payments (thread, amount) VALUES ('a', 1)",
            "UPDATE ledger.payments SET amount = 1",
            "DELETE FROM ledger.payments",
        ):
            with refused("has passed the guard"):
                other.execute(change)


# ── Tables of other kinds ────────────────────────────────────────────────────────────────────────────────────────

TABLES = {
    "generated": "order_id TEXT, thread TEXT GENERATED ALWAYS AS ('order-' || order_id) VIRTUAL",
    "stored": "order_id TEXT, thread TEXT GENERATED ALWAYS AS ('order-' || order_id) STORED",
    "a number": "order_id TEXT, thread INTEGER",
    "case": "order_id TEXT, thread TEXT COLLATE NOCASE",
}


@pytest.fixture
def kind(request: pytest.FixtureRequest, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A protected table `kinds` with those columns."""
    connection.execute(f"CREATE TABLE kinds ({request.param})")
    template = (SQL / "sqlite_protect.sql").read_text()
    connection.executescript(template.replace("PROTECTED", "kinds").replace("THREAD", "thread"))
    connection.execute("BEGIN")
    yield connection
    connection.execute("ROLLBACK")


@pytest.mark.parametrize("kind", [TABLES["generated"], TABLES["stored"]], indirect=True)
def test_a_thread_that_is_computed_is_compared_as_it_will_be(kind: sqlite3.Connection) -> None:
    kind.execute(PASS, (jti(), "order-1", 1, lease()))
    kind.execute("INSERT INTO kinds (order_id) VALUES ('1')")
    for change in ("INSERT INTO kinds (order_id) VALUES ('2')", "UPDATE kinds SET order_id = '2'"):
        with refused("has passed the guard"):
            kind.execute(change)


@pytest.mark.parametrize(
    ("kind", "passed", "named"),
    [(TABLES["a number"], "017", "17"), (TABLES["a number"], "17.0", "17"), (TABLES["case"], "ABC", "'abc'")],
    indirect=["kind"],
)
def test_a_thread_is_compared_by_its_letters(kind: sqlite3.Connection, passed: str, named: str) -> None:
    kind.execute(PASS, (jti(), passed, 1, lease()))
    with refused("has passed the guard"):
        kind.execute(f"INSERT INTO kinds (thread) VALUES ({named})")


@pytest.mark.parametrize("setting", ["ON", "OFF"])
@pytest.mark.parametrize(
    "change",
    ["DELETE FROM customers", "UPDATE customers SET id = 2", "REPLACE INTO customers VALUES (1)"],
)
def test_a_row_that_goes_with_another_one_is_guarded_as_well(
    connection: sqlite3.Connection, setting: str, change: str
) -> None:
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO customers VALUES (1)")
    connection.execute(
        "CREATE TABLE limits (c INTEGER REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE, t TEXT)"
    )
    connection.execute("INSERT INTO limits VALUES (1, 'a')")
    template = (SQL / "sqlite_protect.sql").read_text()
    connection.executescript(template.replace("PROTECTED", "limits").replace("THREAD", "t"))
    connection.execute(f"PRAGMA recursive_triggers = {setting}")
    with refused("has passed the guard|FOREIGN KEY"):
        connection.execute(change)
    assert connection.execute("SELECT c FROM limits").fetchall() == [(1,)]


# ── An earlier guard ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_guard_without_these_is_brought_up_by_running_its_files_again(
    file: Path, connection: sqlite3.Connection
) -> None:
    """An older guard without checks of later settings keeps its rows, and its triggers are replaced."""
    id = jti()
    write(connection, 7, id=id)
    for index in ("countersign_guard_no_blob_io", "payments_guarded_no_blob_io"):
        connection.execute(f"DROP INDEX {index}")
    for trigger in ("countersign_guard_insert", "countersign_guard_update", "payments_guarded_insert"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.executescript((SQL / "sqlite.sql").read_text())
    template = (SQL / "sqlite_protect.sql").read_text()
    connection.executescript(template.replace("PROTECTED", "payments").replace("THREAD", "thread"))
    with refused("fence is not newer"):
        write(connection, 7)
    connection.execute("BEGIN")
    connection.execute(PASS, (jti(), "order-17", 8, lease()))
    connection.execute("PRAGMA recursive_triggers = OFF")
    with refused("recursive_triggers = ON is needed"):
        connection.execute(WRITE)
    connection.execute("ROLLBACK")
    with pytest.raises(sqlite3.OperationalError, match="indexed column"):
        connection.blobopen("payments", "thread", 1)
    connection.execute("PRAGMA recursive_triggers = ON")
    assert connection.execute(END, (None, id)).rowcount == 0
