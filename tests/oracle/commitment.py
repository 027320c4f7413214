"""Hashes, the commitment tree of a state, openings, and the proof that a redacted diff is complete.

A node of an opening is one of
    "sha256:…"                        a bare commitment (hidden or unchanged)
    {"value": leaf, "salt": "…"}      an opened leaf; a leaf is a scalar, {} or []
    {"object": {key: node, …}}        an opened object, with all its keys, at least one
    {"array": [node, …]}              an opened array, with all its items, at least one
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from effect import ABSENT, Absent, Change, Maybe, children, covers, diff, escape
from effect import is_leaf, leaves, touches
from strict_json import Json, Refused, base64url, canonical, same, unbase64url

LEAF, OBJECT, ARRAY = "countersign.leaf.v1", "countersign.object.v1", "countersign.array.v1"
TRANSITION, POLICY = "countersign.transition.v1", "countersign.policy.v1"
RATIONALE, COMMENT = "countersign.rationale.v1", "countersign.comment.v1"
PATCH, PROPOSAL = "countersign.patch.v1", "countersign.proposal.v1"
STEP = "countersign.step.v1"
BRANCH = "countersign.branch.v1"
PAYLOAD, TRUNCATED = "countersign.payload.v1", "countersign.truncated.v1"

SALT_BYTES = 32
Origins = dict[str, str]
Node = Maybe


def H(tag: str, content: bytes) -> str:
    return "sha256:" + hashlib.sha256(tag.encode("ascii") + b"\x00" + content).hexdigest()


def keyed(secret: bytes, tag: str, content: bytes) -> str:
    """The same under a thread's secret: it names what was asked, and lets nobody guess at it."""
    return "sha256:" + hmac.new(secret, tag.encode("ascii") + b"\x00" + content, hashlib.sha256).hexdigest()


def is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", value) is not None


def thread_secret(salt_key: bytes, thread: str) -> bytes:
    return hmac.new(salt_key, thread.encode("utf-8"), hashlib.sha256).digest()


def leaf_salt(secret: bytes, pointer: str, proposal: str) -> bytes:
    return hmac.new(secret, canonical([pointer, proposal]), hashlib.sha256).digest()


def open_fully(state: Json, origins: Origins, secret: bytes, pointer: str = "") -> Json:
    """The whole tree of a state, every leaf opened; its root is `commitment` of it."""
    if is_leaf(state):
        salt = base64url(leaf_salt(secret, pointer, origins[pointer]))
        return {"value": state, "salt": salt}
    below = {
        token: open_fully(item, origins, secret, f"{pointer}/{escape(token)}")
        for token, item in children(state)
    }
    return {"object": dict(below)} if isinstance(state, dict) else {"array": list(below.values())}


def origins_after(
    before: Json, origins: Origins, after: Json, proposal: str, named: Collection[str] = ()
) -> Origins:
    """Which proposal last set each leaf: this one where the diff says so, or where the request set
    the leaf unseen (`named`) though its value stays; else who did before."""
    set_now = {change.pointer for change in diff(before, after)}.union(named)
    return {at: proposal if at in set_now else origins[at] for at, _ in leaves(after)}


def commitment(node: Json) -> str:
    """The commitment of an opening's node, computed from what it opens and nothing else."""
    if isinstance(node, str) and is_digest(node):
        return node
    if node in ({"object": {}}, {"array": []}):
        raise Refused("root_mismatch", "nothing is in what was opened")
    match node:
        case {"value": value, "salt": salt, **rest} if not rest:
            raw = _salt(salt)
            if not is_leaf(value):
                raise Refused("root_mismatch", "no leaf has such a value")
            return H(LEAF, raw + canonical(value))
        case {"object": dict(inner), **rest} if not rest and inner:
            return H(OBJECT, canonical({key: commitment(item) for key, item in inner.items()}))
        case {"array": list(items), **rest} if not rest and items:
            return H(ARRAY, canonical([commitment(item) for item in items]))
    raise Refused("opening", "a node of no known form")


def _salt(text: Json) -> bytes:
    try:
        raw = unbase64url(text) if isinstance(text, str) else b""
    except Refused as bad:
        raise Refused("opening", str(bad)) from bad
    if len(raw) != SALT_BYTES:
        raise Refused("opening", f"a salt has {SALT_BYTES} bytes")
    return raw


def disclose(
    before: Json, after: Json, hide: list[str], reads: list[str], pointer: str = ""
) -> tuple[Json, Json]:
    """Two fully opened trees cut down to what a review shows: the changed paths and the paths
    that `reads` (a writer's patterns) touch; nothing at or below what `hide` covers."""
    differ = commitment(before) != commitment(after)
    wanted = differ or any(touches(pattern, pointer) for pattern in reads)
    if not wanted or any(covers(pattern, pointer) for pattern in hide):
        return commitment(before), commitment(after)
    old, new = _members(before), _members(after)
    kept_old, kept_new = dict(old), dict(new)
    for token in {**old, **new}:
        at = f"{pointer}/{escape(token)}"
        if token in old and token in new:
            kept_old[token], kept_new[token] = disclose(old[token], new[token], hide, reads, at)
        elif token in old:
            kept_old[token] = _cut(old[token], hide, at)
        else:
            kept_new[token] = _cut(new[token], hide, at)
    return _rebuilt(before, kept_old), _rebuilt(after, kept_new)


