"""`guarded_write` where nothing is written: the database lets others go first each time, or no body ran."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY, Flow
from countersign import Client, Held, Invalid, Verified
from countersign.guarded import GaveWay, GuardRefused, OutcomeUnknown, guarded_write, settle
from countersign.guarded._order import TRIES
from countersign.guarded._sqlite import Sqlite

SQL = REPOSITORY / "clients" / "sql"
Job = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite file with the guard, and `payments` under it."""
    path = tmp_path / "ledger.db"
    protects = (SQL / "sqlite_protect.sql").read_text().replace("PROTECTED", "payments").replace("THREAD", "thread")
    with closing(sqlite3.connect(path)) as it:
        it.executescript((SQL / "sqlite.sql").read_text())
        it.executescript("CREATE TABLE payments (thread TEXT NOT NULL, user_id INTEGER)")
        it.executescript(protects)
    return path


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=0.01)) as it:
        yield it


@pytest.fixture
def job(flow: Flow) -> Job:
    """Returns the job of an approved change."""
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    receipt = flow.planner.wait_for_decision(held.transition, within_secs=30).receipt
    return {"thread": made.thread, "transition": held.transition, "write_id": f"of-{made.thread}", "receipt": receipt}


def pay(connection: sqlite3.Connection, verified: Verified, job: Job) -> dict[str, str]:
    connection.execute("INSERT INTO payments VALUES (?, ?)", (job["thread"], verified.view["target_user_id"]))
    return {"result_ref": f"payments:{job['thread']}"}


def giving_way(job: Job, times: int, last: Callable[[sqlite3.Connection], object] = lambda _: None) -> Any:
    """A body in which the database gives way so often, and what is done just before it does so for the last time."""
    tries: list[int] = []

    def body(connection: sqlite3.Connection, verified: Verified) -> dict[str, str]:
        said = pay(connection, verified, job)
        tries.append(1)
        if len(tries) == times:
            last(connection)
        if len(tries) <= times:
            raise sqlite3.OperationalError("database is locked")
        return said

    return body


def rows(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as it:
        return [row[0] for row in it.execute("SELECT user_id FROM payments")]


def stands(flow: Flow, job: Job) -> tuple[str, int]:
    found = flow.host.thread(job["thread"])
    return found.status, found.version


def known(job: Job) -> dict[str, str]:
    return {key: job[key] for key in ("thread", "transition", "write_id")}


def test_what_gave_way_each_time_is_written_once_by_the_same_call(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job
) -> None:
    body = giving_way(job, TRIES)
    with pytest.raises(GaveWay):
        guarded_write(connection, flow.writer, body, **job)
    # Nothing was reported, so the permission is still valid.
    assert (rows(file), stands(flow, job)) == ([], ("writing", 1))
    assert guarded_write(connection, flow.writer, body, **job).by_this_call
    assert (rows(file), stands(flow, job)) == ([42], ("open", 2))


def test_who_does_not_call_again_settles_it(flow: Flow, file: Path, connection: sqlite3.Connection, job: Job) -> None:
    with pytest.raises(GaveWay):
        guarded_write(connection, flow.writer, giving_way(job, TRIES), **job)
    assert settle(connection, flow.writer, **known(job)).outcome == "aborted"
    assert (rows(file), stands(flow, job)) == ([], ("open", 1))


def commits(connection: sqlite3.Connection) -> None:
    """A body that wrongly ends its own pass."""
    connection.execute("UPDATE countersign_guard SET open = NULL WHERE open = 1")
    connection.execute("COMMIT")


def test_a_body_that_committed_by_itself_before_it_gave_way_has_written(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job
) -> None:
    written = guarded_write(connection, flow.writer, giving_way(job, TRIES, commits), **job)
    assert (written.ended.outcome, written.by_this_call) == ("confirmed", False)
    assert (rows(file), stands(flow, job)) == ([42], ("open", 2))


@pytest.mark.parametrize("times", [1, TRIES])
def test_what_a_body_may_have_committed_and_nobody_can_see_is_not_known(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job, times: int
) -> None:
    with closing(sqlite3.connect(file)) as other:

        def overtaken(connection: sqlite3.Connection) -> None:
            commits(connection)
            other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(OutcomeUnknown):
            guarded_write(connection, flow.writer, giving_way(job, times, overtaken), **job)
    assert settle(connection, flow.writer, **known(job)).outcome == "confirmed"
    assert (rows(file), stands(flow, job)) == ([42], ("open", 2))


def test_what_was_settled_while_it_gave_way_is_told_so(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looked = Sqlite.look, list[int]()

    def settled_meanwhile(self: Sqlite, target: Any) -> Any:
        looked.append(1)
        if len(looked) == 2:
            with closing(sqlite3.connect(file)) as another:
                assert settle(another, flow.writer, **known(job)).outcome == "aborted"
        return look(self, target)

    monkeypatch.setattr(Sqlite, "look", settled_meanwhile)
    with pytest.raises(GuardRefused, match="id_used"):
        guarded_write(connection, flow.writer, giving_way(job, TRIES), **job)
    assert (rows(file), stands(flow, job)) == ([], ("open", 1))


class Later:
    """A body's result that does something only once it is awaited, and has nothing in it before."""

    def __len__(self) -> int:
        return 0

    def __await__(self) -> Iterator[None]:
        raise AssertionError("nobody awaits it")


async def later(*_: object) -> None: ...


@pytest.mark.parametrize("body", [lambda *_: later(), lambda *_: Later(), lambda *_: (it for it in [("k", 1)])])
def test_a_body_that_returns_what_is_yet_to_run_has_written_nothing(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job, body: Any
) -> None:
    with pytest.raises(Invalid, match="yet to run"):
        guarded_write(connection, flow.writer, body, **job)
    assert (rows(file), stands(flow, job)) == ([], ("open", 1))


def test_a_file_that_nobody_else_may_even_read_is_written_to_later(
    flow: Flow, file: Path, connection: sqlite3.Connection, job: Job
) -> None:
    """Not a single body begins, so that there is nothing to be seen."""
    with closing(sqlite3.connect(file)) as other:

        class Overtaken(Client):
            def verify(self, *asked: Any, **how: Any) -> Verified:
                verified = super().verify(*asked, **how)
                other.execute("BEGIN EXCLUSIVE")
                return verified

        with Overtaken(flow.gateway.url, flow.tokens["writer"]) as overtaken, pytest.raises(GaveWay):
            guarded_write(connection, overtaken, giving_way(job, 0), **job)
        other.execute("ROLLBACK")
    assert guarded_write(connection, flow.writer, giving_way(job, 0), **job).by_this_call
    assert (rows(file), stands(flow, job)) == ([42], ("open", 2))
