"""Tokens: compact JWS by EdDSA with exactly {alg, kid, typ} as header, one typ per meaning.

PyJWT and OpenSSL check the signature; what they would let pass (other spellings, other headers,
weak keys) is refused before they are asked.
"""

from __future__ import annotations

import calendar
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from commitment import is_digest
from ed25519 import is_sound_point, is_sound_scalar
from strict_json import Json, Refused, base64url, canonical, parse, unbase64url

ENTRY, RECEIPT = "countersign-entry+jwt", "countersign-receipt+jwt"
DENIAL, VERIFICATION = "countersign-denial+jwt", "countersign-verification+jwt"
ANSWER = "countersign-interrupt-answer+jwt"
ENVELOPE = "countersign-envelope+jwt"
EPISODE = "countersign-episode+jwt"
OF_A_GATEWAY = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
USES = ("chain", "log", "webhook")
TOKEN_CHARS_MAX = 64 * 1024
STATUSES = ("next", "signing", "retired", "revoked")


ORDINAL_MAX = 2**32 - 1


class CouldNotTell(Exception):
    """Neither yes nor no: what would settle it is not in what was given."""


@dataclass(frozen=True)
class Key:
    raw: bytes
    status: str


Jwks = dict[str, Key]
Check = Callable[[Json], bool]


