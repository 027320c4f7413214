"""Responses for operators, administrators, auditors and instances: endpoints, policies, halts, interrupts, the audit,
approval requests.

As in `answers`, a member that a later gateway adds is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .errors import Json


@dataclass(frozen=True)
class Endpoint:
    """A receiver of events. `secret` is only in the response that creates it, and is not printed."""

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
    instance: str | None = None
    template: dict[str, Json] | None = None


@dataclass(frozen=True)
class Endpoints:
    """All endpoints."""

    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True)
class Secret:
    """A new secret of an endpoint, and the time until which the previous one also signs."""

    secret: str = field(repr=False)
    before_until: datetime


@dataclass(frozen=True)
class Attempt:
    """One delivery attempt and its result."""

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
    """The delivery of one event. `body` is present if one delivery was requested."""

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
    """A page of deliveries."""

    deliveries: tuple[Delivery, ...]
    next_page_token: str | None


@dataclass(frozen=True)
class Count:
    """The number of affected deliveries."""

    count: int


@dataclass(frozen=True)
class PolicyActive:
    """The policy that is now active, and the older ones whose heads may still be written."""

    flow: str
    policy: str
    accepts: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    stages: tuple[dict[str, Json], ...] = ()
    warnings: tuple[dict[str, Json], ...] = ()
    findings: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True)
class Amendment:
    """A policy change request: `open`, `activated`, `denied`, `expired`, `cancelled` or `superseded`."""

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
    """All policy change requests of a flow."""

    amendments: tuple[Amendment, ...]


@dataclass(frozen=True)
class Judged:
    """The result of a dry run: `commit`, `hold` or `reject`. Nothing was changed."""

    outcome: str
    policy: str
    diff: tuple[dict[str, Json], ...]
    reasons: tuple[dict[str, Json], ...]
    errors: tuple[dict[str, Json], ...]
    warnings: tuple[dict[str, Json], ...]


@dataclass(frozen=True)
class ReplayPage:
    """A page of the backtest of recorded proposals."""

    policy: str
    proposals: tuple[dict[str, Json], ...]
    next: str | None


@dataclass(frozen=True)
class Lifting:
    """A pending request to lift a halt, and the state that it asks for."""

    by: str
    person: str
    name: str
    at: datetime
    reason: str
    proposing: bool
    verifying: bool


@dataclass(frozen=True)
class Halt:
    """The halt of a flow or of all. `lifting` means that a second person has to confirm."""

    scope: str
    proposing: bool
    verifying: bool
    lifting: Lifting | None = None


@dataclass(frozen=True)
class Revoked:
    """A revoked receipt. `verify` refuses it from now on."""

    jti: str
    revoked: bool


@dataclass(frozen=True)
class Standing:
    """A thread after it was closed or reopened."""

    thread: str
    status: str


@dataclass(frozen=True)
class Resolved:
    """The outcome of a write, as an administrator resolved it."""

    write_id: str
    outcome: str


@dataclass(frozen=True)
class Interrupt:
    """A posted interrupt: where reviewers decide it, and until when."""

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
    """The end of an interrupt: `approved`, `denied`, `expired` or `superseded`. `answer` is signed: check it with
    `check_answer`."""

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
    """A proposal that the policy rejected."""

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
    unfillable: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True)
class RejectionPage:
    """A page of rejections, newest first."""

    rejections: tuple[Rejection, ...]
    next_page_token: str | None


@dataclass(frozen=True)
class Passkey:
    """A registered passkey with its public key."""

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
    """All passkeys that were ever registered."""

    passkeys: tuple[Passkey, ...]


@dataclass(frozen=True)
class Evidence:
    """The passkey signatures of a receipt's approvals."""

    evidence: tuple[Json, ...]


@dataclass(frozen=True)
class Health:
    """Liveness or readiness of a gateway."""

    status: str


@dataclass(frozen=True)
class RequestDecision:
    """The decision on an approval request, with the reason of a reviewer or of the policy."""

    status: str
    decided_at: datetime
    expires_at: datetime | None = None
    note: str | None = None


@dataclass(frozen=True)
class RequestOutcome:
    """The reported outcome of a call: `succeeded` or `failed`."""

    status: str
    reported_at: datetime
    note: str | None = None


@dataclass(frozen=True)
class RequestConsumption:
    """The use of an approval, and the outcome of the call once it is reported."""

    consumed_at: datetime
    outcome: RequestOutcome | None = None


@dataclass(frozen=True)
class ApprovalRequest:
    """A request for the approval of one tool call: `pending`, `approved`, `denied`, `expired` or `cancelled`.

    `review_url` is the page of a pending review, and `receipt` the signed receipt of an approval by reviewers.
    `known_outcome` is `unknown` if the lease of a used approval ended without a report.
    """

    id: str
    tool: str
    arguments: dict[str, Json]
    timeout: str
    status: str
    created_at: datetime
    deadline_at: datetime
    server: str | None = None
    agent_reasoning: str | None = None
    context: dict[str, Json] | None = None
    decision: RequestDecision | None = None
    consumption: RequestConsumption | None = None
    review_url: str | None = field(default=None, metadata={"header": "countersign-review"})
    receipt: str | None = field(default=None, metadata={"header": "countersign-receipt"})
    verification: str | None = field(default=None, metadata={"header": "countersign-verification"})
    known_outcome: str | None = field(default=None, metadata={"header": "countersign-outcome"})


@dataclass(frozen=True)
class Consumption:
    """A used approval. Run the call once, now, with exactly these arguments, and report its outcome."""

    request: str
    tool: str
    server: str | None
    arguments: dict[str, Json]
    thread: str
    transition: str
    write_id: str
    fence: int
    # The id of the receipt that the gateway used, or `None` if the policy allowed the call without a review.
    receipt: str | None
    # The signed reservation, and the end of its lease in seconds since 1970.
    verification: str
    lease_ends: int
