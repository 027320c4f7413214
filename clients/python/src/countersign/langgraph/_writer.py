"""The guarded writer: a function that runs only with the gateway's permission, on the gateway's view."""

from __future__ import annotations

import contextlib
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

from langgraph.errors import GraphBubbleUp

from countersign import AsyncClient, Client, _calls
from countersign._names import Invalid
from countersign._ordered import AwaitingHands, BlockingHands, Order, awaited, blocked
from countersign._plans import Core, Plan
from countersign._unchecked import NoToken, claim
from countersign._verifying import verify
from countersign.answers import Ended, Verified
from countersign.errors import CountersignError, Denied, Json, Malformed, UnexpectedAnswer

from ._nodes import AsyncNode, Node, Update, named_as
from ._pointer import CHANNEL, Pointer, State, ThreadOf, of_run, pointer_of

if TYPE_CHECKING:
    from countersign.verify import Keys

log = logging.getLogger("countersign")
Result = Mapping[str, Json] | None
Body = Callable[[dict[str, Json], "Write"], Result]
AsyncBody = Callable[[dict[str, Json], "Write"], Awaitable[Result]]


@dataclass(frozen=True)
class Write:
    """A permission to write. Store `fence` for the thread with your write, and commit before the lease ends."""

    thread: str
    transition: str
    write_id: str
    fence: int
    lease_expires_at: datetime


class NotConfirmed(CountersignError, RuntimeError):
    """The write happened, but the gateway could not be notified. Confirm `write_id` until there is a response.

    It is a `RuntimeError`, which LangGraph's `RetryPolicy` does not retry by default. A retry would be another write,
    which is refused, and the first would stay unreported.
    """

    def __init__(self, write_id: str) -> None:
        super().__init__(f"the write {write_id} happened and is not confirmed")
        self.write_id = write_id


@dataclass(frozen=True)
class _Writer:
    thread: ThreadOf
    channel: str
    approved_only: bool
    keys: Keys | None

    def order(self, core: Core, state: State, body: Callable[..., Any]) -> Order[Update]:
        """Calls `verify`, runs the body and confirms."""
        thread = self.thread(state)
        pointer = pointer_of(state, self.channel)
        # A new name for each run of the node, because a second run is another write.
        write_id = str(uuid.uuid4())
        yield lambda it: it.checkpoint()
        try:
            yes: Verified = yield lambda it: it.to_the_end(self.allowed(core, thread, pointer, write_id))
        except (Exception, GeneratorExit):  # the gateway refused, or the coroutine is closed and cannot report
            raise
        except BaseException as error:
            # The gateway may have allowed the write, and the body did not run.
            yield from self._abort(core, write_id, error)
            raise
        write = Write(thread, pointer["transition"], write_id, yes.fence, yes.lease_expires_at)
        try:
            result = yield lambda it: it.body(lambda: body(yes.view, write))
        except Exception as error:
            yield from self._abort(core, write_id, error)
            if isinstance(error, GraphBubbleUp):
                # The run would wait, and resume with an expired write.
                raise Invalid("body", "a writer cannot interrupt the run: interrupt in a node before it") from None
            raise
        try:
            update: Update = yield lambda it: it.to_the_end(self.confirmed(core, write_id, result))
        except Exception as error:  # for whatever reason: the caller must learn what to confirm
            log.error("%s is written and not confirmed (%s)", write_id, type(error).__name__)
            raise NotConfirmed(write_id) from error
        return update

    def _abort(self, core: Core, write_id: str, error: BaseException) -> Order[None]:
        """Reports that nothing was written. If the report fails, for whatever reason, the lease expires."""
        reason = _said(error)
        with contextlib.suppress(Exception):
            yield lambda it: it.to_the_end(_calls.abort(core, write_id, reason=reason))

    def allowed(self, core: Core, thread: str, pointer: Pointer, write_id: str) -> Plan[Verified]:
        """Calls `verify` right before the body runs. Raises unless the write is clearly allowed."""
        receipt = pointer.get("receipt")
        if self.approved_only and receipt is None:
            raise Denied(
                status=403, code="receipt_missing", detail="the run has no approval, and this writer requires one"
            )
        yes = yield from verify(
            core, thread=thread, transition=pointer["transition"], write_id=write_id, receipt=receipt, keys=self.keys
        )
        if self.approved_only and _receipt_of(yes) is None:
            yield from _calls.abort(core, write_id, reason="this writer writes only approved versions")
            raise Denied(status=403, code="receipt_missing", detail="the version of the run is not approved")
        return yes

    def confirmed(self, core: Core, write_id: str, result: object) -> Plan[Update]:
        """Reports the write, whatever the body returned."""
        return self.update((yield from _told(core, write_id, result)))

    def update(self, ended: Ended) -> Update:
        """Returns the pointer after the write."""
        if ended.version is None or ended.transition is None:
            raise UnexpectedAnswer("a write that ended nowhere")
        return {
            self.channel: {"version": ended.version, "transition": ended.transition, "outcome": ended.outcome},
        }


