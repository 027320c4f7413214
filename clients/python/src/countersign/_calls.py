"""Each call of the gateway as a plan. Both clients take arguments and documentation from here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Literal, TypeVar
from urllib.parse import quote

from . import _names as names
from ._plans import PATIENT, Call, Core, Item, Plan, Request, Walk, asked, text
from ._reading import read, reads
from .answers import (
    ChainEntry,
    ChainPage,
    Committed,
    Created,
    Ended,
    Envelope,
    EnvelopeChecked,
    Event,
    EventsPage,
    Forked,
    Held,
    Patch,
    ThreadStatus,
    Transition,
    View,
)
from .errors import Json, UnexpectedAnswer

T = TypeVar("T")
Page = TypeVar("Page")
Format = Literal["merge", "merge-patch", "json-patch"]
Strategy = Literal["union", "last_write", "vote", "confidence", "explicit"]

# The gateway's own maximum.
CHAIN_PAGE, EVENTS_PAGE = 200, 500
# Bounds the loop if a server never ends its pages.
PAGES_MAX = 1_000_000


def get(kind: type[T], path: str, **query: str) -> Call[T]:
    """Returns a call that reads."""
    return Call(Request("GET", path, query), {200: reads(kind)})


def post(kind: type[T], path: str, body: Json, status: int = 200) -> Call[T]:
    """Returns a POST that is safe to repeat."""
    return Call(Request("POST", path, body=text(body)), {status: reads(kind)})


def keyed(kind: type[T], path: str, body: Json, status: int = 200) -> Call[T]:
    """Returns a POST that is safe to repeat because of its `Idempotency-Key`."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    return Call(Request("POST", path, body=text(body), headers=headers), {status: reads(kind)})


def given(**members: Json) -> dict[str, Json]:
    """Returns the members that are not left out."""
    return {name: value for name, value in members.items() if value is not None}


def by_pages(
    page: Callable[[str | None], Plan[Page]], parts: Callable[[Page], tuple[tuple[T, ...], str | None]]
) -> Walk[T]:
    """Yields every item of a paginated list."""
    token: str | None = None
    for _ in range(PAGES_MAX):
        items, token = parts((yield from page(token)))
        for item in items:
            yield Item(item)
        if token is None:
            return
    raise UnexpectedAnswer("a list that does not end")


def thread_path(thread: str, below: str = "") -> str:
    """Returns the path of a thread, or of something below it."""
    return f"/v1/threads/{quote(names.name('thread', thread), safe='')}{below}"


def create_thread(
    core: Core,
    flow: str,
    state: Mapping[str, Json],
    *,
    thread: str | None = None,
    context: Mapping[str, Json] | None = None,
    episode: Mapping[str, Json] | None = None,
    idempotency_key: str | None = None,
) -> Plan[Created]:
    """Creates a thread. Name it after your own job: then the same request is the same thread.

    Without a name the gateway chooses one, and the client sends an `Idempotency-Key`, so that a repeated request
    creates one thread. Pass your own key to repeat it from another process.

    With an `episode`, `{"goal": {"task": …}}`, the thread records an agent run.
    """
    body: dict[str, Json] = {"flow": names.name("flow", flow), "state": dict(state)}
    if context is not None:
        body["context"] = dict(context)
    if episode is not None:
        body["episode"] = dict(episode)
    headers: dict[str, str] = {}
    if thread is not None:
        body["thread"] = names.name("thread", thread)
    if thread is None or idempotency_key is not None:
        headers["Idempotency-Key"] = names.key(
            "idempotency_key", str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        )
    request = Request("POST", "/v1/threads", body=text(body), headers=headers)
    call = Call(request, {201: reads(Created)})
    return (yield from asked(core, call))


def thread(core: Core, thread: str) -> Plan[ThreadStatus]:
    """Returns the current status of a thread."""
    return (yield from asked(core, get(ThreadStatus, thread_path(thread))))


def state(core: Core, thread: str, node: str, *, version: int | None = None) -> Plan[View]:
    """Returns the part of the head, or of an earlier version, that a node may read. Give your model only this."""
    query = {"node": names.name("node", node)}
    if version is not None:
        query["version"] = str(names.whole("version", version, 0))
    return (yield from asked(core, get(View, thread_path(thread, "/state"), **query)))


def envelope(core: Core, thread: str, *, node: str, hmac: bool = False) -> Plan[Envelope]:
    """Returns the node's view of the head, fitted and signed. Check it before you give it to a model. With `hmac` it
    also carries an HMAC with the node's secret. `checked_envelope` requests and checks both."""
    query = {"node": names.name("node", node)}
    if hmac:
        query["hmac"] = "true"
    return (yield from asked(core, get(Envelope, thread_path(thread, "/envelope"), **query)))


