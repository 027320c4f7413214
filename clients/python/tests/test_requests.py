"""Approval requests of single tool calls."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from calling import POLICY, Desk
from countersign import (
    AnswerMismatch,
    ApprovalRequest,
    Client,
    Conflict,
    Invalid,
    Malformed,
    NotFound,
    Retries,
    StillHeld,
    UnexpectedAnswer,
    verify,
)
from countersign._protocol._forms import base64url
from countersign.verify import ANY, Keys, Refused, check_receipt
from faulty import Changed, Instead, Lose, between

CALL: dict[str, Any] = {"tool": "refund", "arguments": {"amount": 40}}


def held(desk: Desk, amount: int = 40) -> ApprovalRequest:
    made = desk.instance.create_request("refund", {"amount": amount}, idempotency_key=desk.key())
    assert (made.status, made.consumption) == ("pending", None)
    return made


def approved(desk: Desk, amount: int = 40) -> ApprovalRequest:
    made = held(desk, amount)
    assert made.review_url is not None
    desk.ada.approve(made.review_url)
    return desk.instance.wait_for_request(made.id, within_secs=30)


def test_an_approval_is_used_once_and_reported(desk: Desk) -> None:
    decided = approved(desk)
    assert (decided.status, decided.review_url) == ("approved", None)
    keys = Keys.read(desk.instance.jwks())
    receipt = check_receipt(
        decided.receipt, keys, issuer=ANY, thread=f"request:{decided.id}", transition=ANY, audience="agent", at=ANY
    )
    used = desk.instance.consume_request(decided.id, **CALL, idempotency_key="attempt-1", keys=keys)
    assert (used.arguments, used.receipt, used.transition) == ({"amount": 40}, receipt.jti, receipt.transition)
    again = desk.instance.consume_request(decided.id, **CALL, idempotency_key="attempt-1")
    assert again.write_id == used.write_id
    with pytest.raises(Conflict, match="already_consumed"):
        desk.instance.consume_request(decided.id, **CALL)
    for _ in range(2):
        reported = desk.instance.report_outcome(used.request, "succeeded", note="refund 7")
        assert reported.consumption is not None
        assert reported.consumption.outcome is not None
        assert reported.consumption.outcome.status == "succeeded"
    with pytest.raises(Conflict, match="outcome_conflict"):
        desk.instance.report_outcome(used.request, "failed")


def test_an_undecided_and_a_denied_request_cannot_be_used(desk: Desk) -> None:
    made = held(desk)
    with pytest.raises(Conflict, match="not_approved"):
        desk.instance.consume_request(made.id, **CALL)
    with pytest.raises(StillHeld):
        desk.instance.wait_for_request(made.id, within_secs=0.1)
    assert made.review_url is not None
    desk.ada.deny(made.review_url, comment="Too much.")
    denied = desk.instance.wait_for_request(made.id, within_secs=30)
    assert denied.decision is not None
    assert (denied.status, denied.decision.note) == ("denied", "Too much.")
    with pytest.raises(Conflict, match="not_approved"):
        desk.instance.consume_request(made.id, **CALL)


def test_a_key_belongs_to_one_call(desk: Desk) -> None:
    key = desk.key()
    first = desk.instance.create_request("refund", {"amount": 1}, idempotency_key=key)
    assert desk.instance.create_request("refund", {"amount": 1}, idempotency_key=key).id == first.id
    with pytest.raises(Conflict, match="idempotency_conflict"):
        desk.instance.create_request("refund", {"amount": 2}, idempotency_key=key)


def test_a_cancelled_request_stays_cancelled(desk: Desk) -> None:
    made = held(desk)
    for _ in range(2):
        assert desk.instance.cancel_request(made.id).status == "cancelled"
    with pytest.raises(Conflict, match="already_terminal"):
        desk.instance.cancel_request(approved(desk).id)


def test_equal_calls_share_a_request(desk: Desk) -> None:
    first, second = (
        desk.instance.create_request("refund", {"amount": 77}, idempotency_key=desk.key(), share=True) for _ in "ab"
    )
    assert first.id == second.id


def test_a_problem_names_its_code(desk: Desk) -> None:
    with pytest.raises(NotFound):
        desk.instance.request("0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47")
    with pytest.raises(Malformed) as malformed:
        desk.instance.create_request("refund", {"amount": 1}, idempotency_key="k", timeout="soon")
    assert malformed.value.request_id
    assert "timeout" in str(malformed.value)


def test_an_approval_under_an_earlier_policy_cannot_be_used(own_desk: Desk) -> None:
    decided = approved(own_desk)
    own_desk.activate(POLICY.replace("A person", "Somebody"))
    with pytest.raises(Conflict, match="policy_mismatch"):
        own_desk.instance.consume_request(decided.id, **CALL)


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("id", "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47", "request_mismatch"),
        ("tool", "search", "tool_mismatch"),
        ("server", "crm", "tool_mismatch"),
        ("arguments", {"amount": 4000}, "arguments_mismatch"),
        ("arguments", {"amount": True}, "arguments_mismatch"),
    ],
)
def test_an_answer_about_another_call_is_no_permission(desk: Desk, member: str, value: Any, code: str) -> None:
    decided = approved(desk, 1)
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.todo.append(Changed(lambda body: body.update({member: value})))
        with pytest.raises(AnswerMismatch) as mismatch:
            client.consume_request(decided.id, tool="refund", arguments={"amount": 1})
    assert mismatch.value.code == code


def test_an_answer_without_the_use_is_no_permission(desk: Desk) -> None:
    decided = approved(desk)
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.todo.append(Changed(lambda body: body.pop("consumption")))
        with pytest.raises(UnexpectedAnswer, match="does not confirm"):
            client.consume_request(decided.id, **CALL)


def test_the_answer_to_another_request_is_no_permission(desk: Desk) -> None:
    """A proxy passes the request on to another one, for an equal call."""
    first, second = approved(desk), approved(desk)
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.renames = (second.id, first.id)
        with pytest.raises(AnswerMismatch, match="request_mismatch"):
            client.consume_request(second.id, **CALL)


def test_a_reservation_of_another_request_is_no_permission(desk: Desk) -> None:
    """A proxy answers with the stored response of another request, and changes its id."""
    first, second = approved(desk), approved(desk)
    signing = Keys.read(desk.instance.jwks())
    for wanted, code, keys in ((AnswerMismatch, "thread_mismatch", None), (Refused, "thread_mismatch", signing)):
        with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
            proxy.todo.append(Changed(lambda body: body.update(id=second.id)))
            proxy.renames = (second.id, first.id)
            with pytest.raises(wanted, match=code):
                client.consume_request(second.id, **CALL, idempotency_key="attempt-1", keys=keys)


def test_the_answer_to_another_attempt_is_no_permission(desk: Desk) -> None:
    """A proxy answers with the recorded response of an earlier `consume` of the same request."""
    decided = approved(desk)
    first = httpx.post(
        f"{desk.gateway.url}/aap/v1/requests/{decided.id}/consume",
        headers={"Authorization": f"Bearer {desk.token}", "Idempotency-Key": "attempt-1"},
    )
    recorded = {name: value for name, value in first.headers.items() if name.startswith("countersign-")}
    signing = Keys.read(desk.instance.jwks())
    for wanted, keys in ((AnswerMismatch, None), (Refused, signing)):
        with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
            proxy.todo.append(Instead(first.status_code, first.content, recorded))
            with pytest.raises(wanted, match="write_mismatch"):
                client.consume_request(decided.id, **CALL, keys=keys)
            proxy.todo.append(Instead(first.status_code, first.content, recorded))
            used = client.consume_request(decided.id, **CALL, idempotency_key="attempt-1", keys=keys)
            assert used.request == decided.id


@pytest.mark.parametrize("spoiled", ["unsigned", "no signature", "of another type", "nothing"])
def test_a_reservation_in_another_form_is_no_permission_without_keys(desk: Desk, spoiled: str) -> None:
    decided = approved(desk)
    answer = httpx.post(
        f"{desk.gateway.url}/aap/v1/requests/{decided.id}/consume",
        headers={"Authorization": f"Bearer {desk.token}", "Idempotency-Key": "attempt-1"},
    )
    reservation = answer.headers["countersign-verification"]
    header, payload, signature = reservation.split(".")
    other = verify.canonical({"alg": "EdDSA", "kid": "k", "typ": "countersign-receipt+jwt"})
    tokens = {
        "unsigned": f"{header}.{payload}.",
        "no signature": f"{header}.{payload}",
        "of another type": f"{base64url(other)}.{payload}.{signature}",
        "nothing": "a.b.c",
    }
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        proxy.todo.append(Instead(200, answer.content, {"countersign-verification": tokens[spoiled]}))
        with pytest.raises(AnswerMismatch, match="receipt_malformed"):
            client.consume_request(decided.id, **CALL, idempotency_key="attempt-1")
        proxy.todo.append(Instead(200, answer.content, {"countersign-verification": reservation}))
        assert client.consume_request(decided.id, **CALL, idempotency_key="attempt-1").request == decided.id


def test_values_that_are_no_keys_are_refused_before_the_approval_is_used(desk: Desk) -> None:
    decided, jwks = approved(desk), desk.instance.jwks()
    for wrong in (jwks, {}, "keys", False):
        with pytest.raises(Invalid, match=r"Keys\.read"):
            desk.instance.consume_request(decided.id, **CALL, keys=wrong)  # type: ignore[arg-type]
    assert desk.instance.request(decided.id).consumption is None
    assert desk.instance.consume_request(decided.id, **CALL, keys=Keys.read(jwks)).request == decided.id


def test_a_late_answer_is_no_permission(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = approved(desk)
    with Client(desk.gateway.url, desk.token) as client:
        late = replace(client._settings.core, today=lambda: time.time() + 3_600)
        monkeypatch.setattr(client, "_settings", replace(client._settings, core=late))
        with pytest.raises(UnexpectedAnswer, match="lease"):
            client.consume_request(decided.id, **CALL)


def test_a_lost_answer_is_asked_for_again_with_the_same_key(desk: Desk) -> None:
    decided = approved(desk)
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token, retries=Retries(first_secs=0.01)) as client:
        proxy.todo.append(Lose())
        used = client.consume_request(decided.id, **CALL)
        assert len({it["idempotency-key"] for it in proxy.headers}) == 1
    assert used.request == decided.id


def test_the_awaited_client_has_the_same_calls(desk: Desk) -> None:
    async def run() -> str:
        async with desk.gateway.async_client(desk.token) as client:
            made = await client.create_request("search", {}, idempotency_key=desk.key())
            used = await client.consume_request(made.id, tool="search", arguments={})
            assert used.receipt is None
            reported = await client.report_outcome(made.id, "failed")
            return str(reported.consumption and reported.consumption.outcome and reported.consumption.outcome.status)

    assert asyncio.run(run()) == "failed"
