"""`aguarded_write` and `asettle`: the same order, awaited, on a real PostgreSQL with a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from countersign import AsyncClient, Denied, Invalid, Verified
from countersign.guarded import GaveWay, GuardRefused, OutcomeUnknown, aguarded_write, asettle, guarded_write

from conftest import Connect
from scene import Job, Scene
from targets import Target
from throwaway import Cluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def target(cluster: Cluster, connect: Connect) -> Target:
    return Target("postgres", cluster.address("guarded", "ledger"))


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[AsyncClient]:
    async with scene.gateway.async_client(scene.tokens["writer"]) as it:
        yield it


@pytest.fixture
async def connection(target: Target) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(target.address) as it:
        yield it


async def pay(connection: psycopg.AsyncConnection, job: Job, verified: Verified) -> dict[str, str]:
    row = (job.thread, verified.view["payment"]["amount"])
    await connection.execute("INSERT INTO payments (thread, amount) VALUES (%s, %s)", row)
    return {"result_ref": f"payments:{job.thread}"}


def body_of(job: Job) -> Any:
    async def body(connection: psycopg.AsyncConnection, verified: Verified) -> dict[str, str]:
        return await pay(connection, job, verified)

    return body


@pytest.mark.parametrize("work", ["approved", "unasked"])
async def test_a_write_is_committed_and_confirmed_and_not_done_again(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection, work: str
) -> None:
    job = getattr(scene, work)()
    for again in range(2):
        written = await aguarded_write(connection, client, body_of(job), **job.told())
        assert (written.ended.outcome, written.by_this_call) == ("confirmed", again == 0)
        assert written.result == {"result_ref": f"payments:{job.thread}"}
    # Each variant finds the other's write.
    with closing(target.connect()) as blocking:
        assert not guarded_write(blocking, scene.client("writer"), target.body(job), **job.told()).by_this_call
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


async def test_what_the_body_raises_is_raised_and_nothing_is_written(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection
) -> None:
    job = scene.approved()

    async def body(connection: psycopg.AsyncConnection, verified: Verified) -> None:
        await pay(connection, job, verified)
        raise LookupError("no such customer")

    with pytest.raises(LookupError, match="no such customer"):
        await aguarded_write(connection, client, body, **job.told())
    assert (await client.abort(job.write_id, reason="again")).outcome == "aborted"
    with pytest.raises(Denied, match="already_used"):
        await aguarded_write(connection, client, body_of(job), **job.told())
    assert (target.rows(job), scene.stands(job)) == (0, ("open", False))


async def test_what_verify_denies_never_reaches_the_database(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection
) -> None:
    job = scene.approved()
    with pytest.raises(Denied, match="receipt_missing"):
        await aguarded_write(connection, client, body_of(job), **{**job.told(), "receipt": None})
    assert target.rows(job) == 0


async def test_the_guard_is_asked_and_its_refusal_told(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection
) -> None:
    """Another process settles the write right before the body starts."""
    job = scene.approved()

    class Settled(AsyncClient):
        async def verify(self, **how: Any) -> Verified:  # type: ignore[override]
            verified = await super().verify(**how)
            async with await psycopg.AsyncConnection.connect(target.address) as other:
                assert (await asettle(other, client, **job.known())).outcome == "aborted"
            return verified

    async with Settled(scene.gateway.url, scene.tokens["writer"]) as settled:
        with pytest.raises(GuardRefused) as refused:
            await aguarded_write(connection, settled, body_of(job), **job.told())
    assert (refused.value.code, target.rows(job), scene.stands(job)) == ("id_used", 0, ("open", False))


@pytest.mark.parametrize("gives_way", [1, 5])
async def test_a_transaction_that_gives_way_is_begun_anew_a_few_times(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection, gives_way: int
) -> None:
    job, tries = scene.approved(), []

    async def body(connection: psycopg.AsyncConnection, verified: Verified) -> dict[str, str]:
        tries.append(1)
        if len(tries) <= gives_way:
            raise psycopg.errors.SerializationFailure("as if")
        return await pay(connection, job, verified)

    with pytest.raises(GaveWay) if gives_way == 5 else contextlib.nullcontext():
        await aguarded_write(connection, client, body, **job.told())
    assert (len(tries), target.rows(job)) == ((5, 0) if gives_way == 5 else (2, 1))
    if gives_way == 5:
        assert (await aguarded_write(connection, client, body, **job.told())).by_this_call
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


async def test_a_connection_that_breaks_leaves_it_to_be_settled(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection, connect: Connect
) -> None:
    job = scene.approved()

    async def body(connection: psycopg.AsyncConnection, verified: Verified) -> None:
        await pay(connection, job, verified)
        pid = connection.info.backend_pid
        connect("countersign", autocommit=True).execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    with pytest.raises(OutcomeUnknown):
        await aguarded_write(connection, client, body, **job.told())
    async with await psycopg.AsyncConnection.connect(target.address) as other:
        assert (await asettle(other, client, **job.known())).outcome == "aborted"
    assert (target.rows(job), scene.stands(job)) == (0, ("open", False))


async def test_a_task_that_is_cancelled_wrote_nothing_and_begins_again(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection
) -> None:
    job, inside = scene.approved(), asyncio.Event()

    async def body(connection: psycopg.AsyncConnection, verified: Verified) -> None:
        await pay(connection, job, verified)
        inside.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(aguarded_write(connection, client, body, **job.told()))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # Nothing was said, as by a process that died: the same yes is still good.
    assert (target.rows(job), scene.stands(job)[0]) == (0, "writing")
    assert (await aguarded_write(connection, client, body_of(job), **job.told())).by_this_call
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


async def test_each_takes_its_own_kind_of_connection(
    scene: Scene, target: Target, client: AsyncClient, connection: psycopg.AsyncConnection
) -> None:
    job = Job("any", "sha256:" + "0" * 64, None, "any")
    with closing(target.connect()) as blocking, pytest.raises(Invalid, match="AsyncConnection"):
        await aguarded_write(blocking, client, body_of(job), **job.told())
    with pytest.raises(Invalid, match="connection"):
        guarded_write(connection, scene.client("writer"), lambda *_: None, **job.told())
    await connection.execute("BEGIN")
    with pytest.raises(Invalid, match="in no transaction"):
        await aguarded_write(connection, client, body_of(job), **job.told())
