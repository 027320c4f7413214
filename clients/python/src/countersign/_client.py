"""`Client` and `AsyncClient`: the same methods, one blocking, one awaited."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

import httpx

from . import (
    _administering,
    _auditing,
    _calls,
    _endpoints,
    _episodes,
    _interrupts,
    _node_secrets,
    _requests,
    _verifying,
    _waiting,
)
from ._bounded import ANSWER_BYTES_MAX
from ._driving import Awaiting, AwaitingWalk, Awaits, Blocking, BlockingWalk, Blocks
from ._following import afollow, follow
from ._plans import Retries
from ._secret import Secret
from ._settings import Settings
from .answers import Event

TIMEOUT_SECS = 10.0


class Client(Blocks):
    """A client of one gateway with one token. Threads may share it. Close it, or use it with `with`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_secs: float = TIMEOUT_SECS,
        retries: Retries | None = None,
        allow_plain_http: bool = False,
        tls: ssl.SSLContext | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        secret = Secret(token)
        # Error reports show variables, so the plain token must not be one from here on.
        del token
        self._settings = Settings.of(
            url,
            secret,
            timeout_secs=timeout_secs,
            retries=retries,
            allow_plain_http=allow_plain_http,
            tls=tls,
            answer_bytes_max=answer_bytes_max,
        )
        self._http = httpx.Client(**self._settings.httpx(), transport=transport)

    create_thread = Blocking(_calls.create_thread)
    thread = Blocking(_calls.thread)
    state = Blocking(_calls.state)
    chain = BlockingWalk(_calls.chain)
    chain_page = Blocking(_calls.chain_page)
    propose = Blocking(_calls.propose)
    reaffirm = Blocking(_calls.reaffirm)
    rollback = Blocking(_calls.rollback)
    envelope = Blocking(_calls.envelope)
    verify_envelope = Blocking(_calls.verify_envelope)
    checked_envelope = Blocking(_node_secrets.checked_envelope)
    node_secrets = Blocking(_node_secrets.node_secrets)
    fork = Blocking(_calls.fork)
    join = Blocking(_calls.join)
    transition = Blocking(_calls.transition)
    decision = Blocking(_waiting.decision)
    wait_for_decision = Blocking(_waiting.wait_for_decision)
    cancel = Blocking(_calls.cancel)
    verify = Blocking(_verifying.verify)
    confirm = Blocking(_calls.confirm)
    abort = Blocking(_calls.abort)
    events = BlockingWalk(_calls.events)
    events_page = Blocking(_calls.events_page)
    jwks = Blocking(_calls.jwks)
    activate_policy = Blocking(_administering.activate_policy)
    amendments = Blocking(_administering.amendments)
    amendment = Blocking(_administering.amendment)
    cancel_amendment = Blocking(_administering.cancel_amendment)
    judge = Blocking(_administering.judge)
    replay_page = Blocking(_administering.replay_page)
    replay = BlockingWalk(_administering.replay)
    halt = Blocking(_administering.halt)
    revoke_receipt = Blocking(_administering.revoke_receipt)
    close_thread = Blocking(_administering.close_thread)
    reopen_thread = Blocking(_administering.reopen_thread)
    resolve_lapse = Blocking(_administering.resolve_lapse)
    add_event = Blocking(_episodes.add_event)
    episode_file = Blocking(_episodes.episode_file)
    endpoints = Blocking(_endpoints.endpoints)
    endpoint = Blocking(_endpoints.endpoint)
    add_endpoint = Blocking(_endpoints.add_endpoint)
    change_endpoint = Blocking(_endpoints.change_endpoint)
    remove_endpoint = Blocking(_endpoints.remove_endpoint)
    new_endpoint_secret = Blocking(_endpoints.new_endpoint_secret)
    test_endpoint = Blocking(_endpoints.test_endpoint)
    deliveries_page = Blocking(_endpoints.deliveries_page)
    deliveries = BlockingWalk(_endpoints.deliveries)
    delivery = Blocking(_endpoints.delivery)
    redeliver = Blocking(_endpoints.redeliver)
    redeliver_many = Blocking(_endpoints.redeliver_many)
    post_interrupt = Blocking(_interrupts.post_interrupt)
    interrupt = Blocking(_interrupts.interrupt)
    wait_for_interrupt = Blocking(_interrupts.wait_for_interrupt)
    create_request = Blocking(_requests.create_request)
    request = Blocking(_requests.request)
    wait_for_request = Blocking(_requests.wait_for_request)
    cancel_request = Blocking(_requests.cancel_request)
    consume_request = Blocking(_requests.consume_request)
    report_outcome = Blocking(_requests.report_outcome)
    rejections_page = Blocking(_auditing.rejections_page)
    rejections = BlockingWalk(_auditing.rejections)
    passkeys = Blocking(_auditing.passkeys)
    evidence = Blocking(_auditing.evidence)
    alive = Blocking(_auditing.alive)
    ready = Blocking(_auditing.ready)
    metrics = Blocking(_auditing.metrics)

    def follow_events(self, *, after: int = 0) -> Iterator[Event]:
        """Yields each event after a log position as it happens. It continues after lost connections and restarts,
        and ends if the token is revoked."""
        return follow(self, after)

    @property
    def url(self) -> str:
        """Returns the address of the gateway."""
        return self._settings.address.url

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return _shown(self)


