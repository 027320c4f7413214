"""`guarded_write` with a real gateway on real databases: in the right order, and once."""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign import Client, Denied, Invalid, NotFound, UnexpectedAnswer, Verified
from countersign.guarded import GaveWay, GuardRefused, OutcomeUnknown, ReceiptMismatch, guarded_write, settle

from conftest import Connect
from ids import digest
from passing import Waiting
from scene import Job, Scene
from targets import Target, forged, wait_for
from throwaway import Cluster

# ── In the right order ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("work", ["approved", "unasked"])
def test_a_write_is_committed_and_confirmed_and_not_done_again(scene: Scene, target: Target, work: str) -> None:
    job, client = getattr(scene, work)(), scene.client("writer")
    for again in range(3):
        with closing(target.connect()) as connection:
            written = guarded_write(connection, client, target.body(job), **job.told())
        assert (written.ended.outcome, written.by_this_call) == ("confirmed", again == 0)
        assert written.result == {"result_ref": f"payments:{job.thread}"}
        assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


def test_what_verify_denies_never_reaches_the_database(scene: Scene, target: Target) -> None:
    job = replace(scene.approved(), receipt=None)
    ran = []
    with closing(target.connect()) as connection, pytest.raises(Denied, match="receipt_missing"):
        guarded_write(connection, scene.client("writer"), lambda *_: ran.append(1), **job.told())
    assert (ran, target.rows(job)) == ([], 0)


def test_what_the_body_raises_is_raised_and_nothing_is_written(scene: Scene, target: Target) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        raise LookupError("no such customer")

    with closing(target.connect()) as connection, pytest.raises(LookupError, match="no such customer"):
        guarded_write(connection, client, body, **job.told())
    assert target.rows(job) == 0
    assert client.abort(job.write_id, reason="again").outcome == "aborted"
    with closing(target.connect()) as connection, pytest.raises(Denied, match="already_used"):
        guarded_write(connection, client, target.body(job), **job.told())
    assert target.rows(job) == 0


