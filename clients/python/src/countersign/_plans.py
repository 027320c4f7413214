"""Plans: what a call does, without doing it.

A plan is a generator. It yields a `Request` to send or a `Pause` to wait, receives the `Reply`, and returns the
response. So retries and the meaning of responses are written once, and the two drivers differ only in blocking or
awaiting.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar, cast

from ._names import Invalid
from ._problems import problem
from ._reading import parse
from .errors import ChainBroken, Failed, Json, Problem, TooManyRequests, UnexpectedAnswer, Unreachable

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Request:
    """One HTTP request below the gateway's address."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    # Extra time beyond the usual timeout.
    waits_secs: float = 0.0


@dataclass(frozen=True)
class Pause:
    """A wait."""

    secs: float


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    body: bytes
    retry_after: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lost:
    """No response. Without a connection it is certain that nothing was sent."""

    why: str
    sent: bool
    cause: Exception | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Item(Generic[T]):
    """One item of a walk."""

    value: T


Step = Request | Pause
Came = Reply | Lost | None
Plan = Generator[Step, Came, T]
Walk = Generator[Step | Item[T], Came, None]


@dataclass(frozen=True)
class Retries:
    """How often a request is repeated, and after which waits. Each wait doubles, and up to half of it is added at
    random."""

    tries: int = 4
    first_secs: float = 0.2
    most_secs: float = 5.0
    # A longer `Retry-After`, such as an hour, ends the call instead.
    retry_after_most_secs: float = 60.0

    def __post_init__(self) -> None:
        if self.tries < 1 or not 0 < self.first_secs <= self.most_secs:
            raise Invalid("retries", "at least one attempt, and positive pauses")


# A confirm must survive a restart of the gateway of half a minute.
PATIENT = Retries(tries=10)


@dataclass(frozen=True)
class Core:
    """Dependencies of plans: retries, a clock and randomness."""

    retries: Retries = field(default_factory=Retries)
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = secrets.SystemRandom().random
    today: Callable[[], float] = time.time


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the meaning of each status that is no refusal."""

    request: Request
    accepts: Mapping[int, Callable[[Json], T]]
    # Whether the protocol makes a repeat safe. If not, it is repeated only if nothing was sent.
    repeatable: bool = True
    refusals: Callable[[int, Json], Problem] = problem
    # The parser of the body.
    parses: Callable[[bytes], Json] = parse
    # The status of a success without a body.
    done: int | None = None
    # Adds the members that are headers.
    with_headers: Callable[[T, Mapping[str, str]], T] = lambda found, headers: found

    def also(self, status: int, accepts: Callable[[Json], U]) -> Call[T | U]:
        """Returns the same call with one more status that is no refusal."""
        both: Mapping[int, Callable[[Json], T | U]] = {**self.accepts, status: accepts}
        return Call(self.request, both, self.repeatable, self.refusals, self.parses)


def text(body: Json) -> bytes:
    """Returns a body as JSON. An argument that JSON cannot represent is refused before anything is sent."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as bad:
        raise Invalid("body", f"cannot be represented in JSON ({type(bad).__name__})") from None


def asked(core: Core, call: Call[T], retries: Retries | None = None) -> Plan[T]:
    """Sends the request until there is a response, as often as allowed, and never again if that could have a second
    effect."""
    retries = retries or core.retries
    for tried in range(1, retries.tries + 1):
        came = yield call.request
        again = _may_ask_again(came, call.repeatable)
        if tried == retries.tries or not again:
            return understood(call, came)
        pause = pause_secs(core, retries, tried, came)
        if pause is None:
            return understood(call, came)
        yield Pause(pause)
    raise AssertionError("the last try returns")


_FOR_PEOPLE = frozenset({"chain_broken", "archive_missing", "archive_damaged"})


def _may_ask_again(came: Came, repeatable: bool) -> bool:
    if isinstance(came, Lost):
        return repeatable or not came.sent
    if not isinstance(came, Reply):
        return False
    # 429 comes before any effect. After a 5xx the effect is unknown, so only a safe call is repeated.
    if came.status == 429:
        return True
    code = _code(came) if repeatable and (came.status == 409 or came.status >= 500) else None
    # Our own first request is still in progress, and its response follows soon.
    if came.status == 409:
        return code == "request_in_progress"
    # Retries fix neither a broken chain nor a missing archive file.
    return repeatable and came.status >= 500 and code not in _FOR_PEOPLE


def _code(came: Reply) -> object:
    body = _said(came.body)
    # Approval requests have an envelope around it.
    envelope = body.get("error") if isinstance(body, dict) else None
    found = envelope if isinstance(envelope, dict) else body
    return found.get("code") if isinstance(found, dict) else None


def pause_secs(core: Core, retries: Retries, tried: int, came: Came) -> float | None:
    """Returns how long to wait before the next attempt, or `None` if the gateway asks for longer than the limit."""
    most = min(retries.most_secs, retries.first_secs * 2.0 ** min(tried - 1, 16))
    pause = most * (0.5 + 0.5 * core.chance())
    asked_for = retry_after(came.retry_after, core.today()) if isinstance(came, Reply) else None
    if asked_for is None:
        return pause
    # All clients receive the same second, so randomness is added and not subtracted.
    return None if asked_for > retries.retry_after_most_secs else asked_for + pause


def retry_after(said: str | None, today: float) -> float | None:
    """Returns `Retry-After` in seconds from now: a number, or a date."""
    if said is None:
        return None
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - today)
    except (TypeError, ValueError, OverflowError):
        return None


def understood(call: Call[T], came: Came) -> T:
    """Returns the response, or raises the exception for it."""
    where = f"{call.request.method} {call.request.path}"
    if isinstance(came, Lost):
        raise Unreachable(f"{where}: {came.why}") from came.cause
    if came is None:
        raise Unreachable(f"{where}: nothing was sent")
    accepted = call.accepts.get(came.status)
    if accepted is not None:
        return call.with_headers(accepted(call.parses(came.body)), came.headers)
    if came.status == call.done:
        return cast("T", None)
    if came.status < 400:
        raise UnexpectedAnswer(f"{where}: status {came.status}")
    raise call.refusals(came.status, _said(came.body))


def _said(body: bytes) -> Json:
    try:
        return parse(body)
    except UnexpectedAnswer:
        return None


def is_passing(trouble: Exception) -> bool:
    """Returns whether an error may go away by itself, so that a wait continues."""
    if isinstance(trouble, ChainBroken):
        return False
    return isinstance(trouble, Unreachable | Failed | TooManyRequests)


def wait_secs(left: float, most: float) -> int:
    """Returns a whole number of seconds to request, at least one."""
    return max(1, math.ceil(min(left, most)))
