"""A thread made by hand: fixed keys and ids, and the transitions, entries and receipts that a
gateway would make of it. Only make_* use this; the checks never do."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from commitment import RATIONALE, H, Origins, check_opening, commitment, disclose, leaf_salt
from commitment import open_fully, origins_after, thread_secret
from countersign_oracle import policy_digest, transition_digest
from effect import leaves
from signed import ENTRY, RECEIPT, thumbprint
from strict_json import Json, base64url, canonical

Object = dict[str, Json]
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
ISSUER = "https://countersign.example"
RECEIPT_TTL_SECS = 600
HIDE = ["payment.card.*"]

POLICY_TEXT = """flow = "payments"
schema = "payments.schema.json"
trust_initial = true
protected = ["target_user_id", "payment.amount"]

[nodes.planner]
reads = ["raw_text", "catalog"]
writes = ["raw_text", "target_user_id", "payment.*"]
rollback = true
[nodes.database_writer]
reads = ["target_user_id", "payment.amount"]
writes = ["result_ref"]
writer = true

[[approval.stages]]
groups = ["finance"]
need = 1
"""
SCHEMAS = {"payments.schema.json": '{"type":"object"}\n'}


def fixed_bytes(name: str, size: int = 32) -> bytes:
    """Bytes that are the same in every run. Test keys: never use them for anything else."""
    return hashlib.sha256(f"countersign test vector: {name}".encode()).digest()[:size]


def fixed_uuid4(name: str) -> str:
    return str(uuid.UUID(bytes=fixed_bytes(name, 16), version=4))


def fixed_uuid7(name: str, at: datetime = START) -> str:
    millis = int(at.timestamp() * 1000).to_bytes(6, "big")
    raw = bytearray(millis + fixed_bytes(name, 10))
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def fixed_jti(name: str) -> str:
    return base64url(fixed_bytes(name, 16))


def moment(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def rfc3339(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def numeric(at: datetime) -> int:
    return int(at.timestamp())


SALT_KEY = fixed_bytes("salt key")


@dataclass(frozen=True)
class SigningKey:
    name: str
    status: str = "signing"

    @property
    def seed(self) -> bytes:
        return fixed_bytes(f"key {self.name}")

    @property
    def private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def kid(self) -> str:
        return thumbprint(self.public)

    def jwk(self) -> Object:
        return jwk_of(self.public, self.status)

    def sign(self, typ: str, claims: Json) -> str:
        header = canonical({"alg": "EdDSA", "kid": self.kid, "typ": typ})
        return self.seal(header, canonical(claims))

    def seal(self, header: bytes, payload: bytes) -> str:
        signed = f"{base64url(header)}.{base64url(payload)}"
        return f"{signed}.{base64url(self.private.sign(signed.encode()))}"


def jwk_of(public: bytes, status: str) -> Object:
    x, kid = base64url(public), thumbprint(public)
    return {
        "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": x,
        "countersign_use": "chain", "status": status,
    }  # fmt: skip


@dataclass
class Thread:
    """A thread's head; `propose` makes a statement on it, `commit` moves it."""

    thread: str
    state: Json = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    version: int = -1
    head: str | None = None
    owes: bool = False
    entries: list[Json] = field(default_factory=list)

    @property
    def secret(self) -> bytes:
        return thread_secret(SALT_KEY, self.thread)

    def statement(
        self, kind: str, after: Json, minute: float, named: Collection[str] = (), /, **facts: Json
    ) -> tuple[Object, Json]:
        """A statement that would take the head to `after`, and its full opening; `named` are the
        leaves that count as set though they keep their value."""
        proposal = fixed_uuid4(f"{self.thread} {kind} {minute}")
        origins = self.origins if self.head else {"": proposal}
        before = open_fully(self.state, origins, self.secret)
        then = origins_after(self.state, origins, after, proposal, named)
        new = open_fully(after, then, self.secret)
        made: Object = {
            "type": kind, "flow": "payments", "policy": policy_digest(POLICY_TEXT, SCHEMAS),
            "thread": self.thread, "version": self.version + 1, "parent": self.head,
            "node": "planner" if self.head else None,
            "principal": fixed_uuid7("agent token" if self.head else "host token"),
            "proposal": proposal, "attempt": 1 if self.head else None,
            "from": commitment(before), "to": commitment(new), "tool": None, "usage": None,
            "rationale": None, "supersedes": None, "restores": None, "write_id": None,
            "proposed_at": rfc3339(moment(minute)),
        }  # fmt: skip
        assert set(facts) <= {*made, "fork", "join"}, facts
        return {**made, **facts}, {"from": before, "to": new}

    def commit(
        self, made: tuple[Object, Json], after: Json, gate: Object, key: SigningKey, minute: float
    ) -> str:
        """Signs the entry, moves the head, and keeps what GET chain would answer an auditor."""
        statement, full = made
        digest = transition_digest(statement)
        self.owes = self.owes or gate["kind"] != "auto"
        entry = key.sign(
            ENTRY,
            {
                "iss": ISSUER, "thread": self.thread, "version": statement["version"],
                "transition": digest, "parent": statement["parent"], "gate": gate,
                "owes": self.owes, "policy": statement["policy"],
                "committed_at": rfc3339(moment(minute)),
            },
        )  # fmt: skip
        assert isinstance(full, dict)
        old, new = disclose(full["from"], full["to"], HIDE, [])
        self.entries.append(
            {
                "version": statement["version"], "transition": digest, "statement": statement,
                "entry": entry, "opening": {"from": old, "to": new},
            }
        )  # fmt: skip
        origins = self.origins if self.head else {"": str(statement["proposal"])}
        proposal = str(statement["proposal"])
        shown = check_opening(full, statement["from"], statement["to"])
        again = {at for at, _ in shown.set_again}
        self.origins = origins_after(self.state, origins, after, proposal, again)
        self.state, self.head, self.version = after, digest, self.version + 1
        return digest


