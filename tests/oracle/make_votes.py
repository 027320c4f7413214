"""Makes the vectors of votes that passkeys sign, by an authenticator written from the specification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from commitment import COMMENT, H
from fixtures import ISSUER, fixed_bytes, fixed_uuid7, moment, rfc3339
from passkeys import PRESENT, VERIFIED, challenge, evidence_digest
from strict_json import Json, base64url, canonical

ORIGIN, HOST = "https://gate.example:8443", "gate.example"
REVIEWER = fixed_uuid7("reviewer ada")
NONCE = base64url(fixed_bytes("nonce") + fixed_bytes("the nonce's MAC", 16))


class Authenticator:
    def __init__(self, name: str) -> None:
        secret = int.from_bytes(fixed_bytes(f"passkey {name}", 31), "big")
        self.key = ec.derive_private_key(secret, ec.SECP256R1())
        self.id = base64url(fixed_bytes(f"credential {name}", 32))

    def enrolment(self) -> dict[str, Json]:
        point = self.key.public_key().public_numbers()
        x, y = (base64url(it.to_bytes(32, "big")) for it in (point.x, point.y))
        return {
            "account": REVIEWER, "added_at": rfc3339(moment(1)), "backup_eligible": False,
            "name": "blue key", "origin": ORIGIN, "passkey": self.id,
            "public_key": {"kty": "EC", "crv": "P-256", "x": x, "y": y}, "removed_at": None,
        }  # fmt: skip

    def sign(self, asked: str, **lies: Any) -> dict[str, Json]:
        said = {"type": "webauthn.get", "challenge": asked, "origin": ORIGIN, "crossOrigin": False}
        client = json.dumps({**said, **lies.get("said", {})}).encode()
        flags = bytes([lies.get("flags", PRESENT | VERIFIED)])
        host = hashlib.sha256(lies.get("host", HOST).encode()).digest()
        data = host + flags + (7).to_bytes(4, "big")
        how = ec.ECDSA(SHA256(), deterministic_signing=True)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), how)
        return {
            "authenticator_data": base64url(data), "client_data": base64url(client),
            "passkey": self.id, "signature": base64url(signature),
        }  # fmt: skip


def statement(**facts: Json) -> dict[str, Json]:
    return {
        "iss": ISSUER, "transition": H("countersign.transition.v1", b"head"),
        "review": fixed_uuid7("review 2", moment(3)), "stage": 0, "reviewer": REVIEWER,
        "verdict": "approve", "comment": None, "nonce": NONCE, "expires_at": rfc3339(moment(8)), **facts,
    }  # fmt: skip


def policy_statement(**facts: Json) -> dict[str, Json]:
    return {
        "iss": ISSUER, "digest": H("countersign.amendment.v1", b"amendment"),
        "amendment": fixed_uuid7("amendment 2", moment(3)), "stage": 0, "reviewer": REVIEWER,
        "verdict": "approve", "comment": None, "nonce": NONCE, "expires_at": rfc3339(moment(8)), **facts,
    }  # fmt: skip


def _asked(of: Json) -> str:
    return base64url(bytes.fromhex(challenge(of).removeprefix("sha256:")))


def _cases() -> Iterator[dict[str, Json]]:
    key = Authenticator("ada")
    comment = H(COMMENT, "Nicht so: 1 € fehlt.".encode())
    for name, facts in [
        ("an approval", {}),
        ("a refusal with a comment", {"verdict": "deny", "comment": comment}),
        ("another stage", {"stage": 3}),
    ]:
        said = statement(**facts)  # type: ignore[arg-type]
        evidence: Json = {"assertion": key.sign(_asked(said)), "statement": said}
        yield {
            "name": name, "jcs": canonical(said).decode(), "challenge": challenge(said),
            "evidence": evidence, "digest": evidence_digest(evidence),
        }  # fmt: skip


def _spoiled() -> Iterator[dict[str, Json]]:
    key, said = Authenticator("ada"), statement()
    lies: list[tuple[str, str, dict[str, Any]]] = [
        ("a registration", "purpose", {"said": {"type": "webauthn.create"}}),
        ("another site", "origin", {"said": {"origin": "https://evil.example"}}),
        ("another port", "origin", {"said": {"origin": "https://gate.example"}}),
        ("within another page", "origin", {"said": {"crossOrigin": True}}),
        ("below another page", "origin", {"said": {"topOrigin": "https://evil.example"}}),
        ("another host", "origin", {"host": "evil.example"}),
        ("nobody made sure of", "unverified", {"flags": PRESENT}),
        ("nobody present", "unverified", {"flags": VERIFIED}),
    ]
    for name, code, lie in lies:
        spoiled: Json = {"assertion": key.sign(_asked(said), **lie), "statement": said}
        yield {"name": name, "code": code, "evidence": spoiled}
    signed = key.sign(_asked(said))
    for member, value in statement(
        iss="urn:countersign:other", transition=H("countersign.transition.v1", b"other"),
        review="another", stage=1, verdict="deny", comment=H(COMMENT, b"x"), nonce="another",
        expires_at=rfc3339(moment(9)),
    ).items():  # fmt: skip
        if member == "reviewer":
            continue
        moved: Json = {"assertion": signed, "statement": {**said, member: value}}
        yield {"name": f"another {member}", "code": "challenge", "evidence": moved}
    theirs: Json = {"assertion": signed, "statement": {**said, "reviewer": fixed_uuid7("reviewer ben")}}
    yield {"name": "another reviewer", "code": "not_theirs", "evidence": theirs}
    other = Authenticator("ben").sign(_asked(said))
    yield {"name": "another passkey", "code": "not_theirs", "evidence": {"assertion": other, "statement": said}}
    renamed: Json = {"assertion": {**other, "passkey": key.id}, "statement": said}
    yield {"name": "another key", "code": "signature", "evidence": renamed}


def _policy_cases() -> Iterator[dict[str, Json]]:
    key = Authenticator("ada")
    for name, facts in [("an approval of a policy", {}), ("a refusal of a policy", {"verdict": "deny"})]:
        said = policy_statement(**facts)  # type: ignore[arg-type]
        evidence: Json = {"assertion": key.sign(_asked(said)), "statement": said}
        yield {
            "name": name, "jcs": canonical(said).decode(), "challenge": challenge(said),
            "evidence": evidence, "digest": evidence_digest(evidence),
        }  # fmt: skip


def _policy_spoiled() -> Iterator[dict[str, Json]]:
    key, said = Authenticator("ada"), policy_statement()
    signed = key.sign(_asked(said))
    for member, value in policy_statement(
        iss="urn:countersign:other", digest=H("countersign.amendment.v1", b"other"), amendment="another", stage=1,
        verdict="deny", comment=H(COMMENT, b"x"), nonce="another", expires_at=rfc3339(moment(9)),
    ).items():  # fmt: skip
        if member != "reviewer":
            moved: Json = {"assertion": signed, "statement": {**said, member: value}}
            yield {"name": f"another {member}", "code": "challenge", "evidence": moved}
    # The same page of JSON under the other tag: what was signed of a vote on a review is none on a policy.
    as_vote = base64url(bytes.fromhex(H("countersign.vote.v1", canonical(said)).removeprefix("sha256:")))
    other_tag: Json = {"assertion": key.sign(as_vote), "statement": said}
    yield {"name": "under the tag of another vote", "code": "challenge", "evidence": other_tag}


def votes() -> Json:
    return {
        "passkey": Authenticator("ada").enrolment(), "cases": list(_cases()), "spoiled": list(_spoiled()),
        "policy_cases": list(_policy_cases()), "policy_spoiled": list(_policy_spoiled()),
    }  # fmt: skip
