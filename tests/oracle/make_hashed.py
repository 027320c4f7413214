"""Makes the vectors of what is hashed: commitments, statements, policies, proposals, texts."""

from __future__ import annotations

from collections.abc import Iterator

from commitment import COMMENT, RATIONALE, H
from commitment import commitment, open_fully, origins_after, thread_secret
from countersign_oracle import patch_hash, policy_digest, proposal_identity
from countersign_oracle import step_content, transition_digest
from effect import leaves
from fixtures import POLICY_TEXT, SALT_KEY, SCHEMAS, Object, fixed_bytes, fixed_uuid4
from fixtures import fixed_uuid7, payments_thread, salts_of
from signed import thumbprint
from strict_json import Json, base64url, canonical, parse

ONE, TWO, THREE = (fixed_uuid4(name) for name in ("proposal one", "proposal two", "proposal three"))
THREAD = "018f2f6e-7b1a-7c3d-9e52-0a1b2c3d4e5f"

STATES: list[tuple[str, str, Json, dict[str, str]]] = [
    ("the empty state is a leaf", THREAD, {}, {}),
    ("the empty state in another thread", "another-thread", {}, {}),
    ("scalars", THREAD, {"a": None, "b": True, "c": 0, "d": -1.5, "e": "", "f": "é", "g": "e\u0301"}, {}),
    ("the same value in two places", THREAD, {"a": "x", "b": "x"}, {}),
    ("empty containers are leaves", THREAD, {"a": {}, "b": [], "c": {"d": [[]]}}, {}),
    ("an array", THREAD, {"a": ["x", "y"]}, {}),
    ("an object with the same leaves at the same pointers", THREAD, {"a": {"0": "x", "1": "y"}}, {}),
    ("several proposals", THREAD, {"a": {"b": 1, "c": [2, {"d": 3}]}, "e": 4}, {"/a/b": TWO, "/a/c/1/d": THREE}),
    ("escaped pointers", THREAD, {"a/b": 1, "m~n": 2, "": 3, "~1": 4}, {}),
    ("keys in the order of UTF-16", THREAD, {"\ufb33": 1, "😀": 2, "€": 3}, {}),
    ("a thread named by its host", "Order_2026:0017.b", {"a": 1}, {}),
    ("numbers in their canonical form", THREAD, {"a": 1e21, "b": 1e-7, "c": 295147905179352830000.0, "d": 5e-324}, {}),
]  # fmt: skip

