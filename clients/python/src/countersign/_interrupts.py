"""Calls of a host that keeps its own state and has reviewers decide its interrupts."""

from __future__ import annotations

from collections.abc import Sequence

from . import _names as names
from ._calls import given, keyed
from ._plans import Call, Core, Plan, Request, asked
from ._reading import read
from ._waiting import until_it_ends
from .errors import Json, UnexpectedAnswer
from .resources import Interrupt, InterruptAnswer


def post_interrupt(
    core: Core,
    *,
    interrupt_id: str,
    transition_digest: str,
    changed_keys: Sequence[str],
    redacted_diff: Json,
    thread_ref: str | None = None,
    title: str | None = None,
    reason: str | None = None,
    expires_in_secs: int | None = None,
    attempt: int | None = None,
) -> Plan[Interrupt]:
    """Posts an interrupt for review. The same post is the same interrupt. Compute the digest over everything that
    you show, because reviewers decide on it."""
    body = given(
        kind="state_transition_review",
        interrupt_id=interrupt_id,
        transition_digest=transition_digest,
        changed_keys=list(changed_keys),
        thread_ref=thread_ref,
        title=title,
        reason=reason,
        expires_in=expires_in_secs,
        attempt=attempt,
    )
    return (yield from asked(core, keyed(Interrupt, "/v1/interrupts", {**body, "redacted_diff": redacted_diff}, 202)))


def interrupt(core: Core, interrupt: str) -> Plan[InterruptAnswer | None]:
    """Returns how an interrupt ended, or `None` while it is pending."""
    return (yield from asked(core, _call(interrupt, 0)))


def wait_for_interrupt(core: Core, interrupt: str, *, within_secs: float) -> Plan[InterruptAnswer]:
    """Waits for the decision, at most `within_secs`. Then it raises `StillHeld`, and the interrupt is still pending."""
    return (yield from until_it_ends(core, lambda wait: _call(interrupt, wait), interrupt, within_secs))


def _call(interrupt: str, wait: int) -> Call[InterruptAnswer | None]:
    headers = {"Prefer": f"wait={wait}"} if wait else {}
    path = f"/v1/interrupts/{names.part('interrupt', interrupt)}"
    request = Request("GET", path, headers=headers, waits_secs=float(wait))
    return Call(request, {200: _ended, 202: lambda body: None})


def _ended(body: Json) -> InterruptAnswer:
    found = read(InterruptAnswer, body)
    if found.approved != (found.decision == "approved"):
        raise UnexpectedAnswer("the answer contradicts itself")
    return found
