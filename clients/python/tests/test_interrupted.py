"""Calls of `@countersigned` that are cancelled or interrupted: while they wait, in the function, and in the report."""

from __future__ import annotations

import asyncio
import signal
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from threading import Timer, main_thread
from typing import Any

import anyio
import pytest

from calling import Desk
from countersign import ApprovalRequest, AsyncClient, Client, _requests
from countersign.tools import countersigned
from faulty import Before, Changed, between, cancelling
from test_tools import outcome


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_function_that_is_interrupted_is_reported_as_failed(desk: Desk, ending: type[BaseException]) -> None:
    key = desk.key()

    @countersigned(desk.instance, tool="search", key=lambda: key)
    def search() -> None:
        raise ending

    with pytest.raises(ending):
        search()
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    assert outcome(desk, request.id) == ("failed", ending.__name__)


def cancelled_by_its_task(at: str) -> Callable[[], Awaitable[None]]:
    """Returns a body whose task is cancelled, again while the report is sent, or only then."""

    async def search() -> None:
        task = asyncio.current_task()
        assert task is not None
        if at == "body":
            task.cancel()
            try:
                await asyncio.sleep(30)
            finally:
                task.cancel()
        task.cancel()

    return search


@pytest.mark.parametrize(("at", "reported"), [("body", ("failed", "CancelledError")), ("report", ("succeeded", None))])
def test_a_cancelled_task_reports_its_outcome(desk: Desk, at: str, reported: tuple[str, str | None]) -> None:
    key = desk.key()

    async def scenario() -> None:
        async with desk.gateway.async_client(desk.token) as client:
            await countersigned(client, tool="search", key=lambda: key)(cancelled_by_its_task(at))()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    assert outcome(desk, request.id) == reported


def test_a_cancelled_scope_reports_the_outcome(desk: Desk) -> None:
    """Each later `await` in a cancelled scope ends at once, so the report needs a shield."""
    key = desk.key()

    async def scenario() -> None:
        async with desk.gateway.async_client(desk.token) as client:
            with anyio.CancelScope() as scope:

                @countersigned(client, key=lambda: key)
                async def search() -> None:
                    scope.cancel()
                    await anyio.sleep(30)

                await search()
            assert scope.cancelled_caught

    asyncio.run(scenario())
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    assert outcome(desk, request.id) == ("failed", "CancelledError")


@types.coroutine
def closed_when(reached: list[int], call: Coroutine[Any, Any, None]) -> Generator[Any, None, None]:
    """Runs a coroutine until its body is reached, and closes it."""
    step = call.send(None)
    while not reached:
        try:
            yield step
        except BaseException as error:  # noqa: PERF203 - a cancellation within the call
            step = call.throw(error)
        else:
            step = call.send(None)
    call.close()