class AsyncClient(Awaits):
    """The awaited variant of `Client`. Close it with `aclose`, or use it with `async with`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_secs: float = TIMEOUT_SECS,
        retries: Retries | None = None,
        allow_plain_http: bool = False,
        tls: ssl.SSLContext | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        secret = Secret(token)
        # Error reports show variables, so the plain token must not be one from here on.
        del token
        self._settings = Settings.of(
            url,
            secret,
            timeout_secs=timeout_secs,
            retries=retries,
            allow_plain_http=allow_plain_http,
            tls=tls,
            answer_bytes_max=answer_bytes_max,
        )
        self._http = httpx.AsyncClient(**self._settings.httpx(), transport=transport)

    create_thread = Awaiting(_calls.create_thread)
    thread = Awaiting(_calls.thread)
    state = Awaiting(_calls.state)
    chain = AwaitingWalk(_calls.chain)
    chain_page = Awaiting(_calls.chain_page)
    propose = Awaiting(_calls.propose)
    reaffirm = Awaiting(_calls.reaffirm)
    rollback = Awaiting(_calls.rollback)
    envelope = Awaiting(_calls.envelope)
    verify_envelope = Awaiting(_calls.verify_envelope)
    checked_envelope = Awaiting(_node_secrets.checked_envelope)
    node_secrets = Awaiting(_node_secrets.node_secrets)
    fork = Awaiting(_calls.fork)
    join = Awaiting(_calls.join)
    transition = Awaiting(_calls.transition)
    decision = Awaiting(_waiting.decision)
    wait_for_decision = Awaiting(_waiting.wait_for_decision)
    cancel = Awaiting(_calls.cancel)
    verify = Awaiting(_verifying.verify)
    confirm = Awaiting(_calls.confirm)
    abort = Awaiting(_calls.abort)
    events = AwaitingWalk(_calls.events)
    events_page = Awaiting(_calls.events_page)
    jwks = Awaiting(_calls.jwks)
    activate_policy = Awaiting(_administering.activate_policy)
    amendments = Awaiting(_administering.amendments)
    amendment = Awaiting(_administering.amendment)
    cancel_amendment = Awaiting(_administering.cancel_amendment)
    judge = Awaiting(_administering.judge)
    replay_page = Awaiting(_administering.replay_page)
    replay = AwaitingWalk(_administering.replay)
    halt = Awaiting(_administering.halt)
    revoke_receipt = Awaiting(_administering.revoke_receipt)
    close_thread = Awaiting(_administering.close_thread)
    reopen_thread = Awaiting(_administering.reopen_thread)
    resolve_lapse = Awaiting(_administering.resolve_lapse)
    add_event = Awaiting(_episodes.add_event)
    episode_file = Awaiting(_episodes.episode_file)
    endpoints = Awaiting(_endpoints.endpoints)
    endpoint = Awaiting(_endpoints.endpoint)
    add_endpoint = Awaiting(_endpoints.add_endpoint)
    change_endpoint = Awaiting(_endpoints.change_endpoint)
    remove_endpoint = Awaiting(_endpoints.remove_endpoint)
    new_endpoint_secret = Awaiting(_endpoints.new_endpoint_secret)
    test_endpoint = Awaiting(_endpoints.test_endpoint)
    deliveries_page = Awaiting(_endpoints.deliveries_page)
    deliveries = AwaitingWalk(_endpoints.deliveries)
    delivery = Awaiting(_endpoints.delivery)
    redeliver = Awaiting(_endpoints.redeliver)
    redeliver_many = Awaiting(_endpoints.redeliver_many)
    post_interrupt = Awaiting(_interrupts.post_interrupt)
    interrupt = Awaiting(_interrupts.interrupt)
    wait_for_interrupt = Awaiting(_interrupts.wait_for_interrupt)
    create_request = Awaiting(_requests.create_request)
    request = Awaiting(_requests.request)
    wait_for_request = Awaiting(_requests.wait_for_request)
    cancel_request = Awaiting(_requests.cancel_request)
    consume_request = Awaiting(_requests.consume_request)
    report_outcome = Awaiting(_requests.report_outcome)
    rejections_page = Awaiting(_auditing.rejections_page)
    rejections = AwaitingWalk(_auditing.rejections)
    passkeys = Awaiting(_auditing.passkeys)
    evidence = Awaiting(_auditing.evidence)
    alive = Awaiting(_auditing.alive)
    ready = Awaiting(_auditing.ready)
    metrics = Awaiting(_auditing.metrics)

    def follow_events(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Yields each event after a log position as it happens. It continues after lost connections and restarts,
        and ends if the token is revoked."""
        return afollow(self, after)

    @property
    def url(self) -> str:
        """Returns the address of the gateway."""
        return self._settings.address.url

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return _shown(self)


def _shown(client: Blocks | Awaits) -> str:
    """Returns the repr of a client, also of one whose constructor failed."""
    settings = getattr(client, "_settings", None)
    return f"{type(client).__name__}({settings.address.url if settings else None!r})"
