"""Makes the vectors of a whole export: a chain with its key set and a receipt, and spoiled twins."""

from __future__ import annotations

from collections.abc import Iterator

from countersign_oracle import transition_digest
from effect import apply_patch
from fixtures import ATTACKER, RETIRED, REVOKED, SIGNING, Object, payments_thread
from fixtures import receipt_claims
from signed import ENTRY, RECEIPT
from strict_json import Json, parse, unbase64url


def export() -> tuple[Json, Json, str]:
    """What GET chain answers an auditor, /.well-known/jwks.json, and the receipt of version 2."""
    thread, _, receipt, _ = payments_thread()
    chain: Json = {"entries": list(thread.entries), "next_page_token": None}
    return chain, {"keys": [SIGNING.jwk(), RETIRED.jwk(), REVOKED.jwk()]}, receipt


def spoiled_exports() -> Object:
    chain, jwks, receipt = export()
    base: Json = {"chain": chain, "jwks": jwks, "receipt": receipt}
    cases: list[Json] = []
    entries = _items(chain)
    for name, code, patch in (*_in_chain(entries), *_in_keys(entries), *_in_receipt(receipt)):
        apply_patch(base, "json-patch", patch)
        cases.append({"name": name, "code": code, "patch": patch})
    settled = _resigned(entries, 5, owes=False)
    accepted: list[Json] = [{"name": "an approval that settles what was owed", "patch": settled}]
    return {"of": "export/", "cases": cases, "accepted": accepted}


def _items(chain: Json) -> list[Object]:
    assert isinstance(chain, dict) and isinstance(chain["entries"], list)
    return [item for item in chain["entries"] if isinstance(item, dict)]


Spoiled = tuple[str, str, list[Json]]


def _put(path: str, value: Json) -> Json:
    return {"op": "replace", "path": path, "value": value}


def _claims(item: Object) -> Object:
    claims = parse(unbase64url(str(item["entry"]).split(".")[1]))
    assert isinstance(claims, dict)
    return claims


def _resigned(entries: list[Object], number: int, /, **facts: Json) -> list[Json]:
    """An entry that says something else, signed by the gateway's own key: the chain must show it."""
    token = SIGNING.sign(ENTRY, {**_claims(entries[number]), **facts})
    return [_put(f"/chain/entries/{number}/entry", token)]


def _remade(entries: list[Object], number: int, /, **facts: Json) -> list[Json]:
    """Another statement with its right digest and an entry for it, signed by the gateway's key."""
    old = entries[number]["statement"]
    assert isinstance(old, dict)
    statement: Object = {**old, **facts}
    digest = transition_digest(statement)
    same = {key: statement[key] for key in ("version", "thread", "parent", "policy")}
    at = f"/chain/entries/{number}"
    signed = _resigned(entries, number, transition=digest, **same)
    return [_put(f"{at}/statement", statement), _put(f"{at}/transition", digest), *signed]


