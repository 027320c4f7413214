"""What there is to do, without doing it.

A plan is a generator: it yields a `Request` to be sent or a `Pause` to be waited, is given the `Reply`, and
returns the answer. So when to repeat what, and what an answer means, is written once; that a client blocks or
awaits is all the two drivers differ in.
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
    # How long the gateway may take beyond what any call may.
    waits_secs: float = 0.0


@dataclass(frozen=True)
class Pause:
    """Nothing is done for so long."""

    secs: float


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    body: bytes
    retry_after: str | None = None


@dataclass(frozen=True)
class Lost:
    """Nothing came back. Whether anything was sent is known only if no connection was made."""

    why: str
    sent: bool
    cause: Exception | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Item(Generic[T]):
    """One of many, for whoever goes through them."""

    value: T


Step = Request | Pause
Came = Reply | Lost | None
Plan = Generator[Step, Came, T]
Walk = Generator[Step | Item[T], Came, None]


@dataclass(frozen=True)
class Retries:
    """How often the same is asked again, and how far apart: twice as long each time, up to half of it by chance."""

    tries: int = 4
    first_secs: float = 0.2
    most_secs: float = 5.0
    # Whoever says "come back in an hour" is not waited for within a call.
    retry_after_most_secs: float = 60.0

    def __post_init__(self) -> None:
        if self.tries < 1 or not 0 < self.first_secs <= self.most_secs:
            raise Invalid("retries", "at least one try, and pauses that are longer than nothing")


# A write that happened must not go unsaid because a gateway took half a minute to come back.
PATIENT = Retries(tries=10)


@dataclass(frozen=True)
class Core:
    """What plans need of the world: how to retry, a clock and chance."""

    retries: Retries = field(default_factory=Retries)
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = secrets.SystemRandom().random
    today: Callable[[], float] = time.time


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what each status that is no refusal means."""

    request: Request
    accepts: Mapping[int, Callable[[Json], T]]
    # Whether asking twice is, by the protocol, asking once. If not, it is repeated only if nothing was sent.
    repeatable: bool = True
    refusals: Callable[[int, Json], Problem] = problem
    # How a body is read before it is understood.
    parses: Callable[[bytes], Json] = parse
    # The status of a success that has nothing to say.
    done: int | None = None

    def also(self, status: int, accepts: Callable[[Json], U]) -> Call[T | U]:
        """The same with one more status that is no refusal."""
        both: Mapping[int, Callable[[Json], T | U]] = {**self.accepts, status: accepts}
        return Call(self.request, both, self.repeatable, self.refusals, self.parses)


def text(body: Json) -> bytes:
    """A body. What JSON cannot say is refused here, before anything is sent."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as bad:
        raise Invalid("body", f"cannot be said in JSON ({type(bad).__name__})") from None


def asked(core: Core, call: Call[T], retries: Retries | None = None) -> Plan[T]:
    """Asks until there is an answer, as often as is sensible, and never again where that could do something twice."""
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
    # 429 is said before anything is done. What a 5xx left behind nobody knows, so it takes a call that is safe.
    if came.status == 429:
        return True
    code = _code(came) if repeatable and (came.status == 409 or came.status >= 500) else None
    # Our own request, which is still being carried out: its answer is about to be there.
    if came.status == 409:
        return code == "request_in_progress"
    # A broken chain does not mend itself while one asks, nor does the file of an archive come back.
    return repeatable and came.status >= 500 and code not in _FOR_PEOPLE


def _code(came: Reply) -> object:
    body = _said(came.body)
    return body.get("code") if isinstance(body, dict) else None


def pause_secs(core: Core, retries: Retries, tried: int, came: Came) -> float | None:
    """How long to wait before the next try; `None` if the gateway asks for longer than anybody waits."""
    most = min(retries.most_secs, retries.first_secs * 2.0 ** min(tried - 1, 16))
    pause = most * (0.5 + 0.5 * core.chance())
    asked_for = retry_after(came.retry_after, core.today()) if isinstance(came, Reply) else None
    if asked_for is None:
        return pause
    # Everybody is told the same second: chance is added, not taken off.
    return None if asked_for > retries.retry_after_most_secs else asked_for + pause


def retry_after(said: str | None, today: float) -> float | None:
    """`Retry-After` in seconds from now: a number, or a date."""
    if said is None:
        return None
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - today)
    except (TypeError, ValueError, OverflowError):
        return None


def understood(call: Call[T], came: Came) -> T:
    """What came back as an answer, or as the exception that says why there is none."""
    where = f"{call.request.method} {call.request.path}"
    if isinstance(came, Lost):
        raise Unreachable(f"{where}: {came.why}") from came.cause
    if came is None:
        raise Unreachable(f"{where}: nothing was sent")
    accepted = call.accepts.get(came.status)
    if accepted is not None:
        return accepted(call.parses(came.body))
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
    """Trouble that may be over by itself, so that a wait goes on."""
    if isinstance(trouble, ChainBroken):
        return False
    return isinstance(trouble, Unreachable | Failed | TooManyRequests)


def wait_secs(left: float, most: float) -> int:
    """A whole number of seconds to ask for, at least one."""
    return max(1, math.ceil(min(left, most)))
