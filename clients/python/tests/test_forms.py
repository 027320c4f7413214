"""Forms and codes that every client of the gateway shares, of values by a test's own key."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from countersign import verify
from countersign._protocol._forms import base64url
from countersign._protocol._parts import TYPES
from countersign.verify import ANY, Keys, Refused
from countersign.verify._keys import OF_A_GATEWAY, thumbprint
from countersign.verify._tagged import tagged
from test_strict import CLAIMS, DIGEST, KEYS, RAW, signed
from test_vectors import CLAIMS as CLAIMS_OF_EACH
from test_vectors import ENVELOPES, TOKENS, check_envelope, export

NO_DAYS = ("2026-02-30", "2026-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "1900-02-29")
DAYS = ("2024-02-29", "2000-02-29", "2026-12-31", "0000-02-29", "9999-01-01")


def code_of(check: Callable[[], Any]) -> str | None:
    """Returns the code of the refusal, if there is one."""
    try:
        check()
    except Refused as refused:
        return refused.code
    return None


def at(day: str) -> str:
    return f"{day}T09:00:00.000Z"


def entry(claims: dict[str, Any]) -> str | None:
    return code_of(lambda: verify.check_entry(signed(verify.canonical(claims)), KEYS, issuer=ANY, transition=ANY))


def receipt(vote: dict[str, Any]) -> str | None:
    whole = CLAIMS_OF_EACH["whole"][TYPES[verify.Receipt]]
    claims = {**whole, "approvals": [{**whole["approvals"][0], **vote}]}
    token = signed(verify.canonical(claims), TYPES[verify.Receipt])
    expected: dict[str, Any] = dict.fromkeys(("issuer", "thread", "transition", "audience", "at"), ANY)
    return code_of(lambda: verify.check_receipt(token, KEYS, **expected))


def statement(members: dict[str, Any]) -> str | None:
    proposed = next(it for it in export()["chain"]["entries"] if it["statement"]["type"] == "propose")
    return code_of(lambda: verify.transition_digest({**proposed["statement"], **members}))


def envelope(claims: dict[str, Any], members: dict[str, Any]) -> str | None:
    """Returns the code of an envelope by this test's key, with these claims and these members beside them."""
    genuine = {**ENVELOPES["genuine"][0]["envelope"], "payload": {"a": [1], "": 0}, **members}
    said: dict[str, Any] = {
        **dict.fromkeys(("version", "timestamp", "tokens", "transition")), **genuine, "budget": genuine["tokenBudget"],
        "iss": "urn:test", "thread": "order-1", "node": "lead", "encoding": "o200k_base", "requires": [],
        "payload": tagged("countersign.payload.v1", verify.canonical(genuine["payload"])),
        "truncated": tagged("countersign.truncated.v1", verify.canonical(genuine["truncated"])), **claims,
    }  # fmt: skip
    for beside in ("tokenBudget", "signature", "hmac"):
        said.pop(beside, None)
    sealed = {**genuine, "signature": signed(verify.canonical(said), TYPES[verify.Envelope])}
    expected: dict[str, Any] = dict.fromkeys(("issuer", "thread", "node", "version", "fits", "count"), ANY)
    return code_of(lambda: verify.check_envelope(sealed, KEYS, **expected))


@pytest.mark.parametrize("day", [*NO_DAYS, *DAYS])
def test_a_moment_is_on_a_day_that_exists(day: str) -> None:
    exists = day in DAYS
    assert entry({**CLAIMS, "committed_at": at(day)}) == (None if exists else "receipt_malformed")
    assert receipt({"at": at(day)}) == (None if exists else "receipt_malformed")
    assert statement({"proposed_at": at(day)}) == (None if exists else "statement")
    assert envelope({"timestamp": at(day)}, {"timestamp": at(day)}) == (None if exists else "envelope_malformed")


@pytest.mark.parametrize("number", [2**32, 2**53 - 1])
def test_stages_and_attempts_are_below_two_to_the_32(number: int) -> None:
    assert receipt({"stage": 2**32 - 1}) is None
    assert receipt({"stage": number}) == "receipt_malformed"
    assert statement({"attempt": 2**32 - 1}) is None
    assert statement({"attempt": number}) == "statement"


@pytest.mark.parametrize(
    ("pointer", "code"),
    [
        ("", "envelope_malformed"),
        ("a", "envelope_malformed"),
        ("/~2", "envelope_malformed"),
        ("/~", "envelope_malformed"),
        ("/a/0", None),
        ("/", None),
        ("/a/1", "required_missing"),
        ("/a/00", "required_missing"),
        ("/a/-", "required_missing"),
        ("/a/\u0660", "required_missing"),
        ("/a/" + "9" * 5000, "required_missing"),
    ],
    ids=lambda it: str(it)[:20],
)
def test_a_required_path_is_a_pointer_below_the_root(pointer: str, code: str | None) -> None:
    assert envelope({"requires": [pointer]}, {}) == code


