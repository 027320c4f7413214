"""Tokens: compact JWS by EdDSA with exactly `alg`, `kid` and `typ`, one `typ` for each meaning."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ._claims import Answer, Denial, Entry, Envelope, Episode, Receipt, Verification
from ._curve import is_strict_point, is_strict_scalar
from ._expected import Whatever, allows, expects, seconds
from ._forms import exactly, unbase64url
from ._json import Json, canonical, read_json
from ._keys import Key, Keys
from ._refused import CouldNotTell, Refused, must

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


def check_receipt(
    token: object,
    keys: Keys,
    *,
    issuer: str | Whatever,
    thread: str | Whatever,
    transition: str | Whatever,
    audience: str | Whatever,
    at: datetime | Whatever,
) -> Receipt:
    """Checks that a transition was approved. State gateway, thread, transition, writer's node and time, or `ANY` if
    you expect nothing. Only the gateway knows whether the receipt was revoked since then, so a writer still calls
    `verify`."""
    found = claims(token, Receipt, keys)
    if keys_status(token, keys) == "retired":
        raise CouldNotTell("a retired key is trusted only for receipts that the gateway has stored")
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    must(allows("audience", audience, found.aud), "audience_mismatch", "it is for other writers")
    now = seconds(at)
    if now is not None:
        must(found.nbf <= now, "not_yet_valid", "it is not valid yet")
        must(now < found.exp, "expired", "it has expired")
    expects("thread", thread, found.sub, "thread_mismatch")
    expects("transition", transition, found.transition, "digest_mismatch")
    return found


def check_entry(token: object, keys: Keys, *, issuer: str | Whatever, transition: str | Whatever) -> Entry:
    """Checks that a transition is in its thread's chain."""
    found = claims(token, Entry, keys)
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("transition", transition, found.transition, "digest_mismatch")
    return found


def check_denial(token: object, keys: Keys, *, issuer: str | Whatever, transition: str | Whatever) -> Denial:
    """Checks that a transition was denied."""
    found = claims(token, Denial, keys)
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("transition", transition, found.transition, "digest_mismatch")
    return found


def check_verification(
    token: object,
    keys: Keys,
    *,
    issuer: str | Whatever,
    thread: str | Whatever,
    transition: str | Whatever,
    write_id: str | Whatever,
    at: datetime | Whatever,
) -> Verification:
    """Checks that a writer was allowed to write, and until when."""
    found = claims(token, Verification, keys)
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("thread", thread, found.sub, "thread_mismatch")
    expects("transition", transition, found.transition, "digest_mismatch")
    expects("write_id", write_id, found.write_id, "write_mismatch")
    now = seconds(at)
    must(now is None or now < found.exp, "expired", "the lease is over")
    return found


def check_answer(
    token: object,
    keys: Keys,
    *,
    issuer: str | Whatever,
    audience: str | Whatever,
    transition: str | Whatever,
    at: datetime | Whatever,
) -> Answer:
    """Checks the decision on a host's interrupt. `transition` is the host's own digest, `audience` the id of its token.

    Remember `jti`, and act on an answer once.
    """
    found = claims(token, Answer, keys)
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("audience", audience, found.aud, "audience_mismatch")
    expects("transition", transition, found.transition_digest, "digest_mismatch")
    now = seconds(at)
    must(now is None or found.exp is None or now < found.exp, "expired", "it has expired")
    return found


def check_episode(
    token: object, keys: Keys, *, issuer: str | Whatever, episode: str | Whatever, manifest: str | Whatever
) -> Episode:
    """Checks that a gateway signed the manifest of a run. `manifest` is the `manifest_digest` of the one you have."""
    found = claims(token, Episode, keys)
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("episode", episode, found.episode, "thread_mismatch")
    expects("manifest", manifest, found.manifest, "digest_mismatch")
    return found


def claims(token: object, kind: type[T], keys: Keys) -> T:
    """Returns the claims of a genuine token of that kind. The caller checks times, audience and the rest."""
    kid, signed, payload, signature = _parts(token, TYPES[kind])
    key = _key(keys, kid)
    _check_signature(key, signature, signed)
    said = _canonical_json(payload)
    return exactly(kind, said, MALFORMED)


def keys_status(token: object, keys: Keys) -> str:
    """Returns the status of the key that a well-formed token names."""
    said = read_json(unbase64url(str(token).partition(".")[0]) or b"")
    return _key(keys, said["kid"]).status


def _key(keys: Keys, kid: str) -> Key:
    key = keys.named(kid)
    if key is None or key.status in ("next", "revoked"):
        raise Refused("unknown_key", "no key of that name signs, or signed, tokens")
    return key


def _parts(token: object, typ: str) -> tuple[str, bytes, bytes, bytes]:
    """Returns kid, signed bytes, payload and signature of a token in its one spelling."""
    if not isinstance(token, str) or len(token) > TOKEN_CHARS_MAX or not token.isascii():
        raise Refused(MALFORMED, "not a token")
    raws = [unbase64url(part) for part in token.split(".")]
    if len(raws) != 3:
        raise Refused(MALFORMED, "a token has three parts")
    header, payload, signature = raws
    if not header or not payload or signature is None or len(signature) != 64:
        raise Refused(MALFORMED, "not base64url in its one spelling")
    said = _read(header)
    kid = said.get("kid") if isinstance(said, dict) else None
    if not isinstance(kid, str) or header != canonical({"alg": "EdDSA", "kid": kid, "typ": typ}):
        raise Refused(MALFORMED, f"its header is not exactly alg, kid and {typ}")
    return kid, token.rpartition(".")[0].encode("ascii"), payload, signature


def _check_signature(key: Key, signature: bytes, signed: bytes) -> None:
    strict = is_strict_point(key.raw) and is_strict_point(signature[:32]) and is_strict_scalar(signature[32:])
    must(strict, "signature_invalid", "a weak key, or a second spelling of a signature")
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise Refused("signature_invalid", "not signed by that key") from None


def _canonical_json(payload: bytes) -> Json:
    said = _read(payload)
    must(canonical(said) == payload, MALFORMED, "its claims are not in canonical form")
    return said


def _read(raw: bytes) -> Json:
    try:
        return read_json(raw)
    except Refused as bad:
        raise Refused(MALFORMED, f"no JSON of the protocol ({bad.code})") from None
