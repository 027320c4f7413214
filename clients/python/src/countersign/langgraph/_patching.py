"""The smallest JSON Patch between two values. It names only what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from countersign._same import same
from countersign.errors import Json

Operation = dict[str, Any]


def patch(before: dict[str, Json], after: dict[str, Json]) -> list[Operation]:
    """Returns the patch from `before` to `after`."""
    return list(_object("", before, after))


def _object(at: str, before: dict[str, Json], after: dict[str, Json]) -> Iterator[Operation]:
    for key in sorted(before.keys() - after.keys()):
        yield {"op": "remove", "path": _below(at, key)}
    for key, value in after.items():
        if key not in before:
            yield {"op": "add", "path": _below(at, key), "value": value}
        else:
            yield from _value(_below(at, key), before[key], value)


def _value(at: str, before: Json, after: Json) -> Iterator[Operation]:
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _object(at, before, after)
    elif isinstance(before, list) and isinstance(after, list) and same(after[: len(before)], before):
        # Appended items one by one, so that the patch names no other item.
        for item in after[len(before) :]:
            yield {"op": "add", "path": f"{at}/-", "value": item}
    else:
        yield {"op": "replace", "path": at, "value": after}


def _below(at: str, key: str) -> str:
    return f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