@pytest.mark.parametrize(
    "members",
    [
        {"truncated": [{"pointer": "x", "how": "dropped"}]},
        {"truncated": [{"pointer": "/~2", "how": "cut"}]},
        {"truncated": [{"pointer": 1, "how": "cut"}]},
        {"hmac": {"alg": "HS256", "epoch": at("2026-11-02"), "value": 1}},
        {"hmac": {"alg": "HS256", "epoch": at("2026-02-30"), "value": "x"}},
    ],
    ids=str,
)
def test_members_that_nothing_signs_have_their_form_too(members: dict[str, Any]) -> None:
    assert envelope({}, members) == "envelope_malformed"


def test_members_in_their_form_pass() -> None:
    assert envelope({}, {"truncated": [{"pointer": "", "how": "cut"}, {"pointer": "/a~1b", "how": "dropped"}]}) is None
    assert envelope({}, {"hmac": {"alg": "HS256", "epoch": at("2026-11-02"), "value": ""}}) is None


EIGHTH = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
OURS = {**OF_A_GATEWAY, "countersign_use": "chain", "x": base64url(RAW), "kid": thumbprint(RAW), "status": "signing"}


def key(raw: bytes, **members: Any) -> dict[str, Any]:
    return {**OURS, "x": base64url(raw), "kid": thumbprint(raw), **members}


def other(**members: Any) -> dict[str, Any]:
    """Another key of a gateway, which signs its log."""
    raw = next(bytes.fromhex(it["public"]) for it in TOKENS["keys"] if it["name"] == "retired")
    return key(raw, countersign_use="log", **members)


@pytest.mark.parametrize(
    "jwks",
    [
        *({"issuer": it, "keys": [OURS]} for it in (None, "", "a b", "é", "x\n", "x" * 257, 1)),
        *({"keys": [OURS, key(it)]} for it in (bytes(32), (1).to_bytes(32, "little"), EIGHTH)),
        # No point of the curve has this y.
        {"keys": [OURS, key((2).to_bytes(32, "little"))]},
        *({"keys": [OURS, other(**it)]} for it in ({"kid": "x"}, {"status": None}, {"status": "x"}, {"x": "AA"})),
        {"keys": [OURS, {**OURS, "countersign_use": "log"}]},
        *({"keys": [OURS, {"kty": kind, "kid": "x", "d": "x"}]} for kind in ("RSA", "OKP")),
        {"keys": [OURS, other(d="x")]},
    ],
    ids=lambda it: json.dumps(it)[:60],
)
def test_a_set_with_a_bad_key_or_issuer_is_refused(jwks: Any) -> None:
    assert code_of(lambda: Keys.read(jwks)) == "jwks"


def test_keys_that_are_no_gateways_are_passed_over() -> None:
    foreign = [{"kty": "RSA", "kid": "x"}, {**other(), "kid": "x", "use": "enc"}, {**OURS, "countersign_use": "x"}, {}]
    for jwks in ({"keys": [OURS, other(), *foreign]}, {"issuer": "urn:test", "keys": [*foreign, OURS]}):
        keys = Keys.read(jwks)
        assert keys.named(OURS["kid"]) is not None
        assert keys.named(other()["kid"]) is None


def test_the_form_of_a_token_comes_before_its_key_and_signature() -> None:
    header, _, signature = signed(verify.canonical(CLAIMS)).split(".")
    for claims in ({**CLAIMS, "owes": 1}, {**CLAIMS, "version": 1}):
        token = f"{header}.{base64url(verify.canonical(claims))}.{signature}"
        for keys in (KEYS, Keys.read({"keys": []})):
            found = code_of(partial(verify.check_entry, token, keys, issuer=ANY, transition=ANY))
            assert found == "receipt_malformed"


SALT = "A" * 43


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"object": {}}, "root_mismatch"),
        ({"array": []}, "root_mismatch"),
        ({"value": [1], "salt": SALT}, "root_mismatch"),
        ({"value": 1, "salt": SALT[:-1] + "B"}, "opening"),
        ({"value": 1, "salt": "AA"}, "opening"),
        ({"value": 1}, "opening"),
        ("SHA256:" + "a" * 64, "opening"),
        ({"object": {"a": DIGEST}, "array": [DIGEST]}, "opening"),
        ({"object": []}, "opening"),
        (None, "opening"),
    ],
    ids=lambda it: str(it)[:40],
)
def test_a_node_of_an_opening_that_has_no_root(node: Any, code: str) -> None:
    assert code_of(lambda: verify.check_opening({"from": node, "to": DIGEST}, DIGEST, DIGEST)) == code
    assert code_of(lambda: verify.commitment(node)) == code


