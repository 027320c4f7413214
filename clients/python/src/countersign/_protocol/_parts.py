"""Tokens before their signature is checked: compact JWS with exactly `alg`, `kid` and `typ`, one `typ` for each
meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ._claims import Answer, Denial, Entry, Envelope, Episode, Receipt, Verification
from ._forms import exactly, unbase64url
from ._json import Json, canonical, read_json
from ._refused import Refused, must

TOKEN_CHARS_MAX = 64 * 1024
TYPES: dict[type, str] = {
    Entry: "countersign-entry+jwt",
    Receipt: "countersign-receipt+jwt",
    Denial: "countersign-denial+jwt",
    Verification: "countersign-verification+jwt",
    Answer: "countersign-interrupt-answer+jwt",
    Envelope: "countersign-envelope+jwt",
    Episode: "countersign-episode+jwt",
}
MALFORMED = "receipt_malformed"
T = TypeVar("T", Entry, Receipt, Denial, Verification, Answer, Envelope, Episode)


@dataclass(frozen=True)
class Unverified(Generic[T]):
    """A token in its form. Its claims prove nothing before the signature is checked."""

    kid: str
    claims: T
    signed: bytes
    signature: bytes


def read_token(token: object, kind: type[T]) -> Unverified[T]:
    """Reads a token in its one spelling, with exactly the claims of that kind."""
    if not isinstance(token, str) or len(token) > TOKEN_CHARS_MAX or not token.isascii():
        raise Refused(MALFORMED, "not a token")
    raws = [unbase64url(part) for part in token.split(".")]
    if len(raws) != 3:
        raise Refused(MALFORMED, "a token has three parts")
    header, payload, signature = raws
    if not header or not payload or signature is None or len(signature) != 64:
        raise Refused(MALFORMED, "not base64url in its one spelling")
    said, typ = _read(header), TYPES[kind]
    kid = said.get("kid") if isinstance(said, dict) else None
    if not isinstance(kid, str) or header != canonical({"alg": "EdDSA", "kid": kid, "typ": typ}):
        raise Refused(MALFORMED, f"its header is not exactly alg, kid and {typ}")
    found = _read(payload)
    must(canonical(found) == payload, MALFORMED, "its claims are not in canonical form")
    claims = exactly(kind, found, MALFORMED)
    return Unverified(kid, claims, token.rpartition(".")[0].encode("ascii"), signature)


def _read(raw: bytes) -> Json:
    try:
        return read_json(raw)
    except Refused as bad:
        raise Refused(MALFORMED, f"no JSON of the protocol ({bad.code})") from None
