"""The log as a stream, over everything that breaks one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from conftest import STATE, Flow
from countersign import Client, Event, Malformed, Retries, Unauthenticated, UnexpectedAnswer
from countersign._following import Feed
from countersign._plans import Core
from faulty import Between, Instead, between

QUICK = Retries(tries=1, first_secs=0.05, most_secs=0.2)


@pytest.fixture
def proxy(flow: Flow) -> Iterator[Between]:
    with between(flow.gateway.url) as state:
        yield state


def until(events: Iterator[Event], thread: str, kind: str) -> list[Event]:
    """The events of a thread up to one of that kind."""
    found: list[Event] = []
    for event in events:
        if event.thread == thread:
            found.append(event)
            if event.type == kind:
                return found
    raise AssertionError("a stream does not end")


def test_a_stream_goes_on_over_a_restart_and_a_kill_without_a_gap(own_flow: Flow) -> None:
    host = own_flow.gateway.client(own_flow.tokens["host"], retries=QUICK)
    events = host.follow_events(after=0)
    seen: list[int] = []
    for step, restart in enumerate((own_flow.gateway.restart, own_flow.gateway.kill, None)):
        made = own_flow.host.create_thread("payments", STATE, thread=f"step-{step}")
        found = until(events, made.thread, "thread.created")
        seen.extend(it.index for it in found)
        if restart is not None:
            restart()
            if step == 1:
                own_flow.gateway.up()
    told = [it.index for it in own_flow.host.events() if it.type == "thread.created"]
    assert seen == told


def test_it_begins_where_it_is_told_to(flow: Flow) -> None:
    first, second = flow.thread(), flow.thread()
    (place,) = (it.index for it in until(flow.host.follow_events(), first.thread, "thread.created"))
    (event,) = islice(flow.host.follow_events(after=place), 1)
    assert (event.thread, event.type) == (second.thread, "thread.created")


def test_a_token_that_does_not_stand_ends_it(flow: Flow) -> None:
    with Client(flow.gateway.url, "cs_nobody", retries=QUICK) as nobody, pytest.raises(Unauthenticated):
        next(nobody.follow_events())
    with pytest.raises(Malformed):
        next(flow.host.follow_events(after=10**9))


def test_trouble_that_passes_is_waited_out(flow: Flow, proxy: Between) -> None:
    flow.thread()
    told = b'id: 1\nevent: x\ndata: {"index": 1}\n\n'
    proxy.todo.extend([Instead(503), Instead(429, headers={"Retry-After": "0"}), Instead(200, told)])
    with Client(proxy.url, flow.tokens["host"], retries=QUICK) as host, pytest.raises(UnexpectedAnswer):
        next(host.follow_events())
    assert len(proxy.asked) == 3


def test_lines_become_events_and_places() -> None:
    feed = Feed(Core(), 7)
    event = (
        '{"index": 9, "id": "e", "type": "thread.created", "timestamp": "2026-11-21T04:03:42.391Z", "flow": "f",'
        ' "thread": "t", "seq": 1, "data": {}}'
    )
    for line in (": a comment", "id: 8", ""):
        assert feed.line(line) is None
    assert feed.request().headers["Last-Event-ID"] == "8"
    told = [feed.line(line) for line in ("id: 9", "event: thread.created", "data: " + event, "")]
    assert [it.index for it in told if it] == [9]
    assert feed.place == 9
    # Half a message that was cut off is forgotten, and asked for again.
    feed.line("id: 10")
    feed.broken(None)
    assert (feed.line(""), feed.place) == (None, 9)
    feed.line("id: 11")
    feed.line("data: " + event)
    with pytest.raises(UnexpectedAnswer):
        feed.line("")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_awaited(flow: Flow) -> None:
    made = flow.thread()
    async with flow.gateway.async_client(flow.tokens["host"]) as host:
        async for event in host.follow_events():
            if event.thread == made.thread:
                break
    assert event.type == "thread.created"
