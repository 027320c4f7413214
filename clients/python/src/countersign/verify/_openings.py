"""Openings: the shown parts of two trees, their roots, and all differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from countersign._protocol._forms import is_digest, unbase64url
from countersign._protocol._json import TOO_DEEP, Json, canonical
from countersign._protocol._refused import Refused, must

from ._tagged import tagged

SALT_BYTES = 32
Node = Json


class _Absent:
    """A missing side, which is not null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True)
class Change:
    """A leaf that differs. A missing side is `ABSENT`."""

    pointer: str
    before: Json
    after: Json


@dataclass(frozen=True)
class Difference:
    """Everything that differs between two states. A `hidden` path was changed, or set to its old value."""

    changed: tuple[Change, ...]
    set_again: tuple[tuple[str, Json], ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True)
class _Tree:
    """A node with its commitment: bare, a leaf, or with its members by token."""

    root: str
    kind: str
    members: dict[str, _Tree]
    value: Json = None
    salt: str = ""


def commitment(node: Node) -> str:
    """Computes the commitment of an opening's node from its shown parts."""
    try:
        return _tree(node).root
    except RecursionError:
        raise Refused(*TOO_DEEP) from None


def check_opening(opening: Json, from_root: str, to_root: str) -> Difference:
    """Checks that an opening belongs to exactly these two states, and returns their differences."""
    if not isinstance(opening, dict) or set(opening) != {"from", "to"}:
        raise Refused("opening", "an opening has exactly from and to")
    try:
        before, after = _tree(opening["from"]), _tree(opening["to"])
        must(before.root == from_root, "root_mismatch", "from opens another state")
        must(after.root == to_root, "root_mismatch", "to opens another state")
        found = list(_compared("", before, after))
    except RecursionError:
        raise Refused(*TOO_DEEP) from None
    return Difference(
        tuple(it for it in found if isinstance(it, Change)),
        tuple(it for it in found if isinstance(it, tuple)),
        tuple(it for it in found if isinstance(it, str)),
    )


def _tree(node: Node) -> _Tree:
    if isinstance(node, str):
        must(is_digest(node), "opening", "a commitment in no known form")
        return _Tree(node, "bare", {})
    members = set(node) if isinstance(node, dict) else set()
    if members == {"value", "salt"}:
        return _leaf(node["value"], node["salt"])
    if members == {"object"} and isinstance(node["object"], dict):
        must(bool(node["object"]), "root_mismatch", "an opened object has a member")
        inner = {key: _tree(item) for key, item in node["object"].items()}
        roots: Json = {key: item.root for key, item in inner.items()}
        return _Tree(tagged("countersign.object.v1", canonical(roots)), "object", inner)
    if members == {"array"} and isinstance(node["array"], list):
        must(bool(node["array"]), "root_mismatch", "an opened array has an item")
        listed = [_tree(item) for item in node["array"]]
        root = tagged("countersign.array.v1", canonical([item.root for item in listed]))
        return _Tree(root, "array", {str(index): item for index, item in enumerate(listed)})
    raise Refused("opening", "a node of no known form")


def _leaf(value: Json, salt: Json) -> _Tree:
    raw = unbase64url(salt) if isinstance(salt, str) else None
    if raw is None or len(raw) != SALT_BYTES:
        raise Refused("opening", "a leaf has 32 bytes of salt")
    must(not (isinstance(value, dict | list) and value), "root_mismatch", "a leaf is a scalar, {} or []")
    return _Tree(tagged("countersign.leaf.v1", raw + canonical(value)), "leaf", {}, value, salt)


Found = Change | tuple[str, Json] | str


def _compared(at: str, before: _Tree | None, after: _Tree | None) -> Iterator[Found]:
    if before is None or after is None:
        yield from _replaced(at, before, after)
    elif before.root == after.root:
        return
    elif before.kind == "bare" or after.kind == "bare":
        yield at
    elif before.kind == after.kind == "leaf":
        yield _of_leaves(at, before, after)
    elif before.kind == after.kind:
        for token in {**before.members, **after.members}:
            yield from _compared(_below(at, token), before.members.get(token), after.members.get(token))
    else:
        yield from _replaced(at, before, after)


def _of_leaves(at: str, before: _Tree, after: _Tree) -> Found:
    if canonical(before.value) == canonical(after.value):
        return (at, before.value)
    must(before.salt != after.salt, "salt_kept", "a leaf changed under the salt that it had")
    return Change(at, before.value, after.value)


def _replaced(at: str, before: _Tree | None, after: _Tree | None) -> Iterator[Found]:
    """Handles a missing side or different kinds: every leaf below, on both sides, differs."""
    old, new = dict(_ends(at, before)), dict(_ends(at, after))
    for pointer in {**old, **new}:
        a, b = old.get(pointer), new.get(pointer)
        if a is not None and b is not None:
            must(a.root != b.root, "salt_kept", "a leaf kept its salt across a change of kind")
        if "bare" in (a.kind if a else "", b.kind if b else ""):
            yield pointer
        else:
            yield Change(pointer, a.value if a else ABSENT, b.value if b else ABSENT)


def _ends(at: str, tree: _Tree | None) -> Iterator[tuple[str, _Tree]]:
    if tree is None:
        return
    if not tree.members:
        yield at, tree
    for token, inner in tree.members.items():
        yield from _ends(_below(at, token), inner)


def _below(at: str, token: str) -> str:
    return f"{at}/{token.replace('~', '~0').replace('/', '~1')}"
