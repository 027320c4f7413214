"""Calls of an instance: approval requests, each for one tool call."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from . import _names as names
from ._bound import must_be_keys, reservation
from ._calls import given
from ._plans import PATIENT, Call, Core, Plan, Request, asked, text
from ._problems import problem
from ._reading import read, reads, with_headers
from ._same import same
from ._waiting import until_it_ends
from .errors import AnswerMismatch, Conflict, Json, Problem, UnexpectedAnswer
from .resources import ApprovalRequest, Consumption

if TYPE_CHECKING:
    from .verify import Keys

# `exp` has whole seconds.
EXP_SECS = 1
Outcome = Literal["succeeded", "failed"]


def create_request(
    core: Core,
    tool: str,
    arguments: Mapping[str, Json],
    *,
    idempotency_key: str,
    timeout: str = "10m",
    server: str | None = None,
    agent_reasoning: str | None = None,
    context: Mapping[str, Json] | None = None,
    tool_has_changed: bool | None = None,
    share: bool = False,
) -> Plan[ApprovalRequest]:
    """Asks for the approval of a tool call. The policy may have decided it already.

    Use one key for each call of the agent. The same key with the same call is the same request, also from another
    process. With another call it raises `Conflict` with `idempotency_conflict`. With `share`, equal calls of the
    instance share a request.
    """
    body = given(
        tool=tool,
        arguments=dict(arguments),
        timeout=timeout,
        server=server,
        agent_reasoning=agent_reasoning,
        context=None if context is None else dict(context),
        tool_has_changed=tool_has_changed,
    )
    headers = {"Idempotency-Key": names.key("idempotency_key", idempotency_key)}
    query = {"share": "true"} if share else {}
    found = yield from asked(core, _call("POST", "/aap/v1/requests", query=query, body=text(body), headers=headers))
    _must_be_of(found, tool, server, body["arguments"])
    return found


def request(core: Core, request: str) -> Plan[ApprovalRequest]:
    """Returns the current state of an approval request."""
    return _same_request(request, (yield from asked(core, _call("GET", _path(request)))))


def wait_for_request(core: Core, request: str, *, within_secs: float) -> Plan[ApprovalRequest]:
    """Waits for the decision, at most `within_secs`. Then it raises `StillHeld`, and the request is still pending."""

    def call(wait: int) -> Call[ApprovalRequest | None]:
        asks = Request("GET", _path(request), {"wait": f"{wait}s"}, waits_secs=float(wait))
        return Call(asks, {200: _decided}, refusals=_problem, with_headers=_decided_with_headers)

    return _same_request(request, (yield from until_it_ends(core, call, request, within_secs)))


def cancel_request(core: Core, request: str) -> Plan[ApprovalRequest]:
    """Cancels a pending approval request."""
    try:
        found = yield from asked(core, _call("DELETE", _path(request)))
    except Conflict as refused:
        if refused.code != "already_terminal":
            raise
        # An earlier attempt, whose response was lost, may have cancelled it.
        found = yield from asked(core, _call("GET", _path(request)))
        if found.status != "cancelled":
            raise
    return _same_request(request, found)


def consume_request(
    core: Core,
    request: str,
    *,
    tool: str,
    arguments: Mapping[str, Json],
    server: str | None = None,
    idempotency_key: str | None = None,
    keys: Keys | None = None,
) -> Plan[Consumption]:
    """Uses the approval, right before you run the call. If it raises, do not run the call.

    Take `tool` and `arguments` from your own call: the response must be about exactly these. The key is random for
    each attempt to run the call. Never derive it: a second process with the same key would run the call too.

    With `keys` (of `countersign.verify`) the reservation must be signed by one of them, otherwise it raises `Refused`.
    The signature proves that this request was used by this attempt. It does not cover `tool` and `arguments`: TLS
    proves those.
    """
    must_be_keys(keys)
    key = names.key("idempotency_key", str(uuid.uuid4()) if idempotency_key is None else idempotency_key)
    headers = {"Idempotency-Key": key}
    found = yield from asked(core, _call("POST", _path(request, "/consume"), headers=headers))
    _same_request(request, found)
    _must_be_of(found, tool, server, dict(arguments))
    if found.status != "approved" or found.consumption is None or found.verification is None:
        raise UnexpectedAnswer("the answer does not confirm that the approval was used")
    used = _reserved(found, found.verification, _write_id(request, key), keys)
    if not core.today() < used.lease_ends + EXP_SECS:
        raise AnswerMismatch("expired", "the lease of the call has expired by the local clock")
    return used


def report_outcome(core: Core, request: str, status: Outcome, *, note: str | None = None) -> Plan[ApprovalRequest]:
    """Reports the outcome of a call. Repeated until there is a response, and the first report counts.

    A failed call may have had a part of its effect, so its approval is used up too.
    """
    call = _call("POST", _path(request, "/outcome"), body=text(given(status=status, note=note)))
    return _same_request(request, (yield from asked(core, call, PATIENT if core.retries.tries > 1 else None)))


def _path(request: str, below: str = "") -> str:
    return f"/aap/v1/requests/{names.part('request', request)}{below}"


def _call(
    method: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Call[ApprovalRequest]:
    accepts = {200: reads(ApprovalRequest)}
    if path == "/aap/v1/requests":
        accepts[201] = reads(ApprovalRequest)
    asks = Request(method, path, query or {}, body, headers or {})
    return Call(asks, accepts, refusals=_problem, with_headers=with_headers)


def _decided(body: Json) -> ApprovalRequest | None:
    found = read(ApprovalRequest, body)
    return None if found.status == "pending" else found


def _decided_with_headers(found: ApprovalRequest | None, headers: Mapping[str, str]) -> ApprovalRequest | None:
    return None if found is None else with_headers(found, headers)


def _problem(status: int, body: Json) -> Problem:
    """Returns the exception for a refusal in the protocol's envelope."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return problem(status, body)
    return problem(status, {**error, "detail": error.get("message")})


def _same_request(request: str, found: ApprovalRequest) -> ApprovalRequest:
    if found.id != request:
        raise AnswerMismatch("request_mismatch", "the answer is about another approval request")
    return found


def _must_be_of(found: ApprovalRequest, tool: str, server: str | None, arguments: Mapping[str, Json]) -> None:
    if (found.tool, found.server) != (tool, server):
        raise AnswerMismatch("tool_mismatch", "the answer is about another tool")
    if not same(found.arguments, arguments):
        raise AnswerMismatch("arguments_mismatch", "the answer has other arguments")


def _write_id(request: str, key: str) -> str:
    """Returns the name that the gateway gives the reservation of an attempt."""
    digest = hashlib.sha256(f"{request}\0{key}".encode()).digest()
    return f"call-{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _reserved(found: ApprovalRequest, token: str, write_id: str, keys: Keys | None) -> Consumption:
    """Returns the reservation, which must be of this request and attempt. Only `keys` prove it."""
    thread = f"request:{found.id}"
    used = reservation(token, thread, write_id, keys)
    return Consumption(
        request=found.id,
        tool=found.tool,
        server=found.server,
        arguments=found.arguments,
        thread=thread,
        transition=used.transition,
        write_id=used.write_id,
        fence=used.fence,
        receipt=used.receipt,
        verification=token,
        lease_ends=used.exp,
    )
