"""The guard of SQLite. A file has no logins, so this is about writers that are late, repeated or mistaken."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from conftest import SQL
from ids import LEASE, LONG, at_once, digest, jti, lease
from passing_sqlite import END, PASS, TRANSITION, WRITE, opened, refused, rows, write

# ── Once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("id", [jti(), digest("no receipt was needed")])
def test_a_pass_lets_its_transaction_write_as_often_as_it_likes(
    file: Path, connection: sqlite3.Connection, id: str
) -> None:
    connection.execute("BEGIN")
    connection.execute(PASS, (id, "order-17", 1, lease()))
    for _ in range(3):
        connection.execute(WRITE)
    connection.execute("UPDATE payments SET amount = 41")
    connection.execute("DELETE FROM payments WHERE id = 1")
    connection.execute(END, (None, id))
    connection.execute("COMMIT")
    assert rows(file) == 2


@pytest.mark.parametrize("fence", [3, 2, "3", "2", 3.0])
def test_a_repeated_and_an_older_fence_is_refused(file: Path, connection: sqlite3.Connection, fence: object) -> None:
    write(connection, 3)
    with refused("fence is not newer"):
        write(connection, fence)
    write(connection, 1, thread="another")
    assert rows(file) == 2


@pytest.mark.parametrize("thread", ["order-17", "another"])
def test_a_used_id_is_refused_under_any_fence_and_thread(
    file: Path, connection: sqlite3.Connection, thread: str
) -> None:
    id = jti()
    write(connection, 1, id=id)
    write(connection, 2)
    with refused("id was used before"):
        write(connection, 3, id=id, thread=thread)
    assert rows(file) == 2


@pytest.mark.parametrize("policy", ["OR IGNORE", "OR REPLACE", "OR FAIL", "OR ABORT"])
def test_no_conflict_policy_passes_over_a_refusal(file: Path, connection: sqlite3.Connection, policy: str) -> None:
    id = jti()
    write(connection, 1, id=id)
    for again in ((id, "order-17", 2), (jti(), "order-17", 1)):
        with refused("countersign guard"):
            connection.execute(PASS.replace("INSERT", f"INSERT {policy}"), (*again, lease()))
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE.replace("INSERT", f"INSERT {policy}"))
    assert rows(file) == 1


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("must all be given", (jti(), "order-17", None, LEASE)),
        ("must all be given", (jti(), "order-17", 1, None)),
        ("neither a jti nor a digest", ("short", "order-17", 1, LEASE)),
        ("neither a jti nor a digest", ("sha256:" + "A" * 64, "order-17", 1, LEASE)),
        ("neither a jti nor a digest", (jti()[:-1] + "\n", "order-17", 1, LEASE)),
        ("thread is not a name", (jti(), "", 1, LEASE)),
        ("thread is not a name", (jti(), "order 17", 1, LEASE)),
        ("thread is not a name", (jti(), "-order", 1, LEASE)),
        ("thread is not a name", (jti(), "a" * 129, 1, LEASE)),
        ("CHECK constraint", (jti(), "order-17", 0, LEASE)),
        ("must all be given|cannot store", (jti(), "order-17", 1.5, LEASE)),
        ("not a moment", (jti(), "order-17", 1, "tomorrow")),
        ("not a moment", (jti(), "order-17", 1, "9999-12-31")),
        ("not a moment", (jti(), "order-17", 1, "now")),
        ("not a moment", (jti(), "order-17", 1, "2999-01-01T00:00:00.000+00:00")),
        ("not a moment", (jti(), "order-17", 1, "3000000.5")),
        ("lease is past", (jti(), "order-17", 1, lease(-1))),
        ("longer than any", (jti(), "order-17", 1, LONG)),
        ("must all be given", (None, "order-17", 1, LEASE)),
        ("NOT NULL", (jti(), None, 1, LEASE)),
    ],
)
def test_what_no_gateway_answers_is_refused(connection: sqlite3.Connection, message: str, arguments: tuple) -> None:
    with refused(message):
        connection.execute(PASS, at_once(arguments))
    assert connection.execute("SELECT count(*) FROM countersign_guard").fetchone() == (0,)


# ── Late ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def until(moment: float) -> None:
    """Waits for the clock, which no database lets be moved."""
    while time.time() < moment:
        time.sleep(0.01)


def test_what_comes_after_the_lease_is_refused_although_the_guard_was_passed_in_time(
    file: Path, connection: sqlite3.Connection
) -> None:
    id, over = jti(), time.time() + 1.05
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(PASS, (id, "order-17", 1, lease(1.0)))
    connection.execute(WRITE)
    until(over)
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE)
    with refused("before the transaction was committed"):
        connection.execute(END, (None, id))
    with refused("FOREIGN KEY"):
        connection.execute("COMMIT")
    connection.execute("ROLLBACK")
    assert rows(file) == 0


def test_who_waited_for_another_is_looked_at_after_the_wait(file: Path, connection: sqlite3.Connection) -> None:
    told: list[str] = []
    ready, soon = threading.Event(), lease(1.0)

    def late() -> None:
        with opened(file) as other:
            ready.set()
            try:
                write(other, 2, until=soon)
            except sqlite3.IntegrityError as error:
                told.append(str(error))

    connection.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=late)
    thread.start()
    ready.wait(10)
    until(time.time() + 1.05)
    connection.execute("ROLLBACK")
    thread.join(10)
    assert told == ["countersign guard: the lease is past"]


# ── Two at once ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_of_eight_at_once_with_one_fence_one_writes(file: Path, connection: sqlite3.Connection, journal: str) -> None:
    connection.execute(f"PRAGMA journal_mode = {journal}")
    begin, codes = threading.Barrier(8), []

    def run() -> None:
        with opened(file) as it:
            begin.wait(10)
            try:
                write(it, 1)
                codes.append("written")
            except sqlite3.Error as error:
                codes.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert codes.count("written") == 1
    assert rows(file) == 1


def test_who_decided_by_what_it_saw_before_cannot_write(file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with opened(file) as stale:
        stale.execute("BEGIN")
        stale.execute("SELECT count(*) FROM payments").fetchone()
        write(connection, 1)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            stale.execute(PASS, (jti(), "order-17", 1, lease()))


# ── Without a pass of its own ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "change",
    [
        WRITE,
        "REPLACE INTO payments VALUES (1, 'order-17', 2)",
        "INSERT INTO payments VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET amount = 0",
        "UPDATE payments SET amount = 0",
        "UPDATE OR REPLACE payments SET id = 1",
        "DELETE FROM payments",
        "DELETE FROM payments WHERE id = 1",
    ],
)
def test_nobody_changes_a_protected_table_without_a_pass(
    file: Path, connection: sqlite3.Connection, change: str
) -> None:
    write(connection)
    with refused("only by a transaction that has passed"):
        connection.execute(change)
    assert rows(file) == 1


def test_a_pass_that_is_left_open_is_not_committed(file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute(PASS, (jti(), "order-17", 1, lease()))
    connection.execute(WRITE)
    with refused("FOREIGN KEY"):
        connection.execute("COMMIT")
    connection.execute("ROLLBACK")
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE)
    with refused("FOREIGN KEY"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))  # without a transaction around it
    assert rows(file) == 0


def test_a_pass_that_was_ended_opens_nothing_more(file: Path, connection: sqlite3.Connection) -> None:
    id = jti()
    connection.execute("BEGIN")
    connection.execute(PASS, (id, "order-17", 1, lease()))
    connection.execute(END, (None, id))
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE)
    with refused("can only be ended"):
        connection.execute("UPDATE countersign_guard SET open = 1 WHERE id = ?", (id,))
    connection.execute("COMMIT")
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE)


def test_a_pass_that_a_savepoint_took_back_opens_nothing(file: Path, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("SAVEPOINT before")
    connection.execute(PASS, (jti(), "order-17", 1, lease()))
    connection.execute(WRITE)
    connection.execute("ROLLBACK TO before")
    with refused("only by a transaction that has passed"):
        connection.execute(WRITE)
    connection.execute("COMMIT")
    assert rows(file) == 0


@pytest.mark.parametrize("pragma", ["foreign_keys", "recursive_triggers"])
def test_a_connection_that_lacks_what_the_guard_rests_on_gets_no_pass(
    connection: sqlite3.Connection, pragma: str
) -> None:
    connection.execute(f"PRAGMA {pragma} = OFF")
    with refused(f"PRAGMA {pragma} = ON is needed"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))


def test_a_connection_that_trusts_no_schema_gets_no_pass(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
        connection.execute(PASS, (jti(), "order-17", 1, lease()))


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO payments (thread, amount) VALUES ('b', 1)",
        "INSERT INTO payments (thread, amount) VALUES (NULL, 1)",
        "REPLACE INTO payments SELECT id, 'a', 9 FROM payments WHERE thread = 'b'",
        "UPDATE payments SET amount = 2",
        "UPDATE payments SET thread = 'a' WHERE thread = 'b'",
        "UPDATE payments SET thread = 'b' WHERE thread = 'a'",
        "UPDATE OR REPLACE payments SET id = (SELECT id FROM payments WHERE thread = 'b') WHERE thread = 'a'",
        "DELETE FROM payments",
    ],
)
def test_a_pass_for_one_thread_does_not_touch_rows_of_another(connection: sqlite3.Connection, change: str) -> None:
    for thread in ("a", "b"):
        write(connection, thread=thread)
    connection.execute("BEGIN")
    connection.execute(PASS, (jti(), "a", 2, lease()))
    with refused("only by a transaction that has passed"):
        connection.execute(change)
    connection.execute("ROLLBACK")
    found = connection.execute("SELECT thread, amount FROM payments ORDER BY 1").fetchall()
    assert found == [("a", 40), ("b", 40)]


def test_the_template_without_threads_lets_any_pass_write(file: Path, connection: sqlite3.Connection) -> None:
    template = "".join(
        line for line in (SQL / "sqlite_protect.sql").read_text().splitlines(True) if "omit if" not in line
    )
    connection.execute("CREATE TABLE refunds (amount INTEGER)")
    connection.executescript(template.replace("PROTECTED", "refunds"))
    with refused("refunds is written only"):
        connection.execute("INSERT INTO refunds VALUES (1)")
    id = jti()
    connection.execute("BEGIN")
    connection.execute(PASS, (id, "anything", 1, lease()))
    connection.execute("INSERT INTO refunds VALUES (1)")
    connection.execute(END, (None, id))
    connection.execute("COMMIT")
    for change in ("INSERT INTO refunds VALUES (1)", "UPDATE refunds SET amount = 2", "DELETE FROM refunds"):
        with refused("refunds is written only"):
            connection.execute(change)


# ── The guard's own rows ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM countersign_guard",
        "UPDATE countersign_guard SET open = 1",
        "UPDATE countersign_guard SET fence = 0",
        "UPDATE countersign_guard SET wrote = 0",
        "UPDATE countersign_guard SET result = 'another'",
        "UPDATE OR REPLACE countersign_guard SET id = 'x'",
        "REPLACE INTO countersign_guard SELECT * FROM countersign_guard",
        "INSERT INTO countersign_guard_nothing VALUES (1)",
        "INSERT OR IGNORE INTO countersign_guard_nothing VALUES (1)",
        f"INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at, open) "
        f"VALUES ('{jti()}', 'x', '{TRANSITION}', 'write', 1, '{lease()}', 2)",
        f"INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at, open) "
        f"VALUES ('{jti()}', 'x', '{TRANSITION}', 'write', 1, '{lease()}', NULL)",
        f"INSERT INTO countersign_guard (thread, transition, write_id, wrote) VALUES ('x', '{TRANSITION}', 'write', 0)",
    ],
)
def test_rows_of_the_guard_are_not_edited(connection: sqlite3.Connection, change: str) -> None:
    write(connection)
    before = connection.execute("SELECT * FROM countersign_guard").fetchall()
    with refused("countersign guard"):
        connection.execute(change)
    assert connection.execute("SELECT * FROM countersign_guard").fetchall() == before


@pytest.mark.parametrize(
    "change",
    [
        "open = 2",
        f"open = NULL, lease_expires_at = '{lease(3000)}'",
        "open = NULL, fence = fence + 1",
        "open = NULL, thread = 'another'",
        f"open = NULL, transition = '{digest('another')}'",
        "open = NULL, write_id = 'another'",
        f"open = NULL, id = '{jti()}'",
        "open = NULL, wrote = 0",
        "open = NULL, passed_at = ''",
    ],
)
def test_of_an_open_pass_nothing_but_its_end_is_changed(connection: sqlite3.Connection, change: str) -> None:
    connection.execute("BEGIN")
    connection.execute(PASS, (jti(), "order-17", 1, lease()))
    with refused("can only be ended"):
        connection.execute(f"UPDATE countersign_guard SET {change}")
    connection.execute("ROLLBACK")


SETTLE = f"""
    INSERT INTO countersign_guard (thread, transition, write_id, fence, wrote, open)
    SELECT :thread, '{TRANSITION}', :write_id, :fence, 0, NULL
    WHERE NOT EXISTS (SELECT 1 FROM countersign_guard WHERE write_id = :write_id AND (wrote = 1 OR fence IS :fence))
