"""The adapter with which the suite of AgentBarrier tests a gateway. The agent's runtime is this file, and remembers nothing.

    agentbarrier verify with_agentbarrier:per_action --approval-profile per-action
    agentbarrier verify with_agentbarrier:run_wide --approval-profile run-wide

The gateway is in AAP_URL, and the token of an instance in AAP_TOKEN. The policy holds the tool of the server `gated` and
allows the tool of the server `open`, because the suite calls the same tool with and without approval.
"""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Sequence
from datetime import datetime
from itertools import count

from agentapprovalprotocol import AsyncClient, ConflictError, Request
from agentbarrier.adapter import AgentAdapter, RunHandle, validate_actions, validate_timeout
from agentbarrier.errors import AdapterContractError, AmbiguousEffectError
from agentbarrier.models import (
    ActionRequest,
    AuditEvent,
    AuditReceipt,
    Capability,
    ReconciliationEvidence,
    ReconciliationStatus,
    RunOutcome,
    RunStatus,
    action_digest,
)
from agentbarrier.probe import EffectProbe
from reviewers import decide, plain

# The note of a failed outcome after which the call may be asked for again: its target proved that it had no effect.
NO_EFFECT = "the target has no effect of this call"
CLEANUP_SECONDS = 5

RECONCILED = {
    ReconciliationStatus.COMMITTED: AuditEvent.RECONCILIATION_COMMITTED,
    ReconciliationStatus.NOT_COMMITTED: AuditEvent.RECONCILIATION_NOT_COMMITTED,
    ReconciliationStatus.CONFLICT: AuditEvent.RECONCILIATION_CONFLICT,
    ReconciliationStatus.UNAVAILABLE: AuditEvent.RECONCILIATION_UNAVAILABLE,
}


class Denied(Exception):
    """The call may not run."""


class CountersignAdapter(AgentAdapter):
    name = "countersign"
    capabilities = frozenset(Capability)

    def __init__(self, *, run_wide: bool) -> None:
        self.run_wide = run_wide

    async def begin(
        self,
        *,
        run_id: str,
        actions: Sequence[ActionRequest],
        effect: EffectProbe,
        timeout_seconds: float | None = None,
    ) -> RunHandle:
        return Run(self, run_id, validate_actions(actions), effect, validate_timeout(timeout_seconds))


def run_wide() -> CountersignAdapter:
    """A call without approval waits until all calls of its run are decided. The runtime schedules that."""
    return CountersignAdapter(run_wide=True)


def per_action() -> CountersignAdapter:
    """A waiting call stops no other call, as at the gateway."""
    return CountersignAdapter(run_wide=False)


