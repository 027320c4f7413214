"""Calls of administrators and auditors, on a real gateway."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from conftest import POLICY, STATE, Flow, flow_on
from countersign import (
    Client,
    Closed,
    Denied,
    Event,
    Forbidden,
    Halted,
    Held,
    Invalid,
    NotFound,
    Rejected,
    WriteInProgress,
)
from countersign.resources import Amendment, PolicyActive
from countersign.testing import Gateway
from countersign.verify import ANY, Keys, check_answer

NETWORKS = {"COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.1"}
SCHEMAS = {it.name: it.read_text() for it in POLICY.parent.glob("*.json")}


@dataclasses.dataclass(frozen=True)
class House:
    """A gateway with the payments flow, an administrator and an auditor."""

    flow: Flow
    admin: Client
    auditor: Client


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with Gateway.start(NETWORKS) as gateway:
        flow = flow_on(gateway)
        yield House(flow, gateway.client(gateway.add_token("admin")), flow.auditor)


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[str]]]:
    """A receiver that accepts requests until it is stopped, and the types of the received events."""
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append(body.split(b'"type":"')[1].split(b'"')[0].decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", came
    server.shutdown()
    server.server_close()
    thread.join()


def until(holds: Any) -> Any:
    ends = time.monotonic() + 30
    while not (found := holds()):
        assert time.monotonic() < ends, "it does not come about"
        time.sleep(0.02)
    return found


def test_an_endpoint_from_its_making_to_its_end(house: House, receiver: tuple[str, list[str]]) -> None:
    (url, came), admin = receiver, house.admin
    made = admin.add_endpoint("mine", url, events=["thread.*"], flows=["payments"], headers={"x-key": "secret-of-mine"})
    assert (made.kind, made.state, made.headers) == ("webhook", "enabled", ("x-key",))
    assert made.secret is not None
    assert made.secret.startswith("whsec_")
    assert made.secret not in repr(made)
    assert admin.test_endpoint(made.id).arrived
    house.flow.thread()
    until(lambda: "thread.created" in came)
    (sent, *_) = until(lambda: [it for it in admin.deliveries(made.id) if it.attempts and it.attempts[0].arrived])
    assert (sent.type, sent.attempts[0].status) == ("thread.created", 204)
    assert '"thread.created"' in (admin.delivery(made.id, sent.delivery).body or "")
    assert admin.redeliver(made.id, sent.delivery).delivery == sent.delivery
    until(lambda: came.count("thread.created") == 2)
    assert list(admin.deliveries(made.id, state="failed")) == []
    assert admin.redeliver_many(made.id, failed_since=made.created_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")) == 0
    new = admin.new_endpoint_secret(made.id, overlap_secs=0)
    assert new.secret != made.secret
    assert new.secret not in repr(new)
    changed = admin.change_endpoint(made.id, name="theirs", enabled=False)
    assert (changed.name, changed.state, changed.events) == ("theirs", "disabled", ("thread.*",))
    assert admin.change_endpoint(made.id, enabled=True, from_="now").state == "enabled"
    assert [it.id for it in admin.endpoints()] == [made.id]
    assert admin.endpoint(made.id).secret is None
    assert admin.remove_endpoint(made.id) is None
    with pytest.raises(NotFound):
        admin.remove_endpoint(made.id)
    assert admin.endpoints() == ()


def test_a_policy_is_tried_activated_and_replayed(house: House) -> None:
    admin, policy = house.admin, POLICY.read_text()
    patch = {"target_user_id": 42}
    assert admin.judge("payments", state=STATE, node="planner", patch=patch).outcome == "hold"
    stricter = policy.replace('ttl = "15m"', 'ttl = "14m"')
    judged = admin.judge("payments", state=STATE, node="planner", patch=patch, policy=stricter, schemas=SCHEMAS)
    assert judged.reasons
    made = house.flow.thread()
    held = house.flow.planner.propose(made.thread, node="planner", parent=made.transition, patch=patch)
    assert isinstance(held, Held)
    mine = [it for it in admin.replay("payments", policy, schemas=SCHEMAS) if it["thread"] == made.thread]
    assert [it["was"]["outcome"] for it in mine] == ["hold"]
    assert len(admin.replay_page("payments", policy, schemas=SCHEMAS, limit=1).proposals) == 1
    active = admin.activate_policy("payments", policy, schemas=SCHEMAS)
    assert isinstance(active, PolicyActive)
    assert active.flow == "payments"
    house.flow.planner.cancel(held.transition, reason="only tried")


def test_people_may_be_asked_about_a_policy(house: House) -> None:
    admin = house.admin
    policy = POLICY.read_text().replace('flow = "payments"', 'flow = "amended"')
    asks = policy + '\n[approval.policy]\ngroups = ["finance"]\n'
    assert isinstance(admin.activate_policy("amended", asks, schemas=SCHEMAS), PolicyActive)
    asked = admin.activate_policy("amended", policy, schemas=SCHEMAS)
    assert isinstance(asked, Amendment)
    assert (asked.state, [it.amendment for it in admin.amendments("amended")]) == ("open", [asked.amendment])
    assert admin.cancel_amendment(asked.amendment, reason="only tried").state == "cancelled"
    assert admin.amendment(asked.amendment).state == "cancelled"


def test_a_halt_stops_a_flow_and_is_lifted(house: House) -> None:
    made = house.flow.thread()
    assert house.admin.halt("payments", proposing=True, verifying=True, reason="looked into").verifying
    try:
        with pytest.raises(Halted):
            house.flow.planner.propose(
                made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42}
            )
        with pytest.raises(Denied, match="halted"):
            house.flow.writer.verify(thread=made.thread, transition=made.transition, write_id="halted-1")
    finally:
        stands = house.admin.halt("payments", proposing=False, verifying=False, reason="all is well")
    assert (stands.scope, stands.proposing, stands.lifting) == ("payments", False, None)
    with pytest.raises(Forbidden):
        house.flow.host.halt("payments", proposing=True, verifying=True, reason="not mine to say")


def test_a_receipt_is_revoked(house: House) -> None:
    flow, made = house.flow, house.flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    decision = flow.planner.wait_for_decision(held.transition, within_secs=30)
    assert decision.nonce is not None
    # She decided by a password, and no passkey signed it.
    assert house.auditor.evidence(decision.nonce) == ()
    assert house.auditor.passkeys() == ()
    assert house.admin.revoke_receipt(decision.nonce, reason="a mistake").revoked
    with pytest.raises(Denied, match="revoked"):
        flow.writer.verify(
            thread=made.thread, transition=held.transition, receipt=decision.receipt, write_id="revoked-1"
        )
    for spoiled in ("../halts", decision.nonce + "A", ""):
        with pytest.raises(Invalid):
            house.admin.revoke_receipt(spoiled, reason="no such thing")


def test_a_thread_is_closed_and_reopened(house: House) -> None:
    made = house.flow.thread()
    assert house.admin.close_thread(made.thread, reason="done").status == "closed"
    with pytest.raises(Closed):
        house.flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert house.admin.reopen_thread(made.thread, reason="not done").status == "open"


def test_a_write_of_which_nobody_said_what_became_is_resolved(house: House) -> None:
    flow, policy = (
        house.flow,
        POLICY.read_text().replace('flow = "payments"', 'flow = "short"').replace('"30s"', '"1s"'),
    )
    assert isinstance(house.admin.activate_policy("short", policy, schemas=SCHEMAS), PolicyActive)
    host = flow.gateway.client(flow.gateway.add_token("host", flow="short"))
    writer = flow.gateway.client(flow.gateway.add_token("writer", flow="short", nodes=["database_writer"]))
    whole = flow.thread()
    flow.writer.verify(thread=whole.thread, transition=whole.transition, write_id="early-1")
    made = host.create_thread("short", STATE)
    yes = writer.verify(thread=made.thread, transition=made.transition, write_id="lapsed-1")

    def told(kind: str, thread: str = made.thread, by: Client = host) -> list[Event]:
        return [it for it in by.events() if it.type == kind and it.thread == thread]

    (early,) = until(lambda: told("write.reserved", whole.thread, flow.host))
    who = early.data["by"]
    with pytest.raises(WriteInProgress):
        house.admin.resolve_lapse(whole.thread, "early-1", principal=who, outcome="not_written", reason="too early")
    (reserved,) = until(lambda: told("write.reserved"))
    who = reserved.data["by"]
    time.sleep(max(0.0, (yes.lease_expires_at - datetime.now(timezone.utc)).total_seconds() + 0.05))
    until(lambda: told("write.lapsed"))
    found = house.admin.resolve_lapse(made.thread, "lapsed-1", principal=who, outcome="not_written", reason="looked")
    assert (found.write_id, found.outcome) == ("lapsed-1", "not_written")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_interrupt_is_posted_decided_and_answered(house: House) -> None:
    flow = house.flow
    asserted: dict[str, Any] = {
        "interrupt_id": "7652e9dcf1db4576", "transition_digest": "sha256:" + "c" * 64, "changed_keys": ["target"],
        "redacted_diff": [{"key": "target", "to": 42}], "thread_ref": "run-1", "title": "Pay 42?",
        "expires_in_secs": 600,
    }  # fmt: skip
    taken = flow.host.post_interrupt(**asserted)
    assert flow.host.post_interrupt(**asserted) == taken
    assert flow.host.interrupt(taken.id) is None
    flow.ada.approve(taken)
    async with flow.gateway.async_client(flow.tokens["host"]) as host:
        answer = await host.wait_for_interrupt(taken.id, within_secs=30)
    assert (answer.approved, answer.interrupt_id) == (True, asserted["interrupt_id"])
    said = check_answer(
        answer.answer,
        Keys.read(flow.host.jwks()),
        issuer=ANY,
        audience=ANY,
        transition=asserted["transition_digest"],
        at=datetime.now(timezone.utc),
    )
    assert (said.jti, said.sub) == (answer.nonce, taken.id)


def test_what_was_turned_away_is_listed(house: House) -> None:
    made = house.flow.thread()
    for target in (True, False):
        with pytest.raises(Rejected):
            house.flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"is_admin": target})
    mine = [it for it in house.auditor.rejections() if it.thread == made.thread]
    assert ([it.node for it in mine], mine[0].errors[0]["code"]) == (["planner", "planner"], "write_not_allowed")
    first = house.auditor.rejections_page(page_size=1)
    assert len(first.rejections) == 1
    assert first.next_page_token is not None
    assert house.auditor.rejections_page(page_size=1, page_token=first.next_page_token).rejections != first.rejections


def test_a_gateway_says_how_it_is(house: House) -> None:
    assert (house.admin.alive(), house.admin.ready()) == ("alive", "ready")
    token = house.flow.gateway.run("token", "add", "watch", "--owner", "platform", "--new-group", "--role", "monitor")
    monitor = house.flow.gateway.client(token)
    assert "\ncountersign_" in monitor.metrics()
