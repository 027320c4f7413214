"""Makes the vectors of branches: how they are named, what forks and joins state, two chains that
belong together, and what several states come to as one."""

from __future__ import annotations

from collections.abc import Iterator

from countersign_oracle import transition_digest
from make_hashed import asked_for
from fixtures import SIGNING, Object, Thread, fixed_uuid7
from joining import Branch, branch_thread, join
from signed import ENTRY
from strict_json import Json, canonical, parse, unbase64url

PARENT = "order-2026:0018"
BASE: Json = {"question": "who owns it", "found": [{"id": "a", "ok": False}], "notes": {"x": 1, "y": 2}, "list": [1, 2], "sure": 0}
KEYED = {"/found": "id"}


def branches() -> Object:
    parent, by_name = _threads()
    chains: Json = {"parent": list(parent.entries), "branches": {name: list(it.entries) for name, it in by_name.items()}}
    made = [item["statement"] for it in (by_name["left"], parent) for item in it.entries if isinstance(item, dict)]
    own = [it for it in made if isinstance(it, dict) and it["type"] in ("fork", "join")]
    return {
        "names": _names(), "statements": [_stated(it) for it in own], "refused": list(_bad(own)),
        "proposals": _proposals(own), "jwks": {"keys": [SIGNING.jwk()]},
        "chains": chains, "spoiled": list(_spoiled(parent, by_name)),
    }  # fmt: skip


def joins() -> Object:
    return {"cases": list(_joins())}


def _threads() -> tuple[Thread, dict[str, Thread]]:
    """A thread, two branches of its version 1, and their join."""
    auto: Object = {"kind": "auto"}
    parent = Thread(PARENT)
    parent.commit(parent.statement("create", {}, 0), {}, auto, SIGNING, 0)
    head = parent.commit(parent.statement("propose", BASE, 1), BASE, auto, SIGNING, 1)
    by_name: dict[str, Thread] = {}
    for minute, (name, change) in enumerate((("right", {"sure": 1}), ("left", {"question": "who owned it"})), 2):
        branch = Thread(branch_thread(PARENT, head, name))
        fork: Json = {"name": name, "thread": PARENT, "transition": head, "version": 1}
        agent = fixed_uuid7("agent token")
        first = branch.statement("fork", BASE, minute, node="planner", principal=agent, fork=fork)
        branch.commit(first, BASE, auto, SIGNING, minute)
        assert isinstance(BASE, dict)
        after: Json = {**BASE, **change}
        branch.commit(branch.statement("propose", after, minute + 2), after, auto, SIGNING, minute + 2)
        by_name[name] = branch
    assert isinstance(BASE, dict)
    joined: Json = {**BASE, "sure": 1, "question": "who owned it"}
    listed: list[Json] = [{"name": it, "thread": by_name[it].thread, "transition": by_name[it].head} for it in sorted(by_name)]
    said: Json = {"branches": listed, "strategy": "union"}
    parent.commit(parent.statement("join", joined, 6, join=said), joined, auto, SIGNING, 6)
    return parent, by_name


def _names() -> list[Json]:
    heads = ["sha256:" + 64 * digit for digit in "0a"]
    rows = [(PARENT, heads[0], "left"), (PARENT, heads[0], "right"), (PARENT, heads[1], "left"), ("other", heads[0], "left")]
    return [{"thread": of, "transition": head, "name": name, "branch": branch_thread(of, head, name)} for of, head, name in rows]


def _stated(statement: Object) -> Json:
    form, digest = canonical(dict(statement)).decode(), transition_digest(dict(statement))
    return {"name": f"{statement['type']} {statement['version']}", "statement": statement, "jcs": form, "digest": digest}


def _bad(own: list[Object]) -> Iterator[Json]:
    of = {str(it["type"]): it for it in own}
    fork, joined = of["fork"]["fork"], of["join"]["join"]
    assert isinstance(fork, dict) and isinstance(joined, dict) and isinstance(joined["branches"], list)
    one, two = joined["branches"]
    assert isinstance(one, dict)
    other = "sha256:" + 64 * "c"
    alterations: list[tuple[str, str, Object]] = [
        ("a fork of another head than its thread is named by", "fork", {"fork": {**fork, "transition": other}}),
        ("a fork of another name", "fork", {"fork": {**fork, "name": "else"}}),
        ("a fork of another thread", "fork", {"fork": {**fork, "thread": "else"}}),
        ("a fork of itself", "fork", {"fork": {**fork, "thread": of["fork"]["thread"]}}),
        ("a fork whose version is a text", "fork", {"fork": {**fork, "version": "1"}}),
        ("a fork that says more", "fork", {"fork": {**fork, "more": 1}}),
        ("a fork of nothing", "fork", {"fork": None}),
        ("a fork with a parent", "fork", {"parent": other}),
        ("a fork without a node", "fork", {"node": None}),
        ("a fork that says which try it is", "fork", {"attempt": 1}),
        ("a fork after version 0", "fork", {"version": 1}),
        ("a fork that joins", "fork", {"join": joined}),
        ("a join that forks", "join", {"fork": fork}),
        ("a join of nothing", "join", {"join": {**joined, "branches": []}}),
        ("a join in no order", "join", {"join": {**joined, "branches": [two, one]}}),
        ("a join of one branch twice", "join", {"join": {**joined, "branches": [one, one]}}),
        ("a join of itself", "join", {"join": {**joined, "branches": [{**one, "thread": of["join"]["thread"]}]}}),
        ("a join by no known strategy", "join", {"join": {**joined, "strategy": "merge"}}),
        ("a join whose branch has no head", "join", {"join": {**joined, "branches": [{**one, "transition": None}]}}),
        ("a join that does not say which try it is", "join", {"attempt": None}),
        ("a join at version 0", "join", {"version": 0}),
        ("a proposal that joins", "join", {"type": "propose"}),
    ]  # fmt: skip
    for name, kind, facts in alterations:
        yield {"name": name, "statement": {**of[kind], **facts}}
    for kind in ("fork", "join"):
        yield {"name": f"a {kind} without {kind}", "statement": {k: v for k, v in of[kind].items() if k != kind}}


