"""What the gateway answers to those who run it and look after it: endpoints, policies, halts, interrupts, the audit.

As in `answers`, a member that a later gateway adds is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .errors import Json


@dataclass(frozen=True)
class Endpoint:
    """Where events are sent. `secret` is in the answer that makes it, and nowhere else; it is not shown."""

    id: str
    name: str
    kind: str
    state: str
    origin: str
    url: str | None = field(repr=False)
    events: tuple[str, ...]
    flows: tuple[str, ...]
    headers: tuple[str, ...]
    ordered: bool
    reached: int
    beyond: int
    created_at: datetime
    created_by: str
    since: datetime | None
    why: str | None
    arrived_at: datetime | None
    failed_at: datetime | None
    failing_since: datetime | None
    secret: str | None = field(default=None, repr=False)
    secret_made_at: datetime | None = None
    secret_before_until: datetime | None = None
    public_keys: tuple[str, ...] = ()
    payload: str | None = None
    assistant: str | None = None
    template: dict[str, Json] | None = None


@dataclass(frozen=True)
class Endpoints:
    """All of them."""

    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True)
class Secret:
    """A new secret of an endpoint, and until when the one before signs beside it."""

    secret: str = field(repr=False)
    before_until: datetime


@dataclass(frozen=True)
class Attempt:
    """One try to deliver, and how it went."""

    at: datetime
    arrived: bool
    took_ms: int
    status: int | None = None
    failure: str | None = None
    detail: str | None = None
    looked: str | None = None
    answer: str | None = None
    answer_cut: bool = False


@dataclass(frozen=True)
class Delivery:
    """What was sent of one event, or is about to be. `body` is there where one delivery is asked for."""

    delivery: int
    event: str
    type: str
    state: str
    tries: int
    thread: str | None
    due: datetime | None
    ended_at: datetime | None
    attempts: tuple[Attempt, ...]
    body: str | None = None


@dataclass(frozen=True)
class DeliveryPage:
    """Some deliveries, and where the next ones begin."""

    deliveries: tuple[Delivery, ...]
    next_page_token: str | None


@dataclass(frozen=True)
class Count:
    """Of how many that holds."""

    count: int


@dataclass(frozen=True)
class PolicyActive:
    """The policy that judges from now on, and the older ones whose heads may still be written."""

    flow: str
    policy: str
    accepts: tuple[str, ...]


@dataclass(frozen=True)
class Amendment:
    """A policy that people are or were asked about: `open`, `activated`, `denied`, `expired`, `cancelled` or
    `superseded`."""

    amendment: str
    flow: str
    policy: str
    digest: str
    over: str
    accepts: tuple[str, ...]
    state: str
    proposer: str
    proposed_at: datetime
    expires_at: datetime
    url: str
    needed: tuple[dict[str, Json], ...]
    votes: tuple[dict[str, Json], ...]
    evidence: tuple[Json, ...] = ()


@dataclass(frozen=True)
class Amendments:
    """All of a flow."""

    amendments: tuple[Amendment, ...]


@dataclass(frozen=True)
class Judged:
    """What would become of a proposal: `commit`, `hold` or `reject`. Nothing became of anything."""

    outcome: str
    policy: str
    diff: tuple[dict[str, Json], ...]
    reasons: tuple[dict[str, Json], ...]
    errors: tuple[dict[str, Json], ...]
    warnings: tuple[dict[str, Json], ...]


@dataclass(frozen=True)
class ReplayPage:
    """What would have become of some recorded proposals, and where the next ones begin."""

    policy: str
    proposals: tuple[dict[str, Json], ...]
    next: str | None


@dataclass(frozen=True)
class Lifting:
    """A first person asked for a halt to be lifted: how it would stand, once a second one has."""

    by: str
    person: str
    name: str
    at: datetime
    reason: str
    proposing: bool
    verifying: bool


@dataclass(frozen=True)
class Halt:
    """What stands still, of a flow or of all. `lifting` says that a second person has still to ask."""

    scope: str
    proposing: bool
    verifying: bool
    lifting: Lifting | None = None


@dataclass(frozen=True)
class Revoked:
    """Verify refuses that receipt from now on."""

    jti: str
    revoked: bool


@dataclass(frozen=True)
class Standing:
    """A thread after it was closed or reopened."""

    thread: str
    status: str


@dataclass(frozen=True)
class Resolved:
    """What an administrator said became of a write."""

    write_id: str
    outcome: str


@dataclass(frozen=True)
class Interrupt:
    """What a host asserted, as it was taken: where people decide on it, and until when."""

    id: str
    interrupt_id: str
    transition_digest: str
    attempt: int
    digest: str
    expires_at: datetime
    needed: tuple[dict[str, Json], ...]
    url: str


@dataclass(frozen=True)
class InterruptAnswer:
    """How it ended: `approved`, `denied`, `expired` or `superseded`. `answer` is signed: `check_answer` looks at it."""

    interrupt_id: str
    transition_digest: str
    approved: bool
    decision: str
    reviewers: tuple[str, ...]
    nonce: str
    answer: str
    reviewer_id: str | None = None
    expires_at: datetime | None = None
    comment: str | None = None


@dataclass(frozen=True)
class Rejection:
    """A proposal that the policy turned away."""

    at: datetime
    flow: str
    thread: str
    node: str
    principal: str
    proposal: str
    parent: str | None
    patch_digest: str
    excerpt: str
    tool: Json
    instruction: str | None
    errors: tuple[dict[str, Json], ...]


@dataclass(frozen=True)
class RejectionPage:
    """Some of them, the latest first, and where the next ones begin."""

    rejections: tuple[Rejection, ...]
    next_page_token: str | None


@dataclass(frozen=True)
class Passkey:
    """A passkey that was enrolled, with its public key."""

    passkey: str
    account: str
    origin: str
    added_at: datetime
    backup_eligible: bool
    public_key: dict[str, Json]
    name: str | None = None
    removed_at: datetime | None = None


@dataclass(frozen=True)
class Passkeys:
    """All that ever were."""

    passkeys: tuple[Passkey, ...]


@dataclass(frozen=True)
class Evidence:
    """What passkeys signed for a receipt's approvals."""

    evidence: tuple[Json, ...]


@dataclass(frozen=True)
class Health:
    """Whether a gateway runs, or can be asked."""

    status: str
