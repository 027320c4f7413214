"""Looking back at PostgreSQL: what was written, and what never will be."""

from __future__ import annotations

import contextlib

import pytest

from conftest import Connect
from ids import digest, jti, lease
from passing import SETTLE, TRANSITION, Waiting, refused, rows, write


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


OTHERS = {
    "thread": ("order-18", TRANSITION, "write-1"),
    "transition": ("order-17", digest("another head"), "write-1"),
    "write_id": ("order-17", TRANSITION, "write-2"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_what_was_written_is_not_taken_for_another_write(connect: Connect, other: tuple[str, str, str]) -> None:
    settle = "SELECT wrote FROM countersign_guard.settle(%s, %s, %s)"
    with connect() as connection:
        arguments = (jti(), "order-17", TRANSITION, "write-1", 1, lease())
        connection.execute("SELECT countersign_guard.pass(%s, %s, %s, %s, %s, %s)", arguments)
    with connect() as connection:
        assert connection.execute(settle, other).fetchone() == (False,)
        assert connection.execute(settle, ("order-17", TRANSITION, "write-1")).fetchone() == (True,)


def test_settling_one_write_leaves_the_next_one_its_approval(connect: Connect) -> None:
    """If a head needs no receipt, the next write has the same id, and its fencing token is unknown too."""
    settled, id = ("order-17", TRANSITION, "write-1"), TRANSITION
    with connect() as connection:
        connection.execute("SELECT countersign_guard.settle(%s, %s, %s)", settled)
    for write_id, code in (("write-1", "ZG002"), ("write-2", None)):
        with refused(code) if code else contextlib.nullcontext(), connect() as connection:
            arguments = (id, "order-17", TRANSITION, write_id, 1, lease())
            connection.execute("SELECT countersign_guard.pass(%s, %s, %s, %s, %s, %s)", arguments)


@pytest.mark.parametrize("missing", range(3))
def test_what_is_settled_is_named_whole(connect: Connect, missing: int) -> None:
    arguments = [None if index == missing else it for index, it in enumerate(("order-17", TRANSITION, "write-1"))]
    with refused("ZG004"), connect() as connection:
        connection.execute("SELECT countersign_guard.settle(%s, %s, %s)", arguments)


def test_a_writers_login_can_block_a_thread_and_no_more(connect: Connect) -> None:
    """An attacker with the login can settle invented fencing tokens. Then the thread cannot be written."""
    with connect() as connection:
        connection.execute("SELECT countersign_guard.settle('order-17', %s, 'write-1', %s)", (TRANSITION, 2**63 - 1))
    with refused("ZG001"), connect() as connection:
        write(connection, 1)
    with connect() as connection:
        write(connection, 1, thread="order-18")
    # Who owns the guard opens it again.
    connect("countersign", autocommit=True).execute("UPDATE countersign_guard.threads SET fence = 1")
    with connect() as connection:
        write(connection, 2)
    assert rows(connect) == 2