def _in_chain(entries: list[Object]) -> Iterator[Spoiled]:
    last = len(entries) - 1
    another = "sha256:" + "ab" * 32
    yield (
        "a statement's time",
        "digest_mismatch",
        [_put("/chain/entries/3/statement/proposed_at", "2026-11-02T09:05:00.001Z")],
    )
    yield (
        "a statement's principal",
        "digest_mismatch",
        [_put("/chain/entries/2/statement/principal", "someone-else")],
    )
    yield (
        "a statement's key missing",
        "statement",
        [{"op": "remove", "path": "/chain/entries/2/statement/usage"}],
    )
    yield "a digest", "digest_mismatch", [_put("/chain/entries/3/transition", another)]
    yield (
        "an entry in the place of another",
        "digest_mismatch",
        [_put("/chain/entries/3/entry", entries[4]["entry"])],
    )
    yield "version 0 missing", "chain", [{"op": "remove", "path": "/chain/entries/0"}]
    yield "a version missing", "chain", [{"op": "remove", "path": "/chain/entries/3"}]
    yield (
        "a version twice",
        "chain",
        [{"op": "copy", "from": "/chain/entries/3", "path": "/chain/entries/4"}],
    )
    yield (
        "two versions exchanged",
        "chain",
        [{"op": "move", "from": "/chain/entries/3", "path": "/chain/entries/4"}],
    )
    yield "a version's number", "chain", [_put("/chain/entries/3/version", 4)]
    yield "true for version 1", "chain", [_put("/chain/entries/1/version", True)]
    yield "no entries", "chain", [_put("/chain/entries", [])]
    yield "an entry of null", "chain", [_put("/chain/entries/1", None)]
    yield "no key set", "jwks", [_put("/jwks", {})]
    yield "a statement missing", "chain", [{"op": "remove", "path": "/chain/entries/1/statement"}]
    yield (
        "an entry for another version, well signed",
        "version_mismatch",
        _resigned(entries, last, version=99),
    )
    yield (
        "an entry for another thread, well signed",
        "thread_mismatch",
        _resigned(entries, last, thread="other"),
    )
    yield (
        "an entry for another parent, well signed",
        "parent_mismatch",
        _resigned(entries, last, parent=another),
    )
    yield (
        "an entry under another policy, well signed",
        "policy_mismatch",
        _resigned(entries, last, policy=another),
    )
    yield (
        "an entry of another issuer, well signed",
        "issuer_mismatch",
        _resigned(entries, last, iss="https://other.example"),
    )
    yield (
        "an entry that forgets what is owed, well signed",
        "owes",
        _resigned(entries, 4, owes=False),
    )
    yield (
        "a reaffirmation let through by itself, well signed",
        "gate",
        _resigned(entries, 5, gate={"kind": "auto"}),
    )
    yield (
        "an edit let through by itself, well signed",
        "gate",
        _resigned(entries, 2, gate={"kind": "auto"}),
    )
    yield (
        "a creation approved by somebody, well signed",
        "receipt_malformed",
        _resigned(entries, 0, gate=_claims(entries[2])["gate"]),
    )
    yield (
        "a confirm without a write, well signed",
        "gate",
        _resigned(entries, 3, gate={"kind": "auto"}),
    )
    yield (
        "a write that nobody confirmed, well signed",
        "gate",
        _resigned(entries, 4, gate=_claims(entries[3])["gate"]),
    )
    yield (
        "a confirm of another write, well signed",
        "gate",
        _resigned(entries, 3, gate={"kind": "written", "write_id": "w-9"}),
    )
    approved = _claims(entries[2])["gate"]
    assert isinstance(approved, dict)
    stale: Json = {"kind": "written", "write_id": "w-2", "receipt": approved["receipt"]}
    yield (
        "a write under the receipt of an older head, well signed",
        "gate",
        _resigned(entries, 7, gate=stale),
    )
    bare: Json = {"kind": "written", "write_id": "w-2"}
    yield (
        "a write of an approved head without its receipt, well signed",
        "gate",
        _resigned(entries, 7, gate=bare),
    )
    yield (
        "something observed that owes nothing, well signed",
        "owes",
        _resigned(entries, 0, gate={"kind": "observed"}),
    )
    yield (
        "a parent, remade and well signed",
        "parent_mismatch",
        _remade(entries, last, parent=another),
    )
    yield "a version, remade and well signed", "version_mismatch", _remade(entries, last, version=99)
    yield (
        "another thread, remade and well signed",
        "thread_mismatch",
        _remade(entries, last, thread="other"),
    )
    yield (
        "another flow, remade and well signed",
        "flow_mismatch",
        _remade(entries, last, flow="other"),
    )
    yield (
        "another state before, remade and well signed",
        "root_mismatch",
        _remade(entries, last, **{"from": another}),
    )
    yield (
        "another state after, remade and well signed",
        "root_mismatch",
        _remade(entries, last, to=another),
    )
    unseen: Json = {"op": "remove", "path": f"/chain/entries/{last}/opening"}
    yield (
        "another state before, unopened, remade and well signed",
        "root_mismatch",
        [*_remade(entries, last, **{"from": another}), unseen],
    )
    yield (
        "a rollback to nowhere, remade and well signed",
        "unknown_transition",
        _remade(entries, 6, restores=another),
    )
    yield (
        "a visible value",
        "root_mismatch",
        [_put("/chain/entries/2/opening/to/object/target_user_id/value", 43)],
    )
    yield (
        "a visible value before",
        "root_mismatch",
        [_put("/chain/entries/2/opening/from/object/target_user_id/value", 18)],
    )
    yield (
        "a row left out",
        "root_mismatch",
        [{"op": "remove", "path": "/chain/entries/2/opening/to/object/target_user_id"}],
    )
    yield (
        "an opening of another version",
        "root_mismatch",
        [_put("/chain/entries/4/opening", entries[2]["opening"])],
    )
    yield (
        "an opening with one side",
        "opening",
        [{"op": "remove", "path": "/chain/entries/4/opening/from"}],
    )


