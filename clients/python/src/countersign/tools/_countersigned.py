"""The decorator. Its order is written once, and the wrappers block or await."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from countersign import _requests
from countersign._bound import must_be_keys
from countersign._client import AsyncClient, Client
from countersign._names import Invalid, key, whole
from countersign._ordered import AwaitingHands, BlockingHands, Order, awaited, blocked
from countersign._plans import Core, Plan
from countersign.errors import Conflict, CountersignError, StillHeld
from countersign.resources import ApprovalRequest, Consumption

from ._arguments import Arguments, Call
from ._refused import CODES, CallRefused

if TYPE_CHECKING:
    from countersign.verify import Keys

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_SECS = 600
# The gateway ends the request at its deadline. The client waits a little longer, for its response.
GRACE_SECS = 30

log = logging.getLogger("countersign")


@overload
def countersigned(
    client: Client,
    *,
    tool: str | None = None,
    server: str | None = None,
    timeout_secs: int = TIMEOUT_SECS,
    key: Callable[..., str] | None = None,
    local: Iterable[str] = (),
    reasoning: str | None = None,
    on_held: Callable[[ApprovalRequest], object] | None = None,
    keys: Keys | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
@overload
def countersigned(
    client: AsyncClient,
    *,
    tool: str | None = None,
    server: str | None = None,
    timeout_secs: int = TIMEOUT_SECS,
    key: Callable[..., str] | None = None,
    local: Iterable[str] = (),
    reasoning: str | None = None,
    on_held: Callable[[ApprovalRequest], object] | None = None,
    keys: Keys | None = None,
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]: ...
def countersigned(
    client: Client | AsyncClient,
    *,
    tool: str | None = None,
    server: str | None = None,
    timeout_secs: int = TIMEOUT_SECS,
    key: Callable[..., str] | None = None,
    local: Iterable[str] = (),
    reasoning: str | None = None,
    on_held: Callable[[ApprovalRequest], object] | None = None,
    keys: Keys | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes each call of a function require approval, under the name `tool`, or the function's own.

    The function runs once, right after the approval was used, with exactly the approved arguments. They must be `None`,
    `bool`, `int`, `float`, `str`, and lists and dicts of these. Parameters in `local` are not sent, and neither is the
    object of a method, so reviewers do not see them. If the function raises or is cancelled, the outcome is `failed`.
    If its process dies, the outcome becomes unknown, and the call is not run again.

    `key` returns the key of a call from its arguments. A call with the same key continues the same request, also in
    another process. Without it each call has a random key, and a call that ends while it waits cancels its request.
    `on_held` gets the request of a call that waits for reviewers, with its `review_url`.

    With `keys` (of `countersign.verify`), the function runs only if a signature proves that this call used its request
    now. The signature does not cover the arguments: TLS proves those.

    Use a `Client` for a function, and an `AsyncClient` for an `async` function.
    """

    must_be_keys(keys)
    # An iterator can be read once, and the decorator can be used again.
    not_sent = frozenset(local)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _must_fit(client, function)
        asking = _Asking(
            tool or function.__name__,
            server,
            whole("timeout_secs", timeout_secs, 1),
            Arguments(function, not_sent),
            key,
            reasoning,
            on_held,
            keys,
        )
        if isinstance(client, AsyncClient):
            return _awaiting(client, asking, function)
        return _blocking(client, asking, function)

    return decorate


