"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

import re

from ._json import Json

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
# No list in a text of 64 MiB has an index with more digits.
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def value_at(value: Json, pointer: str) -> tuple[Json] | None:
    """Returns the value at a pointer, if there is one."""
    if _POINTER.fullmatch(pointer) is None:
        return None
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) is not None and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return (value,)
