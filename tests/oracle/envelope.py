"""Envelopes, checked as docs/protocol.md says; only tokens are not counted again here."""

from __future__ import annotations

from commitment import PAYLOAD, TRUNCATED, H
from effect import tokens
from signed import ENVELOPE, Jwks, check_token
from strict_json import Json, Refused, canonical, same

MEMBERS = {"version", "timestamp", "tokenBudget", "tokens", "payload", "truncated", "transition", "signature"}


def check_envelope(
    envelope: Json, keys: Jwks, issuer: str, thread: str, node: str, version: int
) -> dict[str, Json]:
    """The claims of an envelope that may be used, or Refused with the code of the first thing wrong."""
    if not isinstance(envelope, dict) or set(envelope) != MEMBERS:
        raise Refused("envelope_malformed", "not the members of an envelope")
    try:
        claims = check_token(envelope["signature"], ENVELOPE, keys)
    except Refused as why:
        raise Refused(why.code.replace("receipt_malformed", "envelope_malformed"), str(why)) from why
    for name, expected in (("issuer", issuer), ("thread", thread), ("node", node)):
        if claims["iss" if name == "issuer" else name] != expected:
            raise Refused(f"{name}_mismatch", "of another one")
    beside = [envelope[it] for it in ("version", "timestamp", "tokenBudget", "tokens", "transition")]
    signed = [claims[it] for it in ("version", "timestamp", "budget", "tokens", "transition")]
    hashed = H(PAYLOAD, canonical(envelope["payload"])), H(TRUNCATED, canonical(envelope["truncated"]))
    if not same(beside, signed) or hashed != (claims["payload"], claims["truncated"]):
        raise Refused("envelope_mismatch", "what is in it is not what was signed")
    at, requires, budget, count = (claims[it] for it in ("version", "requires", "budget", "tokens"))
    assert isinstance(at, int) and isinstance(requires, list) and isinstance(count, int)
    if at < version:
        raise Refused("stale", "the thread has moved on")
    if not all(_stands(envelope["payload"], str(it)) for it in requires):
        raise Refused("required_missing", "something required is not there")
    if isinstance(budget, int) and count > budget:
        raise Refused("over_budget", "more than the node may be given")
    return claims


def _stands(value: Json, pointer: str) -> bool:
    for token in tokens(pointer):
        if not isinstance(value, dict) or token not in value:
            return False
        value = value[token]
    return True
