"""Each call of the gateway as a plan. Their arguments and documentation are those of both clients."""

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

# As many as the gateway gives at once.
CHAIN_PAGE, EVENTS_PAGE = 200, 500
# A log is finite; one that never ends its pages is another program.
PAGES_MAX = 1_000_000


def get(kind: type[T], path: str, **query: str) -> Call[T]:
    """Something that is read."""
    return Call(Request("GET", path, query), {200: reads(kind)})


def post(kind: type[T], path: str, body: Json, status: int = 200) -> Call[T]:
    """Something that is safe to send again."""
    return Call(Request("POST", path, body=text(body)), {status: reads(kind)})


def keyed(kind: type[T], path: str, body: Json, status: int = 200) -> Call[T]:
    """Something that is safe to send again because of the key that goes along."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    return Call(Request("POST", path, body=text(body), headers=headers), {status: reads(kind)})


def given(**members: Json) -> dict[str, Json]:
    """The members that were said."""
    return {name: value for name, value in members.items() if value is not None}


def by_pages(
    page: Callable[[str | None], Plan[Page]], parts: Callable[[Page], tuple[tuple[T, ...], str | None]]
) -> Walk[T]:
    """Every item of a list that is given page by page, each of which names the next one."""
    token: str | None = None
    for _ in range(PAGES_MAX):
        items, token = parts((yield from page(token)))
        for item in items:
            yield Item(item)
        if token is None:
            return
    raise UnexpectedAnswer("a list that does not end")


def thread_path(thread: str, below: str = "") -> str:
    """The address of a thread, or of something of it."""
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
    """Begins a piece of work. Name the thread after your own job: then the same request is the same thread.

    Without a name the gateway gives one, and an `Idempotency-Key` goes along, so that the same request is one thread
    all the same: yours, if you mean to send it again in another process.

    With an `episode`, `{"goal": {"task": …}}`, the thread is a run of agents, of which artefacts remain.
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
    """A thread as it stands."""
    return (yield from asked(core, get(ThreadStatus, thread_path(thread))))


def state(core: Core, thread: str, node: str, *, version: int | None = None) -> Plan[View]:
    """What a node may read of the head, or of an earlier version. Give your model this and nothing else."""
    query = {"node": names.name("node", node)}
    if version is not None:
        query["version"] = str(names.whole("version", version, 0))
    return (yield from asked(core, get(View, thread_path(thread, "/state"), **query)))


def envelope(core: Core, thread: str, *, node: str, hmac: bool = False) -> Plan[Envelope]:
    """What a node may read of the head, made to fit and sealed. Check it before you give it to a model. With `hmac` it
    bears one by the node's secret beside its signature; `checked_envelope` asks for that and checks it."""
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
    """Whether an envelope may be given to a model: signed, whole, of the head as it stands, and not too much. If not,
    the exception's `code` says why. An HMAC that it bears is looked at; with `require_hmac` it must bear one."""
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
    """Entries of a chain from a version on."""
    token, size = names.whole("page_token", page_token, 0), names.whole("page_size", page_size, 1)
    path = thread_path(thread, "/chain")
    return (yield from asked(core, get(ChainPage, path, page_token=str(token), page_size=str(size))))


def chain(core: Core, thread: str, *, page_size: int = CHAIN_PAGE) -> Walk[ChainEntry]:
    """Every entry of a chain from version 0 on, page by page."""
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
    """Asks for a change on the head `parent`. The very same request finds what became of the first one.

    `step` is your own name for what is done here: of one name there is one effect, on whatever head it is asked for
    again, whichever worker asks; `StepReused` says that it has done something else.

    A change that the policy refuses raises `Rejected`, and so does asking the same again; after that `attempt=2` asks
    anew. `HeadMoved`, `ThreadHeld` and `WriteInProgress` say that it was not judged at all.
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
    """Asks people for a receipt for the head as it stands: after one expired, an abort, a lapse, another policy."""
    body: dict[str, Json] = {"patch": {}, "reaffirm": True}
    if rationale is not None:
        body["rationale"] = rationale
    return (yield from _proposed(core, thread, "/transitions", node, parent, attempt, body))


def rollback(
    core: Core, thread: str, *, to_version: int, node: str, parent: str, attempt: int = 1, step: str | None = None
) -> Plan[Committed | Held]:
    """Asks people for an earlier version's state again."""
    body: dict[str, Json] = {"to_version": names.whole("to_version", to_version, 0)}
    if step is not None:
        body["step"] = _step(step)
    return (yield from _proposed(core, thread, "/rollbacks", node, parent, attempt, body))


