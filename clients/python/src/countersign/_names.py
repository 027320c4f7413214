"""Checks every name and digest before it becomes part of a path."""

from __future__ import annotations

import re
from urllib.parse import quote

from .errors import CountersignError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)

_JTI = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


class Invalid(CountersignError, ValueError):
    """An argument that cannot be sent. Nothing was sent."""

    def __init__(self, argument: str, detail: str) -> None:
        super().__init__(f"{argument}: {detail}")
        self.argument = argument


def name(argument: str, text: object) -> str:
    """Checks the name of a thread, node or write."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None:
        raise Invalid(argument, "a name is 1 to 128 of A-Z a-z 0-9 . _ : - and begins with a letter or digit")
    return text


def digest(argument: str, text: object) -> str:
    """Checks a transition's digest."""
    if not isinstance(text, str) or _DIGEST.fullmatch(text) is None:
        raise Invalid(argument, "a digest is sha256: and 64 digits of lower-case hex")
    return text


def part(argument: str, text: object) -> str:
    """Returns a name as a segment of a path."""
    return quote(name(argument, text), safe="")


def jti(argument: str, text: object) -> str:
    """Checks a receipt's id."""
    if not isinstance(text, str) or _JTI.fullmatch(text) is None:
        raise Invalid(argument, "a receipt's id is 22 characters of base64url")
    return text


def key(argument: str, text: object) -> str:
    """Checks an idempotency key: visible ASCII characters, as a header takes them."""
    if not isinstance(text, str) or _KEY.fullmatch(text) is None:
        raise Invalid(argument, "a key is 1 to 255 characters of ASCII that can be seen")
    return text


def whole(argument: str, number: object, least: int) -> int:
    """Checks a whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise Invalid(argument, f"a whole number from {least} on")
    return number
