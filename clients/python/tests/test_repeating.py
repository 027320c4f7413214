"""Which requests are repeated, and which never are."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from conftest import STATE, Flow
from countersign import (
    AnswerMismatch,
    AsyncClient,
    ChainBroken,
    Client,
    Failed,
    Held,
    Invalid,
    Retries,
    TooManyRequests,
    Unreachable,
    verify,
)
from countersign._plans import Call, Came, Core, Lost, Pause, Reply, Request, asked, retry_after
from faulty import Between, Instead, Lose, between
from test_let_through import CLAIMS, token

QUICK = Retries(tries=4, first_secs=0.01, most_secs=0.02)


@pytest.fixture
def proxy(flow: Flow) -> Iterator[Between]:
    with between(flow.gateway.url) as state:
        yield state


def client(url: str, flow: Flow, role: str) -> Client:
    return flow.gateway._resources.enter_context(Client(url, flow.tokens[role], retries=QUICK))


def test_a_write_whose_answer_was_lost_is_asked_for_by_the_same_name_and_given_once(flow: Flow, proxy: Between) -> None:
    made = flow.thread()
    writer = client(proxy.url, flow, "writer")
    proxy.todo.append(Lose())
    allowed = writer.verify(thread=made.thread, transition=made.transition, write_id="lost-1")
    assert (allowed.fence, allowed.replayed) == (1, True)
    proxy.todo.append(Lose())
    ended = writer.confirm("lost-1", result={"result_ref": "row 1"})
    assert (ended.outcome, ended.version) == ("confirmed", 1)
    assert [path for _, path in proxy.asked] == ["/v1/verify"] * 2 + ["/v1/writes/lost-1/confirm"] * 2


def test_a_proposal_whose_answer_was_lost_is_one_hold(flow: Flow, proxy: Between) -> None:
    made = flow.thread()
    planner = client(proxy.url, flow, "planner")
    proxy.todo.append(Lose())
    held = planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    assert len(proxy.asked) == 2
    for _ in range(2):
        assert planner.cancel(held.transition, reason="a test") == "cancelled"
    # The log follows what happened, a moment later.
    told: list[str] = []
    while "transition.cancelled" not in told:
        told = [it.type for it in flow.host.events() if it.thread == made.thread]
    assert told == ["thread.created", "transition.held", "transition.cancelled"]


def test_a_thread_with_a_name_is_made_once_though_the_answer_was_lost(flow: Flow, proxy: Between) -> None:
    proxy.todo.append(Lose())
    made = client(proxy.url, flow, "host").create_thread("payments", STATE, thread="lost-thread")
    assert (made.thread, len(proxy.asked)) == ("lost-thread", 2)
    assert "idempotency-key" not in proxy.headers[0]


def test_a_thread_without_a_name_is_made_once_by_its_key(flow: Flow, proxy: Between) -> None:
    proxy.todo.append(Lose())
    made = client(proxy.url, flow, "host").create_thread("payments", STATE)
    first, second = (it["idempotency-key"] for it in proxy.headers)
    assert first == second
    # The same key and token return the same thread while the gateway stores the key.
    again = flow.host.create_thread("payments", STATE, idempotency_key=first)
    assert (again, again.thread) == (made, made.thread)


def test_what_was_refused_before_anything_was_done_is_asked_again(flow: Flow, proxy: Between) -> None:
    proxy.todo.extend([Instead(429, headers={"Retry-After": "0"}), Instead(429)])
    made = client(proxy.url, flow, "host").create_thread("payments", STATE)
    assert (made.version, len(proxy.asked)) == (0, 3)


def test_a_gateway_that_is_busy_for_good_is_given_up(flow: Flow, proxy: Between) -> None:
    proxy.todo.extend([Instead(503, b'{"code":"busy"}')] * 4)
    with pytest.raises(Failed) as failed:
        client(proxy.url, flow, "host").thread("order-1")
    assert (failed.value.code, len(proxy.asked)) == ("busy", 4)


def test_one_that_asks_for_more_patience_than_there_is_is_given_up_at_once(flow: Flow, proxy: Between) -> None:
    proxy.todo.append(Instead(429, headers={"Retry-After": "3600"}))
    with pytest.raises(TooManyRequests):
        client(proxy.url, flow, "host").thread("order-1")
    assert len(proxy.asked) == 1


def test_a_broken_chain_is_not_asked_again(flow: Flow, proxy: Between) -> None:
    proxy.todo.append(Instead(500, b'{"code":"chain_broken"}'))
    with pytest.raises(ChainBroken):
        client(proxy.url, flow, "host").thread("order-1")
    assert len(proxy.asked) == 1


def test_where_nobody_listens_there_is_no_answer(flow: Flow) -> None:
    with Client("http://127.0.0.1:1", flow.tokens["host"], retries=QUICK) as nobody, pytest.raises(Unreachable) as lost:
        nobody.thread("order-1")
    assert str(lost.value) == (
        "GET /v1/threads/order-1: http://127.0.0.1:1 refused the connection. Is `countersign serve` running there?"
    )


@pytest.mark.anyio
async def test_a_refused_connection_is_named_on_each_address_of_localhost(flow: Flow) -> None:
    async with AsyncClient("http://localhost:1", flow.tokens["host"], retries=QUICK) as nobody:
        with pytest.raises(Unreachable, match=r"http://localhost:1 refused the connection\."):
            await nobody.thread("order-1")


# ── the plan itself, given replies ───────────────────────────────────────────────────────────────────────────────────

IN_PROGRESS = Reply(409, b'{"error": {"code": "request_in_progress"}}')
LOST, NEVER_SENT = Lost("ReadTimeout", sent=True), Lost("ConnectError", sent=False)
CORE = Core(chance=lambda: 1.0)


def steps(came: list[Came], *, repeatable: bool) -> list[Any]:
    """Returns the requests and pauses of a plan for these replies, and its end."""
    call: Call[Any] = Call(Request("POST", "/"), {200: lambda body: body}, repeatable=repeatable)
    plan, told, replies = asked(CORE, call), [], iter(came)
    given: Came = None
    try:
        while True:
            step = plan.send(given)
            told.append("wait " + format(step.secs, "g") if isinstance(step, Pause) else "ask")
            given = next(replies) if isinstance(step, Request) else None
    except StopIteration as done:
        told.append(done.value)
    except Exception as error:
        told.append(type(error).__name__)
    return told


@pytest.mark.parametrize(
    ("came", "repeatable", "told"),
    [
        ([Reply(200, b"1")], True, ["ask", 1]),
        ([LOST, Reply(200, b"1")], True, ["ask", "wait 0.2", "ask", 1]),
        ([LOST], False, ["ask", "Unreachable"]),
        ([NEVER_SENT, Reply(200, b"1")], False, ["ask", "wait 0.2", "ask", 1]),
        ([Reply(500, b"")], False, ["ask", "Failed"]),
        ([IN_PROGRESS, Reply(200, b"1")], True, ["ask", "wait 0.2", "ask", 1]),
        ([Reply(503, b"")], False, ["ask", "Failed"]),
        ([Reply(502, b"")] * 4, True, ["ask", "wait 0.2", "ask", "wait 0.4", "ask", "wait 0.8", "ask", "Failed"]),
        ([Reply(429, b"", "7"), Reply(200, b"1")], False, ["ask", "wait 7.2", "ask", 1]),
        ([Reply(429, b"", "61")], True, ["ask", "TooManyRequests"]),
        ([Reply(404, b"")], True, ["ask", "NotFound"]),
        ([Reply(409, b'{"code":"request_in_progress"}'), Reply(200, b"1")], True, ["ask", "wait 0.2", "ask", 1]),
        ([Reply(409, b'{"code":"request_in_progress"}')], False, ["ask", "Conflict"]),
        ([Reply(409, b'{"code":"head_moved"}')], True, ["ask", "HeadMoved"]),
        ([Reply(410, b'{"code":"state_erased"}')], True, ["ask", "StateErased"]),
        ([Reply(503, b'{"code":"store_unavailable"}', "1"), Reply(200, b"1")], True, ["ask", "wait 1.2", "ask", 1]),
        ([Reply(503, b'{"code":"store_unavailable"}', "1")], False, ["ask", "Failed"]),
        ([Reply(503, b'{"code":"archive_missing"}', "30")], True, ["ask", "Failed"]),
        ([Reply(503, b'{"code":"archive_damaged"}', "30")], True, ["ask", "Failed"]),
        ([Reply(200, b"{")], True, ["ask", "UnexpectedAnswer"]),
        ([Reply(302, b"")], True, ["ask", "UnexpectedAnswer"]),
    ],
)
def test_a_plan_asks_again_only_where_that_is_safe(came: list[Came], repeatable: bool, told: list[Any]) -> None:
    assert steps(came, repeatable=repeatable) == told


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("3", 0.0) == 3.0
    assert retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 40.0) == 60.0
    assert retry_after("Thu, 01 Jan 1970 00:00:10 GMT", 40.0) == 0.0
    for said in (None, "soon", "", "-1", "\u0661"):
        assert retry_after(said, 0.0) is None


def test_no_tries_are_no_retries() -> None:
    with pytest.raises(Invalid):
        Retries(tries=0)


def yes_to(thread: str, transition: str) -> dict[str, Any]:
    """Returns a response that allows the write `w`, signed by another key. Without keys, only TLS proves it."""
    ends = int(time.time()) + 60
    claims = {
        "sub": thread,
        "transition": transition,
        "write_id": "w",
        "fence": 1,
        "iat": 1,
        "exp": ends,
        "receipt": None,
    }
    return {
        "allow": True,
        "write_id": "w",
        "fence": 1,
        "lease_expires_at": datetime.fromtimestamp(ends, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "view": {"amount": 40},
        "verification": token(verify.Verification, {**CLAIMS, **claims}),
        "enforced": True,
        "replayed": False,
    }


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("expectation_failed", {"view": {"amount": 4000}}),
        ("lease_mismatch", {"lease_expires_at": "2025-11-21T04:03:42.391Z"}),
        ("enforced_mismatch", {"enforced": False}),
        ("receipt_malformed", {"verification": "e30.e30.AAAA"}),
    ],
)
def test_a_yes_that_does_not_fit_is_no_permission_without_keys(
    flow: Flow, proxy: Between, code: str, change: dict[str, Any]
) -> None:
    made = flow.thread()
    proxy.todo.append(Instead(200, json.dumps({**yes_to(made.thread, made.transition), **change}).encode()))
    with pytest.raises(AnswerMismatch) as mismatch:
        client(proxy.url, flow, "writer").verify(
            thread=made.thread, transition=made.transition, write_id="w", expect={"/amount": 40}
        )
    assert mismatch.value.code == code


TWO_MEANINGS = (
    '"amount": 1e400',
    '"amount": 40.0000000000000000001',
    '"amount": 9007199254740993',
    '"amount": NaN',
    '"amount": 4000, "amount": 40',
    r'"\u00e9": 1, "e\u0301": 2',
    r'"amount": "\ud800"',
    r'"\ud800": 40',
)


def test_a_yes_is_json_of_one_meaning(flow: Flow, proxy: Between) -> None:
    made = flow.thread()
    yes = yes_to(made.thread, made.transition)
    writer = client(proxy.url, flow, "writer")
    good = json.dumps(yes)
    spoiled: list[tuple[int, str]] = [
        *((200, json.dumps({**yes, "allow": it})) for it in (False, "true", 1, None)),
        *((200, json.dumps({key: value for key, value in yes.items() if key != name})) for name in yes),
        (200, json.dumps({**yes, "write_id": "another"})),
        (200, json.dumps({**yes, "fence": True})),
        (200, json.dumps({**yes, "verification": "eyJ"})),
        (200, json.dumps({**yes, "lease_expires_at": yes["lease_expires_at"].replace(".000", ".0")})),
        (200, good[:-1] + ', "allow": true}'),
        *((200, good.replace('"amount": 40', it)) for it in TWO_MEANINGS),
        (200, "\ufeff" + good),
        (200, good[:-1]),
        (200, "[]"),
        (200, ""),
        (201, good),
        (202, good),
        (204, ""),
        (302, good),
        (403, good),
        (403, ""),
        (404, good),
    ]
    for status, body in spoiled:
        proxy.todo.append(Instead(status, body.encode()))
        with pytest.raises(Exception) as no:  # noqa: PT011 - the type depends on the response
            writer.verify(thread=made.thread, transition=made.transition, write_id="w")
        assert type(no.value).__module__ == "countersign.errors", (status, body)
    for accepted in (json.dumps({**yes, "a_later_gateway": "says more"}), good.replace('"fence": 1', '"fence": 1.0')):
        proxy.todo.append(Instead(200, accepted.encode()))
        assert writer.verify(thread=made.thread, transition=made.transition, write_id="w").fence == 1