def verify_envelope(
    core: Core,
    envelope: Envelope,
    *,
    thread: str | None = None,
    node: str | None = None,
    require_hmac: bool = False,
) -> Plan[EnvelopeChecked]:
    """Checks at the gateway that a model may receive an envelope: signature, completeness, head and budget. If not,
    the exception's `code` says why. An HMAC is checked if present, and required with `require_hmac`."""
    sent = {name: value for name, value in asdict(envelope).items() if name != "hmac" or value is not None}
    body: dict[str, Json] = {"envelope": {**sent, "truncated": [*envelope.truncated]}}
    if require_hmac:
        body["require_hmac"] = True
    if thread is not None:
        body["thread"] = names.name("thread", thread)
    if node is not None:
        body["node"] = names.name("node", node)
    return (yield from asked(core, post(EnvelopeChecked, "/v1/envelopes/verify", body)))


def chain_page(core: Core, thread: str, *, page_token: int = 0, page_size: int = CHAIN_PAGE) -> Plan[ChainPage]:
    """Returns a page of a chain, starting at a version."""
    token, size = names.whole("page_token", page_token, 0), names.whole("page_size", page_size, 1)
    path = thread_path(thread, "/chain")
    return (yield from asked(core, get(ChainPage, path, page_token=str(token), page_size=str(size))))


def chain(core: Core, thread: str, *, page_size: int = CHAIN_PAGE) -> Walk[ChainEntry]:
    """Yields every entry of a chain from version 0, page by page."""
    token: int | None = 0
    for _ in range(PAGES_MAX):
        page = yield from chain_page(core, thread, page_token=token or 0, page_size=page_size)
        for entry in page.entries:
            yield Item(entry)
        if page.next_page_token is None:
            return
        if page.next_page_token <= (token or 0):
            raise UnexpectedAnswer("the pages of a chain go backwards")
        token = page.next_page_token


def propose(
    core: Core,
    thread: str,
    *,
    node: str,
    parent: str,
    patch: Patch,
    format: Format | None = None,  # noqa: A002 - the protocol's word
    attempt: int = 1,
    tool: Mapping[str, Json] | None = None,
    usage: Mapping[str, Json] | None = None,
    rationale: str | None = None,
    step: str | None = None,
) -> Plan[Committed | Held]:
    """Proposes a change on the head `parent`. The same request returns the outcome of the first one.

    `step` is your own name for this step of the run. A step has one effect, on whatever head and from whichever worker
    it is proposed again. `StepReused` means that it did something else.

    A rejected change raises `Rejected`, and so does the same request again. `attempt=2` then proposes it again.
    `HeadMoved`, `ThreadHeld` and `WriteInProgress` mean that it was not judged.
    """
    body: dict[str, Json] = {"patch": dict(patch) if isinstance(patch, Mapping) else patch}
    extra = {"format": format, "tool": tool, "usage": usage, "rationale": rationale, "step": _step(step)}
    body.update({key: value for key, value in extra.items() if value is not None})
    return (yield from _proposed(core, thread, "/transitions", node, parent, attempt, body))


def _step(step: str | None) -> str | None:
    return None if step is None else names.name("step", step)


def reaffirm(
    core: Core, thread: str, *, node: str, parent: str, attempt: int = 1, rationale: str | None = None
) -> Plan[Committed | Held]:
    """Requests a new receipt for the current head: after one expired, an abort, an expired lease, or another policy."""
    body: dict[str, Json] = {"patch": {}, "reaffirm": True}
    if rationale is not None:
        body["rationale"] = rationale
    return (yield from _proposed(core, thread, "/transitions", node, parent, attempt, body))


def rollback(
    core: Core, thread: str, *, to_version: int, node: str, parent: str, attempt: int = 1, step: str | None = None
) -> Plan[Committed | Held]:
    """Proposes to bring back the state of an earlier version."""
    body: dict[str, Json] = {"to_version": names.whole("to_version", to_version, 0)}
    if step is not None:
        body["step"] = _step(step)
    return (yield from _proposed(core, thread, "/rollbacks", node, parent, attempt, body))


def fork(core: Core, thread: str, *, node: str, branches: Sequence[str], parent: str | None = None) -> Plan[Forked]:
    """Creates branches of a thread's head, or of `parent`, which must be the head. A branch is a thread in which
    agents propose as usual, and which is never written. The same request returns the same branches."""
    body: dict[str, Json] = {
        "node": names.name("node", node),
        "branches": [names.name("branches", it) for it in branches],
    }
    if parent is not None:
        body["parent"] = names.digest("parent", parent)
    return (yield from asked(core, post(Forked, thread_path(thread, "/forks"), body, 201)))


