"""Waits for decisions: long polling that continues over disconnects, restarts and 5xx until its deadline."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from . import _names as names
from ._plans import (
    Call,
    Came,
    Core,
    Pause,
    Plan,
    Request,
    asked,
    is_passing,
    pause_secs,
    understood,
    wait_secs,
)
from ._reading import read
from .answers import Decision
from .errors import CountersignError, Json, StillHeld, UnexpectedAnswer

# Proxies close connections that are silent for a minute.
POLL_SECS = 25
# A gateway that responds "held" at once, for example during a shutdown, is not polled in a tight loop.
SOON_SECS = 1.0
# Five edits in a row, and each policy that was activated in between.
FOLLOWED_MAX = 64

T = TypeVar("T")
Asks = Callable[[int], Call[T | None]]


def decision(core: Core, transition: str) -> Plan[Decision | None]:
    """Returns how a transition ended, or `None` while it is pending."""
    return (yield from asked(core, _call(transition, 0)))


def followed(core: Core, transition: str) -> Plan[tuple[str, Decision | None]]:
    """Returns how a transition ended, or how the last transition in its place did."""
    before: Decision | None = None
    for _ in range(FOLLOWED_MAX):
        found = yield from decision(core, transition)
        if before is not None and not _took_its_place(found):
            return before.transition_digest, before
        if found is None or found.superseded_by is None:
            return transition, found
        before, transition = found, found.superseded_by
    raise UnexpectedAnswer("superseded more often than possible")


def wait_for_decision(core: Core, transition: str, *, within_secs: float, follow: bool = False) -> Plan[Decision]:
    """Waits for the decision, at most `within_secs`. Then it raises `StillHeld`, and the proposal is still pending.

    With `follow` it continues with the transition that superseded this one: an edit, or the same request under a new
    policy. Check `transition_digest` before you act on it.
    """
    ends = core.clock() + _secs(within_secs)
    before: Decision | None = None
    for _ in range(FOLLOWED_MAX):
        found = yield from _until(core, functools.partial(_call, transition), ends, transition, within_secs)
        if before is not None and not _took_its_place(found):
            return before
        if not follow or found.superseded_by is None:
            return found
        before, transition = found, found.superseded_by
    raise UnexpectedAnswer("superseded more often than possible")


def _took_its_place(found: Decision | None) -> bool:
    """Returns whether a transition replaces the original under review. One that committed without review is another
    one, such as a confirmed write."""
    return found is None or found.decision != "committed"


def until_it_ends(core: Core, call: Asks[T], named: str, within_secs: float) -> Plan[T]:
    """Repeats the request until there is a response. Each request says how long the gateway may wait."""
    return (yield from _until(core, call, core.clock() + _secs(within_secs), named, within_secs))


def _secs(within_secs: float) -> float:
    if not within_secs >= 0:
        raise names.Invalid("within_secs", "a number of seconds")
    return within_secs


def _until(core: Core, call_of: Asks[T], ends: float, named: str, within_secs: float) -> Plan[T]:
    failures, trouble = 0, None
    while True:
        asked_at = core.clock()
        if asked_at >= ends:
            # Only a response proves that it is still pending.
            raise trouble or StillHeld(named, within_secs)
        call = call_of(wait_secs(ends - asked_at, POLL_SECS))
        came = yield call.request
        try:
            found = understood(call, came)
        except CountersignError as error:
            if not is_passing(error):
                raise
            failures, trouble = failures + 1, error
            pause = _after_trouble(core, failures, came)
        else:
            if found is not None:
                return found
            failures, trouble = 0, None
            pause = _after_not_yet(core, core.clock() - asked_at)
        if pause > 0:
            yield Pause(max(0.0, min(pause, ends - core.clock())))


def _after_trouble(core: Core, failures: int, came: Came) -> float:
    pause = pause_secs(core, core.retries, failures, came)
    return core.retries.retry_after_most_secs if pause is None else pause


def _after_not_yet(core: Core, waited: float) -> float:
    return SOON_SECS * (0.5 + 0.5 * core.chance()) if waited < SOON_SECS else 0.0


def _call(transition: str, wait: int) -> Call[Decision | None]:
    digest = names.digest("transition", transition)
    headers = {"Prefer": f"wait={wait}"} if wait else {}
    request = Request("GET", f"/v1/transitions/{digest}/decision", headers=headers, waits_secs=float(wait))
    return Call(request, {200: lambda body: _of(digest, body), 202: lambda body: None})


def _of(digest: str, body: Json) -> Decision:
    found = read(Decision, body)
    if found.transition_digest != digest:
        raise UnexpectedAnswer("the decision is about another transition")
    if found.approved != (found.decision in ("approved", "committed")):
        raise UnexpectedAnswer("the decision contradicts itself")
    return found
