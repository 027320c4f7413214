"""Makes the vectors of tokens: genuine ones of all kinds, and ones to be refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from commitment import H
from countersign_oracle import policy_digest
from ed25519 import L
from fixtures import ATTACKER, ISSUER, NEXT, POLICY_TEXT, RETIRED, REVOKED, SCHEMAS, SIGNING
from fixtures import Object, SigningKey, fixed_jti, fixed_uuid7, jwk_of, moment, numeric, rfc3339
from signed import ANSWER, DENIAL, ENTRY, EPISODE, RECEIPT, VERIFICATION, thumbprint
from strict_json import Json, base64url, canonical, unbase64url

POLICY = policy_digest(POLICY_TEXT, SCHEMAS)
HEAD, PARENT = H("countersign.transition.v1", b"head"), H("countersign.transition.v1", b"parent")
ROOT = H("countersign.object.v1", b"state")
JTI = fixed_jti("token vectors")
THREAD = "order-7"
FORM, KEY, SIGNATURE = "receipt_malformed", "unknown_key", "signature_invalid"
Spoiled = tuple[str, str, str]


def entry(**facts: Json) -> Object:
    return {
        "iss": ISSUER, "thread": THREAD, "version": 2, "transition": HEAD, "parent": PARENT,
        "gate": {"kind": "auto"}, "owes": False, "policy": POLICY,
        "committed_at": rfc3339(moment(4)), **facts,
    }  # fmt: skip


def approval(name: str, stage: int, minute: float, **more: Json) -> Json:
    at = rfc3339(moment(minute))
    vote: Object = {"reviewer": fixed_uuid7(f"reviewer {name}"), "stage": stage, "at": at}
    return {**vote, **more}


def receipt(**facts: Json) -> Object:
    now = numeric(moment(4))
    return {
        "iss": ISSUER, "sub": THREAD, "aud": ["database_writer"], "jti": JTI, "iat": now,
        "nbf": now, "exp": now + 600, "flow": "payments", "policy": POLICY, "transition": HEAD,
        "parent": PARENT, "version": 2, "to": ROOT,
        "approvals": [approval("ada", 0, 4, method="password")], **facts,
    }  # fmt: skip


def denial(**facts: Json) -> Object:
    return {
        "iss": ISSUER, "sub": THREAD, "jti": JTI, "iat": numeric(moment(4)), "flow": "payments",
        "policy": POLICY, "transition": HEAD, "parent": PARENT,
        "review": fixed_uuid7("review 2", moment(3)), "outcome": "denied",
        "reviewers": [approval("ada", 0, 4)], **facts,
    }  # fmt: skip


def verification(**facts: Json) -> Object:
    now = numeric(moment(5))
    return {
        "iss": ISSUER, "sub": THREAD, "aud": fixed_uuid7("writer token"), "iat": now,
        "exp": now + 30, "write_id": "w-1", "fence": 7, "flow": "payments", "policy": POLICY,
        "transition": HEAD, "version": 2, "to": ROOT, "receipt": JTI, "enforced": True, **facts,
    }  # fmt: skip


def answer(**facts: Json) -> Object:
    now = numeric(moment(4))
    return {
        "iss": ISSUER, "sub": fixed_uuid7("interrupt 1", moment(3)), "aud": fixed_uuid7("host token"),
        "jti": JTI, "iat": now, "exp": now + 600, "flow": "payments", "policy": POLICY,
        "asserted": H("countersign.interrupt.v1", b"what the host said"), "decision": "approved",
        "approved": True, "interrupt_id": "7652e9dcf1db4576f41da052dbf45ab3",
        "transition_digest": "d" * 64, "refusals": [],
        "approvals": [approval("ada", 0, 4, method="password")], **facts,
    }  # fmt: skip


def answered(decision: str, **facts: Json) -> Object:
    """An answer that is no approval."""
    claims = answer(decision=decision, approved=False, approvals=[], **facts)
    return {name: value for name, value in claims.items() if name != "exp"}


def episode(**facts: Json) -> Object:
    """Over the manifest of a finished run."""
    manifest: Json = {
        "schema_version": "manifest/1.0", "episode_id": THREAD, "created_at": "2026-11-02T09:04:00.000Z",
        "files": [], "signer": None,
    }  # fmt: skip
    digest = H("countersign.episode.v1", canonical(manifest))
    return {"iss": ISSUER, "episode": THREAD, "iat": numeric(moment(4)), "manifest": digest, **facts}


APPROVED: Json = {"kind": "approved", "review": fixed_uuid7("review 2", moment(3)), "receipt": JTI}
TWICE: list[Json] = [approval("ada", 0, 3.5, method="password"), approval("ben", 1, 4, method="passkey")]  # fmt: skip
GENUINE: list[tuple[str, str, SigningKey, Object]] = [
    ("an entry of version 0", ENTRY, SIGNING, entry(version=0, parent=None)),
    ("an entry, approved", ENTRY, SIGNING, entry(gate=APPROVED, owes=True)),
    ("an entry, observed", ENTRY, SIGNING, entry(gate={"kind": "observed"}, owes=True)),
    ("an entry, written by receipt", ENTRY, SIGNING, entry(gate={"kind": "written", "write_id": "w-1", "receipt": JTI}, owes=True)),
    ("an entry, written without one", ENTRY, SIGNING, entry(gate={"kind": "written", "write_id": "w-1"})),
    ("an entry of a retired key", ENTRY, RETIRED, entry()),
    ("an entry of a thread with every sign a name may have", ENTRY, SIGNING, entry(thread="Order.7_b:c-9")),
    ("a receipt", RECEIPT, SIGNING, receipt()),
    ("a receipt of two stages for two writers", RECEIPT, SIGNING, receipt(aud=["database_writer", "ledger"], approvals=TWICE)),
    ("a denial", DENIAL, SIGNING, denial()),
    ("a denial by two", DENIAL, SIGNING, denial(reviewers=[approval("ada", 0, 3), approval("ben", 1, 4)])),
    ("a verification", VERIFICATION, SIGNING, verification()),
    ("an answer to an interrupt, approved", ANSWER, SIGNING, answer()),
    ("an answer to an interrupt, denied", ANSWER, SIGNING, answered("denied", refusals=[approval("ada", 0, 4)])),
    ("an answer to an interrupt that nobody decided", ANSWER, SIGNING, answered("expired")),
    ("the manifest of a finished run", EPISODE, SIGNING, episode()),
    ("the manifest of a run, by a retired key", EPISODE, RETIRED, episode()),
    ("a verification that enforced nothing", VERIFICATION, SIGNING, verification(receipt=None, enforced=False)),
]  # fmt: skip


def tokens() -> Object:
    keys: list[Json] = []
    for key in (SIGNING, NEXT, RETIRED, REVOKED, ATTACKER):
        status = None if key is ATTACKER else key.status
        seed, public = key.seed.hex(), key.public.hex()
        keys.append(
            {"name": key.name, "status": status, "seed": seed, "public": public, "kid": key.kid}
        )
    genuine: list[Json] = []
    for name, typ, key, claims in GENUINE:
        header = canonical({"alg": "EdDSA", "kid": key.kid, "typ": typ}).decode()
        payload, token = canonical(dict(claims)).decode(), key.sign(typ, dict(claims))
        genuine.append(
            {
                "name": name, "typ": typ, "key": key.name, "header": header, "payload": payload,
                "claims": claims, "token": token,
            }
        )  # fmt: skip
    published: Json = [key.jwk() for key in (SIGNING, NEXT, RETIRED, REVOKED)]
    refused: list[Json] = [
        {"name": name, "accept_as": RECEIPT, "code": code, "token": token}
        for make in (_headers, _other_keys, _other_spellings, _other_claims)
        for name, code, token in make()
    ]
    jwks: Json = {"keys": published}
    stale = RETIRED.sign(RECEIPT, receipt())
    old: Json = [{"name": "a receipt of a retired key", "accept_as": RECEIPT, "token": stale}]
    unsigned: list[Json] = [
        {"name": f"an entry of a key that is {key.status}", "accept_as": ENTRY, "code": KEY, "token": key.sign(ENTRY, entry())}
        for key in (NEXT, REVOKED)
    ]  # fmt: skip
    spoiled: list[Json] = [*refused, *unsigned, *_others(), *_weak()]
    return {
        "jwks": jwks, "keys": keys, "genuine": genuine, "refused": spoiled, "could_not_tell": old,
    }  # fmt: skip


def _header(**members: Json) -> Object:
    return {"alg": "EdDSA", "kid": SIGNING.kid, "typ": RECEIPT, **members}


def _headers() -> Iterator[Spoiled]:
    """Everything that is not exactly {alg, kid, typ}; all signed as well as can be."""
    claims, good = canonical(receipt()), canonical(_header())
    signed = SIGNING.sign(RECEIPT, receipt())
    bare = f"{base64url(canonical(_header(alg='none')))}.{base64url(claims)}."
    yield "alg none, no signature", FORM, bare
    yield "alg none, the signature kept", FORM, bare + signed.split(".")[2]
    yield "alg none in capitals", FORM, SIGNING.seal(canonical(_header(alg="NONE")), claims)
    yield "HS256 with the public key", FORM, _hs256(SIGNING.public, claims)
    public = Ed25519PublicKey.from_public_bytes(SIGNING.public)
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    yield "HS256 with the public key as PEM", FORM, _hs256(pem, claims)
    for alg in ("Ed25519", "ES256", "eddsa"):
        yield f"alg {alg}", FORM, SIGNING.seal(canonical(_header(alg=alg)), claims)
    extra: list[tuple[str, Json]] = [
        ("crit", ["exp"]), ("b64", True), ("cty", "json"), ("x5u", "https://attacker.example/x"),
        ("jku", "https://attacker.example/jwks.json"), ("jwk", SIGNING.jwk()),
    ]  # fmt: skip
    for name, value in extra:
        yield (
            f"an extra header: {name}",
            FORM,
            SIGNING.seal(canonical(_header(**{name: value})), claims),
        )
    own = canonical(_header(jwk=ATTACKER.jwk(), kid=ATTACKER.kid))
    yield "an extra header: the attacker's jwk, which signed", FORM, ATTACKER.seal(own, claims)
    for missing in ("alg", "kid", "typ"):
        fewer = {name: value for name, value in _header().items() if name != missing}
        yield f"no {missing}", FORM, SIGNING.seal(canonical(fewer), claims)
    for typ in ("JWT", "application/" + RECEIPT, RECEIPT.upper(), RECEIPT + " "):
        yield f"typ {typ!r}", FORM, SIGNING.seal(canonical(_header(typ=typ)), claims)
    yield "kid a number", FORM, SIGNING.seal(canonical(_header(kid=1)), claims)
    yield (
        "a header in another order",
        FORM,
        SIGNING.seal(f'{{"typ":"{RECEIPT}","alg":"EdDSA","kid":"{SIGNING.kid}"}}'.encode(), claims),
    )
    yield "a header with a space", FORM, SIGNING.seal(good.replace(b",", b", "), claims)
    yield (
        "a header with an escape",
        FORM,
        SIGNING.seal(good.replace(b"EdDSA", b"Ed\\u0044SA"), claims),
    )
    twice = good.replace(b'{"alg"', b'{"alg":"none","alg"')
    yield "a header with alg twice", FORM, SIGNING.seal(twice, claims)
    yield "a header that is no object", FORM, SIGNING.seal(b'"EdDSA"', claims)


def _hs256(secret: bytes, claims: bytes) -> str:
    signed = f"{base64url(canonical(_header(alg='HS256')))}.{base64url(claims)}"
    return f"{signed}.{base64url(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def _other_keys() -> Iterator[Spoiled]:
    header, claims = canonical(_header()), canonical(receipt())
    yield "signed by the attacker under our kid", SIGNATURE, ATTACKER.seal(header, claims)
    yield "signed by the attacker under his own kid", KEY, ATTACKER.sign(RECEIPT, receipt())
    yield "signed by another of our keys", SIGNATURE, NEXT.seal(header, claims)
    yield "signed by a revoked key", KEY, REVOKED.sign(RECEIPT, receipt())
    yield "signed by a key that is next", KEY, NEXT.sign(RECEIPT, receipt())
    head, payload, signature = SIGNING.sign(RECEIPT, receipt()).split(".")
    raw = unbase64url(signature)
    scalar = int.from_bytes(raw[32:], "little") + L
    malleated = base64url(raw[:32] + scalar.to_bytes(32, "little"))
    yield "a malleated signature: s + L", SIGNATURE, f"{head}.{payload}.{malleated}"
    flipped = base64url(bytes([raw[0] ^ 1]) + raw[1:])
    yield "a bit of the signature flipped", SIGNATURE, f"{head}.{payload}.{flipped}"
    yield "a signature of zeros", SIGNATURE, f"{head}.{payload}.{base64url(bytes(64))}"
    yield "a nonce of small order, by our own key", SIGNATURE, _small_nonce(head, payload)
    other = base64url(canonical(receipt(version=3)))
    yield "other claims under the same signature", SIGNATURE, f"{head}.{other}.{signature}"
    kin = SIGNING.sign(ENTRY, entry()).split(".")[2]
    yield "the signature of another token", SIGNATURE, f"{head}.{payload}.{kin}"


def _secret_scalar(key: SigningKey) -> int:
    digest = hashlib.sha512(key.seed).digest()
    return int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254


def _challenge(nonce: bytes, public: bytes, signed: str) -> int:
    """k of RFC 8032, 5.1.7."""
    return int.from_bytes(hashlib.sha512(nonce + public + signed.encode()).digest(), "little") % L


def _small_nonce(head: str, payload: str) -> str:
    """R is the neutral element and s = k·a: OpenSSL takes it, a strict verifier does not."""
    nonce = (1).to_bytes(32, "little")
    k = _challenge(nonce, SIGNING.public, f"{head}.{payload}")
    scalar = (k * _secret_scalar(SIGNING) % L).to_bytes(32, "little")
    token = f"{head}.{payload}.{base64url(nonce + scalar)}"
    jwt.PyJWS().decode(token, Ed25519PublicKey.from_public_bytes(SIGNING.public), ["EdDSA"])
    return token


def _weak() -> Iterator[Json]:
    """A published key A of small order: with k·A the neutral element (one claim in eight does it)
    any R = s·B fits, here the attacker's own point and scalar. OpenSSL takes these."""
    nonce = ATTACKER.public
    scalar = (_secret_scalar(ATTACKER) % L).to_bytes(32, "little")
    eighth = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
    for name, public in (("the neutral element", (1).to_bytes(32, "little")), ("order 8", eighth)):
        header = canonical({"alg": "EdDSA", "kid": thumbprint(public), "typ": RECEIPT})
        for tries in range(1000):
            claims = canonical(receipt(exp=numeric(moment(14)) + tries))
            signed = f"{base64url(header)}.{base64url(claims)}"
            if _challenge(nonce, public, signed) % 8 == 0:
                break
        token = f"{signed}.{base64url(nonce + scalar)}"
        jwt.PyJWS().decode(token, Ed25519PublicKey.from_public_bytes(public), ["EdDSA"])
        yield {
            "name": f"a key of small order: {name}", "accept_as": RECEIPT, "code": "jwks",
            "jwks": {"keys": [jwk_of(public, "signing")]}, "token": token,
        }  # fmt: skip