def join(
    core: Core,
    thread: str,
    *,
    node: str,
    parent: str,
    branches: Sequence[str],
    strategy: Strategy,
    resolve: Sequence[Mapping[str, Json]] | None = None,
    attempt: int = 1,
    usage: Mapping[str, Json] | None = None,
    rationale: str | None = None,
    step: str | None = None,
) -> Plan[Committed | Held]:
    """Proposes on the head `parent` what branches of it changed, as one change. It is judged like any proposal.

    If branches differ at a path, `BranchConflict` lists the paths in `errors`. Join with another strategy, or settle
    each path by `resolve`, `[{"path", "value"}]`, with the strategy `explicit`.
    """
    body: dict[str, Json] = {"branches": [names.name("branches", it) for it in branches], "strategy": strategy}
    if resolve is not None:
        body["resolve"] = [dict(it) for it in resolve]
    extra = {"usage": usage, "rationale": rationale, "step": _step(step)}
    body.update({key: value for key, value in extra.items() if value is not None})
    return (yield from _proposed(core, thread, "/joins", node, parent, attempt, body))


def _proposed(
    core: Core, thread: str, below: str, node: str, parent: str, attempt: int, body: dict[str, Json]
) -> Plan[Committed | Held]:
    asks = {
        **body,
        "node": names.name("node", node),
        "parent": names.digest("parent", parent),
        "attempt": names.whole("attempt", attempt, 1),
    }
    request = Request("POST", thread_path(thread, below), body=text(asks))
    # A repeated proposal is the same proposal, so a retry has no second effect.
    call: Call[Committed | Held] = Call(request, {201: _committed, 202: _held})
    return (yield from asked(core, call))


def _committed(body: Json) -> Committed:
    return _with_outcome(read(Committed, body), "committed")


def _held(body: Json) -> Held:
    return _with_outcome(read(Held, body), "held")


Outcome = TypeVar("Outcome", Committed, Held)


def _with_outcome(found: Outcome, outcome: str) -> Outcome:
    if found.outcome != outcome:
        raise UnexpectedAnswer("the answer's outcome does not fit its status")
    return found


def transition(core: Core, transition: str) -> Plan[Transition]:
    """Returns a transition: its statement, and the part of its effect that the caller may see."""
    path = f"/v1/transitions/{names.digest('transition', transition)}"
    return (yield from asked(core, get(Transition, path)))


def cancel(core: Core, transition: str, *, reason: str) -> Plan[str]:
    """Cancels a held proposal with the token that made it. Returns its status: `cancelled`."""
    path = f"/v1/transitions/{names.digest('transition', transition)}/cancellation"
    request = Request("POST", path, body=text({"reason": reason}))
    return (yield from asked(core, Call(request, {200: _status})))


def _status(body: Json) -> str:
    if not isinstance(body, dict) or not isinstance(body.get("status"), str):
        raise UnexpectedAnswer("the answer's /status is missing")
    return str(body["status"])


def confirm(core: Core, write_id: str, *, result: Mapping[str, Json] | None = None) -> Plan[Ended]:
    """Reports that the write happened. `result` is what your own node adds. Repeated until there is a response."""
    return (yield from _ended(core, write_id, "confirm", {"result": dict(result or {})}))


def abort(core: Core, write_id: str, *, reason: str) -> Plan[Ended]:
    """Reports that nothing was written. Repeated until there is a response."""
    return (yield from _ended(core, write_id, "abort", {"reason": reason}))


def _ended(core: Core, write_id: str, how: str, body: Json) -> Plan[Ended]:
    path = f"/v1/writes/{quote(names.name('write_id', write_id), safe='')}/{how}"
    found = yield from asked(core, post(Ended, path, body), PATIENT if core.retries.tries > 1 else None)
    if found.write_id != write_id:
        raise UnexpectedAnswer("the answer is about another write")
    return found


def events_page(core: Core, *, after: int = 0, limit: int = 100) -> Plan[EventsPage]:
    """Returns a page of events after a log position."""
    query = {"after": str(names.whole("after", after, 0)), "limit": str(names.whole("limit", limit, 1))}
    return (yield from asked(core, get(EventsPage, "/v1/events", **query)))


def events(core: Core, *, after: int = 0) -> Walk[Event]:
    """Yields every event after a log position, up to the current end. Store the last `index` to continue from there."""
    for _ in range(PAGES_MAX):
        page = yield from events_page(core, after=after, limit=EVENTS_PAGE)
        for event in page.events:
            yield Item(event)
        if page.next <= after:
            return
        after = page.next


def jwks(core: Core) -> Plan[dict[str, Json]]:
    """Returns the published keys as they came. `countersign.verify.Keys` reads them."""
    call = Call(Request("GET", "/.well-known/jwks.json"), {200: _object})
    return (yield from asked(core, call))


def _object(body: Json) -> dict[str, Json]:
    if not isinstance(body, dict):
        raise UnexpectedAnswer("the answer's body is not an object")
    return body
