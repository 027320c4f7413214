"""What a patch does: pointers, patterns, leaves, the leaf-wise diff and the three patch forms."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from strict_json import Json, Refused, same


class Absent:
    """Stands where there is no value: JSON's null is a value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()
Maybe = Json | Absent


@dataclass(frozen=True)
class Change:
    pointer: str
    before: Maybe
    after: Maybe


def escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def tokens(pointer: str) -> list[str]:
    """RFC 6901."""
    if pointer == "":
        return []
    if not pointer.startswith("/") or re.search(r"~(?![01])", pointer):
        raise Refused("pointer", pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def covers(pattern: str, pointer: str) -> bool:
    """Whether a policy's pattern names the pointer or something above it."""
    want, have = _segments(pattern), tokens(pointer)
    return len(want) <= len(have) and _agree(want, have)


def touches(pattern: str, pointer: str) -> bool:
    """Whether the pointer is at, above or below what a policy's pattern names."""
    return _agree(_segments(pattern), tokens(pointer))


def _segments(pattern: str) -> list[str]:
    return pattern.removeprefix("$.").split(".")


def _agree(want: list[str], have: list[str]) -> bool:
    return all(w in ("*", h) for w, h in zip(want, have, strict=False))


def is_leaf(value: Json) -> bool:
    return not isinstance(value, (dict, list)) or not value


def children(value: Json) -> Iterator[tuple[str, Json]]:
    """The members of a container by their pointer token; nothing for a leaf."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), item) for index, item in enumerate(value))


def leaves(value: Maybe, pointer: str = "") -> Iterator[tuple[str, Json]]:
    if isinstance(value, Absent):
        return
    if is_leaf(value):
        yield pointer, value
    for token, item in children(value):
        yield from leaves(item, f"{pointer}/{escape(token)}")


def diff(before: Maybe, after: Maybe, pointer: str = "") -> list[Change]:
    """Leaf-wise. Where a container changes its kind, every leaf below it on either side counts."""
    of_a_kind = isinstance(before, dict) and isinstance(after, dict)
    of_a_kind = of_a_kind or (isinstance(before, list) and isinstance(after, list))
    if not of_a_kind or not before or not after:
        return _replaced(before, after, pointer)
    assert not isinstance(before, Absent) and not isinstance(after, Absent)
    old, new = dict(children(before)), dict(children(after))
    changes = []
    for token in list(old) + [token for token in new if token not in old]:
        below = f"{pointer}/{escape(token)}"
        changes += diff(old.get(token, ABSENT), new.get(token, ABSENT), below)
    return changes


def _replaced(before: Maybe, after: Maybe, pointer: str) -> list[Change]:
    old, new = dict(leaves(before, pointer)), dict(leaves(after, pointer))
    if list(old) == list(new) == [pointer] and same(old[pointer], new[pointer]):
        return []
    both = list(old) + [at for at in new if at not in old]
    return [Change(at, old.get(at, ABSENT), new.get(at, ABSENT)) for at in both]


def apply_patch(state: Json, form: str, patch: Json) -> Json:
    """The state after a patch, or Refused. The result is always an object."""
    if form == "merge":
        result = _merge(state, patch)
    elif form == "merge-patch":
        result = _merge_patch(state, patch)
    elif form == "json-patch":
        result = _json_patch(state, patch)
    else:
        raise Refused("patch", f"no such format: {form}")
    if not isinstance(result, dict):
        raise Refused("patch", "a state is an object")
    return result


def _merge(state: Json, patch: Json) -> Json:
    """Top-level keys to new values, as graph nodes return them; null sets null."""
    if not isinstance(state, dict) or not isinstance(patch, dict):
        raise Refused("patch", "a merge object is an object")
    return {**state, **patch}


def _merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_patch(result.get(key), value)
    return result


def _json_patch(state: Json, patch: Json) -> Json:
    """RFC 6902: all operations or none."""
    if not isinstance(patch, list):
        raise Refused("patch", "a JSON Patch is an array")
    document: Json = copy.deepcopy(state)
    for operation in patch:
        if not isinstance(operation, dict):
            raise Refused("patch", "an operation is an object")
        document = _operate(document, operation)
    return document


def _operate(document: Json, operation: dict[str, Json]) -> Json:
    kind, path = operation.get("op"), _path(operation, "path")
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise Refused("patch", f"{kind} without a value")
    value = copy.deepcopy(operation.get("value"))
    if kind == "add":
        return _add(document, path, value)
    if kind == "remove":
        return _remove(document, path)
    if kind == "replace":
        _at(document, path)
        return _add(_remove(document, path), path, value) if path else value
    if kind == "test":
        if not same(_at(document, path), value):
            raise Refused("patch", "test failed")
        return document
    if kind not in ("move", "copy"):
        raise Refused("patch", f"no such operation: {kind}")
    source = _path(operation, "from")
    value = copy.deepcopy(_at(document, source))
    if kind == "copy":
        return _add(document, path, value)
    if len(source) < len(path) and path[: len(source)] == source:
        raise Refused("patch", "moved into itself")
    return document if source == path else _add(_remove(document, source), path, value)


def _path(operation: dict[str, Json], member: str) -> list[str]:
    pointer = operation.get(member)
    if not isinstance(pointer, str):
        raise Refused("patch", f"{member} is not a pointer")
    return tokens(pointer)


def _at(document: Json, path: list[str]) -> Json:
    for token in path:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(token, len(document) - 1)]
        else:
            raise Refused("patch", "nothing there")
    return document


def _index(token: str, index_max: int) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", token) or int(token) > index_max:
        raise Refused("patch", f"no such index: {token}")
    return int(token)


def _add(document: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    parent, token = _at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list):
        index = len(parent) if token == "-" else _index(token, len(parent))
        parent.insert(index, value)
    else:
        raise Refused("patch", "no container there")
    return document


def _remove(document: Json, path: list[str]) -> Json:
    _at(document, path)
    if not path:
        raise Refused("patch", "a state cannot be removed")
    parent, token = _at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        del parent[token]
    elif isinstance(parent, list):
        del parent[_index(token, len(parent) - 1)]
    return document