"""


@pytest.mark.parametrize(("fence", "message"), [(4, "fence is not newer"), (None, "write was used before")])
def test_what_was_settled_as_not_written_is_never_written(
    file: Path, connection: sqlite3.Connection, fence: int | None, message: str
) -> None:
    id = jti()
    for _ in range(2):
        connection.execute(SETTLE, {"write_id": f"w{id.encode().hex().upper()}", "thread": "order-17", "fence": fence})
    with refused(message):
        write(connection, 4, id=id)
    if fence:
        write(connection, 5, id=id)
    assert rows(file) == (1 if fence else 0)
    assert len(connection.execute("SELECT * FROM countersign_guard WHERE wrote = 0").fetchall()) == 1


def test_it_can_be_put_there_again_and_forgets_nothing(file: Path, connection: sqlite3.Connection) -> None:
    write(connection, 7)
    connection.executescript((SQL / "sqlite.sql").read_text())
    with refused("fence is not newer"):
        write(connection, 7)


NAMED = """
    INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at) VALUES (?, ?, ?, ?, ?, ?)
"""


@pytest.mark.parametrize("same", ["the write", "the id"])
def test_neither_a_write_nor_an_id_is_passed_twice_beside_another_one(
    connection: sqlite3.Connection, same: str
) -> None:
    id, write_id = jti(), "write-1"
    connection.execute("BEGIN")
    connection.execute(NAMED, (id, "order-17", TRANSITION, write_id, 1, lease()))
    connection.execute(END, (None, id))
    connection.execute("COMMIT")
    again = (jti(), write_id) if same == "the write" else (id, "write-2")
    with refused(f"{same} was used before"):
        connection.execute(NAMED, (again[0], "order-17", TRANSITION, again[1], 2, lease()))


def test_an_id_that_wrote_another_transition_is_told_from_a_write_that_is_there(connection: sqlite3.Connection) -> None:
    id = jti()
    write(connection, id=id)
    for thread in ("order-17", "another"):
        with refused("the id was used for another transition"):
            connection.execute(NAMED, (id, thread, digest("another head"), "write-2", 2, lease()))


@pytest.mark.parametrize(
    ("message", "transition", "write_id"),
    [
        ("transition is not a digest", None, "write-1"),
        ("NOT NULL", TRANSITION, None),
        ("transition is not a digest", "sha256:" + "A" * 64, "write-1"),
        ("transition is not a digest", TRANSITION + "\n", "write-1"),
        ("write_id is not a name", TRANSITION, ""),
        ("write_id is not a name", TRANSITION, "write 1"),
        ("write_id is not a name", TRANSITION, "w" * 129),
    ],
)
def test_a_write_is_named_as_the_gateway_names_it(
    connection: sqlite3.Connection, message: str, transition: str, write_id: str
) -> None:
    with refused(message):
        connection.execute(NAMED, (jti(), "order-17", transition, write_id, 1, lease()))


def test_a_guard_that_keeps_no_write_id_is_not_built_upon(tmp_path: Path) -> None:
    """Its writes cannot be distinguished within a thread."""
    guard = (SQL / "sqlite.sql").read_text()
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        connection.executescript(
            "CREATE TABLE countersign_guard (id TEXT NOT NULL, thread TEXT NOT NULL, wrote INTEGER)"
        )
        with pytest.raises(sqlite3.OperationalError, match="no such column: transition"):
            connection.executescript(guard)
        connection.execute("ROLLBACK")
        # As the page says it.
        connection.executescript("DROP TABLE countersign_guard")
        connection.executescript(guard)