STEPS: list[tuple[str, Json, Json]] = [
    ("only what changed is set anew", {"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}),
    ("what was shifted is set anew, what stayed is not", {"a": [1, 1, 2]}, {"a": [1, 2]}),
    ("the first key", {}, {"a": 1}),
    ("the last key", {"a": 1}, {}),
    ("a key that moved", {"a": 1, "c": 2}, {"b": 1, "c": 2}),
    ("every leaf below a change of kind", {"a": ["x", [0]], "b": 1}, {"a": {"0": "x", "1": [0]}, "b": 1}),
    ("nothing changed", {"a": 1.0}, {"a": 1}),
]  # fmt: skip

STEPS_NAMED: list[tuple[str, Json, Json, list[str]]] = [
    ("a leaf set unseen to the value it had", {"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]}, ["/b/1"]),
    ("two leaves set unseen, one of them to the value it had", {"a": {"b": None, "c": 2}}, {"a": {"b": None, "c": 3}}, ["/a/b", "/a/c"]),
    ("an empty object set unseen", {"a": {}, "b": {}}, {"a": {}, "b": {}}, ["/a"]),
    ("a named place that is no leaf afterwards sets none", {"a": {"b": 1}}, {"a": {"b": 1}}, ["/a"]),
    ("a named place where nothing stands afterwards sets none", {"a": 1, "b": 2}, {"b": 2}, ["/a"]),
]  # fmt: skip


def commitments() -> Object:
    cases: list[Json] = []
    for name, thread, state, other in STATES:
        secret = thread_secret(SALT_KEY, thread)
        origins = {at: other.get(at, ONE) for at, _ in leaves(state)}
        full = open_fully(state, origins, secret)
        cases.append(
            {
                "name": name, "salt_key": SALT_KEY.hex(), "thread": thread,
                "thread_secret": secret.hex(), "state": state, "origins": dict(origins),
                "leaves": salts_of(state, origins, secret),
                "containers": dict(_containers(full, "")), "root": commitment(full),
            }
        )  # fmt: skip
    steps: list[Json] = []
    plain: list[tuple[str, Json, Json, list[str]]] = [(*step, []) for step in STEPS]
    for name, before, after, named in [*plain, *STEPS_NAMED]:
        origins = {at: ONE for at, _ in leaves(before)}
        then = origins_after(before, origins, after, TWO, named)
        steps.append(
            {
                "name": name, "before": before, "origins": dict(origins), "after": after,
                "proposal": TWO, "named": list(named), "origins_after": dict(then),
            }
        )  # fmt: skip
    return {"cases": cases, "steps": steps}


def _containers(node: Json, pointer: str) -> Iterator[tuple[str, Json]]:
    """Pointer and commitment of every object and array that is not empty."""
    match node:
        case {"object": dict(inner)}:
            below = [
                (key.replace("~", "~0").replace("/", "~1"), item) for key, item in inner.items()
            ]
        case {"array": list(items)}:
            below = [(str(index), item) for index, item in enumerate(items)]
        case _:
            return
    yield pointer, commitment(node)
    for token, item in below:
        yield from _containers(item, f"{pointer}/{token}")


POLICIES: list[tuple[str, str, dict[str, str]]] = [
    ("a policy with a schema", POLICY_TEXT, SCHEMAS),
    ("another order of schemas is the same", 'flow = "x"\n', {"b.json": "{}", "a.json": "true"}),
    ("one schema's text differs by a space", 'flow = "x"\n', {"a.json": "true ", "b.json": "{}"}),
    ("no schemas", 'flow = "x"\n', {}),
    ("the text counts, not what it means", 'flow   = "x"\r\n# für später\n', {}),
]


def policies() -> Object:
    cases: list[Json] = []
    for name, text, schemas in POLICIES:
        whole: Object = {"policy": text, "schemas": dict(schemas)}
        form = canonical(dict(whole)).decode()
        digest = policy_digest(text, schemas)
        cases.append({"name": name, **whole, "jcs": form, "digest": digest})
    return {"cases": cases}


PATCHES: list[tuple[str, str, str, list[str]]] = [
    ("a merge object", "propose", "merge", ['{"target_user_id":42,"raw_text":null}', ' {"raw_text": null, "target_user_id": 42.0}', '{"target_user_id":4.2e1,"raw_\\u0074ext":null}']),
    ("the same object as a merge patch", "propose", "merge-patch", ['{"target_user_id":42,"raw_text":null}']),
    ("a JSON Patch", "propose", "json-patch", ['[{"op":"replace","path":"/target_user_id","value":42}]', '[{"path":"/target_user_id","value":42,"op":"replace"}]']),
    ("an edit by a reviewer", "edit", "merge", ['{"target_user_id":42,"raw_text":null}']),
    ("a reaffirmation", "reaffirm", "merge", ["{}"]),
]  # fmt: skip


TOOL: Object = {"name": "refund", "arguments": {"cents": 1000}}
OTHER_CALL: Object = {**TOOL, "arguments": {"cents": 1001}}
OTHER_TOOL: Object = {**TOOL, "name": "look_up"}
BESIDE: list[tuple[str, Object]] = [
    ("as a step", {"step": "task-7"}),
    ("that calls a tool", {"tool": TOOL}),
    ("that calls it as a step", {"tool": TOOL, "step": "task-7"}),
    ("that calls it otherwise", {"tool": OTHER_CALL, "step": "task-7"}),
    ("that calls another tool", {"tool": OTHER_TOOL, "step": "task-7"}),
]


def proposals() -> Object:
    asked: Object = {
        "thread": THREAD, "parent": H("countersign.transition.v1", b"a head"), "node": "planner",
        "principal": fixed_uuid7("agent token"),
    }  # fmt: skip
    cases: list[Json] = []
    for name, kind, form, texts in PATCHES:
        for attempt in (1, 2):
            of: Object = {**asked, "type": kind, "format": form, "attempt": attempt}
            cases.append(asked_for(f"{name}, attempt {attempt}", of, texts))
    name, kind, form, texts = PATCHES[0]
    for how, facts in BESIDE:
        of = {**asked, "type": kind, "format": form, "attempt": 1, **facts}
        cases.append(asked_for(f"{name}, {how}", of, texts))
    return {"cases": cases}


def asked_for(name: str, asked: Object, texts: list[str]) -> Object:
    """A proposal, what it is known by, and what it asks for if it is a step."""
    patch, secret = parse(texts[0].encode()), thread_secret(SALT_KEY, str(asked["thread"]))
    return {
        "name": name, "salt_key": SALT_KEY.hex(), "proposal": asked, "patch_texts": list(texts),
        "patch_hash": patch_hash(secret, patch), "identity": proposal_identity(secret, asked, patch),
        "content": step_content(secret, asked, patch),
    }  # fmt: skip


def hashes() -> Object:
    texts = ["", "The text asks for it.", "Zeile eins\nZeile zwei: 😀", "e\u0301 is not \u00e9"]
    cases: list[Json] = [
        {"tag": tag, "text": text, "hash": H(tag, text.encode())}
        for tag in (RATIONALE, COMMENT)
        for text in texts
    ]
    rfc8037 = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    named = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    prints: list[Json] = [{"name": "RFC 8037, A.3", "x": rfc8037, "thumbprint": named}]
    for number in range(3):
        raw = fixed_bytes(f"thumbprint {number}")
        prints.append(
            {"name": f"32 bytes, {number}", "x": base64url(raw), "thumbprint": thumbprint(raw)}
        )
    return {"cases": cases, "thumbprints": prints}


def statements() -> Object:
    thread, held, _, _ = payments_thread()
    cases: list[Json] = []
    committed = [item["statement"] for item in thread.entries if isinstance(item, dict)]
    made = [statement for statement in [*committed, *held] if isinstance(statement, dict)]
    for statement in made:
        form = canonical(statement).decode()
        name = f"{statement['type']} {statement['version']}, attempt {statement['attempt']}"
        cases.append(
            {
                "name": name,
                "statement": statement,
                "jcs": form,
                "digest": transition_digest(statement),
            }
        )
    return {"cases": cases, "refused": list(_bad_statements(made))}


def _bad_statements(made: list[Object]) -> Iterator[Json]:
    """Statements of which no digest is made: a key too few or too many, a null where none may be."""
    of_type = {str(statement["type"]): statement for statement in made}
    alterations: list[tuple[str, str, Object]] = [
        ("a parent at version 0", "create", {"parent": H("countersign.transition.v1", b"a head")}),
        ("a node at version 0", "create", {"node": "planner"}),
        ("a creation after version 0", "create", {"version": 1}),
        ("a proposal at version 0", "propose", {"version": 0}),
        ("no parent after version 0", "propose", {"parent": None}),
        ("a type that does not exist", "propose", {"type": "commit"}),
        ("a digest in capitals", "propose", {"to": "sha256:" + "A" * 64}),
        ("a digest without its prefix", "propose", {"to": "a" * 64}),
        ("a version as text", "propose", {"version": "1"}),
        ("a version that is a fraction", "propose", {"version": 1.5}),
        ("attempt 0", "propose", {"attempt": 0}),
        ("an attempt of more than 32 bits", "propose", {"attempt": 2**32}),
        ("a proposal without its attempt", "propose", {"attempt": None}),
        ("a creation that says which try it is", "create", {"attempt": 1}),
        ("a confirm that says which try it is", "confirm", {"attempt": 1}),
        ("a thread of a name that none has", "propose", {"thread": "two words"}),
        ("an attempt as text", "propose", {"attempt": "1"}),
        ("a rationale in words", "propose", {"rationale": "because"}),
        ("a time without milliseconds", "propose", {"proposed_at": "2026-11-02T09:00:00Z"}),
        ("a day that does not exist", "propose", {"proposed_at": "2026-02-30T09:00:00.000Z"}),
        ("a time with an offset", "propose", {"proposed_at": "2026-11-02T09:00:00.000+00:00"}),
        ("an edit that supersedes nothing", "edit", {"supersedes": None}),
        ("a rollback that restores nothing", "rollback", {"restores": None}),
        ("a confirm without its write", "confirm", {"write_id": None}),
        ("a proposal with a write", "propose", {"write_id": "w-1"}),
        ("a reaffirmation that changes something", "reaffirm", {"to": "sha256:" + "a" * 64}),
        ("a key too many", "propose", {"note": None}),
    ]
    for name, kind, facts in alterations:
        yield {"name": name, "statement": {**of_type[kind], **facts}}
    for key in ("attempt", "supersedes", "write_id"):
        fewer = {name: value for name, value in of_type["propose"].items() if name != key}
        yield {"name": f"without {key}", "statement": fewer}
