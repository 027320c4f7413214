"""Makes the vectors of openings: good ones, twins with one thing altered, and inconsistent ones."""

from __future__ import annotations

from collections.abc import Iterator

from commitment import (
    ARRAY,
    LEAF,
    OBJECT,
    H,
    Completeness,
    Origins,
    check_opening,
    commitment,
    disclose,
)
from commitment import open_fully, origins_after, thread_secret
from effect import Absent, Change, apply_patch, leaves
from fixtures import SALT_KEY, Object, fixed_bytes, fixed_uuid4
from strict_json import Json, base64url, canonical, same

ONE, TWO = fixed_uuid4("proposal one"), fixed_uuid4("proposal two")
THREAD = "018f2f6e-7b1a-7c3d-9e52-0a1b2c3d4e5f"
WHOLE = "a little of everything"
CARDLESS = "every way to change, cards hidden"
OTHER_SALT = base64url(fixed_bytes("another salt"))
BARE = H(LEAF, b"anything else")

CARD: Json = {"number": "4000-0000", "holder": "Åsa"}
BEFORE: Json = {
    "user": {"id": 17, "name": "Åsa"}, "payment": {"amount": 120, "card": CARD, "notes": ["a", None]},
    "tags": ["x", "y"], "gone": {"deep": [1, {"deeper": None}]}, "empty": {}, "same": [0, 0],
}  # fmt: skip
AFTER: Json = {
    "user": {"id": 42, "name": "Åsa"},
    "payment": {"amount": 120, "card": {"number": "4000-9999", "cvc": 1}, "notes": ["a"]},
    "tags": {"0": "x", "1": "y"}, "new": {"list": [{}, []]}, "empty": [], "same": [0, 0],
}  # fmt: skip
SMALL_BEFORE: Json = {
    "user": {"id": 17, "name": "Åsa"},
    "tags": ["x", "y"],
    "empty": {},
    "same": [0],
}
SMALL_AFTER: Json = {
    "user": {"id": 42, "name": "Åsa"}, "tags": {"0": "x", "1": "y"}, "empty": [], "same": [0], "new": 1,
}  # fmt: skip
ASKED: list[tuple[str, Json, Json, list[str], list[str]]] = [
    ("nothing changed", BEFORE, BEFORE, [], []),
    ("nothing changed, and what a writer reads", BEFORE, BEFORE, [], ["user", "payment.amount"]),
    ("one scalar", {"a": 17, "b": {"c": 1}}, {"a": 42, "b": {"c": 1}}, [], []),
    (WHOLE, SMALL_BEFORE, SMALL_AFTER, [], []),
    ("every way to change", BEFORE, AFTER, [], []),
    ("every way to change, cards hidden", BEFORE, AFTER, ["payment.card.*"], []),
    ("every way to change, a whole object hidden", BEFORE, AFTER, ["payment"], []),
    ("what a writer reads besides, in part hidden", BEFORE, AFTER, ["payment.card.number"], ["payment", "same.*", "nowhere.at.all"]),
    ("everything hidden", BEFORE, AFTER, ["*"], []),
    ("null is not absent", {"a": None, "b": 1}, {"b": 1}, [], []),
    ("{} is not []", {"a": {}}, {"a": []}, [], []),
    ("the first key", {}, {"a": {"b": 1}}, [], []),
    ("the last key", {"a": {"b": 1}}, {}, [], []),
]  # fmt: skip
SET_AGAIN: list[tuple[str, Json, Json, list[str], list[str]]] = [
    ("nothing changed, one leaf set unseen to the value it had", SMALL_BEFORE, SMALL_BEFORE, [], ["/user/id"]),
    ("one leaf changed, its neighbour set unseen to the value it had", SMALL_BEFORE, SMALL_AFTER, [], ["/user/id", "/user/name"]),
    ("null, {} and an item set unseen to what they were", BEFORE, BEFORE, [], ["/gone/deep/1/deeper", "/empty", "/tags/0"]),
    ("a hidden leaf set unseen to the value it had", BEFORE, BEFORE, ["payment.card"], ["/payment/card/number", "/payment/amount"]),
]  # fmt: skip
OPENINGS: list[tuple[str, Json, Json, list[str], list[str], list[str]]] = [
    *((name, before, after, hide, reads, []) for name, before, after, hide, reads in ASKED),
    *((name, before, after, hide, [], named) for name, before, after, hide, named in SET_AGAIN),
]


def openings() -> Object:
    secret = thread_secret(SALT_KEY, THREAD)
    cases: list[Json] = []
    for name, before, after, hide, reads, named in OPENINGS:
        origins: Origins = {at: ONE for at, _ in leaves(before)}
        then = origins_after(before, origins, after, TWO, named)
        old, new = disclose(
            open_fully(before, origins, secret), open_fully(after, then, secret), hide, reads
        )
        case = _opening_case(name, {"from": old, "to": new})
        case["made_from"] = {
            "salt_key": SALT_KEY.hex(), "thread": THREAD, "before": before, "origins": dict(origins),
            "after": after, "proposal": TWO, "named": list(named), "hide": list(hide),
            "reads": list(reads),
        }  # fmt: skip
        cases.append(case)
    return {
        "cases": cases,
        "spoiled": [*_spoiled(cases), *_malformed()],
        "inconsistent": list(_inconsistent()),
    }


