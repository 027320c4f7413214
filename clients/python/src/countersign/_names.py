"""What goes into a path is checked before it is sent: a name is a name, a digest a digest."""

from __future__ import annotations

import re
from urllib.parse import quote

from .errors import CountersignError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)

_JTI = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


class Invalid(CountersignError, ValueError):
    """An argument that cannot be sent; nothing was."""

    def __init__(self, argument: str, detail: str) -> None:
        super().__init__(f"{argument}: {detail}")
        self.argument = argument


def name(argument: str, text: object) -> str:
    """A name of a thread, node, write and so on."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None:
        raise Invalid(argument, "a name is 1 to 128 of A-Z a-z 0-9 . _ : - and begins with a letter or digit")
    return text


def digest(argument: str, text: object) -> str:
    """A transition's digest."""
    if not isinstance(text, str) or _DIGEST.fullmatch(text) is None:
        raise Invalid(argument, "a digest is sha256: and 64 digits of lower-case hex")
    return text


def part(argument: str, text: object) -> str:
    """A name as a part of a path."""
    return quote(name(argument, text), safe="")


def jti(argument: str, text: object) -> str:
    """A receipt's id."""
    if not isinstance(text, str) or _JTI.fullmatch(text) is None:
        raise Invalid(argument, "a receipt's id is 22 characters of base64url")
    return text


def key(argument: str, text: object) -> str:
    """An idempotency key: anything that can be seen in ASCII, as a header takes it."""
    if not isinstance(text, str) or _KEY.fullmatch(text) is None:
        raise Invalid(argument, "a key is 1 to 255 characters of ASCII that can be seen")
    return text


def whole(argument: str, number: object, least: int) -> int:
    """A whole number from `least` on."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise Invalid(argument, f"a whole number from {least} on")
    return number
