"""Makes the vectors of envelopes: what the gateway would seal, and what must not be believed.

How many tokens a payload is, is taken as given: vocabularies are published elsewhere.
"""

from __future__ import annotations

from commitment import PAYLOAD, TRUNCATED, H
from envelope import envelope_mac, envelope_secret
from fixtures import ATTACKER, ISSUER, REVOKED, SIGNING, Object, fixed_bytes, moment, rfc3339
from signed import ENVELOPE, RECEIPT
from strict_json import Json, canonical

THREAD, NODE = "order-2026:0018", "lead"
HEAD = "sha256:" + 64 * "5"
# By o200k_base, of the canonical text.
PAYLOAD_GIVEN: Json = {"x": "hello world"}
TOKENS = 6
NO_DAY = "2026-02-30T09:04:00.000Z"


def envelopes() -> Object:
    whole, cut = sealed(None, []), sealed(TOKENS, [{"pointer": "/notes", "how": "dropped"}])
    genuine: list[Json] = [{"name": "whole", "envelope": whole}, {"name": "made to fit", "envelope": cut}]
    without = {name: it for name, it in whole.items() if name != "tokenBudget"}
    cases = [*_spoiled(cut), ("without the budget of null", "envelope_malformed", without)]
    spoiled: list[Json] = [{"name": name, "code": code, "envelope": it} for name, code, it in cases]
    keys: list[Json] = [SIGNING.jwk(), REVOKED.jwk()]
    return {
        "jwks": {"keys": keys}, "thread": THREAD, "node": NODE, "version": 3, "genuine": genuine, "spoiled": spoiled,
        "hmac": _hmac(cut),
    }  # fmt: skip


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


FLOW = "orders"
ROW_KEY = fixed_bytes("row key")
# Periods of a day, with an hour of overlap: at half past twelve at night two are good, an hour later one.
NOW, LATER, ROTATES = "2026-11-03T00:30:00.000Z", "2026-11-03T01:00:00.000Z", "2026-11-04T00:00:00.000Z"
TODAY, YESTERDAY, BEFORE = (f"2026-11-0{day}T00:00:00.000Z" for day in (3, 2, 1))
ENDS = {TODAY: "2026-11-04T01:00:00.000Z", YESTERDAY: LATER}


def _with_mac(
    envelope: Object, epoch: str = YESTERDAY, *, flow: str = FLOW, thread: str = THREAD, node: str = NODE,
    of: str | None = None, over: Object | None = None,
) -> Object:  # fmt: skip
    """The envelope with an HMAC that its node would be given, but for what is said otherwise."""
    secret = envelope_secret(ROW_KEY, flow, node, of or epoch)
    value = envelope_mac(secret, over or envelope, thread, node, epoch)
    return {**envelope, "hmac": {"alg": "HS256", "epoch": epoch, "value": value}}


def _hmac(good: Object) -> Object:
    shown: list[Json] = [
        {"epoch": epoch, "good_until": ENDS[epoch], "secret": envelope_secret(ROW_KEY, FLOW, NODE, epoch)}
        for epoch in (TODAY, YESTERDAY)
    ]
    genuine: list[Json] = [
        {"name": "by the secret of the period before", "envelope": _with_mac(good)},
        {"name": "by the secret of this period", "envelope": _with_mac(good, TODAY)},
    ]
    spoiled: list[Json] = [{"name": name, "code": code, "envelope": it} for name, code, it in _spoiled_macs(good)]
    return {
        "row_key": ROW_KEY.hex(), "period_secs": 86400, "overlap_secs": 3600, "now": NOW, "later": LATER,
        "secrets": {"flow": FLOW, "node": NODE, "alg": "HS256", "rotates_at": ROTATES, "secrets": shown},
        "genuine": genuine, "spoiled": spoiled,
    }  # fmt: skip


def _spoiled_macs(good: Object) -> list[tuple[str, str, Object]]:
    bears = _with_mac(good)
    hmac = bears["hmac"]
    assert isinstance(hmac, dict)
    value = str(hmac["value"])
    # The same view, sealed a minute later: another envelope.
    later = {**good, "timestamp": rfc3339(moment(8))}
    truncated: list[Json] = [{"pointer": "/notes", "how": "dropped"}]
    later["signature"] = SIGNING.sign(ENVELOPE, claims_of(TOKENS, truncated, timestamp=later["timestamp"]))
    last = "A" if value[-1] != "A" else "E"

    def with_(**facts: Json) -> Object:
        return {**bears, "hmac": {**hmac, **facts}}

    return [
        ("none at all", "hmac_missing", good),
        ("null in its place", "hmac_missing", {**good, "hmac": None}),
        ("of a period that is over", "hmac_expired", _with_mac(good, BEFORE)),
        ("of a period that has not begun", "hmac_expired", _with_mac(good, ROTATES)),
        ("under the name of another period", "hmac_mismatch", with_(epoch=TODAY)),
        ("by another period's secret", "hmac_mismatch", _with_mac(good, of=TODAY)),
        ("by another node's secret", "hmac_mismatch", {**good, "hmac": _with_mac(good, node="other")["hmac"]}),
        ("by the node's secret in another flow", "hmac_mismatch", _with_mac(good, flow="other")),
        ("of another thread", "hmac_mismatch", _with_mac(good, thread="other")),
        ("of another envelope", "hmac_mismatch", _with_mac(good, over=later)),
        ("on another envelope", "hmac_mismatch", {**later, "hmac": hmac}),
        ("cut short", "hmac_mismatch", with_(value=value[:-1])),
        ("cut short by whole bytes", "hmac_mismatch", with_(value=value[:40])),
        ("padded", "hmac_mismatch", with_(value=value + "=")),
        ("nothing", "hmac_mismatch", with_(value="")),
        ("changed in its last bits", "hmac_mismatch", with_(value=value[:-1] + last)),
        ("by no algorithm", "envelope_malformed", with_(alg="none")),
        ("with a member too many", "envelope_malformed", with_(node=NODE)),
        ("on a payload that was changed", "envelope_mismatch", {**bears, "payload": {"x": "hello there"}}),
    ]


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
        ("of no issuer", "envelope_malformed", resigned(iss="")),
        ("on a day that does not exist", "envelope_malformed", {**resigned(timestamp=NO_DAY), "timestamp": NO_DAY}),
        ("that requires no path", "envelope_malformed", resigned(requires=["x"])),
        ("that requires the root", "envelope_malformed", resigned(requires=[""])),
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
