"""Makes the vectors of envelopes: what the gateway would seal, and what must not be believed.

How many tokens a payload is, is taken as given: vocabularies are published elsewhere.
"""

from __future__ import annotations

from commitment import PAYLOAD, TRUNCATED, H
from fixtures import ATTACKER, ISSUER, REVOKED, SIGNING, Object, rfc3339, moment
from signed import ENVELOPE, RECEIPT
from strict_json import Json, canonical

THREAD, NODE = "order-2026:0018", "lead"
HEAD = "sha256:" + 64 * "5"
# By o200k_base, of the canonical text.
PAYLOAD_GIVEN: Json = {"x": "hello world"}
TOKENS = 6


def envelopes() -> Object:
    whole, cut = sealed(None, []), sealed(TOKENS, [{"pointer": "/notes", "how": "dropped"}])
    genuine: list[Json] = [{"name": "whole", "envelope": whole}, {"name": "made to fit", "envelope": cut}]
    spoiled: list[Json] = [{"name": name, "code": code, "envelope": it} for name, code, it in _spoiled(cut)]
    keys: list[Json] = [SIGNING.jwk(), REVOKED.jwk()]
    return {"jwks": {"keys": keys}, "thread": THREAD, "node": NODE, "version": 3, "genuine": genuine, "spoiled": spoiled}


def claims_of(most: int | None, truncated: list[Json], /, **facts: Json) -> Object:
    claims: Object = {
        "iss": ISSUER, "thread": THREAD, "node": NODE, "version": 3, "transition": HEAD,
        "timestamp": rfc3339(moment(7)), "budget": most, "tokens": TOKENS, "encoding": "o200k_base",
        "requires": ["/x"], "payload": H(PAYLOAD, canonical(PAYLOAD_GIVEN)),
        "truncated": H(TRUNCATED, canonical(list(truncated))),
    }  # fmt: skip
    return {**claims, **facts}


def sealed(budget: int | None, truncated: list[Json]) -> Object:
    claims = claims_of(budget, truncated)
    return {
        "version": 3, "timestamp": claims["timestamp"], "tokenBudget": budget, "tokens": TOKENS,
        "payload": PAYLOAD_GIVEN, "truncated": list(truncated), "transition": HEAD,
        "signature": SIGNING.sign(ENVELOPE, claims),
    }  # fmt: skip


def _spoiled(good: Object) -> list[tuple[str, str, Object]]:
    truncated: list[Json] = [{"pointer": "/notes", "how": "dropped"}]
    token = str(good["signature"])
    other: Json = {"x": "hello there"}

    def with_(**facts: Json) -> Object:
        return {**good, **facts}

    def resigned(**facts: Json) -> Object:
        return with_(signature=SIGNING.sign(ENVELOPE, claims_of(TOKENS, truncated, **facts)))

    low: Object = resigned(tokens=TOKENS - 1)
    return [
        ("a payload", "envelope_mismatch", with_(payload=other)),
        ("a version", "envelope_mismatch", with_(version=4)),
        ("a time", "envelope_mismatch", with_(timestamp=rfc3339(moment(8)))),
        ("a budget", "envelope_mismatch", with_(tokenBudget=None)),
        ("how many tokens", "envelope_mismatch", with_(tokens=TOKENS - 1)),
        ("what did not fit", "envelope_mismatch", with_(truncated=[])),
        ("a transition", "envelope_mismatch", with_(transition="sha256:" + 64 * "6")),
        ("a member too many", "envelope_malformed", with_(note=None)),
        ("a signature cut short", "envelope_malformed", with_(signature=token[:-1])),
        ("another token", "envelope_malformed", with_(signature=SIGNING.sign(RECEIPT, claims_of(TOKENS, truncated)))),
        ("claims that say more", "envelope_malformed", resigned(note=None)),
        ("an encoding that is none", "envelope_malformed", resigned(encoding="words")),
        ("by a stranger", "unknown_key", with_(signature=ATTACKER.sign(ENVELOPE, claims_of(TOKENS, truncated)))),
        ("by a revoked key", "unknown_key", with_(signature=REVOKED.sign(ENVELOPE, claims_of(TOKENS, truncated)))),
        ("of another issuer", "issuer_mismatch", resigned(iss="https://other.example")),
        ("of another thread", "thread_mismatch", resigned(thread="other")),
        ("for another node", "node_mismatch", resigned(node="other")),
        ("of an older version", "stale", {**resigned(version=2), "version": 2}),
        ("without what is required", "required_missing", resigned(requires=["/x", "/y"])),
        ("counted wrongly", "tokens_mismatch", {**low, "tokens": TOKENS - 1}),
        ("more than may be", "over_budget", {**resigned(budget=TOKENS - 1), "tokenBudget": TOKENS - 1}),
    ]
