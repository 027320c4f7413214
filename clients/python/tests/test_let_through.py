"""Verify's answer against the writer's request: with and without keys, and of a real gateway behind a liar."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from conftest import STATE, Flow
from countersign import AnswerMismatch, AsyncClient, Client, Invalid, ReceiptMismatch, Verified, verify
from countersign._bound import Asked, must_be_bound
from countersign._protocol._forms import base64url
from countersign._protocol._parts import TYPES
from countersign.verify import Keys, Refused
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


def code_of(answer: Verified, asked: Asked = ASKED, keys: Keys | None = KEYS, now: float = NOW) -> str | None:
    """Returns the code of the refusal, if the response is refused. Without keys, nothing was checked by a signature."""
    try:
        must_be_bound(answer, asked, keys, now=now)
    except (Refused, AnswerMismatch) as refused:
        receipt = ReceiptMismatch if refused.code == "receipt_mismatch" else AnswerMismatch
        return refused.code if type(refused) is (Refused if keys else receipt) else repr(refused)
    return None


@pytest.fixture(params=[KEYS, None], ids=["keys", "no keys"])
def keys(request: pytest.FixtureRequest) -> Keys | None:
    """Only keys prove a response. The checks are the same without them."""
    found: Keys | None = request.param
    return found


def test_what_was_signed_for_this_question_passes(keys: Keys | None) -> None:
    assert code_of(ANSWER, keys=keys) is None
    # Until the very end of the lease, of which the signed one has no parts of a second.
    assert code_of(ANSWER, keys=keys, now=NOW + 30.4) is None
    # A receipt that was sent, and not needed.
    unneeded = replace(ANSWER, verification=token(verify.Verification, {**CLAIMS, "receipt": None}))
    assert code_of(unneeded, keys=keys) is None
    for pointer, value in {"/a~1b/0": 1, "/a~1b/1": {"c": None}, "/a~1b/1/c": None, "": ANSWER.view}.items():
        assert code_of(ANSWER, replace(ASKED, expect={pointer: value}), keys) is None


SIGNED = {
    "thread_mismatch": {"sub": "order-2"},
    "digest_mismatch": {"transition": "sha256:" + "b" * 64},
    "write_mismatch": {"write_id": "write-2"},
    "fence_mismatch": {"fence": 2},
    "lease_mismatch": {"exp": int(NOW) + 31},
    "enforced_mismatch": {"enforced": False},
    "receipt_mismatch": {"receipt": OTHER},
    "receipt_malformed": {"fence": 0},
}


@pytest.mark.parametrize(("code", "claims"), SIGNED.items(), ids=SIGNED.keys())
def test_what_was_signed_for_another_question_is_refused(keys: Keys | None, code: str, claims: dict[str, Any]) -> None:
    answer = replace(ANSWER, verification=token(verify.Verification, {**CLAIMS, **claims}))
    assert code_of(answer, keys=keys) == code


def test_only_keys_prove_a_response() -> None:
    forged = ANSWER.verification.rpartition(".")[0] + "." + token(verify.Verification, {**CLAIMS, "fence": 4})[-86:]
    assert code_of(replace(ANSWER, verification=forged)) == "signature_invalid"
    assert code_of(replace(ANSWER, verification=forged), keys=None) is None
    for keys, code in ((Keys({}), "unknown_key"), (Keys(KEYS._keys, "urn:other"), "issuer_mismatch")):
        assert code_of(ANSWER, keys=keys) == code


def test_only_a_verification_in_its_form_is_one(keys: Keys | None) -> None:
    header, payload, signature = ANSWER.verification.split(".")
    none = base64url(verify.canonical({"alg": "none", "kid": "k", "typ": TYPES[verify.Verification]}))
    other = signed(verify.canonical(CLAIMS), TYPES[verify.Receipt])
    spaced = signed(verify.canonical(CLAIMS).replace(b":", b": ", 1), TYPES[verify.Verification])
    unsigned = (f"{none}.{payload}.", f"{header}.{payload}.", f"{header}.{payload}", f"{none}.{payload}.{signature}")
    for verification in (*unsigned, other, spaced, "", "a.b.c", f"{ANSWER.verification}\n"):
        assert code_of(replace(ANSWER, verification=verification), keys=keys) == "receipt_malformed", verification


def test_a_receipt_that_was_not_sent_and_a_lease_that_is_over_are_refused(keys: Keys | None) -> None:
    for asked, now, code in (
        (replace(ASKED, receipt=None), NOW, "receipt_mismatch"),
        (replace(ASKED, receipt="no token"), NOW, "receipt_mismatch"),
        (ASKED, NOW + 30.5, "expired"),
    ):
        assert code_of(ANSWER, asked, keys, now) == code


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        *(("/a~1b/0", True), ("/a~1b/0", 2), ("/a~1b/2", 1), ("/a~1b/00", 1), ("/a~1b/1/d", None), ("/a", [1])),
        *(("/a~1b/" + "9" * 5000, 1), ("a~1b", ANSWER.view), ("/a~1b~2", 1)),
    ],
    ids=lambda it: str(it)[:20],
)
def test_a_view_that_is_not_as_expected_is_refused(keys: Keys | None, pointer: str, value: Any) -> None:
    assert code_of(ANSWER, replace(ASKED, expect={pointer: value}), keys) == "expectation_failed"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_both_clients_look_with_and_without_keys(flow: Flow) -> None:
    made, keys = flow.thread(), Keys.read(flow.host.jwks())
    asked: dict[str, Any] = {"thread": made.thread, "transition": made.transition, "write_id": f"w-{made.thread}"}
    assert flow.writer.verify(**asked, keys=keys).allow
    # One who has the gateway's answer, and gives another fence.
    genuine = flow.writer._http.post("/v1/verify", json=asked).json()
    lie = Instead(200, json.dumps({**genuine, "fence": 99}).encode(), {"content-type": "application/json"})
    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["writer"]) as client:
        proxy.todo.extend([lie, lie, lie])
        with pytest.raises(AnswerMismatch, match="fence_mismatch"):
            client.verify(**asked)
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
    asked: dict[str, Any] = {"thread": made.thread, "transition": made.transition, "write_id": "w", "expect": expect}
    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["writer"]) as client:
        for given in (keys, None):
            with pytest.raises(Invalid, match="expect"):
                client.verify(**asked, keys=given)
        assert proxy.asked == []


def test_what_are_no_keys_is_refused_before_anything_is_asked(flow: Flow) -> None:
    made = flow.thread()
    with pytest.raises(Invalid, match="keys"):
        flow.writer.verify(thread=made.thread, transition=made.transition, write_id="w", keys=flow.host.jwks())  # type: ignore[arg-type]
    assert flow.host.thread(made.thread).status == "open"
