"""Verify's answer against what was signed: by a key of the test's own, and by a real gateway behind a liar."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from conftest import STATE, Flow
from countersign import AsyncClient, Client, Invalid, Verified, verify
from countersign._protocol._forms import base64url
from countersign._protocol._parts import TYPES
from countersign.verify import Keys, Refused
from countersign.verify._let_through import Asked, must_be_signed
from faulty import Instead, between
from test_strict import DIGEST, KEYS, signed

NOW = 1_800_000_000.25
JTI, OTHER = "A" * 22, "B" * 21 + "A"
CLAIMS: dict[str, Any] = {
    "iss": "urn:test",
    "sub": "order-1",
    "aud": "ledger",
    "iat": int(NOW),
    "exp": int(NOW) + 30,
    "write_id": "write-1",
    "fence": 3,
    "flow": "payments",
    "policy": DIGEST,
    "transition": DIGEST,
    "version": 1,
    "to": DIGEST,
    "receipt": JTI,
    "enforced": True,
}


def token(kind: type, claims: dict[str, Any]) -> str:
    return signed(verify.canonical(claims), TYPES[kind])


def receipt(jti: str) -> str:
    """Returns a receipt of which the client reads only the `jti`. The gateway checks the rest."""
    return f"e30.{base64url(verify.canonical({'jti': jti}))}.sig"


ASKED = Asked("order-1", DIGEST, "write-1", receipt(JTI), {})
ANSWER = Verified(
    allow=True,
    write_id="write-1",
    fence=3,
    lease_expires_at=datetime.fromtimestamp(int(NOW) + 30.7, timezone.utc),
    view={"a/b": [1, {"c": None}]},
    verification=token(verify.Verification, CLAIMS),
    enforced=True,
    replayed=False,
)


def test_what_was_signed_for_this_question_passes() -> None:
    must_be_signed(ANSWER, ASKED, KEYS, now=NOW)
    # Until the very end of the lease, of which the signed one has no parts of a second.
    must_be_signed(ANSWER, ASKED, KEYS, now=NOW + 30.4)
    # A receipt that was sent, and not needed.
    unneeded = replace(ANSWER, verification=token(verify.Verification, {**CLAIMS, "receipt": None}))
    must_be_signed(unneeded, ASKED, KEYS, now=NOW)
    for pointer, value in {"/a~1b/0": 1, "/a~1b/1": {"c": None}, "/a~1b/1/c": None, "": ANSWER.view}.items():
        must_be_signed(ANSWER, replace(ASKED, expect={pointer: value}), KEYS, now=NOW)


SIGNED = {
    "thread_mismatch": {"sub": "order-2"},
    "digest_mismatch": {"transition": "sha256:" + "b" * 64},
    "write_mismatch": {"write_id": "write-2"},
    "fence_mismatch": {"fence": 2},
    "lease_mismatch": {"exp": int(NOW) + 31},
    "enforced_mismatch": {"enforced": False},
    "receipt_mismatch": {"receipt": OTHER},
}


@pytest.mark.parametrize(("code", "claims"), SIGNED.items(), ids=SIGNED.keys())
def test_what_was_signed_for_another_question_is_refused(code: str, claims: dict[str, Any]) -> None:
    answer = replace(ANSWER, verification=token(verify.Verification, {**CLAIMS, **claims}))
    with pytest.raises(Refused) as refused:
        must_be_signed(answer, ASKED, KEYS, now=NOW)
    assert refused.value.code == code


def test_a_receipt_that_was_not_sent_and_a_lease_that_is_over_are_refused() -> None:
    for asked, now, code in (
        (replace(ASKED, receipt=None), NOW, "receipt_mismatch"),
        (replace(ASKED, receipt="no token"), NOW, "receipt_mismatch"),
        (ASKED, NOW + 30.5, "expired"),
    ):
        with pytest.raises(Refused) as refused:
            must_be_signed(ANSWER, asked, KEYS, now=now)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a~1b/0", True), ("/a~1b/0", 2), ("/a~1b/2", 1), ("/a~1b/00", 1), ("/a~1b/1/d", None), ("/a", [1])],
)
def test_a_view_that_is_not_as_expected_is_refused(pointer: str, value: Any) -> None:
    with pytest.raises(Refused, match="expectation_failed"):
        must_be_signed(ANSWER, replace(ASKED, expect={pointer: value}), KEYS, now=NOW)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_both_clients_look_if_they_are_given_keys(flow: Flow) -> None:
    made, keys = flow.thread(), Keys.read(flow.host.jwks())
    asked: dict[str, Any] = {"thread": made.thread, "transition": made.transition, "write_id": f"w-{made.thread}"}
    assert flow.writer.verify(**asked, keys=keys).allow
    # One who has the gateway's answer, and gives another fence.
    genuine = flow.writer._http.post("/v1/verify", json=asked).json()
    lie = Instead(200, json.dumps({**genuine, "fence": 99}).encode(), {"content-type": "application/json"})
    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["writer"]) as client:
        proxy.todo.extend([lie, lie])
        with pytest.raises(Refused, match="fence_mismatch"):
            client.verify(**asked, keys=keys)
        async with AsyncClient(proxy.url, flow.tokens["writer"]) as awaited:
            with pytest.raises(Refused, match="fence_mismatch"):
                await awaited.verify(**asked, keys=keys)
    flow.writer.abort(asked["write_id"], reason="only looked at")


def test_a_long_integer_that_the_gateway_holds_is_compared(flow: Flow) -> None:
    """Which the gateway reads as a double, and Python as an integer."""
    state = {**STATE, "payment": {"amount": 10**18, "currency": "EUR"}}
    made, keys = flow.host.create_thread("payments", state, thread="order-long"), Keys.read(flow.host.jwks())
    asked: dict[str, Any] = {"thread": made.thread, "transition": made.transition, "write_id": "w-long", "keys": keys}
    for amount in (10**18, 1e18):
        assert flow.writer.verify(**asked, expect={"/payment/amount": amount}).view["payment"]["amount"] == 10**18
    flow.writer.abort("w-long", reason="only looked at")


def deep() -> Any:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "expect",
    [
        {"/payment/amount": 2**53 + 1},
        {"/payment": {"amount": [10**18 + 1]}},
        {"/payment": 10**5000},
        {"/payment": {1: 2}},
        {"/payment": {"a": [{None: 1}]}},
        {"/payment": float("nan")},
        {"/payment": "\ud800"},
        {"/payment": b"x"},
        {"/payment": deep()},
        {1: 2},
    ],
    ids=[
        "no double",
        "within",
        "too long",
        "a key",
        "a key within",
        "NaN",
        "half a pair",
        "bytes",
        "deep",
        "a pointer",
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_asked(flow: Flow, expect: Any) -> None:
    made, keys = flow.thread(), Keys.read(flow.host.jwks())
    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["writer"]) as client:
        with pytest.raises(Invalid, match="expect"):
            client.verify(thread=made.thread, transition=made.transition, write_id="w", expect=expect, keys=keys)
        assert proxy.asked == []


def test_what_are_no_keys_is_refused_before_anything_is_asked(flow: Flow) -> None:
    made = flow.thread()
    with pytest.raises(Invalid, match="keys"):
        flow.writer.verify(thread=made.thread, transition=made.transition, write_id="w", keys=flow.host.jwks())  # type: ignore[arg-type]
    assert flow.host.thread(made.thread).status == "open"