def fork(core: Core, thread: str, *, node: str, branches: Sequence[str], parent: str | None = None) -> Plan[Forked]:
    """Makes branches of a thread's head, or of `parent`, which must be the head: threads of their own, in which agents
    propose as ever and of which nothing is ever written. The very same request finds them again."""
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
    """Proposes on the head `parent` what branches of it changed, as one. It is judged and answered as a proposal is.

    Branches that do not agree raise `BranchConflict`, with the places in `errors`: join by another strategy, or settle
    each of them by `resolve`, `[{"path", "value"}]`, with the strategy `explicit`.
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
    # The identity of a proposal is all that it says: to repeat it is to ask what became of it.
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
    """A transition: its statement, and what the caller may see of its effect."""
    path = f"/v1/transitions/{names.digest('transition', transition)}"
    return (yield from asked(core, get(Transition, path)))


def cancel(core: Core, transition: str, *, reason: str) -> Plan[str]:
    """Takes a held proposal back, by the token that made it. Gives its status: `cancelled`."""
    path = f"/v1/transitions/{names.digest('transition', transition)}/cancellation"
    request = Request("POST", path, body=text({"reason": reason}))
    return (yield from asked(core, Call(request, {200: _status})))


def _status(body: Json) -> str:
    if not isinstance(body, dict) or not isinstance(body.get("status"), str):
        raise UnexpectedAnswer("the answer's /status is missing")
    return str(body["status"])


def confirm(core: Core, write_id: str, *, result: Mapping[str, Json] | None = None) -> Plan[Ended]:
    """Says that it was written; `result` is what your own node says of it. Repeated until there is an answer."""
    return (yield from _ended(core, write_id, "confirm", {"result": dict(result or {})}))


def abort(core: Core, write_id: str, *, reason: str) -> Plan[Ended]:
    """Says that nothing was written. Repeated until there is an answer."""
    return (yield from _ended(core, write_id, "abort", {"reason": reason}))


def _ended(core: Core, write_id: str, how: str, body: Json) -> Plan[Ended]:
    path = f"/v1/writes/{quote(names.name('write_id', write_id), safe='')}/{how}"
    found = yield from asked(core, post(Ended, path, body), PATIENT if core.retries.tries > 1 else None)
    if found.write_id != write_id:
        raise UnexpectedAnswer("the answer is about another write")
    return found


def events_page(core: Core, *, after: int = 0, limit: int = 100) -> Plan[EventsPage]:
    """Events after a place in the log, and where to go on."""
    query = {"after": str(names.whole("after", after, 0)), "limit": str(names.whole("limit", limit, 1))}
    return (yield from asked(core, get(EventsPage, "/v1/events", **query)))


def events(core: Core, *, after: int = 0) -> Walk[Event]:
    """Every event after a place in the log, up to its end as it is now. Keep the last `index` to go on from there."""
    for _ in range(PAGES_MAX):
        page = yield from events_page(core, after=after, limit=EVENTS_PAGE)
        for event in page.events:
            yield Item(event)
        if page.next <= after:
            return
        after = page.next


def jwks(core: Core) -> Plan[dict[str, Json]]:
    """The published keys, as they came: what `countersign.verify.Keys` reads."""
    call = Call(Request("GET", "/.well-known/jwks.json"), {200: _object})
    return (yield from asked(core, call))


def _object(body: Json) -> dict[str, Json]:
    if not isinstance(body, dict):
        raise UnexpectedAnswer("the answer's body is not an object")
    return body
