"""Checks of tokens: signed by a published key, by EdDSA, for what the caller expects."""

from __future__ import annotations

from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from countersign._protocol._claims import Answer, Denial, Entry, Episode, Receipt, Verification
from countersign._protocol._parts import T, read_token
from countersign._protocol._refused import CouldNotTell, Refused, must

from ._curve import is_strict_point, is_strict_scalar
from ._expected import Whatever, allows, expects, seconds
from ._keys import Key, Keys


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
    found, key = _genuine(token, Receipt, keys)
    if key.status == "retired":
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
    return _genuine(token, kind, keys)[0]


def _genuine(token: object, kind: type[T], keys: Keys) -> tuple[T, Key]:
    read = read_token(token, kind)
    key = keys.named(read.kid)
    if key is None or key.status in ("next", "revoked"):
        raise Refused("unknown_key", "no key of that name signs, or signed, tokens")
    _check_signature(key, read.signature, read.signed)
    return read.claims, key


def _check_signature(key: Key, signature: bytes, signed: bytes) -> None:
    strict = is_strict_point(key.raw) and is_strict_point(signature[:32]) and is_strict_scalar(signature[32:])
    must(strict, "signature_invalid", "a weak key, or a second spelling of a signature")
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise Refused("signature_invalid", "not signed by that key") from None