def test_a_head_without_receipt_may_be_tried_again_after_an_abort(scene: Scene, target: Target) -> None:
    job, client = scene.unasked(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> None:
        raise LookupError

    with closing(target.connect()) as connection:
        with pytest.raises(LookupError):
            guarded_write(connection, client, body, **job.told())
        again = replace(job, write_id=f"{job.write_id}-again")
        assert guarded_write(connection, client, target.body(job), **again.told()).by_this_call
    assert target.rows(job) == 1


def test_a_failure_that_the_body_swallowed_is_not_confirmed(scene: Scene, target: Target) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        with suppress(psycopg.Error, sqlite3.Error):
            connection.execute("SELECT * FROM no_such_table")

    with closing(target.connect()) as connection:
        if target.kind == "sqlite":  # there a statement that fails takes nothing else along
            assert guarded_write(connection, client, body, **job.told()).by_this_call
        else:
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                guarded_write(connection, client, body, **job.told())
    stood = target.kind == "sqlite"
    assert (target.rows(job), scene.stands(job)[1]) == (int(stood), stood)


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_body_that_ends_the_transaction_itself_is_told_and_the_truth_confirmed(
    scene: Scene, target: Target, how: str
) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        connection.execute(how)

    with closing(target.connect()) as connection, pytest.raises((GuardRefused, psycopg.Error, sqlite3.Error)):
        guarded_write(connection, client, body, **job.told())
    # SQLite commits nothing while a pass is open. PostgreSQL does, and then the write is confirmed.
    stood = target.kind == "postgres" and how == "COMMIT"
    assert (target.rows(job), scene.stands(job)[1]) == (int(stood), stood)


def test_who_is_stopped_until_the_lease_is_over_writes_nothing(short: Scene, target: Target) -> None:
    job, client = short.approved(), short.client("writer")

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        wait_for(verified.lease_expires_at.timestamp())

    with closing(target.connect()) as connection, pytest.raises(GuardRefused) as refused:
        guarded_write(connection, client, body, **job.told())
    assert (refused.value.code, target.rows(job), short.stands(job)[1]) == ("lease_past", 0, False)


def test_two_processes_with_one_job_write_once_and_both_know(scene: Scene, target: Target) -> None:
    """The second one has the same yes from the gateway, and comes to the guard while the first is in it."""
    job, client = scene.approved(), scene.client("writer")
    asked, inside, outcomes = threading.Event(), threading.Event(), []

    class Asking(Client):
        def verify(self, **how: Any) -> Verified:  # type: ignore[override]
            verified = super().verify(**how)
            asked.set()
            return verified

    def slow(connection: Any, verified: Verified) -> dict[str, str]:
        inside.set()
        asked.wait(20)
        return target.body(job)(connection, verified)

    def first() -> None:
        with closing(target.connect()) as connection:
            outcomes.append(guarded_write(connection, client, slow, **job.told()).by_this_call)

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(20)
    with closing(target.connect()) as connection, Asking(scene.gateway.url, scene.tokens["writer"]) as second:
        outcomes.append(guarded_write(connection, second, target.body(job), **job.told()).by_this_call)
    thread.join(20)
    assert (sorted(outcomes), target.rows(job), scene.stands(job)) == ([False, True], 1, ("open", True))


def test_what_another_write_did_is_not_taken_for_ones_own(scene: Scene, target: Target) -> None:
    """A head that needs no receipt is free after an abort, and the next write of it has the same id."""
    job, client = scene.unasked(), scene.client("writer")
    other = replace(job, write_id=f"{job.write_id}-other")

    class Late(Client):
        def verify(self, **how: Any) -> Verified:  # type: ignore[override]
            verified = super().verify(**how)
            client.abort(job.write_id, reason="somebody thought that it was dead")
            with closing(target.connect()) as connection:
                assert guarded_write(connection, client, target.body(job), **other.told()).by_this_call
            return verified

    with closing(target.connect()) as connection, Late(scene.gateway.url, scene.tokens["writer"]) as late:
        with pytest.raises(GuardRefused) as refused:
            guarded_write(connection, late, target.body(job), **job.told())
    assert refused.value.code in ("fence_not_newer", "id_used")
    assert (target.rows(job), scene.stands(other)) == (1, ("open", True))


def test_a_row_that_the_gateway_has_as_aborted_is_told_loudly(scene: Scene, target: Target) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> dict[str, str]:
        client.abort(job.write_id, reason="somebody thought that it was dead")
        return target.body(job)(connection, verified)

    with closing(target.connect()) as connection, pytest.raises(UnexpectedAnswer, match="aborted: alert an operator"):
        guarded_write(connection, client, body, **job.told())
    assert target.rows(job) == 1


def test_a_receipt_that_the_gateway_did_not_ask_for_is_not_what_a_write_is_known_by(
    scene: Scene, target: Target
) -> None:
    job, client = scene.unasked(), scene.client("writer")
    receipt = forged(scene.approved(), sub=job.thread, transition=job.transition)
    with closing(target.connect()) as connection:
        with pytest.raises(ReceiptMismatch):
            guarded_write(connection, client, target.body(job), **replace(job, receipt=receipt).told())
        assert (target.rows(job), scene.stands(job)) == (0, ("writing", False))
        # The gateway was not notified, so the permission is valid for the right job.
        assert guarded_write(connection, client, target.body(job), **job.told()).by_this_call


@pytest.mark.parametrize("jti", [None, "", "short", "sha256:", ["a"], {}], ids=repr)
def test_a_receipt_whose_id_is_none_is_refused_before_anything(scene: Scene, target: Target, jti: Any) -> None:
    """The digest of a head that needs no receipt is an id of a pass, and no id of a receipt."""
    job, client = scene.unasked(), scene.client("writer")
    jti = job.transition if jti == "sha256:" else jti
    receipt = forged(scene.approved(), sub=job.thread, transition=job.transition, jti=jti)
    with closing(target.connect()) as connection, pytest.raises(Invalid, match="receipt"):
        guarded_write(connection, client, target.body(job), **replace(job, receipt=receipt).told())
    assert (target.rows(job), scene.stands(job)) == (0, ("open", False))


@pytest.mark.parametrize("how", ["as it is", "forged"])
def test_a_receipt_by_which_something_else_was_written_does_not_pass_for_this_write(
    scene: Scene, target: Target, how: str
) -> None:
    """The writer died after verify. Before it starts again, an agent puts another receipt into its job."""
    done, job, client = scene.approved(), scene.approved(), scene.client("writer")
    other = done.receipt if how == "as it is" else forged(done, sub=job.thread, transition=job.transition)
    with closing(target.connect()) as connection:
        guarded_write(connection, client, target.body(done), **done.told())
        client.verify(**job.told())
        with pytest.raises(Invalid if how == "as it is" else ReceiptMismatch):
            guarded_write(connection, client, target.body(job), **replace(job, receipt=other).told())
    # It is not written, and not reported as written.
    assert (target.rows(job), scene.stands(job)[1]) == (0, False)


@pytest.mark.parametrize("again", ["at once", "when the lease is over"])
def test_an_earlier_write_of_the_thread_is_not_taken_for_this_one(
    scenes: dict[str, Scene], target: Target, again: str
) -> None:
    """The writer died between verify and commit. When it starts again, its job has an unsigned receipt that claims
    to be the earlier write's. If the receipt identified the write, it would be confirmed without having happened."""
    scene = scenes["30s" if again == "at once" else "4s"]
    done, client = scene.approved(), scene.client("writer")
    with closing(target.connect()) as connection:
        head = guarded_write(connection, client, target.body(done), **done.told()).ended.transition
        assert head is not None
        job = scene.approved(thread=done.thread, parent=head)
        lease = client.verify(**job.told()).lease_expires_at
        nonce = json.loads(base64.urlsafe_b64decode(done.receipt.split(".")[1] + "=="))["jti"]
        mistaken = replace(job, receipt=forged(job, jti=nonce))
        if again == "when the lease is over":
            wait_for(lease.timestamp() + 0.05)
        with pytest.raises((Denied, ReceiptMismatch)) as refused:
            guarded_write(connection, client, target.body(job), **mistaken.told())
        assert refused.value.code == ("receipt_mismatch" if again == "at once" else "already_used")
        assert (target.rows(job), scene.stands(job)[1]) == (1, False)
        if again == "at once":  # with the right one it is the same yes
            assert guarded_write(connection, client, target.body(job), **job.told()).by_this_call
        else:  # nothing was written, so the write is aborted
            assert settle(connection, client, **job.known()).outcome == "aborted"
    stood = again == "at once"
    assert (target.rows(job), scene.stands(job)[1]) == (1 + stood, stood)


def test_a_receipt_that_wrote_another_transition_is_refused_by_the_database(scene: Scene, target: Target) -> None:
    """The pass stores the transition, and the guard compares it. A holder of the writer's login invented one with
    this id."""
    job, client = scene.approved(), scene.client("writer")
    assert job.receipt is not None
    id = json.loads(base64.urlsafe_b64decode(job.receipt.split(".")[1] + "=="))["jti"]
    with closing(target.connect()) as connection:
        target.passes(connection, id, digest("another head"))
        with pytest.raises(GuardRefused, match="used for another transition") as refused:
            guarded_write(connection, client, target.body(job), **job.told())
    assert (refused.value.code, target.rows(job), scene.stands(job)[1]) == ("receipt_mismatch", 0, False)


def test_nothing_is_asked_where_the_guard_keeps_no_transition(scene: Scene, tmp_path: Path) -> None:
    """A first-version guard stores no transition, so its rows could be another write's."""
    job = scene.approved()
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.execute("CREATE TABLE countersign_guard (id TEXT, thread TEXT, wrote INTEGER)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            guarded_write(connection, scene.client("writer"), lambda *_: None, **job.told())
    assert scene.stands(job) == ("open", False)


def test_a_write_is_found_again_whatever_receipt_its_job_has_by_now(scene: Scene, target: Target) -> None:
    """The row is there. If the receipt identified it, it would be reported as not written."""
    job, client = scene.approved(), scene.client("writer")
    with closing(target.connect()) as connection:
        with Gone(scene.gateway.url, scene.tokens["writer"]) as gone, pytest.raises(OSError, match="goes down"):
            guarded_write(connection, gone, target.body(job), **job.told())
        mistaken = replace(job, receipt=forged(job, jti="A" * 22))
        again = guarded_write(connection, client, target.body(job), **mistaken.told())
    assert (again.by_this_call, again.ended.outcome) == (False, "confirmed")
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


class Gone(Client):
    """Its process does not get to say that it wrote."""

    def confirm(self, *what: Any, **how: Any) -> Any:  # type: ignore[override]
        raise OSError("the machine goes down")


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_a_transaction_that_gives_way_is_begun_anew(
    scene: Scene, cluster: Cluster, connect: Connect, level: str
) -> None:
    job, client = scene.approved(), scene.client("writer")
    target, tries = Target("postgres", cluster.address("guarded", "ledger")), []

    def body(connection: Any, verified: Verified) -> dict[str, str]:
        tries.append(1)
        if len(tries) == 1:
            connection.execute("SELECT 1")
            raise psycopg.errors.SerializationFailure("as if")
        return target.body(job)(connection, verified)

    with closing(target.connect()) as connection:
        connection.isolation_level = psycopg.IsolationLevel[level]
        # Only what the server says counts, with its SQLSTATE: this is what psycopg makes of it.
        assert guarded_write(connection, client, body, **job.told()).by_this_call
    assert (len(tries), target.rows(job)) == (2, 1)


@pytest.mark.parametrize("level", ["READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE"])
def test_what_gave_way_each_time_is_written_once_by_the_same_call(
    scene: Scene, cluster: Cluster, connect: Connect, level: str
) -> None:
    job, client = scene.approved(), scene.client("writer")
    target, tries = Target("postgres", cluster.address("guarded", "ledger")), []

    def body(connection: Any, verified: Verified) -> dict[str, str]:
        said = target.body(job)(connection, verified)
        tries.append(1)
        if len(tries) <= 5:
            connection.execute("DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '40001'; END $$")
        return said

    with closing(target.connect()) as connection:
        connection.isolation_level = psycopg.IsolationLevel[level]
        with pytest.raises(GaveWay):
            guarded_write(connection, client, body, **job.told())
        # Nothing was reported, so the permission is still valid.
        assert (len(tries), target.rows(job), scene.stands(job)) == (5, 0, ("writing", False))
        assert guarded_write(connection, client, body, **job.told()).by_this_call
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


def test_a_body_that_committed_by_itself_before_it_gave_way_has_written(
    scene: Scene, cluster: Cluster, connect: Connect
) -> None:
    job, client = scene.approved(), scene.client("writer")
    target, tries = Target("postgres", cluster.address("guarded", "ledger")), []

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        tries.append(1)
        if len(tries) == 5:
            connection.execute("COMMIT")
        raise psycopg.errors.SerializationFailure("as if")

    with closing(target.connect()) as connection:
        written = guarded_write(connection, client, body, **job.told())
    assert (written.ended.outcome, written.by_this_call) == ("confirmed", False)
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


@pytest.mark.parametrize("moment", ["in the body", "in commit"])
def test_a_connection_that_breaks_leaves_it_to_be_settled(
    scene: Scene, cluster: Cluster, connect: Connect, moment: str
) -> None:
    job, client = scene.approved(), scene.client("writer")
    target = Target("postgres", cluster.address("guarded", "ledger"))
    if moment == "in commit":
        connect("countersign", autocommit=True).execute(
            "CREATE OR REPLACE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$;"
            "CREATE CONSTRAINT TRIGGER break_it AFTER INSERT ON payments DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION break_it()"
        )

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        if moment == "in the body":
            pid = connection.info.backend_pid
            connect("countersign", autocommit=True).execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    try:
        with closing(target.connect()) as connection, pytest.raises(OutcomeUnknown):
            guarded_write(connection, client, body, **job.told())
    finally:
        connect("countersign", autocommit=True).execute("DROP FUNCTION IF EXISTS break_it() CASCADE")
    with closing(target.connect()) as connection:
        assert settle(connection, client, **job.known()).outcome == "aborted"
    assert (target.rows(job), scene.stands(job)) == (0, ("open", False))


def test_a_connection_that_breaks_after_the_commit_is_settled_as_written(
    scene: Scene, cluster: Cluster, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from countersign.guarded._postgres import Postgres

    job, client = scene.approved(), scene.client("writer")
    target = Target("postgres", cluster.address("guarded", "ledger"))
    leave = Postgres.leave

    def leaving(self: Postgres, it: Any, result: Any) -> None:
        leave(self, it, result)
        self.connection.pgconn.send_query(b"COMMIT")
        while self.connection.pgconn.flush():
            pass
        self.connection.close()

    monkeypatch.setattr(Postgres, "leave", leaving)
    with closing(target.connect()) as connection, pytest.raises(OutcomeUnknown):
        guarded_write(connection, client, target.body(job), **job.told())
    monkeypatch.undo()
    with closing(target.connect()) as connection:
        assert settle(connection, client, **job.known()).outcome == "confirmed"
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_settling_waits_and_then_knows_whatever_the_connections_level(
    scene: Scene, cluster: Cluster, connect: Connect, level: str
) -> None:
    job, client, told = scene.approved(), scene.client("writer"), []
    target = Target("postgres", cluster.address("guarded", "ledger"))

    def body(connection: Any, verified: Verified) -> dict[str, str]:
        settling.isolation_level = psycopg.IsolationLevel[level]
        told.append(Waiting(connect, settling, lambda: told.append(settle(settling, client, **job.known()).outcome)))
        return target.body(job)(connection, verified)

    with closing(target.connect()) as connection, closing(target.connect()) as settling:
        assert guarded_write(connection, client, body, **job.told()).by_this_call
        assert told[0].outcome() is None
    assert told[1] == "confirmed"


def test_a_connection_in_a_transaction_is_refused(scene: Scene, target: Target) -> None:
    job = Job("any", "sha256:" + "0" * 64, None, "any")
    with closing(target.connect()) as connection:
        connection.execute("BEGIN")
        with pytest.raises(Invalid, match="in no transaction"):
            guarded_write(connection, scene.client("writer"), target.body(job), **job.told())
    with pytest.raises(Invalid, match="connection"):
        guarded_write(object(), scene.client("writer"), lambda *_: None, **job.told())


@pytest.mark.parametrize("receipt", ["", "a.b.c", "a.e30.c", "a.!!!.c", "x" * 100])
def test_what_is_no_receipt_is_refused_before_anything(scene: Scene, target: Target, receipt: str) -> None:
    job = Job("any", "sha256:" + "0" * 64, receipt, "any")
    with closing(target.connect()) as connection, pytest.raises(Invalid, match="receipt"):
        guarded_write(connection, scene.client("writer"), target.body(job), **job.told())


# ── Settled by another process ────────────────────────────────────────────────────────────────────────────────


def test_who_comes_back_after_it_was_settled_writes_nothing(scene: Scene, target: Target) -> None:
    """The writer was stopped after verify, and another process settled the write. Its lease is still valid."""
    job, client = scene.approved(), scene.client("writer")

    class Stopped(Client):
        def verify(self, **how: Any) -> Verified:  # type: ignore[override]
            verified = super().verify(**how)
            with closing(target.connect()) as connection:
                assert settle(connection, client, **job.known()).outcome == "aborted"
            return verified

    with closing(target.connect()) as connection, Stopped(scene.gateway.url, scene.tokens["writer"]) as stopped:
        with pytest.raises(GuardRefused) as refused:
            guarded_write(connection, stopped, target.body(job), **job.told())
    assert (refused.value.code, target.rows(job), scene.stands(job)) == ("id_used", 0, ("open", False))


def test_settling_what_the_gateway_never_heard_of_is_no_success(scene: Scene, target: Target) -> None:
    job = scene.approved()
    with closing(target.connect()) as connection, pytest.raises(NotFound):
        settle(connection, scene.client("writer"), **job.known())
    # A later call is refused before the gateway is asked, so another write can still use the approval.
    with closing(target.connect()) as connection:
        with pytest.raises(GuardRefused, match="another write_id") as refused:
            guarded_write(connection, scene.client("writer"), target.body(job), **job.told())
        assert refused.value.code == "id_used"
        another = {**job.told(), "write_id": f"{job.write_id}-again"}
        assert guarded_write(connection, scene.client("writer"), target.body(job), **another).by_this_call
    assert target.rows(job) == 1


# ── When the database and the gateway have heard different things ────────────────────────────────────────────────


def test_settling_a_row_that_the_gateway_has_as_aborted_is_no_way_to_a_second_one(scene: Scene, target: Target) -> None:
    job, client = scene.approved(), scene.client("writer")

    class Dies(Client):
        def confirm(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    with closing(target.connect()) as connection, Dies(scene.gateway.url, scene.tokens["writer"]) as dies:
        with suppress(KeyboardInterrupt):
            guarded_write(connection, dies, target.body(job), **job.told())
    assert (target.rows(job), client.abort(job.write_id, reason="it died").outcome) == (1, "aborted")
    with closing(target.connect()) as connection, pytest.raises(UnexpectedAnswer, match=r"is written.* aborted: alert"):
        settle(connection, client, **job.known())


def test_settling_what_is_gone_from_the_database_is_no_success(scene: Scene, target: Target) -> None:
    job, client = scene.approved(), scene.client("writer")
    with closing(target.connect()) as connection:
        guarded_write(connection, client, target.body(job), **job.told())
        # As in a copy of the database that was made before.
        other = {**job.known(), "transition": "sha256:" + "0" * 64}
        with pytest.raises(UnexpectedAnswer, match=r"not in the database.* confirmed: alert an operator"):
            settle(connection, client, **other)


# ── What a body says of its write ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("result", [{"id": 2**60 + 1}, {"\u00e9": 1, "e\u0301": 2}], ids=["inexact", "doubled"])
def test_what_no_gateway_takes_is_left_out_and_the_write_is_confirmed(
    scene: Scene, target: Target, result: dict[str, Any]
) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> dict[str, Any]:
        target.body(job)(connection, verified)
        return result

    with closing(target.connect()) as connection:
        assert guarded_write(connection, client, body, **job.told()).ended.outcome == "confirmed"
        assert settle(connection, client, **job.known()).outcome == "confirmed"
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


@pytest.mark.parametrize("result", [{"rate": float("nan")}, {"name": "\ud800"}], ids=["nan", "surrogate"])
def test_what_json_cannot_say_is_not_written(scene: Scene, target: Target, result: dict[str, Any]) -> None:
    job, client = scene.approved(), scene.client("writer")

    def body(connection: Any, verified: Verified) -> dict[str, Any]:
        target.body(job)(connection, verified)
        return result

    with closing(target.connect()) as connection, pytest.raises(Invalid, match="JSON"):
        guarded_write(connection, client, body, **job.told())
    assert (target.rows(job), client.abort(job.write_id, reason="again").outcome) == (0, "aborted")


def test_a_body_that_has_its_transaction_rolled_back_is_told_so(
    scene: Scene, cluster: Cluster, connect: Connect
) -> None:
    job, target = scene.approved(), Target("postgres", cluster.address("guarded", "ledger"))

    def body(connection: Any, verified: Verified) -> None:
        target.body(job)(connection, verified)
        raise psycopg.Rollback

    with closing(target.connect()) as connection, pytest.raises(GuardRefused, match="rolled back"):
        guarded_write(connection, scene.client("writer"), body, **job.told())
    assert target.rows(job) == 0


def test_a_file_that_another_one_keeps_locked_is_waited_for_and_then_written_once(scene: Scene, file: Path) -> None:
    job, target = scene.approved(), Target("sqlite", str(file))
    client = scene.client("writer")
    with closing(target.connect()) as other, closing(target.connect()) as connection:
        connection.execute("PRAGMA busy_timeout = 20")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(GaveWay):
            guarded_write(connection, client, target.body(job), **job.told())
        other.execute("ROLLBACK")
        assert guarded_write(connection, client, target.body(job), **job.told()).by_this_call
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))