def chain(entries: list[Any]) -> str | None:
    keys = Keys.read(export()["jwks"])
    return code_of(lambda: verify.check_chain(entries, keys, issuer=ANY, thread=ANY))


@pytest.mark.parametrize("member", ["transition", "entry", "statement"])
def test_a_version_with_a_member_of_another_type(member: str) -> None:
    entries = export()["chain"]["entries"]
    values: list[Any] = [None, 1, [], {}]
    for value in values:
        spoiled = copy.deepcopy(entries)
        spoiled[1][member] = value
        assert chain(spoiled) == ("statement" if member == "statement" and value is not None else "chain"), value
    assert chain([{**entries[0], "transition": "x"}]) == "chain"


def sealed(stated: dict[str, Any], gate: dict[str, Any], *, owes: bool) -> dict[str, Any]:
    """Returns a version by this test's key."""
    transition = tagged("countersign.transition.v1", verify.canonical(stated))
    members = {name: stated[name] for name in ("thread", "version", "parent", "policy")}
    claims = {**CLAIMS, **members, "transition": transition, "gate": gate, "owes": owes}
    item = {"version": stated["version"], "transition": transition, "statement": stated}
    return {**item, "entry": signed(verify.canonical(claims))}


def test_a_gate_that_does_not_fit_is_found_before_what_it_owes() -> None:
    created, proposed = (copy.deepcopy(it["statement"]) for it in export()["chain"]["entries"][:2])
    first = sealed(created, {"kind": "auto"}, owes=True)
    restored = {**proposed, "type": "rollback", "parent": first["transition"], "restores": first["transition"]}
    for gate, owes, code in (({"kind": "auto"}, False, "gate"), ({"kind": "observed"}, False, "owes")):
        versions = [first, sealed(restored, gate, owes=owes)]
        assert code_of(partial(verify.check_chain, versions, KEYS, issuer=ANY, thread=ANY)) == code


def test_a_written_version_names_its_own_write() -> None:
    entries = export()["chain"]["entries"]
    created = copy.deepcopy(entries[0]["statement"])
    confirmed = next(copy.deepcopy(it["statement"]) for it in entries if it["statement"]["type"] == "confirm")
    first = sealed(created, {"kind": "auto"}, owes=False)
    members = {"version": 1, "parent": first["transition"], "from": created["to"], "flow": created["flow"]}
    for write_id, code in ((confirmed["write_id"], None), ("another", "gate")):
        gate = {"kind": "written", "write_id": write_id}
        versions = [first, sealed({**confirmed, **members}, gate, owes=False)]
        assert code_of(partial(verify.check_chain, versions, KEYS, issuer=ANY, thread=ANY)) == code


def nested(levels: int, around: Callable[[Any], Any]) -> Any:
    value: Any = DIGEST
    for _ in range(levels):
        value = around(value)
    return value


def test_values_of_too_many_levels_are_refused() -> None:
    assert code_of(lambda: verify.read_json(b"[" * 20_000 + b"]" * 20_000, depth_max=50_000)) == "too_deep"
    assert code_of(lambda: verify.canonical(nested(20_000, lambda it: [it]))) == "too_deep"
    opened = nested(20_000, lambda it: {"object": {"a": it}})
    assert code_of(lambda: verify.commitment(opened)) == "too_deep"
    assert code_of(lambda: verify.check_opening({"from": opened, "to": DIGEST}, DIGEST, DIGEST)) == "too_deep"
    genuine = ENVELOPES["genuine"][0]["envelope"]
    assert code_of(lambda: check_envelope({**genuine, "payload": nested(20_000, lambda it: [it])})) == "too_deep"


@pytest.mark.parametrize("text", ['"' + "[" * 100 + '"', '"\\\\"', '{"a\\"[":1}', '"' + "[" * 100, '"[' * 100 + "\\"])
def test_brackets_in_a_text_are_no_levels(text: str) -> None:
    assert code_of(lambda: verify.read_json(text.encode())) in (None, "syntax")


def test_an_unescaped_text_is_read_without_a_search_for_halves_of_pairs() -> None:
    assert verify.read_json('"\U0001f600"'.encode()) == "\U0001f600"
    assert verify.read_json(rb'"\ud83d\ude00"') == "\U0001f600"
    for text in (rb'"\ud83d"', rb'{"\ud83d": 1}', rb'["\uDE00"]'):
        assert code_of(partial(verify.read_json, text)) == "encoding"
