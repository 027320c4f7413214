"""The one path through everything, blocking and awaited."""

from __future__ import annotations

from functools import partial

import pytest

from conftest import Flow
from countersign import Committed, Denied, Held, Rejected

PATCH = {"target_user_id": 42}


def test_a_held_change_is_approved_and_written_exactly_once(flow: Flow) -> None:
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch=PATCH)
    assert isinstance(held, Held)
    assert held.diff == ({"pointer": "/target_user_id", "before": 17, "after": 42},)
    assert flow.planner.decision(held.transition) is None
    flow.ada.approve(held, comment="Eva called.")

    decision = flow.planner.wait_for_decision(held.transition, within_secs=30)
    assert (decision.approved, decision.decision, decision.comment) == (True, "approved", "Eva called.")
    verify = partial(
        flow.writer.verify, thread=made.thread, transition=held.transition, receipt=decision.receipt, write_id="write-1"
    )
    allowed = verify()
    assert allowed.view["target_user_id"] == 42
    assert not allowed.replayed
    assert verify().fence == allowed.fence
    ended = flow.writer.confirm("write-1", result={"result_ref": "users:42"})
    assert (ended.outcome, ended.version) == ("confirmed", 2)
    with pytest.raises(Denied) as denied:
        verify()
    assert (denied.value.code, denied.value.advice) == ("already_used", "look")


def test_what_is_harmless_commits_and_what_is_injected_is_rejected(flow: Flow) -> None:
    made = flow.thread()
    done = flow.parser.propose(made.thread, node="input_parser", parent=made.transition, patch={"raw_text": "hello"})
    assert isinstance(done, Committed)
    assert done.changed == ("/raw_text",)
    with pytest.raises(Rejected) as no:
        flow.parser.propose(made.thread, node="input_parser", parent=done.transition, patch={"is_admin": True})
    assert no.value.errors[0].code == "write_not_allowed"
    assert no.value.action == "stop"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_awaited(flow: Flow) -> None:
    made = flow.thread()
    async with flow.gateway.async_client(flow.tokens["planner"]) as planner:
        held = await planner.propose(made.thread, node="planner", parent=made.transition, patch=PATCH)
        assert isinstance(held, Held)
        flow.ada.deny(held)
        decision = await planner.wait_for_decision(held.transition, within_secs=30)
    assert (decision.approved, decision.decision, decision.receipt) == (False, "denied", None)
    async with flow.gateway.async_client(flow.tokens["host"]) as host:
        assert [entry.version async for entry in host.chain(made.thread)] == [0]
        assert (await host.thread(made.thread)).status == "open"