def receipt_claims(statement: Object, jti: str, minute: float) -> Object:
    """A receipt for one approval at that minute."""
    at = moment(minute)
    return {
        "iss": ISSUER, "sub": statement["thread"], "aud": ["database_writer"], "jti": jti,
        "iat": numeric(at), "nbf": numeric(at), "exp": numeric(at) + RECEIPT_TTL_SECS,
        "flow": statement["flow"], "policy": statement["policy"],
        "transition": transition_digest(statement), "parent": statement["parent"],
        "version": statement["version"], "to": statement["to"],
        "approvals": [
            {
                "reviewer": fixed_uuid7("reviewer ada"), "stage": 0, "at": rfc3339(at),
                "method": "password",
            }
        ],
    }  # fmt: skip


def salts_of(state: Json, origins: Origins, secret: bytes) -> list[Json]:
    """Every leaf with the proposal that set it, its salt and its commitment."""
    rows: list[Json] = []
    for pointer, value in leaves(state):
        salt = base64url(leaf_salt(secret, pointer, origins[pointer]))
        rows.append(
            {
                "pointer": pointer, "value": value, "proposal": origins[pointer], "salt": salt,
                "commitment": commitment({"value": value, "salt": salt}),
            }
        )  # fmt: skip
    return rows


SIGNING, NEXT = SigningKey("signing"), SigningKey("next", "next")
RETIRED, REVOKED = SigningKey("retired", "retired"), SigningKey("revoked", "revoked")
ATTACKER = SigningKey("attacker")
CREATED: Json = {
    "raw_text": "",
    "catalog": ["basic", "pro"],
    "target_user_id": 17,
    "payment": {"amount": 120, "currency": "EUR", "card": {"number": "4000-0000", "holder": "Åsa"}},
}


def with_values(state: Json, **values: Json) -> Json:
    assert isinstance(state, dict)
    return {**state, **values}


def payments_thread() -> tuple[Thread, list[Object], str, Object]:
    """The thread of the export: every type of statement once. Returns the thread, statements that
    were held but never committed, the receipt of version 2, and its claims."""
    thread = Thread("order-2026:0017.b")
    auto: Object = {"kind": "auto"}
    thread.commit(thread.statement("create", CREATED, 0), CREATED, auto, RETIRED, 0)
    after = with_values(CREATED, raw_text="move it to user 42")
    spoken = thread.statement(
        "propose", after, 1, tool="crm.read", usage={"input_tokens": 812, "output_tokens": 64}
    )
    first = thread.commit(spoken, after, auto, RETIRED, 1)
    wrong = with_values(after, target_user_id=99)
    why = H(RATIONALE, b"The text asks for it.")
    held, _ = thread.statement("propose", wrong, 2, rationale=why, attempt=2)
    right = with_values(after, target_user_id=42, payment={"amount": 80.5, "currency": "EUR", "card": {"number": "4000-9999", "holder": "Åsa"}})  # fmt: skip
    editor = fixed_uuid7("reviewer ben")
    edit = thread.statement("edit", right, 3, principal=editor, supersedes=transition_digest(held))
    jti = fixed_jti("receipt of version 2")
    approved: Object = {
        "kind": "approved",
        "review": fixed_uuid7("review 2", moment(3)),
        "receipt": jti,
    }
    thread.commit(edit, right, approved, SIGNING, 4)
    claims = receipt_claims(edit[0], jti, 4)
    _finish(thread, jti, first, after)
    return thread, [held], SIGNING.sign(RECEIPT, claims), claims


def _finish(thread: Thread, jti: str, first: str, at_first: Json) -> None:
    """After the approved edit: its write, a free change, a reaffirmation, a rollback, an empty
    confirm, a change of kind under observation, and a leaf set to the value it had."""
    writer = fixed_uuid7("writer token")
    facts: Object = {"node": "database_writer", "principal": writer, "attempt": None}
    gate: Object = {"kind": "written", "write_id": "w-1", "receipt": jti}
    done = with_values(thread.state, result_ref={"row": 1, "notes": []})
    thread.commit(
        thread.statement("confirm", done, 5, write_id="w-1", **facts), done, gate, SIGNING, 5
    )
    free = with_values(done, raw_text=None)
    thread.commit(thread.statement("propose", free, 6), free, {"kind": "auto"}, SIGNING, 6)
    for minute, kind, after, more in (
        (7, "reaffirm", free, {}),
        (9, "rollback", at_first, {"restores": first}),
    ):
        jti = fixed_jti(f"receipt of {kind}")
        review = fixed_uuid7(f"review of {kind}", moment(minute))
        gate = {"kind": "approved", "review": review, "receipt": jti}
        made = thread.statement(kind, after, minute, **more)
        thread.commit(made, after, gate, SIGNING, minute + 1)
    gate = {"kind": "written", "write_id": "w-2", "receipt": jti}
    empty = thread.statement("confirm", at_first, 11, write_id="w-2", **facts)
    thread.commit(empty, at_first, gate, SIGNING, 11)
    kinds = with_values(at_first, catalog={"0": "basic", "1": "pro"})
    thread.commit(thread.statement("propose", kinds, 12), kinds, {"kind": "observed"}, SIGNING, 12)
    again = thread.statement("propose", kinds, 13, ["/catalog/0"])
    thread.commit(again, kinds, {"kind": "auto"}, SIGNING, 13)
