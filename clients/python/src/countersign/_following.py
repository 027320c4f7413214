"""The audit log as a stream. After a break it continues from the last event, so nothing is missed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx

from . import _names as names
from ._bounded import ANSWER_BYTES_MAX, Body, Lines
from ._driving import Awaits, Blocks
from ._plans import Call, Came, Core, Pause, Reply, Request, is_passing, pause_secs, understood
from ._reading import parse, read
from ._settings import lost, reply
from .answers import Event
from .errors import CountersignError, UnexpectedAnswer

# The gateway sends a keep-alive every 15 seconds. After three missing ones the client reconnects.
SILENCE_SECS = 45.0


@dataclass
class Feed:
    """The parsed part of a stream (`text/event-stream`), and the position to continue from."""

    core: Core
    place: int
    bytes_max: int = ANSWER_BYTES_MAX
    failures: int = 0
    _data: list[str] = field(default_factory=list)
    _id: int | None = None
    _lines: Lines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = Lines(self.bytes_max)

    @classmethod
    def of(cls, client: Blocks | Awaits, after: int) -> Feed:
        """Returns the log after a position."""
        settings = client._settings
        return cls(settings.core, names.whole("after", after, 0), settings.answer_bytes_max)

    def request(self) -> Request:
        """Returns the request for the rest of the stream."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.place)}
        return Request("GET", "/v1/events", headers=headers, waits_secs=SILENCE_SECS)

    def chunk(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that a chunk completes."""
        for raw in self._lines.add(chunk):
            try:
                event = self.line(raw.decode())
            except UnicodeDecodeError:
                raise UnexpectedAnswer("the stream is not UTF-8") from None
            if event is not None:
                yield event

    def line(self, line: str) -> Event | None:
        """Returns the event that a line completes, if any."""
        if line:
            self._heard(*line.partition(":")[::2])
            return None
        data, self._data = self._data, []
        place, self._id = self._id, None
        found = read(Event, parse("\n".join(data).encode())) if data else None
        if found is not None and found.index != place:
            raise UnexpectedAnswer("an event that stands at another place than it says")
        # A message without an event is a keep-alive with the current position.
        self.place = self.place if place is None else place
        self.failures = 0
        return found

    def _heard(self, name: str, value: str) -> None:
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and value.isascii() and value.isdigit():
            self._id = int(value)

    def broken(self, came: Came) -> Pause:
        """Returns how long to wait before the next connection. Raises errors that waiting does not fix."""
        self._data, self._id, self._lines = [], None, Lines(self.bytes_max)
        self.failures += 1
        if not (isinstance(came, Reply) and came.status == 200):
            call: Call[Any] = Call(self.request(), {})
            try:
                understood(call, came)
            except CountersignError as error:
                if not is_passing(error):
                    raise
        secs = pause_secs(self.core, self.core.retries, self.failures, came)
        return Pause(self.core.retries.retry_after_most_secs if secs is None else secs)


def follow(client: Blocks, after: int) -> Iterator[Event]:
    """Follows the stream, blocking."""
    feed = Feed.of(client, after)
    while True:
        try:
            with client._http.stream(**client._settings.sent(feed.request())) as response:
                body = Body(feed.bytes_max)
                for chunk in response.iter_raw():
                    if response.status_code == httpx.codes.OK:
                        yield from feed.chunk(chunk)
                    else:
                        body.add(chunk)
                came: Came = reply(response, body)
        except httpx.HTTPError as error:
            came = lost(error, client._settings.address.url)
        client._do(feed.broken(came))


async def afollow(client: Awaits, after: int) -> AsyncIterator[Event]:
    """Follows the stream, awaited."""
    feed = Feed.of(client, after)
    while True:
        try:
            async with client._http.stream(**client._settings.sent(feed.request())) as response:
                body = Body(feed.bytes_max)
                async for chunk in response.aiter_raw():
                    if response.status_code == httpx.codes.OK:
                        for event in feed.chunk(chunk):
                            yield event
                    else:
                        body.add(chunk)
                came: Came = reply(response, body)
        except httpx.HTTPError as error:
            came = lost(error, client._settings.address.url)
        await anyio.sleep(feed.broken(came).secs)