def thumbprint(raw: bytes) -> str:
    """RFC 7638, of an Ed25519 public key as a JWK of RFC 8037."""
    jwk: Json = {"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)}
    return base64url(hashlib.sha256(canonical(jwk)).digest())


def read_jwks(document: Json) -> Jwks:
    """The keys that sign tokens, of a published set, by kid; keys of no gateway are passed over."""
    keys: Jwks = {}
    kids: set[str] = set()
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Refused("jwks", "not a key set")
    for jwk in listed:
        if not isinstance(jwk, dict):
            raise Refused("jwks", "a key is an object")
        if "d" in jwk:
            raise Refused("jwks", "a private key")
        use = jwk.get("countersign_use")
        if use not in USES or any(jwk.get(member) != value for member, value in OF_A_GATEWAY.items()):
            continue
        kid, key = _key(jwk)
        if kid in kids:
            raise Refused("jwks", "a key that is listed twice")
        kids.add(kid)
        if use == "chain":
            keys[kid] = key
    if "issuer" in document:
        issuer = document["issuer"]
        if not isinstance(issuer, str) or re.fullmatch(r"[!-~]{1,256}", issuer) is None:
            raise Refused("jwks", "an issuer that is none")
    return keys


def _key(jwk: dict[str, Json]) -> tuple[str, Key]:
    x, kid, status = jwk.get("x"), jwk.get("kid"), jwk.get("status")
    try:
        raw = unbase64url(x) if isinstance(x, str) else b""
    except Refused as bad:
        raise Refused("jwks", str(bad)) from bad
    if not is_sound_point(raw) or kid != thumbprint(raw):
        raise Refused("jwks", "a key that is weak or misnamed")
    if status not in STATUSES:
        raise Refused("jwks", f"no such status: {status}")
    return str(kid), Key(raw, str(status))


def check_token(token: Json, typ: str, keys: Jwks) -> dict[str, Json]:
    """The claims of a genuine token of this typ. Times, audience and the like are the caller's."""
    if not isinstance(token, str):
        raise Refused("receipt_malformed", "not a string")
    kid, sent, signature = _check_form(token, typ)
    claims = check_claims(sent, typ)
    key = keys.get(kid)
    if key is None or key.status in ("next", "revoked"):
        raise Refused("unknown_key", kid)
    if not _is_strict(key.raw, signature):
        raise Refused("signature_invalid", "a weak key or a second spelling of a signature")
    try:
        public = Ed25519PublicKey.from_public_bytes(key.raw)
        payload: bytes = jwt.PyJWS().decode(token, public, algorithms=["EdDSA"])
    except jwt.InvalidTokenError as bad:
        raise Refused("signature_invalid", str(bad)) from bad
    assert payload == sent
    if typ == RECEIPT and key.status == "retired":
        raise CouldNotTell("a retired key vouches only for receipts that the gateway has stored")
    return claims


def _check_form(token: str, typ: str) -> tuple[str, bytes, bytes]:
    """kid, payload and signature of a token in its one spelling."""
    if len(token) > TOKEN_CHARS_MAX:
        raise Refused("receipt_malformed", "longer than any token")
    parts = token.split(".")
    if len(parts) != 3 or "" in parts:
        raise Refused("receipt_malformed", "not three parts")
    try:
        header, payload, signature = (unbase64url(part) for part in parts)
        said = parse(header)
    except Refused as bad:
        raise Refused("receipt_malformed", f"not a compact JWS: {bad}") from bad
    kid = said.get("kid") if isinstance(said, dict) else None
    if not isinstance(kid, str) or header != canonical({"alg": "EdDSA", "kid": kid, "typ": typ}):
        raise Refused("receipt_malformed", "the header is not exactly alg, kid and this typ")
    if len(signature) != 64:
        raise Refused("receipt_malformed", "a signature has 64 bytes")
    return kid, payload, signature


def _is_strict(public: bytes, signature: bytes) -> bool:
    nonce, scalar = signature[:32], signature[32:]
    return is_sound_point(public) and is_sound_point(nonce) and is_sound_scalar(scalar)


def check_claims(payload: bytes, typ: str) -> dict[str, Json]:
    """What a token says: exactly the claims of its typ, in their one spelling."""
    try:
        claims = parse(payload)
    except Refused as bad:
        raise Refused("receipt_malformed", f"claims: {bad}") from bad
    if canonical(claims) != payload:
        raise Refused("receipt_malformed", "claims: not in their one spelling")
    wrong = _wrong(claims, CLAIMS[typ])
    if wrong is not None or not isinstance(claims, dict):
        raise Refused("receipt_malformed", f"claims: {wrong}")
    if not _fit(claims, typ):
        raise Refused("receipt_malformed", "claims: they contradict each other")
    return claims


def _fit(claims: dict[str, Json], typ: str) -> bool:
    """What claims must be to each other; that each is of its form is known."""
    if typ == ENTRY:
        first, gate = claims["version"] == 0, claims["gate"]
        assert isinstance(gate, dict)
        alone = not first or gate["kind"] in ("auto", "observed")
        return first == (claims["parent"] is None) and alone
    if typ in (RECEIPT, VERIFICATION):
        made, ends = claims["iat"], claims["exp"]
        assert isinstance(made, int) and isinstance(ends, int)
        counted = claims["version"] if typ == RECEIPT else claims["fence"]
        return made <= ends and counted != 0
    if typ == ANSWER:
        approved, made, ends = claims["approved"], claims["iat"], claims.get("exp")
        assert isinstance(made, int) and (ends is None or isinstance(ends, int))
        named = (bool(claims["approvals"]), bool(claims["refusals"]), "exp" in claims)
        decision = claims["decision"]
        return (
            approved == (decision == "approved")
            and named == (approved, decision == "denied", approved)
            and (ends is None or made <= ends)
        )
    return True


def _wrong(value: Json, shape: dict[str, Check]) -> str | None:
    """What keeps an object from having exactly these members (`name?` may be left out)."""
    if not isinstance(value, dict):
        return "not an object"
    names = {name.rstrip("?"): check for name, check in shape.items()}
    for name in value:
        if name not in names:
            return f"{name} does not belong"
    for name, check in names.items():
        if name not in value and f"{name}?" not in shape:
            return f"{name} is missing"
        if name in value and not check(value[name]):
            return f"{name} is not what it should be"
    return None


def is_time(value: Json) -> bool:
    """RFC 3339, UTC, milliseconds, on a day that exists."""
    form = r"(\d{4})-(0[1-9]|1[0-2])-(\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z"
    found = re.fullmatch(form, value, re.ASCII) if isinstance(value, str) else None
    if found is None:
        return False
    year, month, day = (int(found[it]) for it in (1, 2, 3))
    return 1 <= day <= calendar.monthrange(year, month)[1]


def is_pointer(value: Json) -> bool:
    """RFC 6901."""
    return isinstance(value, str) and re.fullmatch(r"(/([^~/]|~[01])*)*", value) is not None


def is_ordinal(value: Json) -> bool:
    """Of a stage or an attempt."""
    return _count(value) and isinstance(value, int) and value <= ORDINAL_MAX


def _text(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def is_name(value: Json) -> bool:
    """Of a flow, thread, node, principal, review, write and so on."""
    form = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
    return isinstance(value, str) and re.fullmatch(form, value, re.ASCII) is not None


def _count(value: Json) -> bool:
    return type(value) is int and value >= 0


def _method(value: Json) -> bool:
    return value in ("password", "oidc", "passkey_session", "passkey")


def _decision(value: Json) -> bool:
    return value in ("approved", "denied", "expired", "superseded")


def _flag(value: Json) -> bool:
    return isinstance(value, bool)


def _jti(value: Json) -> bool:
    """128 random bits."""
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]{21}[AQgw]", value) is not None


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _some_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and value != [] and all(map(check, value))


def _shaped(shape: dict[str, Check]) -> Check:
    return lambda value: _wrong(value, shape) is None


def _gate(value: Json) -> bool:
    kind = value.get("kind") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in GATES and _wrong(value, GATES[kind]) is None


GATES: dict[str, dict[str, Check]] = {
    "auto": {"kind": _text},
    "observed": {"kind": _text},
    "approved": {"kind": _text, "review": is_name, "receipt": _jti},
    "written": {"kind": _text, "write_id": is_name, "receipt?": _jti},
}
VOTE: dict[str, Check] = {"reviewer": is_name, "stage": is_ordinal, "at": is_time, "for?": is_name}
APPROVAL: dict[str, Check] = {**VOTE, "method": _method, "evidence?": is_digest}
CLAIMS: dict[str, dict[str, Check]] = {
    ENTRY: {
        "iss": _text, "thread": is_name, "version": _count, "transition": is_digest,
        "parent": _or_null(is_digest), "gate": _gate, "owes": _flag, "policy": is_digest,
        "committed_at": is_time,
    },
    RECEIPT: {
        "iss": _text, "sub": is_name, "aud": _list_of(is_name), "jti": _jti, "iat": _count,
        "nbf": _count, "exp": _count, "flow": is_name, "policy": is_digest,
        "transition": is_digest, "parent": is_digest, "version": _count, "to": is_digest,
        "approvals": _some_of(_shaped(APPROVAL)),
    },
    DENIAL: {
        "iss": _text, "sub": is_name, "jti": _jti, "iat": _count, "flow": is_name,
        "policy": is_digest, "transition": is_digest, "parent": is_digest, "review": is_name,
        "outcome": lambda value: value == "denied", "reviewers": _some_of(_shaped(VOTE)),
    },
    VERIFICATION: {
        "iss": _text, "sub": is_name, "aud": is_name, "iat": _count, "exp": _count,
        "write_id": is_name, "fence": _count, "flow": is_name, "policy": is_digest,
        "transition": is_digest, "version": _count, "to": is_digest, "receipt": _or_null(_jti),
        "enforced": _flag,
    },
    ANSWER: {
        "iss": _text, "sub": is_name, "aud": is_name, "jti": _jti, "iat": _count, "exp?": _count,
        "flow": is_name, "policy": is_digest, "asserted": is_digest, "decision": _decision,
        "approved": _flag, "interrupt_id": _text, "transition_digest": _text,
        "approvals": _list_of(_shaped(APPROVAL)), "refusals": _list_of(_shaped(VOTE)),
    },
    ENVELOPE: {
        "iss": _text, "thread": is_name, "node": is_name, "version": _count, "transition": is_digest,
        "timestamp": is_time, "budget": _or_null(_count), "tokens": _count,
        "encoding": lambda value: value in ("o200k_base", "cl100k_base"),
        "requires": _list_of(lambda value: is_pointer(value) and value != ""), "payload": is_digest,
        "truncated": is_digest,
    },
    EPISODE: {"episode": is_name, "iat": _count, "iss": _text, "manifest": is_digest},
}  # fmt: skip
SEALED: dict[str, Check] = {
    "version": _count, "timestamp": is_time, "tokenBudget": _or_null(_count), "tokens": _count,
    "payload": lambda value: True, "transition": is_digest, "signature": _text,
    "truncated": _list_of(
        _shaped({"pointer": is_pointer, "how": lambda value: value in ("dropped", "cut")})
    ),
    "hmac?": _or_null(
        _shaped({
            "alg": lambda value: value == "HS256", "epoch": is_time, "value": lambda value: isinstance(value, str),
        })
    ),
}  # fmt: skip


def check_sealed(envelope: Json) -> dict[str, Json]:
    """An envelope's form, before its signature."""
    wrong = _wrong(envelope, SEALED)
    if wrong is not None or not isinstance(envelope, dict):
        raise Refused("envelope_malformed", str(wrong))
    return envelope