def _cut(node: Json, hide: list[str], pointer: str) -> Json:
    """A subtree that only one side has: opened whole, but for what is hidden."""
    if any(covers(pattern, pointer) for pattern in hide):
        return commitment(node)
    below = {t: _cut(item, hide, f"{pointer}/{escape(t)}") for t, item in _members(node).items()}
    return _rebuilt(node, below)


def _members(node: Node) -> dict[str, Json]:
    """An opened container's nodes by pointer token; none for a leaf or a bare commitment."""
    match node:
        case {"object": dict(inner)}:
            return dict(inner)
        case {"array": list(items)}:
            return dict(children(items))
    return {}


def _rebuilt(node: Json, below: dict[str, Json]) -> Json:
    match node:
        case {"object": _}:
            return {"object": below}
        case {"array": _}:
            return {"array": list(below.values())}
    return node


@dataclass
class Completeness:
    """What a redacted diff says: these leaves changed, these were set to the value they had, these
    places were set unseen, and (because both roots were recomputed from it) nothing else was."""

    changed: list[Change] = field(default_factory=list)
    set_again: list[tuple[str, Json]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    unchanged_seen: int = 0


def check_opening(opening: Json, from_root: Json, to_root: Json) -> Completeness:
    """Proves an opening to be of exactly these two states and lists everything that differs."""
    if not isinstance(opening, dict) or set(opening) != {"from", "to"}:
        raise Refused("opening", "an opening has exactly from and to")
    for side, root in (("from", from_root), ("to", to_root)):
        if commitment(opening[side]) != root:
            raise Refused("root_mismatch", f"{side} opens another state")
    found = Completeness()
    _compare(opening["from"], opening["to"], "", found)
    return found


def _compare(old: Node, new: Node, pointer: str, found: Completeness) -> None:
    if _equal(old, new):
        found.unchanged_seen += sum(not isinstance(end, str) for _, end in _ends(old, pointer))
        return
    kinds = {_kind(old), _kind(new)}
    if kinds == {"leaf"}:
        _compare_leaves(old, new, pointer, found)
    elif kinds in ({"object"}, {"array"}):
        before, after = _members(old), _members(new)
        for token in {**before, **after}:
            at = f"{pointer}/{escape(token)}"
            _compare(before.get(token, ABSENT), after.get(token, ABSENT), at, found)
    elif "hidden" in kinds and "absent" not in kinds:
        found.hidden.append(pointer)
    else:
        _compare_replaced(old, new, pointer, found)


def _compare_leaves(old: Node, new: Node, pointer: str, found: Completeness) -> None:
    assert isinstance(old, dict) and isinstance(new, dict)
    if same(old["value"], new["value"]):
        found.set_again.append((pointer, old["value"]))
        return
    if old["salt"] == new["salt"]:
        raise Refused("salt_kept", f"{pointer} changed under the salt it had")
    found.changed.append(Change(pointer, old["value"], new["value"]))


def _compare_replaced(old: Node, new: Node, pointer: str, found: Completeness) -> None:
    """One side is absent, or the kinds differ: then every leaf below on both sides is another."""
    before, after = dict(_ends(old, pointer)), dict(_ends(new, pointer))
    for at in {**before, **after}:
        a, b = before.get(at, ABSENT), after.get(at, ABSENT)
        if _equal(a, b):
            raise Refused("salt_kept", f"{at} kept its commitment across a change of kind")
        if isinstance(a, str) or isinstance(b, str):
            found.hidden.append(at)
        else:
            found.changed.append(Change(at, _value(a), _value(b)))


def _equal(a: Node, b: Node) -> bool:
    if isinstance(a, Absent) or isinstance(b, Absent):
        return False
    return commitment(a) == commitment(b)


def _kind(node: Node) -> str:
    """absent, hidden, leaf, object or array, of a node whose form `commitment` has checked."""
    if isinstance(node, Absent):
        return "absent"
    if not isinstance(node, dict):
        return "hidden"
    return "leaf" if "salt" in node else next(iter(node))


def _ends(node: Node, pointer: str) -> Iterator[tuple[str, Json]]:
    """The opened leaves and bare commitments below a node, by pointer."""
    if isinstance(node, Absent):
        return
    if _kind(node) in ("hidden", "leaf"):
        yield pointer, node
    for token, item in _members(node).items():
        yield from _ends(item, f"{pointer}/{escape(token)}")


def _value(node: Node) -> Node:
    return node["value"] if isinstance(node, dict) else node
