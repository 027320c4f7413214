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
from countersign._finished import finished
from countersign._names import Invalid
from countersign._plans import Core, Plan
from countersign._unchecked import NoToken, claim
from countersign._verifying import verify
from countersign.answers import Ended, Verified
from countersign.errors import CountersignError, Denied, Json, Malformed, UnexpectedAnswer

from ._nodes import AsyncNode, Node, Update, named_as
from ._pointer import CHANNEL, State, ThreadOf, of_run, pointer_of

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

    def begin(self, core: Core, state: State, thread: str) -> Plan[tuple[Write, Verified]]:
        """Calls `verify` right before the body runs. Raises unless the write is clearly allowed."""
        pointer = pointer_of(state, self.channel)
        receipt = pointer.get("receipt")
        if self.approved_only and receipt is None:
            raise Denied(
                status=403, code="receipt_missing", detail="the run has no approval, and this writer requires one"
            )
        # A new name for each run of the node, because a second run is another write.
        write_id = str(uuid.uuid4())
        yes = yield from verify(
            core, thread=thread, transition=pointer["transition"], write_id=write_id, receipt=receipt, keys=self.keys
        )
        if self.approved_only and _receipt_of(yes) is None:
            yield from _calls.abort(core, write_id, reason="this writer writes only approved versions")
            raise Denied(status=403, code="receipt_missing", detail="the version of the run is not approved")
        return Write(thread, pointer["transition"], write_id, yes.fence, yes.lease_expires_at), yes

    def given_up(self, core: Core, write: Write, error: Exception) -> Plan[None]:
        """Reports that nothing was written. If the report fails, the lease expires, and the body's error is raised."""
        with contextlib.suppress(CountersignError):
            yield from _calls.abort(core, write.write_id, reason=_said(error))
        if isinstance(error, GraphBubbleUp):
            # The run would wait, and resume with an expired write.
            raise Invalid("body", "a writer cannot interrupt the run: interrupt in a node before it") from None

    def confirmed(self, core: Core, write: Write, result: object) -> Plan[Update]:
        """Reports the write, whatever the body returned."""
        try:
            return self.update((yield from _told(core, write.write_id, result)))
        except CountersignError as error:
            log.error("%s is written and not confirmed (%s)", write.write_id, type(error).__name__)
            raise NotConfirmed(write.write_id) from error

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
    return f"the body raised {type(error).__name__}"


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
    that raised. If the interpreter dies or the task is cancelled, nothing is reported.

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
        core = client._settings.core
        write, yes = client._run(writer.begin(core, state, writer.thread(state)))
        try:
            result = finished(body(yes.view, write))
        except Exception as error:
            client._run(writer.given_up(core, write, error))
            raise
        return client._run(writer.confirmed(core, write, result))

    return node


def _awaiting(client: AsyncClient, writer: _Writer, body: AsyncBody) -> AsyncNode:
    async def node(state: Any) -> Update:
        core = client._settings.core
        write, yes = await client._run(writer.begin(core, state, writer.thread(state)))
        try:
            result = finished(await body(yes.view, write))
        except Exception as error:
            await client._run(writer.given_up(core, write, error))
            raise
        return await client._run(writer.confirmed(core, write, result))

    return node
