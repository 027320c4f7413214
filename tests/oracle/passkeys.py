"""A vote that a passkey signs: the challenge, the assertion over it, and the evidence that a receipt names."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from commitment import H
from strict_json import Json, Refused, base64url, canonical, unbase64url

PRESENT, VERIFIED = 0x01, 0x04
COMMON = {"comment", "expires_at", "iss", "nonce", "reviewer", "stage", "verdict"}
# What is voted on says under which tag it is signed: a vote on a review, or one on a policy.
SUBJECTS = {
    "countersign.vote.v1": COMMON | {"review", "transition"},
    "countersign.policy_vote.v1": COMMON | {"amendment", "digest"},
}


def challenge(statement: Json) -> str:
    """What the passkey is asked to sign, as a digest; its 32 bytes are the challenge."""
    for tag, members in SUBJECTS.items():
        if isinstance(statement, dict) and set(statement) == members:
            return H(tag, canonical(statement))
    raise Refused("not_theirs", "no statement of a vote")


def evidence_digest(evidence: Json) -> str:
    return H("countersign.evidence.v1", canonical(evidence))


def _public(jwk: dict[str, str]) -> ec.EllipticCurvePublicKey:
    x, y = (int.from_bytes(unbase64url(jwk[name]), "big") for name in ("x", "y"))
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def check_vote(evidence: Any, passkey: Any) -> None:
    """Refuses unless this passkey signed this very statement, at its own origin."""
    statement, assertion = evidence["statement"], evidence["assertion"]
    if statement["reviewer"] != passkey["account"]:
        raise Refused("not_theirs", "the statement is of somebody else")
    if assertion["passkey"] != passkey["passkey"]:
        raise Refused("not_theirs", "another passkey")
    client = unbase64url(assertion["client_data"])
    said = json.loads(client)
    asked = base64url(bytes.fromhex(challenge(statement).removeprefix("sha256:")))
    if said["type"] != "webauthn.get":
        raise Refused("purpose", said["type"])
    if said["challenge"] != asked:
        raise Refused("challenge", "it signs something else")
    if said["origin"] != passkey["origin"] or said.get("crossOrigin") or "topOrigin" in said:
        raise Refused("origin", said["origin"])
    data = unbase64url(assertion["authenticator_data"])
    host = passkey["origin"].split("://")[1].split(":")[0]
    if data[:32] != hashlib.sha256(host.encode()).digest():
        raise Refused("origin", "another host's key")
    if data[32] & (PRESENT | VERIFIED) != PRESENT | VERIFIED:
        raise Refused("unverified", "the authenticator did not make sure who")
    signed = data + hashlib.sha256(client).digest()
    key, signature = _public(passkey["public_key"]), unbase64url(assertion["signature"])
    try:
        key.verify(signature, signed, ec.ECDSA(SHA256()))
    except InvalidSignature as why:
        raise Refused("signature", "not that passkey's") from why