def _opening_case(name: str, opening: Object) -> Object:
    roots: Object = {"from_root": commitment(opening["from"]), "to_root": commitment(opening["to"])}
    found = check_opening(dict(opening), roots["from_root"], roots["to_root"])
    return {"name": name, **roots, "opening": opening, **seen(found)}


def seen(found: Completeness) -> Object:
    again: list[Json] = [{"pointer": at, "value": value} for at, value in found.set_again]
    changed: list[Json] = [sides(change) for change in found.changed]
    return {"changed": changed, "set_again": again, "hidden": list(found.hidden)}


def sides(change: Change) -> Object:
    """A change as written in vectors: the side where nothing is there is left out."""
    both = {"before": change.before, "after": change.after}
    there = {name: value for name, value in both.items() if not isinstance(value, Absent)}
    return {"pointer": change.pointer, **there}


def _spoiled(cases: list[Json]) -> Iterator[Json]:
    """Twins of good openings, one thing altered by a JSON Patch: refused, or of other roots."""
    by_name = {case["name"]: case for case in cases if isinstance(case, dict)}
    for name, of, patch in [*_altered_values(by_name[WHOLE]["opening"]), *_altered_forms()]:
        good = by_name[of]
        opening = apply_patch(good["opening"], "json-patch", patch)
        assert not same(opening, good["opening"]), name
        roots = {root: good[root] for root in ("from_root", "to_root")}
        yield {"name": name, "of": of, **roots, "opening": opening}


Alteration = tuple[str, str, list[Json]]
USER, TO, FROM = "/to/object/user/object/id", "/to/object", "/from/object"


def _altered_values(good: Json) -> list[Alteration]:
    """What a false gateway, or a page with a row altered, would show."""
    user, tags = _at(good, "to", "object", "user"), _at(good, "to", "object", "tags", "object")
    assert isinstance(tags, dict)
    return [
        ("a visible value", WHOLE, [_replace(f"{USER}/value", 43)]),
        ("a visible value before", WHOLE, [_replace(f"{FROM}/user/object/id/value", 18)]),
        ("a value as its text", WHOLE, [_replace(f"{USER}/value", "42")]),
        ("null for an empty object", WHOLE, [_replace(f"{FROM}/empty/value", None)]),
        ("an array for an empty object", WHOLE, [_replace(f"{FROM}/empty/value", [])]),
        ("a salt", WHOLE, [_replace(f"{USER}/salt", OTHER_SALT)]),
        ("a row left out on both sides", WHOLE, [_remove(f"{FROM}/user"), _remove(f"{TO}/user")]),
        ("a row left out on one side", WHOLE, [_remove(f"{TO}/new")]),
        ("a row added", WHOLE, [_add(f"{TO}/more", {"value": 1, "salt": OTHER_SALT})]),
        ("a null added", WHOLE, [_add(f"{TO}/more", {"value": None, "salt": OTHER_SALT})]),
        ("an item left out", WHOLE, [_remove(f"{FROM}/tags/array/1")]),
        ("two items exchanged", WHOLE, [_move(f"{FROM}/tags/array/0", f"{FROM}/tags/array/1")]),
        ("a key renamed", WHOLE, [_move(USER, "/to/object/user/object/uid")]),
        ("a changed row shown as unchanged", WHOLE, [_replace(f"{TO}/user", _at(good, "from", "object", "user"))]),
        ("one row's node under another", WHOLE, [_replace(f"{TO}/same", user)]),
        ("another bare commitment", WHOLE, [_replace(f"{TO}/same", BARE)]),
        ("another commitment of a hidden value", CARDLESS, [_replace(f"{TO}/payment/object/card/object/number", BARE)]),
        ("an object as an array", WHOLE, [_replace(f"{TO}/tags", {"array": list(tags.values())})]),
        ("the sides exchanged", WHOLE, [_move("/to", "/then"), _move("/from", "/to"), _move("/then", "/from")]),
    ]  # fmt: skip


