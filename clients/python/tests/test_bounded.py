"""A server cannot use more of this process' memory than the limit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import Flow
from countersign import AnswerTooLarge, AsyncClient, Client, Invalid, Retries, UnexpectedAnswer
from countersign._bounded import Lines
from countersign._following import Feed
from countersign._plans import Core
from faulty import Between, Instead, between

ONCE = Retries(tries=1)
JSON = {"content-type": "application/json"}


@pytest.fixture
def proxy(flow: Flow) -> Iterator[Between]:
    with between(flow.gateway.url) as state:
        yield state


def padded(flow: Flow, bytes_: int) -> Instead:
    """A genuine answer, with blanks after it."""
    whole: bytes = flow.host._http.get(f"/v1/threads/{flow.thread().thread}").content
    return Instead(200, whole + b" " * (bytes_ - len(whole)), JSON)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_answer_is_read_up_to_the_bound_and_no_further(flow: Flow, proxy: Between) -> None:
    known: dict[str, Any] = {"retries": ONCE, "answer_bytes_max": 2000}
    with Client(proxy.url, flow.tokens["host"], **known) as host:
        proxy.todo.append(padded(flow, 2000))
        assert host.thread("any").flow == "payments"
        for status in (200, 404, 500):
            proxy.todo.append(Instead(status, padded(flow, 2001).body, JSON))
            with pytest.raises(AnswerTooLarge) as refused:
                host.thread("any")
            assert (refused.value.code, refused.value.bytes_max) == ("answer_too_large", 2000)
    async with AsyncClient(proxy.url, flow.tokens["host"], **known) as awaited:
        proxy.todo.append(padded(flow, 2001))
        with pytest.raises(AnswerTooLarge):
            await awaited.thread("any")


def test_an_answer_that_is_too_large_is_not_asked_for_again_and_again(flow: Flow, proxy: Between) -> None:
    with Client(proxy.url, flow.tokens["host"], answer_bytes_max=100) as host:
        with pytest.raises(AnswerTooLarge):
            host.thread(flow.thread().thread)
        with pytest.raises(AnswerTooLarge):
            host.wait_for_decision("sha256:" + "0" * 64, within_secs=60)
    assert len(proxy.asked) == 2


def test_an_answer_that_was_packed_is_not_unpacked(flow: Flow, proxy: Between) -> None:
    """A thousandth of what it would be in here."""
    with Client(proxy.url, flow.tokens["host"], retries=ONCE) as host:
        packed = gzip.compress(padded(flow, 1_000_000).body)
        proxy.todo.append(Instead(200, packed, {**JSON, "content-encoding": "gzip"}))
        with pytest.raises(UnexpectedAnswer, match="not JSON"):
            host.thread("any")
    assert proxy.headers[-1]["accept-encoding"] == "identity"


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_a_bound_is_a_number_of_bytes(bound: Any) -> None:
    with pytest.raises(Invalid, match="answer_bytes_max"):
        Client("https://gate.example", "token", answer_bytes_max=bound)


@pytest.mark.parametrize("flood", [b"data: " + b"x" * 3000, b"data: x\n" * 400, b"x" * 3000 + b"\n"])
def test_a_message_of_the_stream_that_never_ends_is_not_gathered(flow: Flow, proxy: Between, flood: bytes) -> None:
    proxy.todo.append(Instead(200, flood, {"content-type": "text/event-stream"}))
    bounded = Client(proxy.url, flow.tokens["host"], retries=ONCE, answer_bytes_max=2000)
    with bounded as host, pytest.raises(AnswerTooLarge):
        next(host.follow_events())


def test_a_stream_may_go_on_for_as_long_as_its_messages_are_small() -> None:
    lines = Lines(10)
    for _ in range(100):
        assert list(lines.add(b"data: x\r\n\n")) == [b"data: x", b""]
    assert list(lines.add(b"data")) == []
    assert list(lines.add(b": y\n")) == [b"data: y"]


def test_only_a_line_feed_ends_a_line_of_the_stream() -> None:
    """Other line separators (U+2028, U+0085, …) may be part of a text."""
    event = {
        "index": 9, "id": "e", "type": "access.halted", "timestamp": "2026-11-21T04:03:42.391Z", "flow": "f",
        "thread": None, "seq": None, "data": {"reason": "one\u2028two\u0085three\u000bfour"},
    }  # fmt: skip
    feed = Feed(Core(), 0)
    told = json.dumps(event, ensure_ascii=False).replace("\\u000b", "\u000b").encode()
    with pytest.raises(UnexpectedAnswer, match="not JSON"):  # which JSON does not allow as it is
        list(feed.chunk(b"id: 9\ndata: " + told + b"\n\n"))
    feed = Feed(Core(), 0)
    event["data"] = {"reason": "one\u2028two\u0085three"}
    told = json.dumps(event, ensure_ascii=False).encode()
    (found,) = [it for byte in b"id: 9\ndata: " + told + b"\n\n" for it in feed.chunk(bytes([byte]))]
    assert found.data == event["data"]


def test_a_stream_that_is_no_text_is_none() -> None:
    with pytest.raises(UnexpectedAnswer, match="UTF-8"):
        list(Feed(Core(), 0).chunk(b"data: \xff\n"))
