"""The writer's `verify`. It returns only for a clear permission, and raises otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from . import _names as names
from ._plans import Call, Core, Plan, Request, asked, text
from ._problems import problem
from ._reading import read
from ._same import same
from ._unchecked import NoToken, claim
from .answers import Verified
from .errors import AnswerMismatch, Denied, Forbidden, Json, Problem, ReceiptMismatch, UnexpectedAnswer

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
    Then no proxy can forge a permission. Without them, TLS is the only proof, and a mixed-up response raises
    `AnswerMismatch`.
    """
    check = None if keys is None else _checked_by(keys, expect or {})
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
    if check is not None:
        check(found, body, core.today())
    _must_be_bound(found, body)
    return found


def must_be_keys(keys: Keys | None) -> None:
    """Refuses values that are no keys, such as a key set that was not read, before anything is sent."""
    if keys is None:
        return
    from .verify import Keys

    if not isinstance(keys, Keys):
        raise names.Invalid("keys", "Keys of countersign.verify: Keys.read(…)")


def _checked_by(keys: Keys, expect: Mapping[str, Json]) -> Callable[[Verified, dict[str, Json], float], None]:
    """Returns the check of a signed response. It needs the extra `verify`, which provides the keys."""
    must_be_keys(keys)
    from .verify._let_through import Asked, must_be_comparable, must_be_signed

    must_be_comparable(expect)

    def check(found: Verified, body: dict[str, Json], now: float) -> None:
        asked_about = Asked(
            body["thread"], body["transition"], body["write_id"], body.get("receipt"), body.get("expect", {})
        )
        must_be_signed(found, asked_about, keys, now=now)

    return check


def _must_be_bound(found: Verified, body: dict[str, Json]) -> None:
    """Refuses the response to another request: its verification must be about exactly this write."""
    try:
        members = ("sub", "transition", "write_id", "fence", "exp", "receipt")
        signed = {name: claim(found.verification, name) for name in members}
    except NoToken as missing:
        raise UnexpectedAnswer(f"the verification has no `{missing}`") from None
    expected = {
        "thread_mismatch": ("sub", body["thread"]),
        "digest_mismatch": ("transition", body["transition"]),
        "write_mismatch": ("write_id", body["write_id"]),
        "fence_mismatch": ("fence", found.fence),
        "lease_mismatch": ("exp", math.floor(found.lease_expires_at.timestamp())),
    }
    for code, (name, value) in expected.items():
        if not same(signed[name], value):
            raise AnswerMismatch(code, f"the verification has another `{name}`")
    # The gateway may need no receipt although one was sent.
    if signed["receipt"] is not None and signed["receipt"] != _jti(body.get("receipt")):
        raise ReceiptMismatch


def _jti(receipt: Json) -> Json:
    try:
        return claim(receipt, "jti")
    except NoToken:
        return None


def _yes(answer: Json, write_id: str) -> Verified:
    found = read(Verified, answer)
    if found.allow is not True:
        raise UnexpectedAnswer("verify did not allow")
    if found.write_id != write_id:
        raise UnexpectedAnswer("verify answered about another write")
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
