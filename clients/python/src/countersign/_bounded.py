"""Limits the size of responses, so that a server cannot fill this process' memory."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import AnswerTooLarge

# The largest responses are pages of chains with openings. Other bodies have 1 MiB at most.
ANSWER_BYTES_MAX = 64 * 1024 * 1024


class Body:
    """The response so far."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._chunks, self._bytes = bytes_max, list[bytes](), 0

    def add(self, chunk: bytes) -> None:
        """Adds a chunk, up to the limit."""
        self._bytes += len(chunk)
        if self._bytes > self._bytes_max:
            raise AnswerTooLarge(self._bytes_max)
        self._chunks.append(chunk)

    def whole(self) -> bytes:
        """Returns the whole body."""
        return b"".join(self._chunks)


class Lines:
    """The lines of a stream, and the size of the current message. Only a line feed ends a line, with or without a
    carriage return before it. Other line separators can be part of a text."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._rest, self._message = bytes_max, bytearray(), 0

    def add(self, chunk: bytes) -> Iterator[bytes]:
        """Yields each line that the chunk completes."""
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
