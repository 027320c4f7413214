"""Responses of the gateway as frozen dataclasses. A member that a later gateway adds is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .errors import Json


@dataclass(frozen=True)
class Created:
    """A new thread, at version 0."""

    thread: str
    flow: str
    version: int
    transition: str
    state_root: str
    entry: str


@dataclass(frozen=True)
class Branch:
    """A new branch, at its version 0: its thread, and its name in a join."""

    name: str
    thread: str
    version: int
    transition: str
    state_root: str
    entry: str


@dataclass(frozen=True)
class Forked:
    """The new branches of a head, in the requested order. `transition` is the parent of their join."""

    thread: str
    version: int
    transition: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class EventAdded:
    """An event of an agent run. `left` is the number of events that agents can still add, without the end of the
    run."""

    event: str
    thread: str
    number: int
    phase: str
    timestamp: datetime
    left: int


@dataclass(frozen=True)
class EnvelopeMac:
    """An HMAC with the node's secret of the period that started at `epoch`."""

    alg: str
    epoch: str
    value: str


@dataclass(frozen=True)
class Envelope:
    """A signed context envelope. Check it with `verify_envelope` or `countersign.verify.check_envelope` before you
    give `payload` to a model."""

    version: int
    timestamp: str
    tokenBudget: int | None
    tokens: int
    payload: dict[str, Json]
    truncated: tuple[dict[str, Json], ...]
    transition: str
    signature: str
    hmac: EnvelopeMac | None = None


@dataclass(frozen=True)
class NodeSecret:
    """A node's secret for one period, and the time until which its HMACs are valid."""

    epoch: str
    good_until: datetime
    secret: str = field(repr=False)


@dataclass(frozen=True)
class NodeSecrets:
    """The valid secrets of a node, the current one first. Keep them confidential."""

    flow: str
    node: str
    alg: str
    rotates_at: datetime
    secrets: tuple[NodeSecret, ...]


@dataclass(frozen=True)
class EnvelopeChecked:
    """An envelope that passed all checks."""

    valid: bool
    thread: str
    node: str
    version: int
    transition: str
    tokens: int
    encoding: str


@dataclass(frozen=True)
class ReviewLink:
    """The review of a held transition."""

    id: str
    url: str


@dataclass(frozen=True)
class ThreadStatus:
    """The current status of a thread: `open`, `held`, `writing` or `closed`."""

    thread: str
    flow: str
    status: str
    version: int
    transition: str
    owes: bool
    review: ReviewLink | None = None
    spent: dict[str, Json] | None = None
    branch_of: dict[str, Json] | None = None


@dataclass(frozen=True)
class View:
    """The part of a version that a node may read."""

    thread: str
    version: int
    transition: str
    state: dict[str, Json]


@dataclass(frozen=True)
class ChainEntry:
    """A committed transition with its signed entry. Auditors also receive the opening."""

    version: int
    transition: str
    statement: dict[str, Json]
    entry: str
    opening: dict[str, Json] | None = None


@dataclass(frozen=True)
class ChainPage:
    """A page of a chain."""

    entries: tuple[ChainEntry, ...]
    next_page_token: int | None


@dataclass(frozen=True)
class Warned:
    """A warning of a policy rule."""

    rule: str
    pointer: str
    detail: str


@dataclass(frozen=True)
class Marked:
    """A look-alike text. `of` says whether the `name` or the `value` at the pointer is marked."""

    pointer: str
    of: str
    code: str
    detail: str


@dataclass(frozen=True)
class Committed:
    """The policy allowed the change: it is in the chain."""

    version: int
    transition: str
    entry: str
    changed: tuple[str, ...]
    would_hold: tuple[Json, ...] | None = None
    warnings: tuple[Warned, ...] = ()
    outcome: str = "committed"


@dataclass(frozen=True)
class Review:
    """A pending review: its address, its deadline and the required votes."""

    id: str
    url: str
    expires_at: datetime
    needed: tuple[dict[str, Json], ...]


@dataclass(frozen=True)
class Held:
    """The change requires approval. `diff` is the part of the change that this node may see. `marks` lists
    look-alike texts."""

    transition: str
    review: Review
    reasons: tuple[Json, ...]
    diff: tuple[dict[str, Json], ...]
    warnings: tuple[Warned, ...] = ()
    outcome: str = "held"
    marks: tuple[Marked, ...] = ()


@dataclass(frozen=True)
class Transition:
    """A transition, and the part of its effect, review and arguments that the caller may see. Auditors also see
    kinds and commitments of redacted values. `stopped` says why a committed transition must not be acted on:
    `halted`, `revoked`, `expired`, or another code of `verify`."""

    transition: str
    thread: str
    status: str
    statement: dict[str, Json]
    entry: str | None
    diff: tuple[dict[str, Json], ...]
    warnings: tuple[Json, ...] = ()
    review: dict[str, Json] | None = None
    arguments: tuple[dict[str, Json], ...] = ()
    hidden: tuple[dict[str, Json], ...] = ()
    opening: dict[str, Json] | None = None
    stopped: str | None = None
    marks: tuple[Marked, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The end of a transition: `committed`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.

    `expired` is not a denial. `superseded_by` names the transition under review in its place, if any.
    """

    approved: bool
    decision: str
    transition_digest: str
    reviewer_id: str | None
    reviewers: tuple[str, ...]
    nonce: str | None
    expires_at: datetime | None
    receipt: str | None
    version: int | None
    comment: str | None
    superseded_by: str | None
    absent: dict[str, str] = field(default_factory=dict, metadata={"wire": "for"})


@dataclass(frozen=True)
class Verified:
    """A permission for one write. Write only values of `view`, before `lease_expires_at`, and store `fence`."""

    allow: bool
    write_id: str
    fence: int
    lease_expires_at: datetime
    view: dict[str, Json]
    verification: str
    enforced: bool
    replayed: bool


@dataclass(frozen=True)
class Ended:
    """The outcome of a write: `confirmed`, `aborted` or `late`."""

    write_id: str
    outcome: str
    version: int | None
    transition: str | None
    result_refused: bool = False
    errors: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True)
class Event:
    """An event of the audit log."""

    index: int
    id: str
    type: str
    timestamp: datetime
    flow: str | None
    thread: str | None
    seq: int | None
    data: dict[str, Json]


@dataclass(frozen=True)
class EventsPage:
    """A page of events. Pass `next` as `after` for the following page."""

    events: tuple[Event, ...]
    next: int


Patch = Mapping[str, Json] | list[dict[str, Json]]