def _proposals(own: list[Object]) -> list[Json]:
    """What is asked for again is known by what was asked for: of a fork, in the thread that is forked."""
    of = {str(it["type"]): it for it in own}
    fork = of["fork"]["fork"]
    assert isinstance(fork, dict)
    rows: list[tuple[str, Object, str]] = [
        ("a fork", {**of["fork"], "thread": fork["thread"], "parent": fork["transition"], "attempt": 1}, '{"branch":"left"}'),
        ("a join", of["join"], '{"branches":["right","left"],"strategy":"union"}'),
        ("a join in another order", of["join"], '{"branches":["left","right"],"strategy":"union"}'),
        ("a join that settles conflicts", of["join"], '{"branches":["left"],"strategy":"explicit","resolve":[{"path":"/x"}]}'),
    ]  # fmt: skip
    cases: list[Json] = []
    for name, statement, text in rows:
        asked: Object = {key: statement[key] for key in ("thread", "parent", "node", "principal", "type", "attempt")}
        asked["format"] = "merge"
        cases.append(asked_for(name, asked, [text]))
    return cases


STATES: list[tuple[str, Json, list[tuple[str, Json, int]]]] = [
    ("apart", BASE, [("a", {**BASE, "sure": 1}, 1), ("b", {**BASE, "notes": {"x": 1, "y": 3}}, 2)]),
    ("one alone", BASE, [("a", {"only": None}, 1)]),
    ("nobody", BASE, [("a", BASE, 1), ("b", BASE, 2)]),
    ("alike", BASE, [("a", {**BASE, "sure": 1}, 1), ("b", {**BASE, "sure": 1.0}, 2)]),
    ("not alike", BASE, [("b", {**BASE, "sure": 1}, 300000), ("a", {**BASE, "sure": 2}, 300000)]),
    ("two of three", BASE, [("c", {**BASE, "sure": 1}, 100000), ("a", {**BASE, "sure": 2}, 500000), ("b", {**BASE, "sure": 1}, 300000)]),
    ("taken away and changed", BASE, [("a", {"notes": {}}, 1), ("b", {**BASE, "notes": {"x": 1, "y": 9}}, 2)]),
    ("made by two", {}, [("a", {"o": {"x": 1, "z": 1}}, 1), ("b", {"o": {"y": 2, "z": 2}}, 2)]),
    ("of two kinds", {}, [("a", {"o": {"x": 1}}, 2), ("b", {"o": [1]}, 1)]),
    ("items of a list", BASE, [("a", {**BASE, "list": [9, 2]}, 1), ("b", {**BASE, "list": [1, 8]}, 2)]),
    ("a list that grew", BASE, [("a", {**BASE, "list": [1, 2, 3]}, 1), ("b", {**BASE, "list": [9, 2]}, 2)]),
    ("items with keys", BASE, [("b", {**BASE, "found": [{"id": "a", "ok": False}, {"id": "c"}, {"id": "b"}]}, 1), ("a", {**BASE, "found": [{"id": "a", "ok": True}, {"id": "d"}, {"id": "b"}]}, 2)]),
    ("one key twice anew", BASE, [("b", {**BASE, "found": [{"id": "a", "ok": False}, {"id": 1, "v": 1}]}, 1), ("a", {**BASE, "found": [{"id": "a", "ok": False}, {"id": 1.0, "v": 2}]}, 2)]),
    ("keys that look alike", BASE, [("b", {**BASE, "found": [{"id": "a", "ok": False}, {"id": "\u00e9", "v": 1}]}, 1), ("a", {**BASE, "found": [{"id": "a", "ok": False}, {"id": "e\u0301", "v": 1}]}, 2)]),
    ("items that moved", BASE, [("b", {**BASE, "found": [{"id": "z"}, {"id": "a", "ok": False}]}, 1), ("a", {**BASE, "found": []}, 2)]),
    ("items without keys", BASE, [("b", {**BASE, "found": [{"id": "a", "ok": True}, 1]}, 1), ("a", {**BASE, "found": [{"id": "a", "ok": False}, {"id": "b"}]}, 2)]),
]  # type: ignore[dict-item]  # fmt: skip


