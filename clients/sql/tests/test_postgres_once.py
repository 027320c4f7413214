"""The guard of PostgreSQL lets each reservation through once: one after the other, and two at once."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import IsolationLevel

from conftest import Connect
from ids import LEASE, LONG, at_once, digest, jti, lease
from passing import LEVELS, PASS, TRANSITION, WRITE, Waiting, refused, rows, write

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


# ── Two at once ──────────────────────────────────────────────────────────────────────────────────────────────────


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
        codes = {"40001"}  # it decided by an old snapshot, and has to start again
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


# ── What a write is known by ─────────────────────────────────────────────────────────────────────────────────────

NAMED = "SELECT countersign_guard.pass(%s, %s, %s, %s, %s, %s)"


@pytest.mark.parametrize("same", ["the write", "the id"])
def test_neither_a_write_nor_an_id_is_passed_twice_beside_another_one(connect: Connect, same: str) -> None:
    """Another receipt does not make a write another one, and another write does not make a receipt good again."""
    id, write_id = jti(), "write-1"
    with connect() as connection:
        connection.execute(NAMED, (id, "order-17", TRANSITION, write_id, 1, lease()))
        connection.execute(WRITE)
    again = (jti(), write_id) if same == "the write" else (id, "write-2")
    with refused("ZG002"), connect() as connection:
        connection.execute(NAMED, (again[0], "order-17", TRANSITION, again[1], 2, lease()))
        connection.execute(WRITE)
    assert rows(connect) == 1


def test_an_id_that_wrote_another_transition_is_told_from_a_write_that_is_there(connect: Connect) -> None:
    id = jti()
    with connect() as connection:
        connection.execute(NAMED, (id, "order-17", TRANSITION, "write-1", 1, lease()))
        connection.execute(WRITE)
    for thread in ("order-17", "another"):
        with refused("ZG007"), connect() as connection:
            connection.execute(NAMED, (id, thread, digest("another head"), "write-2", 2, lease()))
    assert rows(connect) == 1


@pytest.mark.parametrize(
    ("code", "transition", "write_id"),
    [
        ("ZG004", None, "write-1"),
        ("ZG004", TRANSITION, None),
        ("23514", "sha256:" + "A" * 64, "write-1"),
        ("23514", TRANSITION + "\n", "write-1"),
        ("23514", TRANSITION, ""),
        ("23514", TRANSITION, "write 1"),
        ("23514", TRANSITION, "w" * 129),
    ],
)
def test_a_write_is_named_as_the_gateway_names_it(connect: Connect, code: str, transition: str, write_id: str) -> None:
    with refused(code), connect() as connection:
        connection.execute(NAMED, (jti(), "order-17", transition, write_id, 1, lease()))