def _altered_forms() -> list[Alteration]:
    """What is no opening at all."""
    bits = _replace(f"{USER}/salt", OTHER_SALT[:-1] + chr(ord(OTHER_SALT[-1]) + 1))
    leaf: Json = {"value": {"id": 42, "name": "Åsa"}, "salt": OTHER_SALT}
    return [
        ("a salt with trailing bits", WHOLE, [bits]),
        ("a salt with padding", WHOLE, [_replace(f"{USER}/salt", OTHER_SALT + "=")]),
        ("a salt that is too short", WHOLE, [_replace(f"{USER}/salt", base64url(fixed_bytes("short", 31)))]),
        ("a salt of null", WHOLE, [_replace(f"{USER}/salt", None)]),
        ("a leaf without its salt", WHOLE, [_remove(f"{USER}/salt")]),
        ("a leaf without its value", WHOLE, [_remove(f"{USER}/value")]),
        ("a commitment in capitals", WHOLE, [_replace(f"{TO}/same", "sha256:" + BARE[7:].upper())]),
        ("a commitment without its prefix", WHOLE, [_replace(f"{TO}/same", BARE[7:])]),
        ("a node of null", WHOLE, [_replace(f"{TO}/same", None)]),
        ("an opened object without members", WHOLE, [_replace(f"{FROM}/empty", {"object": {}})]),
        ("an opened array without items", WHOLE, [_replace(f"{TO}/empty", {"array": []})]),
        ("a container opened as a leaf", WHOLE, [_replace(f"{TO}/user", leaf)]),
        ("an object whose members are a list", WHOLE, [_replace(f"{TO}/user", {"object": [BARE]})]),
        ("a node with a member too many", WHOLE, [_add(f"{USER}/note", "x")]),
        ("a node of two forms", WHOLE, [_add(f"{TO}/user/array", [BARE])]),
        ("a node of no form", WHOLE, [_replace(f"{TO}/user", {})]),
        ("a side missing", WHOLE, [_remove("/from")]),
        ("a side too many", WHOLE, [_add("/via", BARE)]),
    ]  # fmt: skip


def _malformed() -> Iterator[Json]:
    """Nodes of no known form, with the root that a careless reader would compute from them."""
    salt = fixed_bytes("another salt")
    value: Json = {"a": 1}
    leaf: Object = {"value": 1, "salt": base64url(salt)}
    nodes: list[tuple[str, Json, str]] = [
        ("a container committed as a leaf", {**leaf, "value": value}, H(LEAF, salt + canonical(value))),
        ("{} committed as an object", {"object": {}}, H(OBJECT, b"{}")),
        ("[] committed as an array", {"array": []}, H(ARRAY, b"[]")),
        ("a salt of 31 bytes", {**leaf, "salt": base64url(salt[:31])}, H(LEAF, salt[:31] + b"1")),
        ("no salt at all", {**leaf, "salt": ""}, H(LEAF, b"1")),
        ("a leaf with a member too many", {**leaf, "note": 1}, H(LEAF, salt + b"1")),
        ("an array with a member too many", {"array": [BARE], "note": 1}, H(ARRAY, canonical([BARE]))),
        ("an object with a member too many", {"object": {"a": BARE}, "note": 1}, H(OBJECT, canonical({"a": BARE}))),
    ]  # fmt: skip
    for name, node, root in nodes:
        inside: Json = {"object": {"in": node}}
        outer = H(OBJECT, canonical({"in": root}))
        opening: Json = {"from": outer, "to": inside}
        yield {"name": name, "of": None, "from_root": outer, "to_root": outer, "opening": opening}


def _inconsistent() -> Iterator[Json]:
    """Both roots follow, and yet no gateway that keeps to the protocol made this transition."""
    secret = thread_secret(SALT_KEY, THREAD)
    made: list[tuple[str, Json, Origins, Json, Origins]] = [
        ("a changed leaf under its old salt", {"a": 1}, {"/a": ONE}, {"a": 2}, {"/a": ONE}),
        ("a changed leaf under its old salt beside one that was set to the value it had", {"a": 1, "b": 2}, {"/a": ONE, "/b": ONE}, {"a": 1, "b": 3}, {"/a": TWO, "/b": ONE}),
        ("an item changed under its old salt beside one that got a new one", {"a": [1, 2]}, {"/a/0": ONE, "/a/1": ONE}, {"a": [3, 4]}, {"/a/0": TWO, "/a/1": ONE}),
        ("a leaf that kept its salt across a change of kind", {"a": ["x"]}, {"/a/0": ONE}, {"a": {"0": "x"}}, {"/a/0": ONE}),
    ]  # fmt: skip
    for name, before, origins, after, then in made:
        old, new = open_fully(before, origins, secret), open_fully(after, then, secret)
        roots: Object = {"from_root": commitment(old), "to_root": commitment(new)}
        yield {"name": name, **roots, "opening": {"from": old, "to": new}}


def _at(node: Json, *path: str) -> Json:
    for key in path:
        assert isinstance(node, dict)
        node = node[key]
    return node


def _replace(path: str, value: Json) -> Json:
    return {"op": "replace", "path": path, "value": value}


def _add(path: str, value: Json) -> Json:
    return {"op": "add", "path": path, "value": value}


def _remove(path: str) -> Json:
    return {"op": "remove", "path": path}


def _move(source: str, path: str) -> Json:
    return {"op": "move", "from": source, "path": path}
