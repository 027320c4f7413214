"""Reads JSON into frozen dataclasses. A missing or mistyped member is an error, a new one is ignored."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from ._protocol._forms import is_moment
from ._protocol._json import read_json
from ._protocol._refused import Refused
from .errors import Json, UnexpectedAnswer

T = TypeVar("T")
Read = Callable[[Json, str], Any]
MISSING = dataclasses.MISSING
# A gateway's deepest answer. An opening has two levels for each level of its state.
DEPTH_MAX = 256


def parse(text: bytes) -> Json:
    """Parses the strict JSON of the protocol, which two readers cannot read in two ways."""
    try:
        return read_json(text, bytes_max=len(text), depth_max=DEPTH_MAX)
    except Refused as bad:
        raise UnexpectedAnswer(f"not JSON of the protocol: {bad.code}") from None


def read(kind: type[T], value: Json, at: str = "") -> T:
    """Reads `value` as a dataclass."""
    reader: Read = _reader(typing.cast("Any", kind))
    found: T = reader(value, at)
    return found


def reads(kind: type[T]) -> Callable[[Json], T]:
    """Returns the reader of such a response, as a `functools.partial` that names its type."""
    return functools.partial(read, kind)


def with_headers(found: T, headers: Mapping[str, str]) -> T:
    """Returns the response with the members that it has as headers."""
    members = {it.name: it.metadata["header"] for it in dataclasses.fields(found) if "header" in it.metadata}  # type: ignore[arg-type]
    present = {name: headers[header] for name, header in members.items() if header in headers}
    return dataclasses.replace(found, **present)  # type: ignore[type-var]


def _wrong(at: str, wanted: str) -> UnexpectedAnswer:
    """Returns an error with the path and the problem, without the value, which can be confidential."""
    return UnexpectedAnswer(f"the answer's {at or 'body'} is not {wanted}")


@functools.cache
def _reader(kind: Any) -> Read:
    if kind is Any:
        return lambda value, at: value
    if kind in (str, bool, int):
        return functools.partial(_scalar, kind)
    if kind is datetime:
        return moment
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (it for it in arguments if it is not type(None))
        return functools.partial(_or_null, _reader(inner))
    if origin is tuple:
        return functools.partial(_list, _reader(arguments[0]))
    if origin is dict:
        return functools.partial(_dict, _reader(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type[Any]", kind))
    raise TypeError(f"nothing reads {kind}")


def _scalar(kind: type, value: Json, at: str) -> Any:
    # `bool` is a subclass of `int` in Python, but not a number in JSON.
    if type(value) is not kind:
        raise _wrong(at, f"a {kind.__name__}")
    return value


def moment(value: Json, at: str = "") -> datetime:
    """Reads a moment in the one spelling of the protocol: RFC 3339 in UTC with three decimals and `Z`."""
    # Python has no year 0.
    if not is_moment(value) or value < "0001":
        raise _wrong(at, "a moment")
    return datetime.fromisoformat(value[:-1]).replace(tzinfo=timezone.utc)


def _or_null(inner: Read, value: Json, at: str) -> Any:
    return None if value is None else inner(value, at)


def _list(inner: Read, value: Json, at: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(at, "a list")
    return tuple(inner(it, f"{at}/{index}") for index, it in enumerate(value))


def _dict(inner: Read, value: Json, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(at, "an object")
    return {key: inner(it, f"{at}/…") for key, it in value.items()}


def _dataclass(kind: type[Any]) -> Read:
    hints = typing.get_type_hints(kind)
    members = [
        (it.name, str(it.metadata.get("wire", it.name)), _reader(hints[it.name]), _may_lack(it))
        for it in dataclasses.fields(kind)
        if "header" not in it.metadata
    ]

    def run(value: Json, at: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(at, "an object")
        found = {}
        for name, wire, inner, may_lack in members:
            if wire in value:
                found[name] = inner(value[wire], f"{at}/{wire}")
            elif not may_lack:
                raise UnexpectedAnswer(f"the answer's {at}/{wire} is missing")
        return kind(**found)

    return run


def _may_lack(field: dataclasses.Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