def _joins() -> Iterator[Json]:
    for name, base, sides in STATES:
        given = [Branch(*it) for it in sides]
        found = join(base, given, KEYED, "union")
        places: list[Json] = [{"path": at, "value": "settled"} for at in found.conflicts]
        yield _case(f"{name}, union", base, given, "union", places)
        if places:
            for strategy in ("last_write", "vote", "confidence", "explicit"):
                yield _case(f"{name}, {strategy}", base, given, strategy, places)
            for strategy in ("last_write", "vote"):
                yield _case(f"{name}, the other way round, {strategy}", base, given[::-1], strategy, [])
            gone: list[Json] = [{"path": at} for at in found.conflicts]
            yield _case(f"{name}, settled by nothing", base, given, "explicit", gone)
            yield _case(f"{name}, not settled", base, given, "explicit", [])
        yield _case(f"{name}, settled without need", base, given, "explicit", [*places, {"path": "/idle", "value": 1}])


def _case(name: str, base: Json, given: list[Branch], strategy: str, places: list[Json]) -> Json:
    resolve: Json = list(places) if strategy == "explicit" else None
    found = join(base, given, KEYED, strategy, resolve)
    sides: list[Json] = [{"name": it.name, "state": it.state, "confidence": it.confidence} for it in given]
    case: Object = {"name": name, "base": base, "keyed": dict(KEYED), "branches": sides, "strategy": strategy}
    if resolve is not None:
        case["resolve"] = resolve
    if found.conflicts:
        case["conflicts"] = list(found.conflicts)
    elif found.idle:
        case["idle"] = list(found.idle)
    else:
        case["result"] = found.state
    return case


def _spoiled(parent: Thread, by_name: dict[str, Thread]) -> Iterator[Json]:
    """What the gateway's own key signed, and must not have."""
    left, right = by_name["left"], by_name["right"]
    joined, fork = _item(parent, 2), _item(left, 0)
    at_join, at_fork = "/parent/2", "/branches/left/0"
    said = joined["statement"]
    assert isinstance(said, dict) and isinstance(said["join"], dict) and isinstance(said["join"]["branches"], list)
    one, two = said["join"]["branches"]
    assert isinstance(one, dict)
    rows: list[tuple[str, str, list[Json]]] = [
        ("a fork that somebody approved", "gate", _resigned(at_fork, fork, gate={"kind": "observed"})),
        ("a join written by nobody", "gate", _resigned(at_join, joined, gate={"kind": "written", "write_id": "w"})),
        ("a join of a head that is not the branch's", "unknown_transition", _remade(at_join, joined, join={"strategy": "union", "branches": [{**one, "transition": right.head}, two]})),
        ("a join of a branch of which nothing is known", "join", _remade(at_join, joined, join={"strategy": "union", "branches": [{**one, "name": "else"}, two]})),
        ("a join of another thread", "join", _remade(at_join, joined, join={"strategy": "union", "branches": [{**one, "thread": right.thread}, two]})),
        ("branches in each other's place", "join", [{"op": "move", "from": "/branches/left", "path": "/branches/right"}, {"op": "add", "path": "/branches/left", "value": list(right.entries)}]),
        ("a branch that is none", "branch", [{"op": "replace", "path": "/branches/left", "value": list(parent.entries)}]),
        ("a branch of a head that is not there", "unknown_transition", [{"op": "remove", "path": "/parent/2"}, {"op": "remove", "path": "/parent/1"}]),
    ]  # fmt: skip
    for name, code, patch in rows:
        yield {"name": name, "code": code, "patch": patch}


def _item(thread: Thread, number: int) -> Object:
    item = thread.entries[number]
    assert isinstance(item, dict)
    return item


def _resigned(at: str, item: Object, **facts: Json) -> list[Json]:
    claims = parse(unbase64url(str(item["entry"]).split(".")[1]))
    assert isinstance(claims, dict)
    return [{"op": "replace", "path": f"{at}/entry", "value": SIGNING.sign(ENTRY, {**claims, **facts})}]


def _remade(at: str, item: Object, **facts: Json) -> list[Json]:
    old = item["statement"]
    assert isinstance(old, dict)
    statement: Json = {**old, **facts}
    digest = transition_digest(statement)
    put: list[Json] = [
        {"op": "replace", "path": f"{at}/statement", "value": statement},
        {"op": "replace", "path": f"{at}/transition", "value": digest},
    ]
    return [*put, *_resigned(at, item, transition=digest)]
