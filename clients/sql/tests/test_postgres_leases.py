"""The guard of PostgreSQL and its clock: who comes late, and who falls silent."""

from __future__ import annotations

import pytest
from psycopg import errors

from conftest import Connect
from ids import jti, lease
from passing import PASS, SETTLE, WRITE, Waiting, refused, rows


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


def test_who_falls_silent_keeps_nobody_waiting_for_longer_than_its_lease(connect: Connect) -> None:
    """As a machine that lost its power does: the server does not hear of that."""
    id = jti()
    silent, other = connect(), connect()
    silent.execute(PASS, (id, "order-17", 1, lease(1.0)))
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