def _must_fit(client: Client | AsyncClient, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Invalid("function", "a generator runs later, and not once. Return a list")
    if inspect.iscoroutinefunction(function) != isinstance(client, AsyncClient):
        raise Invalid("client", "use a Client for a function, and an AsyncClient for an async function")


@dataclass(frozen=True)
class _Asking:
    """How the calls of one function are asked for."""

    tool: str
    server: str | None
    timeout_secs: int
    arguments: Arguments
    key: Callable[..., str] | None
    reasoning: str | None
    on_held: Callable[[ApprovalRequest], object] | None
    keys: Keys | None

    def called(self, core: Core, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Asked:
        """Returns one call of the function, before anything is sent."""
        made = self.arguments.bind(args, kwargs)
        named = str(uuid.uuid4()) if self.key is None else key("key", self.key(*args, **kwargs))
        return _Asked(self, core, made, named)


@dataclass
class _Asked:
    """One call of the function."""

    asking: _Asking
    core: Core
    made: Call
    key: str
    # The undecided request, if no other process can continue it.
    pending: str | None = None
    # The request whose approval is used, or may be, because the call was interrupted before the answer.
    used: str | None = None
    is_certain: bool = False
    ran: bool = False
    # The key of this attempt is random: if the process dies, no other can repeat it.
    attempt: str = field(default_factory=lambda: str(uuid.uuid4()))

    def order(self, function: Callable[..., Any]) -> Order[Any]:
        """Asks, waits, uses the approval, runs the function and reports. Raises if the call may not run."""

        def run() -> Any:
            self.ran = True
            return self.made.run(function)

        try:
            found = yield lambda it: it.run(self.decided())
            # A call that is cancelled by now does not use its approval. Later, its use needs an answer and a report.
            yield lambda it: it.checkpoint()
            yield lambda it: it.to_the_end(self.use(found))
            result = yield lambda it: it.body(run)
        except GeneratorExit:  # a closed coroutine cannot report
            raise
        except BaseException as error:
            yield from self._end(error)
            raise
        yield from self._end()
        return result

    def _end(self, error: BaseException | None = None) -> Order[None]:
        """Ends the request. If that fails, for whatever reason, the caller still gets the call's result or
        exception."""
        try:
            yield lambda it: it.to_the_end(self.ended(error))
        except Exception as unsaid:
            if self.used is not None:
                ended = "did not run" if not self.ran else "succeeded" if error is None else "failed"
                log.warning("%s: the call %s, and the report failed (%s)", self.used, ended, type(unsaid).__name__)

    def decided(self) -> Plan[ApprovalRequest]:
        """Asks, and waits for the approval."""
        asking = self.asking
        with self._refusing():
            found = yield from _requests.create_request(
                self.core,
                asking.tool,
                self.made.sent,
                idempotency_key=self.key,
                timeout=f"{asking.timeout_secs}s",
                server=asking.server,
                agent_reasoning=asking.reasoning,
            )
        if found.status == "pending":
            found = yield from self._waited(found)
        if found.status != "approved":
            note = None if found.decision is None else found.decision.note
            raise self._refused(found.status, note=note, request=found.id)
        return found

    def _waited(self, found: ApprovalRequest) -> Plan[ApprovalRequest]:
        asking = self.asking
        self.pending = found.id if asking.key is None else None
        if asking.on_held is not None:
            asking.on_held(found)
        try:
            within_secs = asking.timeout_secs + GRACE_SECS
            decided = yield from _requests.wait_for_request(self.core, found.id, within_secs=within_secs)
        except StillHeld as waiting:
            raise self._refused("still_held", request=found.id) from waiting
        self.pending = None
        return decided

    def use(self, found: ApprovalRequest) -> Plan[None]:
        """Uses the approval."""
        self.used = found.id
        try:
            with self._refusing():
                yield from self._consumed(found.id)
        except CountersignError:
            self.used = None
            raise
        self.is_certain = True

    def _consumed(self, request: str) -> Plan[Consumption]:
        asking = self.asking
        return _requests.consume_request(
            self.core,
            request,
            tool=asking.tool,
            arguments=self.made.sent,
            server=asking.server,
            idempotency_key=self.attempt,
            keys=asking.keys,
        )

    def ended(self, error: BaseException | None = None) -> Plan[None]:
        """Reports the outcome of a call that used its approval, or cancels the request of one that waited."""
        if self.used is not None:
            if not self.is_certain:
                # Another process can have used the approval, and its report is the one that counts. Then this raises.
                yield from self._consumed(self.used)
            yield from self._reported(self.used, error)
        elif self.pending is not None:
            # It may have been decided since then, and an unused approval expires.
            yield from _requests.cancel_request(self.core, self.pending)

    def _reported(self, used: str, error: BaseException | None) -> Plan[None]:
        status: _requests.Outcome = "succeeded" if error is None else "failed"
        # A message can be confidential.
        note = None if error is None else type(error).__name__
        if not self.ran:
            note = f"{note}, before the call ran"
        yield from _requests.report_outcome(self.core, used, status, note=note)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except Conflict as refused:
            if refused.code not in CODES:
                raise
            raise self._refused(refused.code, note=refused.detail) from refused

    def _refused(self, code: str, *, note: str | None = None, request: str | None = None) -> CallRefused:
        return CallRefused(code, self.asking.tool, note=note, request=request, keyed=self.asking.key is not None)


def _blocking(client: Client, asking: _Asking, function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        asked = asking.called(client._settings.core, args, kwargs)
        result: T = blocked(asked.order(function), BlockingHands(client))
        return result

    return call


def _awaiting(client: AsyncClient, asking: _Asking, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        asked = asking.called(client._settings.core, args, kwargs)
        result: T = await awaited(asked.order(function), AwaitingHands(client))
        return result

    return call
