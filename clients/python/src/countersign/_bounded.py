"""How much of an answer is read: whoever answers must not be able to fill this process' memory."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import AnswerTooLarge

# The gateway's largest answers are pages of chains with their openings; a body of its own has 1 MiB at most.
ANSWER_BYTES_MAX = 64 * 1024 * 1024


class Body:
    """What came of an answer so far."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._chunks, self._bytes = bytes_max, list[bytes](), 0

    def add(self, chunk: bytes) -> None:
        """Takes some more, up to the bound."""
        self._bytes += len(chunk)
        if self._bytes > self._bytes_max:
            raise AnswerTooLarge(self._bytes_max)
        self._chunks.append(chunk)

    def whole(self) -> bytes:
        """All of it."""
        return b"".join(self._chunks)


class Lines:
    """The lines of a stream, and how much came since a message ended. Only a line feed ends a line, with a carriage
    return before it or not: what else looks like an end to some is part of somebody's text."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._rest, self._message = bytes_max, bytearray(), 0

    def add(self, chunk: bytes) -> Iterator[bytes]:
        """Each line that some more of the stream ends."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._grows(len(line))
            whole = bytes(self._rest + line).removesuffix(b"\r")
            self._rest.clear()
            if not whole:
                self._message = 0
            yield whole
        self._grows(len(rest))
        self._rest += rest

    def _grows(self, by: int) -> None:
        self._message += by
        if self._message > self._bytes_max:
            raise AnswerTooLarge(self._bytes_max)