def test_a_closed_coroutine_ends_at_once(desk: Desk) -> None:
    """It may not wait any more, so its outcome becomes unknown."""
    reached: list[int] = []

    async def scenario() -> None:
        async with desk.gateway.async_client(desk.token) as client:

            @countersigned(client)
            async def search() -> None:
                reached.append(1)
                await asyncio.sleep(30)

            async def call() -> None:
                await search()

            await closed_when(reached, call())

    asyncio.run(scenario())
    assert reached == [1]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_call_that_is_interrupted_while_it_waits_is_cancelled(desk: Desk, keyed: bool) -> None:
    """With a key, another process can continue the request."""
    runs: list[int] = []
    asked: list[str] = []

    def interrupt(request: ApprovalRequest) -> None:
        asked.append(request.id)
        Timer(0.2, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()

    key = desk.key()
    how: dict[str, Any] = {"key": lambda amount: key} if keyed else {}
    refund: Callable[[int], None] = countersigned(desk.instance, tool="refund", on_held=interrupt, **how)(runs.append)
    with pytest.raises(KeyboardInterrupt):
        refund(70)
    assert (desk.instance.request(asked[0]).status, runs) == ("pending" if keyed else "cancelled", [])


@pytest.mark.parametrize("by", ["task", "scope"])
@pytest.mark.parametrize("keyed", [False, True])
def test_an_awaited_call_that_is_cancelled_while_it_waits_is_cancelled(desk: Desk, keyed: bool, by: str) -> None:
    runs: list[int] = []
    asked: list[str] = []
    key = desk.key()
    how: dict[str, Any] = {"key": lambda amount: key} if keyed else {}

    async def scenario() -> None:
        async with desk.gateway.async_client(desk.token) as client:
            held = asyncio.Event()

            def tell(request: ApprovalRequest) -> None:
                asked.append(request.id)
                held.set()

            @countersigned(client, on_held=tell, **how)
            async def refund(amount: int) -> None:
                runs.append(amount)

            async def call() -> None:
                await refund(71)

            if by == "task":
                running = asyncio.create_task(call())
                await held.wait()
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(call)
                    await held.wait()
                    group.cancel_scope.cancel()

    asyncio.run(scenario())
    assert (desk.instance.request(asked[0]).status, runs) == ("pending" if keyed else "cancelled", [])


def never(runs: list[int]) -> Callable[..., Coroutine[Any, Any, None]]:
    async def search() -> None:
        runs.append(1)

    return search


@pytest.mark.parametrize("by", ["task", "scope"])
def test_a_call_that_is_cancelled_while_it_uses_its_approval_reports_that_it_did_not_run(desk: Desk, by: str) -> None:
    runs: list[int] = []
    key = desk.key()

    async def scenario() -> None:
        with between(desk.gateway.url) as proxy:
            async with AsyncClient(proxy.url, desk.token) as client:
                task = asyncio.current_task()
                assert task is not None
                with anyio.CancelScope() as scope:
                    cancel = task.cancel if by == "task" else scope.cancel
                    proxy.todo.extend([None, cancelling(cancel)])
                    await countersigned(client, tool="search", key=lambda: key)(never(runs))()
                raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    assert (outcome(desk, request.id), runs) == (("failed", "CancelledError, before the call ran"), [])


def test_a_call_that_is_interrupted_while_it_uses_its_approval_reports_that_it_did_not_run(desk: Desk) -> None:
    runs: list[int] = []
    key = desk.key()

    def interrupt(body: Any) -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.todo.extend([None, Changed(interrupt)])
        with pytest.raises(KeyboardInterrupt):
            countersigned(client, tool="search", key=lambda: key)(lambda: runs.append(1))()
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    assert (outcome(desk, request.id), runs) == (("failed", "KeyboardInterrupt, before the call ran"), [])


def test_an_interrupted_call_does_not_report_the_call_of_another_process(desk: Desk) -> None:
    runs: list[int] = []
    key = desk.key()

    def used_by_another() -> None:
        request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
        desk.instance.consume_request(request.id, tool="search", arguments={})
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.todo.extend([None, Before(used_by_another)])
        with pytest.raises(KeyboardInterrupt):
            countersigned(client, tool="search", key=lambda: key)(lambda: runs.append(1))()
    request = desk.instance.create_request("search", {}, idempotency_key=key, timeout="600s")
    desk.instance.report_outcome(request.id, "succeeded")
    assert (outcome(desk, request.id), runs) == (("succeeded", None), [])


def test_a_function_can_raise_stop_iteration(desk: Desk) -> None:
    ended = StopIteration("the last page")

    @countersigned(desk.instance, tool="search")
    def search() -> None:
        raise ended

    with pytest.raises(StopIteration) as raised:
        search()
    assert raised.value is ended


def test_a_call_that_is_cancelled_before_it_uses_its_approval_does_not_use_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    key = desk.key()
    create = _requests.create_request

    async def scenario() -> None:
        task = asyncio.current_task()
        assert task is not None

        def cancelled(*args: Any, **kwargs: Any) -> Any:
            found = yield from create(*args, **kwargs)
            task.cancel()
            return found

        monkeypatch.setattr(_requests, "create_request", cancelled)
        async with desk.gateway.async_client(desk.token) as client:
            await countersigned(client, tool="search", key=lambda: key)(never(runs))()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    monkeypatch.undo()
    assert runs == []
    assert countersigned(desk.instance, tool="search", key=lambda: key)(lambda: "ran")() == "ran"
