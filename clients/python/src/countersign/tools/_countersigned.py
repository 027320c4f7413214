"""The decorator. Its order is written once, as plans, and the wrappers block or await."""

from __future__ import annotations

import functools
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from countersign import _requests
from countersign._client import AsyncClient, Client
from countersign._finished import finished
from countersign._names import Invalid, key, whole
from countersign._plans import Core, Plan
from countersign.errors import Conflict, CountersignError, Json, StillHeld
from countersign.resources import ApprovalRequest, Consumption

from ._arguments import Arguments
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

    The function runs once, right after the approval was used, with exactly the approved arguments. They must be JSON
    values. Parameters in `local` are not sent, and neither is `self`, so reviewers do not see them. If the function
    raises, the outcome is `failed`. If its process dies, the outcome becomes unknown, and the call is not run again.

    `key` returns the key of a call from its arguments. A call with the same key continues the same request, also in
    another process. Without it each call has a random key. `on_held` gets the request of a call that waits for
    reviewers, with its `review_url`.

    With `keys` (of `countersign.verify`), the function runs only if a signature proves that this call used its request
    now. The signature does not cover the arguments: TLS proves those.

    Use a `Client` for a function, and an `AsyncClient` for an `async` function.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _must_fit(client, function)
        asking = _Asking(
            tool or function.__name__,
            server,
            whole("timeout_secs", timeout_secs, 1),
            Arguments(function, local),
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

    def key_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Returns the key of a call."""
        return str(uuid.uuid4()) if self.key is None else key("key", self.key(*args, **kwargs))

    def approved(self, core: Core, idempotency_key: str, arguments: dict[str, Json]) -> Plan[Consumption]:
        """Asks, waits and uses the approval. Raises if the call may not run."""
        try:
            return (yield from self._approved(core, idempotency_key, arguments))
        except Conflict as refused:
            if refused.code not in CODES:
                raise
            raise CallRefused(refused.code, self.tool, note=refused.detail) from refused

    def _approved(self, core: Core, idempotency_key: str, arguments: dict[str, Json]) -> Plan[Consumption]:
        found = yield from _requests.create_request(
            core,
            self.tool,
            arguments,
            idempotency_key=idempotency_key,
            timeout=f"{self.timeout_secs}s",
            server=self.server,
            agent_reasoning=self.reasoning,
        )
        if found.status == "pending":
            found = yield from self._decided(core, found)
        if found.status != "approved":
            note = None if found.decision is None else found.decision.note
            raise CallRefused(found.status, self.tool, note=note, request=found.id)
        # The key of this attempt is random: if the process dies, no other process can repeat it.
        return (
            yield from _requests.consume_request(
                core, found.id, tool=self.tool, arguments=arguments, server=self.server, keys=self.keys
            )
        )

    def _decided(self, core: Core, found: ApprovalRequest) -> Plan[ApprovalRequest]:
        if self.on_held is not None:
            self.on_held(found)
        try:
            within_secs = self.timeout_secs + GRACE_SECS
            return (yield from _requests.wait_for_request(core, found.id, within_secs=within_secs))
        except StillHeld as waiting:
            raise CallRefused("still_held", self.tool, request=found.id) from waiting


def _blocking(client: Client, asking: _Asking, function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        made = asking.arguments.bind(args, kwargs)
        core = client._settings.core
        used = client._run(asking.approved(core, asking.key_of(args, kwargs), made.sent))
        try:
            result: T = finished(made.run(function, used.arguments))
        except Exception as error:
            client._run(_reported(core, used, error))
            raise
        client._run(_reported(core, used, None))
        return result

    return call


def _awaiting(client: AsyncClient, asking: _Asking, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        made = asking.arguments.bind(args, kwargs)
        core = client._settings.core
        used = await client._run(asking.approved(core, asking.key_of(args, kwargs), made.sent))
        try:
            result: T = finished(await made.run(function, used.arguments))
        except Exception as error:
            await client._run(_reported(core, used, error))
            raise
        await client._run(_reported(core, used, None))
        return result

    return call


def _reported(core: Core, used: Consumption, error: Exception | None) -> Plan[None]:
    """Reports the outcome. If that fails, the call has still run, so the caller gets its result or its exception."""
    status: _requests.Outcome = "succeeded" if error is None else "failed"
    # A message can be confidential.
    note = None if error is None else type(error).__name__
    try:
        yield from _requests.report_outcome(core, used.request, status, note=note)
    except CountersignError as unsaid:
        log.warning("%s: the call %s, and the report failed (%s)", used.request, status, type(unsaid).__name__)
