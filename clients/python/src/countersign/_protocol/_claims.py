"""The claims of each kind of token, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ._forms import Count, Digest, Jti, Malformed, Moment, Name, Ordinal, PointerBelow, Text


def _fits(holds: bool, detail: str) -> None:
    if not holds:
        raise Malformed(detail)


@dataclass(frozen=True)
class Vote:
    """One person's vote, with stage and time. `absent` is the person it was cast for."""

    reviewer: Name
    stage: Ordinal
    at: Moment
    absent: Name | None = field(default=None, metadata={"wire": "for"})


@dataclass(frozen=True)
class Approval:
    """An approval, and how the gateway authenticated the person."""

    reviewer: Name
    stage: Ordinal
    at: Moment
    method: Literal["password", "oidc", "passkey_session", "passkey"]
    evidence: Digest | None = None
    absent: Name | None = field(default=None, metadata={"wire": "for"})


@dataclass(frozen=True)
class AutoGate:
    """The policy allowed it without approval."""

    kind: Literal["auto"]


@dataclass(frozen=True)
class ObservedGate:
    """The flow only observed."""

    kind: Literal["observed"]


@dataclass(frozen=True)
class ApprovedGate:
    """Reviewers approved it."""

    kind: Literal["approved"]
    review: Name
    receipt: Jti


@dataclass(frozen=True)
class WrittenGate:
    """A writer confirmed it."""

    kind: Literal["written"]
    write_id: Name
    receipt: Jti | None = None


@dataclass(frozen=True)
class Entry:
    """A transition is in the chain."""

    iss: Text
    thread: Name
    version: Count
    transition: Digest
    parent: Digest | None
    gate: AutoGate | ObservedGate | ApprovedGate | WrittenGate
    owes: bool
    policy: Digest
    committed_at: Moment

    def __post_init__(self) -> None:
        _fits((self.version == 0) == (self.parent is None), "exactly version 0 has no parent")
        _fits(self.version > 0 or self.gate.kind in ("auto", "observed"), "version 0 cannot be approved or written")


@dataclass(frozen=True)
class Envelope:
    """A payload is a node's view of a version, with its number of tokens."""

    iss: Text
    thread: Name
    node: Name
    version: Count
    transition: Digest
    timestamp: Moment
    budget: Count | None
    tokens: Count
    encoding: Literal["o200k_base", "cl100k_base"]
    requires: tuple[PointerBelow, ...]
    payload: Digest
    truncated: Digest


@dataclass(frozen=True)
class Receipt:
    """Reviewers approved a transition. Valid from `nbf` until before `exp`, for the writers in `aud`."""

    iss: Text
    sub: Name
    aud: tuple[Name, ...]
    jti: Jti
    iat: Count
    nbf: Count
    exp: Count
    flow: Name
    policy: Digest
    transition: Digest
    parent: Digest
    version: Count
    to: Digest
    approvals: tuple[Approval, ...]

    def __post_init__(self) -> None:
        _fits(self.iat <= self.exp, "exp is before iat")
        _fits(self.version > 0, "version 0 cannot be approved")
        _fits(self.approvals != (), "it has no approval")


@dataclass(frozen=True)
class Denial:
    """Reviewers denied a transition."""

    iss: Text
    sub: Name
    jti: Jti
    iat: Count
    flow: Name
    policy: Digest
    transition: Digest
    parent: Digest
    review: Name
    outcome: Literal["denied"]
    reviewers: tuple[Vote, ...]

    def __post_init__(self) -> None:
        _fits(self.reviewers != (), "it has no denial")


@dataclass(frozen=True)
class Verification:
    """A writer was allowed to write. `exp` is the end of its lease."""

    iss: Text
    sub: Name
    aud: Name
    iat: Count
    exp: Count
    write_id: Name
    fence: Count
    flow: Name
    policy: Digest
    transition: Digest
    version: Count
    to: Digest
    receipt: Jti | None
    enforced: bool

    def __post_init__(self) -> None:
        _fits(self.iat <= self.exp, "exp is before iat")
        _fits(self.fence > 0, "fences count from 1")


@dataclass(frozen=True)
class Answer:
    """The decision on a host's interrupt. It allows no write."""

    iss: Text
    sub: Name
    aud: Name
    jti: Jti
    iat: Count
    flow: Name
    policy: Digest
    asserted: Digest
    decision: Literal["approved", "denied", "expired", "superseded"]
    approved: bool
    interrupt_id: Text
    transition_digest: Text
    approvals: tuple[Approval, ...]
    refusals: tuple[Vote, ...]
    exp: Count | None = None

    def __post_init__(self) -> None:
        _fits(self.approved == (self.decision == "approved"), "approved is not what was decided")
        _fits((self.approvals != ()) == self.approved, "approvals are those of an approval")
        _fits((self.refusals != ()) == (self.decision == "denied"), "refusals are those of a denial")
        _fits((self.exp is not None) == self.approved, "exactly an approval ends")
        _fits(self.exp is None or self.iat <= self.exp, "exp is before iat")


@dataclass(frozen=True)
class Episode:
    """The files of a finished run. `manifest` is the digest of its manifest without the signature."""

    iss: Text
    episode: Name
    iat: Count
    manifest: Digest
