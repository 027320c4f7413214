"""What the gateway answers, as frozen dataclasses. A member that a later gateway adds is passed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .errors import Json


@dataclass(frozen=True)
class Created:
    """A thread that was made, at version 0."""

    thread: str
    flow: str
    version: int
    transition: str
    state_root: str
    entry: str


@dataclass(frozen=True)
class Branch:
    """A branch that was made, at its version 0: a thread, and what a join calls it."""

    name: str
    thread: str
    version: int
    transition: str
    state_root: str
    entry: str


@dataclass(frozen=True)
class Forked:
    """The branches of a head, in the order in which they were asked for. `transition` is the parent of their join."""

    thread: str
    version: int
    transition: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class EventAdded:
    """An event that is in a run's timeline. `left` is how many more agents can add, besides the run's end."""

    event: str
    thread: str
    number: int
    phase: str
    timestamp: datetime
    left: int


@dataclass(frozen=True)
class EnvelopeMac:
    """An HMAC by the secret that its node has for the period that began at `epoch`."""

    alg: str
    epoch: str
    value: str


@dataclass(frozen=True)
class Envelope:
    """A node's view, as much of it as fits, sealed: ask `verify_envelope`, or `countersign.verify.check_envelope`,
    before you give `payload` to a model."""

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
    """The secret of a node for one period, and until when an HMAC by it is good."""

    epoch: str
    good_until: datetime
    secret: str = field(repr=False)


@dataclass(frozen=True)
class NodeSecrets:
    """The secrets of a node that are good now, the one of this period first. Keep them to yourself."""

    flow: str
    node: str
    alg: str
    rotates_at: datetime
    secrets: tuple[NodeSecret, ...]


@dataclass(frozen=True)
class EnvelopeChecked:
    """An envelope that a model may be given."""

    valid: bool
    thread: str
    node: str
    version: int
    transition: str
    tokens: int
    encoding: str


@dataclass(frozen=True)
class ReviewLink:
    """Where people are asked."""

    id: str
    url: str


@dataclass(frozen=True)
class ThreadStatus:
    """A thread as it stands. `status` is `open`, `held`, `writing` or `closed`."""

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
    """What a node may read of a version, and nothing else."""

    thread: str
    version: int
    transition: str
    state: dict[str, Json]


@dataclass(frozen=True)
class ChainEntry:
    """A committed transition with its signed entry; auditors are given the opening as well."""

    version: int
    transition: str
    statement: dict[str, Json]
    entry: str
    opening: dict[str, Json] | None = None


@dataclass(frozen=True)
class ChainPage:
    """Some entries, and where the next ones begin."""

    entries: tuple[ChainEntry, ...]
    next_page_token: int | None


@dataclass(frozen=True)
class Warned:
    """What a rule of the policy warns of."""

    rule: str
    pointer: str
    detail: str


@dataclass(frozen=True)
class Marked:
    """A text that looks like something else: `of` says whether the `name` or the `value` at the pointer does."""

    pointer: str
    of: str
    code: str
    detail: str


@dataclass(frozen=True)
class Committed:
    """The policy let it pass: it is in the chain."""

    version: int
    transition: str
    entry: str
    changed: tuple[str, ...]
    would_hold: tuple[Json, ...] | None = None
    warnings: tuple[Warned, ...] = ()
    outcome: str = "committed"


@dataclass(frozen=True)
class Review:
    """Where people are asked, until when, and how many of whom."""

    id: str
    url: str
    expires_at: datetime
    needed: tuple[dict[str, Json], ...]


@dataclass(frozen=True)
class Held:
    """People are asked. `diff` has what this node may see of the change. `marks` says which texts look like others."""

    transition: str
    review: Review
    reasons: tuple[Json, ...]
    diff: tuple[dict[str, Json], ...]
    warnings: tuple[Warned, ...] = ()
    outcome: str = "held"
    marks: tuple[Marked, ...] = ()


@dataclass(frozen=True)
class Transition:
    """A transition and what the caller may see of its effect: of a review, of a tool's arguments, and, to auditors, of
    what is hidden. `stopped` says why nothing may be done by it any more, though it is in the chain: `halted`,
    `revoked`, `expired`, or another of verify's codes."""

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
    """How a transition ended: `committed`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.

    `expired` is nobody's refusal. `superseded_by` names what people are asked about instead, if anything.
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
    """A yes, once. Write by `view` and by nothing else, before `lease_expires_at`, and keep `fence`."""

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
    """How a write ended: `confirmed`, `aborted` or `late`."""

    write_id: str
    outcome: str
    version: int | None
    transition: str | None
    result_refused: bool = False
    errors: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True)
class Event:
    """A line of the log."""

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
    """Some events, and what to pass as `after` the next time."""

    events: tuple[Event, ...]
    next: int


Patch = Mapping[str, Json] | list[dict[str, Json]]