def _in_keys(entries: list[Object]) -> Iterator[Spoiled]:
    yield "the signing key missing", "unknown_key", [{"op": "remove", "path": "/jwks/keys/0"}]
    yield "the retired key missing", "unknown_key", [{"op": "remove", "path": "/jwks/keys/1"}]
    yield "the signing key revoked", "unknown_key", [_put("/jwks/keys/0/status", "revoked")]
    yield "a key under another's kid", "jwks", [_put("/jwks/keys/0/x", ATTACKER.jwk()["x"])]
    yield (
        "a key listed twice",
        "jwks",
        [{"op": "copy", "from": "/jwks/keys/0", "path": "/jwks/keys/-"}],
    )
    for member, value in (("countersign_use", "webhook"), ("alg", "ES256"), ("use", "enc"), ("kty", "EC"), ("crv", "Ed448")):
        yield (
            f"a key whose {member} is {value}",
            "unknown_key",
            [_put(f"/jwks/keys/0/{member}", value)],
        )
    yield "a key without status", "jwks", [{"op": "remove", "path": "/jwks/keys/2/status"}]
    yield "a key of null", "jwks", [_put("/jwks/keys/2", None)]
    yield "a key of unknown status", "jwks", [_put("/jwks/keys/0/status", "fine")]
    yield "a private key", "jwks", [{"op": "add", "path": "/jwks/keys/2/d", "value": "AAAA"}]
    token = REVOKED.sign(ENTRY, _claims(entries[4]))
    yield "an entry by the revoked key", "unknown_key", [_put("/chain/entries/4/entry", token)]
    token = ATTACKER.sign(ENTRY, _claims(entries[4]))
    yield "an entry by a stranger", "unknown_key", [_put("/chain/entries/4/entry", token)]
    kid = SIGNING.kid.encode()
    header = b'{"alg":"EdDSA","kid":"' + kid + b'","typ":"' + ENTRY.encode() + b'"}'
    payload = unbase64url(str(entries[4]["entry"]).split(".")[1])
    forged = ATTACKER.seal(header, payload)
    yield "an entry forged", "signature_invalid", [_put("/chain/entries/4/entry", forged)]


def _in_receipt(receipt: str) -> Iterator[Spoiled]:
    claims = parse(unbase64url(receipt.split(".")[1]))
    assert isinstance(claims, dict)
    other = "sha256:" + "ab" * 32
    yield "a receipt cut short", "receipt_malformed", [_put("/receipt", receipt[:-1])]
    facts: list[tuple[str, str, Object]] = [
        ("of another thread", "thread_mismatch", {"sub": "other"}),
        ("of another issuer", "issuer_mismatch", {"iss": "https://other.example"}),
        ("of another flow", "flow_mismatch", {"flow": "other"}),
        ("of another policy", "policy_mismatch", {"policy": other}),
        ("of another version", "version_mismatch", {"version": 3}),
        ("of another parent", "parent_mismatch", {"parent": other}),
        ("of another state", "to_mismatch", {"to": other}),
        ("of a transition that never committed", "unknown_transition", {"transition": other}),
        ("of another number", "receipt_mismatch", {"jti": "AAAAAAAAAAAAAAAAAAAAAA"}),
    ]
    for name, code, fact in facts:
        yield (
            f"a receipt {name}, well signed",
            code,
            [_put("/receipt", SIGNING.sign(RECEIPT, {**claims, **fact}))],
        )
    thread, _, _, _ = payments_thread()
    free = _items({"entries": list(thread.entries)})[4]["statement"]
    assert isinstance(free, dict)
    token = SIGNING.sign(RECEIPT, receipt_claims(free, str(claims["jti"]), 6))
    yield (
        "a receipt for a change that nobody approved, well signed",
        "receipt_mismatch",
        [_put("/receipt", token)],
    )
