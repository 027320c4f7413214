"""The writer's question. Only one answer is a yes; everything else raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from . import _names as names
from ._plans import Call, Core, Plan, Request, asked, text
from ._problems import problem
from ._reading import read
from .answers import Verified
from .errors import Denied, Forbidden, Json, Problem, UnexpectedAnswer

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
    """Asks whether to write, right before writing. Returns only if the gateway says yes to exactly this.

    Take `thread` and `transition` from your own job, never from what an agent sent along, and store `write_id` with
    the job before you ask: the same one again gives the same answer while its lease lives.

    With `keys` (of `countersign.verify`) the answer must be what one of them signed, or it is `Refused`: whoever stands
    between this and the gateway makes no yes then. Without them it is believed because of whom TLS says it comes from.
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
    return found


def _checked_by(keys: Keys, expect: Mapping[str, Json]) -> Callable[[Verified, dict[str, Json], float], None]:
    """The check of an answer. What it needs is an extra, which whoever has keys has."""
    from .verify import Keys
    from .verify._let_through import Asked, must_be_comparable, must_be_signed

    if not isinstance(keys, Keys):
        raise names.Invalid("keys", "Keys of countersign.verify: Keys.read(…)")
    must_be_comparable(expect)

    def check(found: Verified, body: dict[str, Json], now: float) -> None:
        asked_about = Asked(
            body["thread"], body["transition"], body["write_id"], body.get("receipt"), body.get("expect", {})
        )
        must_be_signed(found, asked_about, keys, now=now)

    return check


def _yes(answer: Json, write_id: str) -> Verified:
    found = read(Verified, answer)
    if found.allow is not True:
        raise UnexpectedAnswer("verify did not allow")
    if found.write_id != write_id:
        raise UnexpectedAnswer("verify answered about another write")
    return found


def _no(status: int, body: Json) -> Problem:
    """In verify, `forbidden` is one of the reasons for which one does not write."""
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