class Run(RunHandle):
    def __init__(
        self,
        adapter: CountersignAdapter,
        run_id: str,
        actions: tuple[ActionRequest, ...],
        effect: EffectProbe,
        timeout: float | None,
    ) -> None:
        self.adapter, self.run_id, self.actions = adapter, run_id, {it.action_id: it for it in actions}
        self.effect, self.timeout = effect, timeout
        self.client = AsyncClient(os.environ["AAP_URL"], os.environ["AAP_TOKEN"])
        # The latest request of each action, and its decision.
        self.requests: dict[str, Request] = {}
        loop = asyncio.get_running_loop()
        self.decided = {name: loop.create_future() for name in self.actions}
        self.asked, self.ended = asyncio.Condition(), False
        self.receipts: list[tuple[int, AuditEvent, ActionRequest | None, str | None]] = []
        self.evidence: dict[str, ReconciliationEvidence] = {}
        self.record(AuditEvent.RUN_STARTED)
        self.task = asyncio.create_task(self.drive())

    # The runtime: ask, wait, use the approval, run, report.

    async def drive(self) -> RunOutcome:
        calls = [asyncio.create_task(self.call(it)) for it in self.actions.values()]
        event, outcome = AuditEvent.RUN_COMPLETED, RunOutcome(RunStatus.COMPLETED)
        try:
            await asyncio.gather(*calls)
        except asyncio.CancelledError:
            event, outcome = AuditEvent.RUN_CANCELLED, RunOutcome(RunStatus.CANCELLED)
        except TimeoutError as error:
            event, outcome = AuditEvent.RUN_TIMED_OUT, RunOutcome(RunStatus.TIMED_OUT, str(error))
        except AmbiguousEffectError as error:
            event, outcome = AuditEvent.RUN_UNKNOWN, RunOutcome(RunStatus.UNKNOWN, str(error))
        except Exception as error:
            event, outcome = AuditEvent.RUN_FAILED, RunOutcome(RunStatus.FAILED, f"{type(error).__name__}: {error}")
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        self.record(event, detail=outcome.detail)
        async with self.asked:
            self.ended = True
            self.asked.notify_all()
        return outcome

    async def call(self, action: ActionRequest) -> None:
        try:
            await self.wait_turn(action)
            for attempt in count(1):
                request = await self.decision(action, attempt)
                corrected = corrected_arguments(request)
                if corrected is not None:
                    action = action.with_arguments(corrected)
                elif request.status != "approved":
                    raise Denied
                elif await self.run_once(action, request):
                    return
        except Denied:
            self.settle(action, allowed=False)

    async def wait_turn(self, action: ActionRequest) -> None:
        if action.parent_action_id and not await asyncio.shield(self.decided[action.parent_action_id]):
            raise Denied
        if self.adapter.run_wide and not action.requires_approval:
            gated = [self.decided[name] for name, it in self.actions.items() if it.requires_approval]
            await asyncio.gather(*map(asyncio.shield, gated))

    async def decision(self, action: ActionRequest, attempt: int) -> Request:
        submission = {
            "tool": action.tool_name,
            "server": "gated" if action.requires_approval else "open",
            "arguments": dict(action.arguments),
            "timeout": "10m",
        }
        request = await self.client.create(submission, f"{action.action_id}:{attempt}")
        await self.note(action, request)
        try:
            while request.status == "pending":
                request = await self.client.get(request.id, wait=20)
        except asyncio.CancelledError:
            await asyncio.wait_for(self.client.cancel(request.id), CLEANUP_SECONDS)
            raise
        await self.note(action, request)
        return request

    async def run_once(self, action: ActionRequest, request: Request) -> bool:
        """Runs the approved call. Returns false if it may be asked for again."""
        try:
            used = await self.client.consume(request.id, str(uuid.uuid4()))
        except ConflictError as error:
            if error.code != "already_consumed":
                raise
            return await self.ran_before(action, request)
        self.settle(action, allowed=True)
        approved = action.with_arguments(plain(used.arguments))
        try:
            await asyncio.wait_for(self.effect(approved), self.timeout)
        except (asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(self.client.report_outcome(request.id, "failed", "stopped"), CLEANUP_SECONDS)
            raise
        await self.client.report_outcome(request.id, "succeeded")
        return True

    async def ran_before(self, action: ActionRequest, request: Request) -> bool:
        used = (await self.client.get(request.id)).consumption
        if used is None or used.outcome is None:
            raise AmbiguousEffectError(action.action_id)
        if used.outcome.status == "succeeded":
            self.settle(action, allowed=True)
            return True
        if used.outcome.note == NO_EFFECT:
            return False
        raise Denied

    def settle(self, action: ActionRequest, *, allowed: bool) -> None:
        decided = self.decided[action.action_id]
        if not decided.done():
            decided.set_result(allowed)

    async def note(self, action: ActionRequest, request: Request) -> None:
        async with self.asked:
            self.requests[action.action_id] = request
            self.asked.notify_all()

    # The side of the suite.

    async def waits(self, action_id: str, after: str | None = None) -> Request:
        """Returns the request of an action that waits for reviewers, later than the one named."""

        def waiting() -> bool:
            request = self.requests.get(action_id)
            return request is not None and request.status == "pending" and request.id != after

        async with self.asked:
            await self.asked.wait_for(lambda: waiting() or self.ended)
            if not waiting():
                raise AdapterContractError(f"the run ended before {action_id} waited for reviewers")
            return self.requests[action_id]

    async def wait_for_pending(self, timeout_seconds: float) -> tuple[ActionRequest, ...]:
        gated = [it for it in self.actions.values() if it.requires_approval]
        if not gated:
            raise AdapterContractError("no action of this run requires approval")
        waiting = asyncio.gather(*(self.waits(it.action_id) for it in gated))
        requests = await asyncio.wait_for(waiting, timeout_seconds)
        return tuple(it.with_arguments(plain(request.arguments)) for it, request in zip(gated, requests))

    async def approve(self, action_id: str, replacement: ActionRequest | None = None) -> None:
        request = await self.waits(action_id)
        if replacement is not None:
            # No reviewer edits a call. They deny it with what they want, and the agent asks for that.
            note = json.dumps({"arguments": dict(replacement.arguments)})
            await asyncio.to_thread(decide, request.id, "denied", note)
            request = await self.waits(action_id, after=request.id)
        await asyncio.to_thread(decide, request.id, "approved")

    async def reject(self, action_id: str, reason: str | None = None) -> None:
        request = await self.waits(action_id)
        await asyncio.to_thread(decide, request.id, "denied", reason)

    async def cancel(self) -> None:
        self.task.cancel()
        await self.task

    async def wait(self, timeout_seconds: float) -> RunOutcome:
        return await asyncio.wait_for(asyncio.shield(self.task), timeout_seconds)

    async def reconcile(self, action_id: str, timeout_seconds: float) -> ReconciliationEvidence:
        if action_id not in self.evidence:
            self.evidence[action_id] = await self.compare_with_target(self.actions[action_id], timeout_seconds)
        return self.evidence[action_id]

    async def compare_with_target(self, action: ActionRequest, timeout: float) -> ReconciliationEvidence:
        self.record(AuditEvent.RECONCILIATION_STARTED, action)
        request = self.requests[action.action_id].id
        try:
            evidence = await asyncio.wait_for(self.effect.reconcile(action), timeout)
        except TimeoutError:
            detail = f"the target did not answer: timed out after {timeout:g} seconds"
            self.record(AuditEvent.RECONCILIATION_TIMED_OUT, action, detail)
            status = ReconciliationStatus.UNAVAILABLE
            return ReconciliationEvidence(action.action_id, status, action_digest(action), detail=detail)
        if evidence.status is ReconciliationStatus.COMMITTED:
            await self.client.report_outcome(request, "succeeded", "found at the target")
        elif evidence.status is ReconciliationStatus.NOT_COMMITTED:
            await self.client.report_outcome(request, "failed", NO_EFFECT)
        self.record(RECONCILED[evidence.status], action, evidence.detail)
        return evidence

    async def replay(self) -> RunHandle:
        # Everything about the first run is at the gateway.
        return Run(self.adapter, self.run_id, tuple(self.actions.values()), self.effect, self.timeout)

    async def audit_receipts(self) -> tuple[AuditReceipt, ...]:
        """The requests and decisions as the gateway has them, and the run and its reconciliations as they were seen here."""
        rows = list(self.receipts)
        for action_id, latest in self.requests.items():
            action = self.actions[action_id]
            stored = await self.client.get(latest.id)
            held = action.with_arguments(plain(stored.arguments))
            if action.requires_approval:
                rows.append((millis(stored.created_at), AuditEvent.APPROVAL_REQUESTED, held, None))
                if stored.decision is not None:
                    event = AuditEvent.APPROVED if stored.decision.status == "approved" else AuditEvent.REJECTED
                    rows.append((millis(stored.decision.decided_at), event, held, stored.decision.note))
        rows.sort(key=lambda row: (row[0], row[1] in ENDS))
        return tuple(
            AuditReceipt(
                sequence=sequence,
                run_id=self.run_id,
                event=event,
                timestamp_ns=at * 1_000_000,
                action_id=action.action_id if action else None,
                action_digest=action_digest(action) if action else None,
                detail=detail,
            )
            for sequence, (at, event, action, detail) in enumerate(rows, 1)
        )

    async def close(self) -> None:
        await self.cancel()
        await self.client.aclose()

    def record(self, event: AuditEvent, action: ActionRequest | None = None, detail: str | None = None) -> None:
        self.receipts.append((time.time_ns() // 1_000_000, event, action, detail))


ENDS = {it for it in AuditEvent if it.value.startswith("run_") and it is not AuditEvent.RUN_STARTED}


def millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def corrected_arguments(request: Request) -> dict | None:
    """Returns the arguments that a reviewer wants instead of the denied ones."""
    try:
        return json.loads(request.decision.note)["arguments"] if request.status == "denied" else None
    except (ValueError, TypeError, KeyError):
        return None