def _told(core: Core, write_id: str, result: object) -> Plan[Ended]:
    if result is None or isinstance(result, Mapping):
        try:
            return (yield from _calls.confirm(core, write_id, result=result))
        except (Malformed, Invalid) as error:
            unsaid = type(error).__name__
    else:
        unsaid = f"a {type(result).__name__}"
    log.warning("%s: confirmed without its result, which the gateway refuses (%s)", write_id, unsaid)
    return (yield from _calls.confirm(core, write_id))


def _receipt_of(yes: Verified) -> object:
    """Returns whether the gateway checked a receipt. It is an unverified claim of the gateway, over this connection."""
    try:
        return claim(yes.verification, "receipt")
    except NoToken:
        raise UnexpectedAnswer("a verification that says nothing of a receipt") from None


def _said(error: BaseException) -> str:
    """Returns the kind of an error only, because its text can contain values."""
    return f"nothing was written: {type(error).__name__}"


@overload
def guarded_writer(
    client: Client,
    *,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    approved_only: bool = True,
    keys: Keys | None = None,
) -> Callable[[Body], Node]: ...
@overload
def guarded_writer(
    client: AsyncClient,
    *,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    approved_only: bool = True,
    keys: Keys | None = None,
) -> Callable[[AsyncBody], AsyncNode]: ...
def guarded_writer(
    client: Client | AsyncClient,
    *,
    thread: ThreadOf = of_run,
    channel: str = CHANNEL,
    approved_only: bool = True,
    keys: Keys | None = None,
) -> Callable[[Any], Any]:
    """Makes `body(view, write)` a node that writes an approved version at most once.

    The gateway is asked right before the body runs. The body receives the gateway's view of the approved version, and
    not the graph's state. Its result is confirmed as the writer's result. If it raises, the write is aborted, so let it
    raise only if nothing was written. A body that returns an awaitable or a generator has not run, and counts as one
    that raised. If the run is cancelled or interrupted before the body runs, the write is aborted. If that happens in
    the body, nothing is reported, because the body may have written. After the body, an awaited run confirms the write
    before it is cancelled. An interrupt of a blocking run can leave the write unconfirmed.

    With `approved_only=False` it also writes versions that need no receipt. With `keys` (of `countersign.verify`) the
    gateway's permission must be signed by one of them.
    """
    writer = _Writer(thread, channel, approved_only, keys)

    def decorate(body: Any) -> Any:
        if inspect.iscoroutinefunction(body) != isinstance(client, AsyncClient):
            raise Invalid("client", "a Client goes with a function, an AsyncClient with an async one")
        node = _awaiting(client, writer, body) if isinstance(client, AsyncClient) else _blocking(client, writer, body)
        return named_as(body, node)

    return decorate


def _blocking(client: Client, writer: _Writer, body: Body) -> Node:
    def node(state: Any) -> Update:
        return blocked(writer.order(client._settings.core, state, body), BlockingHands(client))

    return node


def _awaiting(client: AsyncClient, writer: _Writer, body: AsyncBody) -> AsyncNode:
    async def node(state: Any) -> Update:
        return await awaited(writer.order(client._settings.core, state, body), AwaitingHands(client))

    return node
