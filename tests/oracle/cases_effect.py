"""Patches and diffs with the outcome each must have, written by hand."""

from __future__ import annotations

from strict_json import Json

Case = dict[str, Json]


def change(pointer: str, **sides: Json) -> Case:
    """`before` and `after`; the side where nothing is there is left out."""
    return {"pointer": pointer, **sides}


def diff_case(name: str, before: Json, after: Json, *changes: Case) -> Case:
    return {"name": name, "before": before, "after": after, "changes": list(changes)}


DIFFS: list[Case] = [
    diff_case("nothing", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    diff_case("one number is one number", {"a": 1}, {"a": 1.0}),
    diff_case("a scalar", {"a": 17, "b": 0}, {"a": 42, "b": 0}, change("/a", before=17, after=42)),
    diff_case("1 is not true", {"a": 1}, {"a": True}, change("/a", before=1, after=True)),
    diff_case("0 is not false", {"a": 0}, {"a": False}, change("/a", before=0, after=False)),
    diff_case("1 is not its text", {"a": 1}, {"a": "1"}, change("/a", before=1, after="1")),
    diff_case("values are not normalised", {"a": "é"}, {"a": "e\u0301"}, change("/a", before="é", after="e\u0301")),
    diff_case("null appears", {}, {"a": None}, change("", before={}), change("/a", after=None)),
    diff_case("null is not absent", {"a": None, "b": 1}, {"b": 1}, change("/a", before=None)),
    diff_case("null is not an empty object", {"a": None}, {"a": {}}, change("/a", before=None, after={})),
    diff_case("{} is not []", {"a": {}}, {"a": []}, change("/a", before={}, after=[])),
    diff_case("the first key", {}, {"a": {"b": 1}}, change("", before={}), change("/a/b", after=1)),
    diff_case("the last key", {"a": {"b": 1}}, {"a": {}}, change("/a/b", before=1), change("/a", after={})),
    diff_case("the first item", {"a": []}, {"a": [0]}, change("/a", before=[]), change("/a/0", after=0)),
    diff_case("an empty object within appears", {"a": {"x": 1}}, {"a": {"x": 1, "y": {}}}, change("/a/y", after={})),
    diff_case("a subtree goes", {"a": {"b": {"c": 1, "d": [2]}}, "z": 0}, {"z": 0}, change("/a/b/c", before=1), change("/a/b/d/0", before=2)),
    diff_case("a scalar becomes an object", {"a": 1}, {"a": {"b": 1}}, change("/a", before=1), change("/a/b", after=1)),
    diff_case("an object becomes a scalar", {"a": {"b": 1}}, {"a": 1}, change("/a/b", before=1), change("/a", after=1)),
    diff_case("a parent replaced by its like", {"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 3}}, change("/a/b", before=1, after=3)),
    diff_case(
        "an array shifts", {"a": [1, 2, 3]}, {"a": [2, 3]},
        change("/a/0", before=1, after=2), change("/a/1", before=2, after=3), change("/a/2", before=3),
    ),
    diff_case("an array grows", {"a": ["x"]}, {"a": ["x", "x"]}, change("/a/1", after="x")),
    diff_case(
        "an array becomes an object at the same pointers", {"a": ["x", "y"]}, {"a": {"0": "x", "1": "y"}},
        change("/a/0", before="x", after="x"), change("/a/1", before="y", after="y"),
    ),
    diff_case(
        "an object becomes an array at the same pointers", {"a": {"0": "x"}, "b": 1}, {"a": ["x"], "b": 1},
        change("/a/0", before="x", after="x"),
    ),
    diff_case(
        "every leaf below a change of kind counts", {"a": [{"k": {"d": [1, {}]}}, 2]}, {"a": {"0": {"k": {"d": [1, {}]}}}},
        change("/a/0/k/d/0", before=1, after=1), change("/a/0/k/d/1", before={}, after={}), change("/a/1", before=2),
    ),
    diff_case(
        "a change of kind further down", {"a": {"b": [1], "c": 1}}, {"a": {"b": {"0": 1}, "c": 1}},
        change("/a/b/0", before=1, after=1),
    ),
    diff_case("an empty array and an object", {"a": []}, {"a": {"0": 1}}, change("/a", before=[]), change("/a/0", after=1)),
    diff_case(
        "keys that must be escaped", {"a/b": 1, "m~n": 2, "": 3, "~1": 4}, {"a/b": 5, "m~n": 6, "": 7, "~1": 8},
        change("/a~1b", before=1, after=5), change("/m~0n", before=2, after=6),
        change("/", before=3, after=7), change("/~01", before=4, after=8),
    ),
    diff_case("keys that are one after NFC only", {"é": 1}, {"e\u0301": 1}, change("/é", before=1), change("/e\u0301", after=1)),
    diff_case("a key moves", {"a": 1}, {"b": 1}, change("/a", before=1), change("/b", after=1)),
]  # fmt: skip


def done(name: str, form: str, state: Json, patch: Json, result: Json) -> Case:
    return {"name": name, "format": form, "state": state, "patch": patch, "result": result}


def refused(name: str, form: str, state: Json, patch: Json, why: str) -> Case:
    return {"name": name, "format": form, "state": state, "patch": patch, "refused": why}


MERGE, MERGE_PATCH, JSON_PATCH = "merge", "merge-patch", "json-patch"
AB: Json = {"a": {"b": 1, "c": 2}, "d": [1, 2, 3]}

MERGES: list[Case] = [
    done("nothing", MERGE, {"a": 1}, {}, {"a": 1}),
    done("a new value", MERGE, {"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
    done("a new key", MERGE, {}, {"a": {"b": None}}, {"a": {"b": None}}),
    done("null sets null", MERGE, {"a": 1}, {"a": None}, {"a": None}),
    done("only top-level keys merge", MERGE, AB, {"a": {"b": 9}}, {"a": {"b": 9}, "d": [1, 2, 3]}),
    done("a key is no path", MERGE, {"a": {"b": 1}}, {"a.b": 2, "/a/b": 3}, {"a": {"b": 1}, "a.b": 2, "/a/b": 3}),
    refused("an array", MERGE, {"a": 1}, [{"a": 2}], "a merge object is an object"),
    refused("null", MERGE, {"a": 1}, None, "a merge object is an object"),
    done("nothing", MERGE_PATCH, {"a": 1}, {}, {"a": 1}),
    done("null deletes", MERGE_PATCH, {"a": "b", "c": 1}, {"a": None}, {"c": 1}),
    done("null deletes what is not there", MERGE_PATCH, {"a": 1}, {"b": None}, {"a": 1}),
    done("objects merge", MERGE_PATCH, AB, {"a": {"b": 9}}, {"a": {"b": 9, "c": 2}, "d": [1, 2, 3]}),
    done("arrays are replaced", MERGE_PATCH, {"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    done("nulls in an array stay", MERGE_PATCH, {}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
    done("a scalar gives way to an object", MERGE_PATCH, {"a": "b"}, {"a": {"c": 1, "d": None}}, {"a": {"c": 1}}),
    done("an array gives way to an object", MERGE_PATCH, {"a": [{"b": "c"}]}, {"a": {"x": None}}, {"a": {}}),
    done("a new key without its nulls", MERGE_PATCH, {"e": None}, {"a": {"bb": {"ccc": None}}}, {"e": None, "a": {"bb": {}}}),
    done("a null that stood there stays", MERGE_PATCH, {"e": None}, {"a": 1}, {"e": None, "a": 1}),
    refused("an array", MERGE_PATCH, {"a": 1}, ["c"], "a state is an object"),
    refused("null", MERGE_PATCH, {"a": 1}, None, "a state is an object"),
    refused("text", MERGE_PATCH, {"a": 1}, "bar", "a state is an object"),
]  # fmt: skip


def op(kind: str, path: str, **rest: Json) -> Case:
    members = {"from": rest.pop("source")} if "source" in rest else {}
    return {"op": kind, "path": path, **members, **rest}


JSON_PATCHES: list[Case] = [
    done("nothing", JSON_PATCH, {"a": 1}, [], {"a": 1}),
    done("add a key", JSON_PATCH, {"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
    done("add over a key", JSON_PATCH, {"a": 1}, [op("add", "/a", value=None)], {"a": None}),
    done("add an item", JSON_PATCH, {"a": [1, 3]}, [op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
    done("add at the end by index", JSON_PATCH, {"a": [1]}, [op("add", "/a/1", value=2)], {"a": [1, 2]}),
    done("add at the end by -", JSON_PATCH, {"a": [1]}, [op("add", "/a/-", value=[2])], {"a": [1, [2]]}),
    done("add the whole", JSON_PATCH, {"a": 1}, [op("add", "", value={"b": 2})], {"b": 2}),
    done("remove a key", JSON_PATCH, AB, [op("remove", "/a/b")], {"a": {"c": 2}, "d": [1, 2, 3]}),
    done("remove an item", JSON_PATCH, AB, [op("remove", "/d/0")], {"a": {"b": 1, "c": 2}, "d": [2, 3]}),
    done("replace", JSON_PATCH, {"a": [1, 2]}, [op("replace", "/a/0", value={})], {"a": [{}, 2]}),
    done("replace the whole", JSON_PATCH, {"a": 1}, [op("replace", "", value={})], {}),
    done("move", JSON_PATCH, AB, [op("move", "/d/0", source="/a/b")], {"a": {"c": 2}, "d": [1, 1, 2, 3]}),
    done("move within an array", JSON_PATCH, {"d": [1, 2, 3]}, [op("move", "/d/2", source="/d/0")], {"d": [2, 3, 1]}),
    done("move deeper, elsewhere", JSON_PATCH, {"a": 1, "ab": {}}, [op("move", "/ab/c", source="/a")], {"ab": {"c": 1}}),
    done("move to where it is", JSON_PATCH, {"a": 1}, [op("move", "/a", source="/a")], {"a": 1}),
    done("copy is by value", JSON_PATCH, {"a": {"b": 1}}, [op("copy", "/c", source="/a"), op("add", "/c/b", value=2)], {"a": {"b": 1}, "c": {"b": 2}}),
    done("copy into itself", JSON_PATCH, {"a": {"b": 1}}, [op("copy", "/a/c", source="/a")], {"a": {"b": 1, "c": {"b": 1}}}),
    done("test holds", JSON_PATCH, AB, [op("test", "/a", value={"c": 2, "b": 1.0})], AB),
    done("test null", JSON_PATCH, {"a": None}, [op("test", "/a", value=None)], {"a": None}),
    done("escaped names", JSON_PATCH, {"a/b": 1, "~1": 2}, [op("remove", "/a~1b"), op("replace", "/~01", value=3)], {"~1": 3}),
    done("an empty name", JSON_PATCH, {"": {"": 1}}, [op("replace", "//", value=2)], {"": {"": 2}}),
    done("- is a key of an object", JSON_PATCH, {"-": 1}, [op("replace", "/-", value=2)], {"-": 2}),
    done("01 is a key of an object", JSON_PATCH, {"01": 1}, [op("remove", "/01")], {}),
    done("later operations see earlier ones", JSON_PATCH, {}, [op("add", "/a", value=[]), op("add", "/a/0", value=1), op("test", "/a", value=[1])], {"a": [1]}),
    done("an unknown member is passed over (RFC 6902, 4)", JSON_PATCH, {}, [op("add", "/a", value=1, note="x")], {"a": 1}),
    refused("not an array", JSON_PATCH, {}, {"op": "add", "path": "/a", "value": 1}, "a JSON Patch is an array"),
    refused("an operation that is no object", JSON_PATCH, {}, ["add"], "an operation is an object"),
    refused("an unknown operation", JSON_PATCH, {}, [op("merge", "/a", value=1)], "no such operation"),
    refused("an operation in capitals", JSON_PATCH, {}, [op("ADD", "/a", value=1)], "no such operation"),
    refused("no op", JSON_PATCH, {}, [{"path": "/a", "value": 1}], "no such operation"),
    refused("no path", JSON_PATCH, {}, [{"op": "add", "value": 1}], "path is missing"),
    refused("no value", JSON_PATCH, {}, [op("add", "/a")], "value is missing"),
    refused("no from", JSON_PATCH, {"a": 1}, [op("move", "/b")], "from is missing"),
    refused("a path that is a number", JSON_PATCH, {"0": 1}, [{"op": "remove", "path": 0}], "a path is text"),
    refused("a path without a slash", JSON_PATCH, {"a": 1}, [op("remove", "a")], "not a pointer"),
    refused("a path with a letter for its slash", JSON_PATCH, {"a": 1}, [op("remove", "xa")], "not a pointer"),
    refused("a path with an unknown escape", JSON_PATCH, {"~2": 1}, [op("remove", "/~2")], "not a pointer"),
    refused("a path that ends in ~", JSON_PATCH, {"~": 1}, [op("remove", "/~")], "not a pointer"),
    refused("a fragment", JSON_PATCH, {"a": 1}, [op("remove", "#/a")], "not a pointer"),
    refused("remove what is not there", JSON_PATCH, {"a": 1}, [op("remove", "/b")], "nothing there"),
    refused("replace what is not there", JSON_PATCH, {"a": 1}, [op("replace", "/b", value=1)], "nothing there"),
    refused("add below nothing", JSON_PATCH, {"a": 1}, [op("add", "/b/c", value=1)], "nothing there"),
    refused("add below a scalar", JSON_PATCH, {"a": 1}, [op("add", "/a/b", value=1)], "no container there"),
    refused("an index past the end", JSON_PATCH, {"a": [1]}, [op("add", "/a/2", value=1)], "no such index"),
    refused("replace at the end", JSON_PATCH, {"a": [1]}, [op("replace", "/a/1", value=1)], "no such index"),
    refused("replace at -", JSON_PATCH, {"a": [1]}, [op("replace", "/a/-", value=1)], "- is past the end"),
    refused("an index with a zero before it", JSON_PATCH, {"a": [1, 2]}, [op("remove", "/a/01")], "not an index"),
    refused("an index with a sign", JSON_PATCH, {"a": [1, 2]}, [op("remove", "/a/+1")], "not an index"),
    refused("a negative index", JSON_PATCH, {"a": [1, 2]}, [op("remove", "/a/-1")], "not an index"),
    refused("an index with an exponent", JSON_PATCH, {"a": [1, 2]}, [op("remove", "/a/1e0")], "not an index"),
    refused("an index beyond all bounds", JSON_PATCH, {"a": [1]}, [op("remove", "/a/99999999999999999999999")], "no such index"),
    refused("a name in an array", JSON_PATCH, {"a": [1]}, [op("add", "/a/b", value=1)], "not an index"),
    refused("test fails", JSON_PATCH, {"a": 1}, [op("test", "/a", value=2)], "test failed"),
    refused("test: text is no number", JSON_PATCH, {"a": 1}, [op("test", "/a", value="1")], "test failed"),
    refused("test: true is no number", JSON_PATCH, {"a": 1}, [op("test", "/a", value=True)], "test failed"),
    refused("test: null is not absent", JSON_PATCH, {}, [op("test", "/a", value=None)], "nothing there"),
    refused("move into itself", JSON_PATCH, {"a": {"b": 1}}, [op("move", "/a/b/c", source="/a")], "moved into itself"),
    refused("remove the whole", JSON_PATCH, {"a": 1}, [op("remove", "")], "a state is an object"),
    refused("the whole becomes an array", JSON_PATCH, {"a": 1}, [op("replace", "", value=[])], "a state is an object"),
    refused("a later operation fails", JSON_PATCH, {"a": 1}, [op("add", "/b", value=1), op("test", "/a", value=9)], "test failed"),
]  # fmt: skip
