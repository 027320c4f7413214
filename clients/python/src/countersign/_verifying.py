"""The writer's `verify`. It returns only for a clear permission, and raises otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _names as names
from ._bound import Asked, must_be_bound, must_be_comparable, must_be_keys
from ._plans import Call, Core, Plan, Request, asked, text
from ._problems import problem
from ._reading import read
from .answers import Verified
from .errors import AnswerMismatch, Denied, Forbidden, Json, Problem, UnexpectedAnswer

if TYPE_CHECKING:
    from .verify import Keys


def verify(
    core: Core,
    *,
    thread: str,
    transition: str,
    write_id: str,
    receipt: str | None = None,
    expect: Mapping[str, Json] | None = None,
    keys: Keys | None = None,
) -> Plan[Verified]:
    """Asks for permission right before a write. It returns only if the gateway allows exactly this write.

    Take `thread` and `transition` from your own job, never from an agent. Store `write_id` with the job before the
    call: the same one returns the same response while its lease is valid.

    With `keys` (of `countersign.verify`) the response must be signed by one of them, otherwise it raises `Refused`.
    Then no proxy can forge a permission. Without them, TLS is the only proof. The same members are compared, and a
    mixed-up response raises `AnswerMismatch`.
    """
    must_be_keys(keys)
    must_be_comparable(expect or {})
    body: dict[str, Json] = {
        "thread": names.name("thread", thread),
        "transition": names.digest("transition", transition),
        "write_id": names.name("write_id", write_id),
    }
    if receipt is not None:
        body["receipt"] = receipt
    if expect:
        body["expect"] = dict(expect)
    request = Request("POST", "/v1/verify", body=text(body))
    call = Call(request, {200: lambda answer: _yes(answer, write_id)}, refusals=_no)
    found = yield from asked(core, call)
    must_be_bound(found, Asked(thread, transition, write_id, receipt, body.get("expect", {})), keys, now=core.today())
    return found


def _yes(answer: Json, write_id: str) -> Verified:
    found = read(Verified, answer)
    if found.allow is not True:
        raise UnexpectedAnswer("verify did not allow")
    if found.write_id != write_id:
        raise AnswerMismatch("write_mismatch", "the answer is about another write")
    return found


def _no(status: int, body: Json) -> Problem:
    """Returns the exception for a refusal. In `verify`, `forbidden` is one of the codes."""
    said = problem(status, body)
    if not isinstance(said, Forbidden):
        return said
    return Denied(
        status=said.status,
        code=said.code,
        title=said.title,
        detail=said.detail,
        request_id=said.request_id,
        errors=said.errors,
        facts=said.facts,
    )
