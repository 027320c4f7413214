"""Calls of administrators: policies, halts, revocation, closing and resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _names as names
from ._calls import Format, by_pages, get, given, keyed, post, thread_path
from ._plans import Call, Core, Plan, Request, Walk, asked, text
from ._reading import reads
from .answers import Patch
from .errors import Json
from .resources import (
    Amendment,
    Amendments,
    Halt,
    Judged,
    PolicyActive,
    ReplayPage,
    Resolved,
    Revoked,
    Standing,
)

# The gateway's own maximum.
REPLAY_PAGE = 200
Schemas = Mapping[str, str]


def activate_policy(
    core: Core, flow: str, policy: str, *, schemas: Schemas | None = None, accepts: Sequence[str] = ()
) -> Plan[PolicyActive | Amendment]:
    """Activates a policy. If the active policy requires approval for that, it returns the `Amendment` instead, which
    reviewers decide. Both arguments are texts, each schema under the name that the policy uses."""
    body = given(policy=policy, schemas=dict(schemas or {}), accepts=list(accepts))
    call = keyed(PolicyActive, _flow(flow, "/policies"), body).also(202, reads(Amendment))
    return (yield from asked(core, call))


def amendments(core: Core, flow: str) -> Plan[tuple[Amendment, ...]]:
    """Returns the policy change requests of a flow."""
    return (yield from asked(core, get(Amendments, _flow(flow, "/amendments")))).amendments


def amendment(core: Core, amendment: str) -> Plan[Amendment]:
    """Returns one policy change request."""
    return (yield from asked(core, get(Amendment, _amendment(amendment))))


def cancel_amendment(core: Core, amendment: str, *, reason: str) -> Plan[Amendment]:
    """Cancels an open policy change request."""
    return (yield from asked(core, keyed(Amendment, f"{_amendment(amendment)}/cancellation", {"reason": reason})))


def judge(
    core: Core,
    flow: str,
    *,
    state: Mapping[str, Json],
    node: str,
    patch: Patch,
    format: Format | None = None,  # noqa: A002 - the protocol's word
    principal: Mapping[str, Json] | None = None,
    committed_nodes: Sequence[str] | None = None,
    tool: Mapping[str, Json] | None = None,
    usage: Mapping[str, Json] | None = None,
    totals: Mapping[str, Json] | None = None,
    policy: str | None = None,
    schemas: Schemas | None = None,
) -> Plan[Judged]:
    """Judges a supposed proposal by the active policy or by the given one (dry run). Nothing is changed."""
    body = given(
        state=dict(state),
        node=names.name("node", node),
        patch=dict(patch) if isinstance(patch, Mapping) else patch,
        format=format,
        principal=principal,
        committed_nodes=None if committed_nodes is None else list(committed_nodes),
        tool=tool,
        usage=usage,
        totals=totals,
        policy=policy,
        schemas=None if schemas is None else dict(schemas),
    )
    return (yield from asked(core, post(Judged, _flow(flow, "/judgements"), body)))


def replay_page(
    core: Core,
    flow: str,
    policy: str,
    *,
    schemas: Schemas | None = None,
    after: str | None = None,
    limit: int = REPLAY_PAGE,
) -> Plan[ReplayPage]:
    """Returns a page of recorded proposals, judged by the given policy (backtest). Nothing is changed."""
    body = given(policy=policy, schemas=dict(schemas or {}), after=after, limit=names.whole("limit", limit, 1))
    return (yield from asked(core, post(ReplayPage, _flow(flow, "/replays"), body)))


def replay(core: Core, flow: str, policy: str, *, schemas: Schemas | None = None) -> Walk[dict[str, Json]]:
    """Yields all recorded proposals, judged by the given policy, thread by thread."""
    yield from by_pages(
        lambda token: replay_page(core, flow, policy, schemas=schemas, after=token),
        lambda page: (page.proposals, page.next),
    )


def halt(core: Core, scope: str, *, proposing: bool, verifying: bool, reason: str) -> Plan[Halt]:
    """Sets both halts of a flow, or of `all`. If the response has `lifting`, a second person has to request the
    same, and the halts are unchanged until then."""
    body = {"proposing": proposing, "verifying": verifying, "reason": reason}
    request = Request("PUT", f"/v1/halts/{names.part('scope', scope)}", body=text(body))
    return (yield from asked(core, Call(request, {200: reads(Halt), 202: reads(Halt)})))


def revoke_receipt(core: Core, jti: str, *, reason: str) -> Plan[Revoked]:
    """Revokes a receipt. `verify` refuses it from now on."""
    path = f"/v1/receipts/{names.jti('jti', jti)}/revocation"
    return (yield from asked(core, keyed(Revoked, path, {"reason": reason})))


def close_thread(core: Core, thread: str, *, reason: str) -> Plan[Standing]:
    """Closes a thread: nothing can be proposed or verified there."""
    return (yield from asked(core, keyed(Standing, thread_path(thread, "/closing"), {"reason": reason})))


def reopen_thread(core: Core, thread: str, *, reason: str) -> Plan[Standing]:
    """Reopens a closed thread."""
    return (yield from asked(core, keyed(Standing, thread_path(thread, "/reopening"), {"reason": reason})))


def resolve_lapse(
    core: Core,
    thread: str,
    write_id: str,
    *,
    principal: str,
    outcome: Literal["written", "not_written"],
    reason: str,
) -> Plan[Resolved]:
    """Resolves a write with an expired lease that its writer, `principal`, never reported. Look into the database
    first."""
    path = thread_path(thread, f"/lapses/{names.part('write_id', write_id)}/resolution")
    body = {"principal": names.name("principal", principal), "outcome": outcome, "reason": reason}
    return (yield from asked(core, keyed(Resolved, path, body)))


def _flow(flow: str, below: str) -> str:
    return f"/v1/flows/{names.part('flow', flow)}{below}"


def _amendment(amendment: str) -> str:
    return f"/v1/amendments/{names.part('amendment', amendment)}"
