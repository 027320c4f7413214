"""Types that check the form of their value, and an exact reader of dataclasses.

A missing, additional or malformed member is refused. A field with a default may be left out, and null is another value.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, NewType, TypeVar

from ._json import Json
from ._refused import Refused

T = TypeVar("T")
Text = NewType("Text", str)
AnyText = NewType("AnyText", str)
Name = NewType("Name", str)
Digest = NewType("Digest", str)
Jti = NewType("Jti", str)
Moment = NewType("Moment", str)
# A JSON Pointer (RFC 6901), and one that is not the root.
Pointer = NewType("Pointer", str)
PointerBelow = NewType("PointerBelow", str)
Count = NewType("Count", int)
# The number of a stage or of an attempt.
Ordinal = NewType("Ordinal", int)
ORDINAL_MAX = 2**32 - 1

_STEP = "/(?:[^~/]|~[01])*"
_SHAPES: dict[Any, str] = {
    Text: r"(?s:.+)",
    AnyText: r"(?s:.*)",
    Pointer: f"(?:{_STEP})*",
    PointerBelow: f"(?:{_STEP})+",
    Name: r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
    Digest: r"sha256:[0-9a-f]{64}",
    # 16 bytes in base64url: the last character has two significant bits.
    Jti: r"[A-Za-z0-9_-]{21}[AQgw]",
}
_MOMENT = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)


class Malformed(Exception):
    """A malformed value, with its path."""


def exactly(kind: type[T], value: Json, code: str) -> T:
    """Reads `value` as that dataclass, or raises `Refused` with that code."""
    try:
        reader: Callable[[Json, str], T] = _reader(typing.cast("Any", kind))
        return reader(value, "")
    except Malformed as bad:
        raise Refused(code, str(bad)) from None


def members_of(value: Json) -> Json:
    """Returns the members of a dataclass, and any other value as it is."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    return {it.name: getattr(value, it.name) for it in dataclasses.fields(value)}


def is_digest(value: Json) -> bool:
    """Returns whether a value is a digest."""
    return isinstance(value, str) and re.fullmatch(_SHAPES[Digest], value) is not None


def is_moment(value: Json) -> bool:
    """Returns whether a value is a moment in the one spelling of the protocol, on a day that exists."""
    if not isinstance(value, str) or _MOMENT.fullmatch(value) is None:
        return False
    year, month, day = (int(it) for it in value[:10].split("-"))
    return day <= calendar.monthrange(year, month)[1]


def unbase64url(text: str) -> bytes | None:
    """Decodes base64url without padding, in its one spelling."""
    if re.fullmatch(r"[A-Za-z0-9_-]*", text, re.ASCII) is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    return raw if base64url(raw) == text else None


def base64url(raw: bytes) -> str:
    """Encodes base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


@functools.cache
def _reader(kind: Any) -> Callable[[Json, str], Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value, at: value
    if kind is bool:
        return functools.partial(_that, lambda value: type(value) is bool)
    if kind is Count:
        return functools.partial(_that, lambda value: type(value) is int and value >= 0)
    if kind is Ordinal:
        return functools.partial(_that, lambda value: type(value) is int and 0 <= value <= ORDINAL_MAX)
    if kind is Moment:
        return functools.partial(_that, is_moment)
    if kind in _SHAPES:
        return functools.partial(_shaped, re.compile(_SHAPES[kind], re.ASCII))
    if origin is Literal:
        return functools.partial(_that, lambda value: type(value) is str and value in arguments)
    if origin is tuple:
        return functools.partial(_listed, _reader(arguments[0]))
    if origin in (typing.Union, types.UnionType):
        return _either([it for it in arguments if it is not type(None)], type(None) in arguments)
    return _members(kind)


def _that(holds: Callable[[Json], bool], value: Json, at: str) -> Any:
    if not holds(value):
        raise Malformed(f"{at or 'it'} is not what it should be")
    return value


def _shaped(shape: re.Pattern[str], value: Json, at: str) -> Any:
    return _that(lambda it: isinstance(it, str) and shape.fullmatch(it) is not None, value, at)


def _listed(inner: Callable[[Json, str], Any], value: Json, at: str) -> tuple[Any, ...]:
    _that(lambda it: isinstance(it, list), value, at)
    return tuple(inner(item, f"{at}/{index}") for index, item in enumerate(value))


def _either(kinds: list[Any], nullable: bool) -> Callable[[Json, str], Any]:
    """Reads one type or null, or one of several dataclasses by their `kind`."""
    if len(kinds) == 1:
        inner = _reader(kinds[0])
        return lambda value, at: None if nullable and value is None else inner(value, at)
    by_kind = {typing.get_args(typing.get_type_hints(it)["kind"])[0]: _reader(it) for it in kinds}

    def run(value: Json, at: str) -> Any:
        said = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(said, str) or said not in by_kind:
            raise Malformed(f"{at} is of no known kind")
        return by_kind[said](value, at)

    return run


def _members(kind: Any) -> Callable[[Json, str], Any]:
    hints = typing.get_type_hints(kind)
    members = {str(it.metadata.get("wire", it.name)): _member(it, hints[it.name]) for it in dataclasses.fields(kind)}
    needed = {wire for wire, (_, _, may_lack) in members.items() if not may_lack}

    def run(value: Json, at: str) -> Any:
        if not isinstance(value, dict):
            raise Malformed(f"{at or 'it'} is not an object")
        if not needed <= set(value) <= set(members):
            raise Malformed(f"{at or 'it'} has not exactly its members")
        found = {name: read(value[wire], f"{at}/{wire}") for wire, (name, read, _) in members.items() if wire in value}
        return kind(**found)

    return run


def _member(field: dataclasses.Field[Any], hint: Any) -> tuple[str, Callable[[Json, str], Any], bool]:
    may_lack = field.default is not dataclasses.MISSING
    if may_lack:
        (hint,) = (it for it in typing.get_args(hint) if it is not type(None))
    return field.name, _reader(hint), may_lack
