"""Envelopes, checked as docs/specs/protocol.md says; only tokens are not counted again here."""

from __future__ import annotations

import hmac
from hashlib import sha256

from commitment import PAYLOAD, TRUNCATED, H
from effect import children, tokens
from signed import ENVELOPE, Jwks, check_sealed, check_token
from strict_json import Json, Refused, base64url, canonical, same, unbase64url


def envelope_secret(row_key: bytes, flow: str, node: str, epoch: str) -> str:
    """The secret of a node for the period that begins then, as the node is given it."""
    message = b"\0".join([b"countersign.envelope-secret.v1", flow.encode(), node.encode(), epoch.encode()])
    return "envsec_" + base64url(hmac.digest(row_key, message, "sha256"))


def envelope_mac(secret: str, envelope: dict[str, Json], thread: str, node: str, epoch: str) -> str:
    """What stands beside an envelope's signature, by a secret as its node is given it."""
    bare: Json = {name: value for name, value in envelope.items() if name != "hmac"}
    said: Json = {"envelope": bare, "epoch": epoch, "node": node, "thread": thread}
    message = b"countersign.envelope-mac.v1\0" + canonical(said)
    return base64url(hmac.new(unbase64url(secret.removeprefix("envsec_")), message, sha256).digest())


def check_mac(envelope: Json, thread: str, node: str, secrets: dict[str, str]) -> None:
    """That an envelope bears an HMAC by one of a node's secrets, which stand under their periods."""
    assert isinstance(envelope, dict)
    beside = envelope.get("hmac")
    if beside is None:
        raise Refused("hmac_missing", "there is none")
    assert isinstance(beside, dict)
    epoch = str(beside["epoch"])
    if epoch not in secrets:
        raise Refused("hmac_expired", "its secret is not good now")
    if not hmac.compare_digest(envelope_mac(secrets[epoch], envelope, thread, node, epoch), str(beside["value"])):
        raise Refused("hmac_mismatch", "it is another")


def check_envelope(
    envelope: Json,
    keys: Jwks,
    issuer: str,
    thread: str,
    node: str,
    version: int,
    secrets: dict[str, str] | None = None,
) -> dict[str, Json]:
    """The claims of an envelope that may be used, or Refused with the code of the first thing wrong."""
    envelope = check_sealed(envelope)
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
    if secrets is not None:
        check_mac(envelope, thread, node, secrets)
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
        below = dict(children(value))
        if token not in below:
            return False
        value = below[token]
    return True