def _other_spellings() -> Iterator[Spoiled]:
    """The same bytes, or nearly, in another text."""
    claims = receipt()
    while len(canonical(claims)) % 3 != 2:
        claims["sub"] = f"{claims['sub']}x"
    good = SIGNING.sign(RECEIPT, claims)
    head, payload, signature = good.split(".")
    yield "trailing bits in the signature", FORM, good[:-1] + _next(good[-1])
    bits = payload[:-1] + _next(payload[-1])
    yield "trailing bits in the claims, signed so", FORM, _sealed_text(head, bits)
    yield "padding on the signature", FORM, good + "=="
    yield "padding on the claims, signed so", FORM, _sealed_text(head, payload + "=")
    standard = base64.b64encode(unbase64url(signature)).decode().rstrip("=")
    assert standard != signature
    yield "the standard alphabet", FORM, f"{head}.{payload}.{standard}"
    yield "hexadecimal", FORM, f"{head}.{payload}.{unbase64url(signature).hex()}"
    yield "one character short", FORM, good[:-1]
    yield "half of it", FORM, good[: len(good) // 2]
    yield "without its signature", FORM, f"{head}.{payload}."
    yield "two parts", FORM, f"{head}.{payload}"
    yield "four parts", FORM, good + "."
    yield "detached claims", FORM, f"{head}..{signature}"
    yield "half a signature", FORM, f"{head}.{payload}.{base64url(unbase64url(signature)[:32])}"
    yield (
        "a signature of 65 bytes",
        FORM,
        f"{head}.{payload}.{base64url(unbase64url(signature) + b'0')}",
    )
    yield "nothing", FORM, ""
    yield "dots", FORM, ".."
    for name, token in (
        ("before", " " + good), ("after", good + "\n"), ("within", f"{head}. {payload}.{signature}"),
        ("within the signature", f"{good[:-9]}\n{good[-9:]}"),
    ):  # fmt: skip
        yield f"whitespace {name}", FORM, token
    yield "a NUL after it", FORM, good + "\u0000"
    yield "quoted", FORM, f'"{good}"'
    yield "with its scheme", FORM, f"Bearer {good}"
    flattened = {"protected": head, "payload": payload, "signature": signature}
    yield "the flattened JSON form", FORM, canonical(dict(flattened)).decode()


def _next(char: str) -> str:
    """The base64url digit after one whose spare bits are zero: same bytes, other text."""
    return chr(ord(char) + 1)


def _sealed_text(head: str, payload: str) -> str:
    signed = f"{head}.{payload}"
    return f"{signed}.{base64url(SIGNING.private.sign(signed.encode()))}"


def _other_claims() -> Iterator[Spoiled]:
    """Signed by our own key, so only a gateway gone wrong could make them; refused nevertheless."""
    header, good = canonical(_header()), receipt()
    for missing in ("jti", "exp", "aud", "to"):
        fewer: Json = {name: value for name, value in good.items() if name != missing}
        yield f"claims without {missing}", FORM, SIGNING.sign(RECEIPT, fewer)
    wrong: list[tuple[str, Object]] = [
        ("a claim too many", {"scope": "all"}), ("exp as text", {"exp": "1793610840"}),
        ("exp with a fraction", {"exp": 1793610840.5}), ("a negative version", {"version": -2}),
        ("aud as text", {"aud": "database_writer"}), ("an approval too bare", {"approvals": [{}]}),
        ("a digest in capitals", {"to": "sha256:" + ROOT[7:].upper()}),
    ]  # fmt: skip
    for name, facts in wrong:
        yield name, FORM, SIGNING.sign(RECEIPT, receipt(**facts))
    late = canonical(receipt(exp=0))
    yield "an end before the beginning", FORM, SIGNING.seal(header, late)
    yield "an end before the beginning, signed by the attacker under our kid", FORM, ATTACKER.seal(header, late)
    yield "an end before the beginning, signed by the attacker", FORM, ATTACKER.sign(RECEIPT, receipt(exp=0))
    twice = canonical(dict(good)).replace(b'"version":2', b'"version":1,"version":2')
    yield "a claim twice", FORM, SIGNING.seal(header, twice)
    yield "claims that are no object", FORM, SIGNING.seal(header, b"[]")
    yield "claims that are no JSON", FORM, SIGNING.seal(header, b"{")
    yield "something after the claims", FORM, SIGNING.seal(header, canonical(dict(good)) + b"{}")


def _others() -> Iterator[Json]:
    """Genuine tokens of one kind passed off as another."""
    made = {typ: key.sign(typ, dict(claims)) for _, typ, key, claims in reversed(GENUINE)}
    for accepted in (RECEIPT, ENTRY, DENIAL, VERIFICATION, ANSWER, EPISODE):
        for typ, token in made.items():
            if typ != accepted:
                name = f"{typ.split('+')[0]} as {accepted.split('+')[0]}"
                yield {"name": name, "accept_as": accepted, "code": FORM, "token": token}
    made = {typ: SIGNING.sign(typ, dict(claims)) for _, typ, _, claims in GENUINE}
    for typ, token in made.items():
        head, payload, _ = token.split(".")
        if len(unbase64url(head)) % 3:
            name = f"trailing bits in the header of a {typ.split('+')[0]}, signed so"
            bits = _sealed_text(head[:-1] + _next(head[-1]), payload)
            yield {"name": name, "accept_as": typ, "code": FORM, "token": bits}
