"""`@countersigned`: a function runs only by its own approval, once, with the approved arguments."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum, IntEnum
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from calling import POLICY, Desk
from countersign import AnswerMismatch, ApprovalRequest, AsyncClient, Client, Invalid, Unreachable
from countersign._unchecked import claim
from countersign.tools import CallRefused, countersigned
from countersign.tools._arguments import Arguments
from countersign.tools._refused import CODES
from faulty import Changed, Instead, between

DYING = Path(__file__).parent / "dying_tool.py"


class Ledger:
    """Records the runs of its tools."""

    def __init__(self, desk: Desk, client: Client | None = None, **how: Any) -> None:
        self.runs: list[Any] = []
        self.waiting: Queue[ApprovalRequest] = Queue()
        guarded = countersigned(client or desk.instance, tool="refund", on_held=self.waiting.put, **how)
        self.refund: Callable[..., str] = guarded(self._refund)

    def _refund(self, amount: Any, key: str = "") -> str:
        self.runs.append(amount)
        return f"refunded {amount}"


def review(request: ApprovalRequest) -> str:
    assert request.review_url is not None
    return request.review_url


def outcome(desk: Desk, request: str) -> tuple[str, str | None]:
    found = desk.instance.request(request).consumption
    assert found is not None
    assert found.outcome is not None
    return found.outcome.status, found.outcome.note


def test_an_allowed_call_runs_at_once(desk: Desk) -> None:
    runs: list[str] = []

    @countersigned(desk.instance)
    def search(query: str, limit: int = 5) -> int:
        """Searches."""
        runs.append(query)
        return limit

    assert (search("shoes"), runs) == (5, ["shoes"])
    assert (search.__name__, search.__doc__, list(inspect.signature(search).parameters)) == (
        "search",
        "Searches.",
        ["query", "limit"],
    )


def test_a_held_call_runs_once_after_its_approval(desk: Desk) -> None:
    ledger = Ledger(desk, key=lambda amount, key: key, local=["key"])
    key = desk.key()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ledger.refund, 40, key)
        asked = ledger.waiting.get(timeout=30)
        assert (ledger.runs, asked.arguments) == ([], {"amount": 40})
        desk.ada.approve(review(asked))
        assert running.result(30) == "refunded 40"
    assert outcome(desk, asked.id) == ("succeeded", None)
    with pytest.raises(CallRefused, match="already_consumed") as refused:
        ledger.refund(40, key)
    assert (refused.value.code, ledger.runs) == ("already_consumed", [40])


def test_a_denied_call_does_not_run(desk: Desk) -> None:
    ledger = Ledger(desk)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ledger.refund, 41)
        desk.ada.deny(review(ledger.waiting.get(timeout=30)), comment="Ask the customer first.")
        with pytest.raises(CallRefused) as refused:
            running.result(30)
    assert (refused.value.code, refused.value.note, ledger.runs) == ("denied", "Ask the customer first.", [])
    assert str(refused.value).startswith("refund did not run (denied). Do not make this call again.")
    assert str(refused.value).endswith(" Note: Ask the customer first.")


def test_a_call_that_the_policy_refuses_does_not_run(desk: Desk) -> None:
    runs: list[int] = []

    @countersigned(desk.instance)
    def delete() -> None:
        runs.append(1)

    with pytest.raises(CallRefused, match="do not list it") as refused:
        delete()
    assert (refused.value.code, runs) == ("denied", [])


@pytest.mark.parametrize("keyed", [False, True])
def test_an_undecided_call_expires(desk: Desk, keyed: bool) -> None:
    how: dict[str, Any] = {"key": lambda amount: desk.key()} if keyed else {}
    ledger = Ledger(desk, timeout_secs=1, **how)
    with pytest.raises(CallRefused) as refused:
        ledger.refund(42)
    assert (refused.value.code, "with a new key" in str(refused.value), ledger.runs) == ("expired", keyed, [])


@pytest.mark.parametrize("code", sorted(CODES - {"idempotency_conflict"}))
def test_a_call_without_a_key_is_not_advised_about_its_key(code: str) -> None:
    """Only a call with a key can have another call's key."""
    with_key, without = (CallRefused(code, "refund", keyed=keyed) for keyed in (True, False))
    assert re.sub(r",? with (a new|the same) key", "", str(with_key)) == str(without)
    assert "key" not in str(without)


def test_an_undecided_call_continues_with_its_key(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    key = desk.key()
    ledger = Ledger(desk, key=lambda amount: key, timeout_secs=600)
    with monkeypatch.context() as impatient:
        impatient.setattr("countersign.tools._countersigned.GRACE_SECS", -599)
        with pytest.raises(CallRefused) as refused:
            ledger.refund(44)
    assert (refused.value.code, ledger.runs) == ("still_held", [])
    asked = ledger.waiting.get(timeout=30)
    assert refused.value.request == asked.id
    desk.ada.approve(review(asked))
    assert (ledger.refund(44), ledger.runs) == ("refunded 44", [44])


@pytest.mark.parametrize("at", [0, 2])
def test_an_answer_with_other_arguments_does_not_run(desk: Desk, at: int) -> None:
    """The answer to the question, and the answer to the use of the approval."""
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        ledger = Ledger(desk, client, timeout_secs=5)
        proxy.todo.extend([*[None] * at, Changed(lambda body: body["arguments"].update(amount=4000))])
        with ThreadPoolExecutor() as pool:
            running = pool.submit(ledger.refund, 43)
            if at > 0:
                desk.ada.approve(review(ledger.waiting.get(timeout=30)))
            with pytest.raises(AnswerMismatch, match="arguments_mismatch"):
                running.result(30)
    assert ledger.runs == []


def test_the_function_gets_what_was_approved(desk: Desk) -> None:
    """An argument that changes while reviewers decide stays as it was."""
    ledger, lines = Ledger(desk), [{"sku": "a", "number": 1}]
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ledger.refund, lines)
        asked = ledger.waiting.get(timeout=30)
        lines[0]["number"] = 1000
        desk.ada.approve(review(asked))
        running.result(30)
    assert ledger.runs == [asked.arguments["amount"]] == [[{"sku": "a", "number": 1}]]


def test_parallel_calls_need_an_approval_each(desk: Desk) -> None:
    ledger = Ledger(desk, timeout_secs=60)
    with ThreadPoolExecutor() as pool:
        first, second = pool.submit(ledger.refund, 50), pool.submit(ledger.refund, 51)
        asked = {it.arguments["amount"]: it for it in (ledger.waiting.get(timeout=30) for _ in range(2))}
        desk.ada.approve(review(asked[51]))
        assert second.result(30) == "refunded 51"
        assert (ledger.runs, first.done(), desk.instance.request(asked[50].id).status) == ([51], False, "pending")
        desk.ada.deny(review(asked[50]))
        with pytest.raises(CallRefused, match="denied"):
            first.result(30)
    assert ledger.runs == [51]


def test_two_equal_calls_in_parallel_run_once_by_one_approval(desk: Desk) -> None:
    """Two processes continue the same call."""
    key = desk.key()
    ledger = Ledger(desk, key=lambda amount: key)
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(ledger.refund, 52) for _ in range(2)]
        asked = [ledger.waiting.get(timeout=30) for _ in range(2)]
        assert asked[0].id == asked[1].id
        desk.ada.approve(review(asked[0]))
        errors = [it.exception(30) for it in running]
    assert sorted(getattr(it, "code", "ran") for it in errors) == ["already_consumed", "ran"]
    assert ledger.runs == [52]


def test_the_approval_of_one_call_opens_no_other(desk: Desk) -> None:
    ledger = Ledger(desk, key=lambda amount, key: key, local=["key"])
    key = desk.key()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ledger.refund, 1, key)
        desk.ada.approve(review(ledger.waiting.get(timeout=30)))
        running.result(30)
    with pytest.raises(CallRefused) as refused:
        ledger.refund(1_000, key)
    assert (refused.value.code, ledger.runs) == ("idempotency_conflict", [1])


@contextmanager
def process(desk: Desk, key: str, calls: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    known = {"GATE": desk.gateway.url, "TOKEN": desk.token, "KEY": key, "CALLS": str(calls)}
    with subprocess.Popen(
        [sys.executable, str(DYING)], env={**os.environ, **known, **more}, stdout=subprocess.PIPE, text=True
    ) as it:
        yield it
        it.kill()


def said(running: subprocess.Popen[str]) -> list[str]:
    assert running.stdout is not None
    return running.stdout.readline().split()


def test_a_call_continues_after_its_process_died(desk: Desk, tmp_path: Path) -> None:
    key, calls = desk.key(), tmp_path / "calls"
    with process(desk, key, calls) as running:
        _, url = said(running)
    assert not calls.exists()
    desk.ada.approve(url)
    with process(desk, key, calls) as running:
        assert said(running) == ["refunded", "40"]
    with process(desk, key, calls) as running:
        assert said(running) == ["already_consumed"]
    assert calls.read_text() == "40\n"


def test_a_call_that_died_before_its_report_is_not_run_again(desk: Desk, tmp_path: Path) -> None:
    """The lease of its use is still valid, so only the random key of the attempt keeps it from running."""
    key, calls = desk.key(), tmp_path / "calls"
    with process(desk, key, calls, DIES="1") as running:
        _, url = said(running)
        desk.ada.approve(url)
        assert running.wait(30) == -9
    for _ in range(2):
        with process(desk, key, calls) as running:
            assert said(running) == ["already_consumed"]
    assert calls.read_text() == "40\n"


def test_an_approval_under_an_earlier_policy_does_not_run(own_desk: Desk) -> None:
    key = own_desk.key()
    made = own_desk.instance.create_request("refund", {"amount": 9}, idempotency_key=key, timeout="600s")
    own_desk.ada.approve(review(made))
    own_desk.activate(POLICY.replace("A person", "Somebody"))
    ledger = Ledger(own_desk, key=lambda amount: key, local=["key"])
    with pytest.raises(CallRefused, match="policy_mismatch") as refused:
        ledger.refund(9)
    assert (refused.value.code, ledger.runs) == ("not_approved", [])


def test_an_approval_that_was_not_used_in_time_does_not_run(own_desk: Desk) -> None:
    own_desk.activate(POLICY.replace("[approval]", '[approval]\nreceipt_ttl = "1s"'))
    key = own_desk.key()
    made = own_desk.instance.create_request("refund", {"amount": 9}, idempotency_key=key, timeout="600s")
    own_desk.ada.approve(review(made))
    decided = own_desk.instance.wait_for_request(made.id, within_secs=30)
    ends = claim(decided.receipt or "", "exp")
    while time.time() <= ends:
        time.sleep(0.05)
    ledger = Ledger(own_desk, key=lambda amount, key: key, local=["key"])
    with pytest.raises(CallRefused) as refused:
        ledger.refund(9, key)
    assert (refused.value.code, ledger.runs) == ("approval_expired", [])
    assert "make it again with a new key" in refused.value.next_step
    with ThreadPoolExecutor() as pool:
        running = pool.submit(ledger.refund, 9, own_desk.key())
        own_desk.ada.approve(review(ledger.waiting.get(timeout=30)))
        assert running.result(30) == "refunded 9"


@pytest.mark.parametrize("halt", [[], ["--only", "verifying"]], ids=["all", "verifying"])
def test_a_halted_call_runs_after_the_halt(own_desk: Desk, halt: list[str]) -> None:
    """The halt of proposals refuses the question, and the halt of writes refuses the use of the approval."""
    key = own_desk.key()
    made = own_desk.instance.create_request("refund", {"amount": 9}, idempotency_key=key, timeout="600s")
    own_desk.ada.approve(review(made))
    ledger = Ledger(own_desk, key=lambda amount: key, local=["key"])
    own_desk.gateway.run("halt", "set", "refunds", *halt)
    with pytest.raises(CallRefused) as refused:
        ledger.refund(9)
    assert (refused.value.code, ledger.runs) == ("halted", [])
    assert "with the same key" in refused.value.next_step
    own_desk.gateway.run("halt", "lift", "refunds")
    assert (ledger.refund(9), ledger.runs) == ("refunded 9", [9])


def test_a_function_that_raises_is_reported_as_failed(desk: Desk) -> None:
    asked: list[str] = []

    @countersigned(desk.instance, tool="search", key=lambda: asked[-1])
    def search() -> None:
        raise KeyError("card 4111 1111")

    asked.append(desk.key())
    with pytest.raises(KeyError):
        search()
    request = desk.instance.create_request("search", {}, idempotency_key=asked[0], timeout="600s")
    assert outcome(desk, request.id) == ("failed", "KeyError")


def test_a_report_that_fails_does_not_hide_the_result(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:

        @countersigned(client)
        def search() -> str:
            proxy.todo.append(Instead(404, b"{}"))
            return "found"

        with caplog.at_level(logging.WARNING, "countersign"):
            assert search() == "found"
    assert "the call succeeded, and the report failed (NotFound)" in caplog.text


@pytest.mark.parametrize("raises", [False, True])
def test_a_report_that_cannot_be_sent_hides_neither_result_nor_exception(
    desk: Desk, caplog: pytest.LogCaptureFixture, raises: bool
) -> None:
    """Any other exception means that the call did not run, so the agent would make it again."""
    client, runs = Client(desk.gateway.url, desk.token), []

    @countersigned(client)
    def search() -> str:
        runs.append(1)
        client.close()
        if raises:
            raise KeyError("no such word")
        return "found"

    with caplog.at_level(logging.WARNING, "countersign"):
        if raises:
            with pytest.raises(KeyError):
                search()
        else:
            assert search() == "found"
    assert runs == [1]
    assert "and the report failed (RuntimeError)" in caplog.text


def test_an_awaited_report_that_cannot_be_sent_does_not_hide_the_result(desk: Desk) -> None:
    async def scenario() -> str:
        client = desk.gateway.async_client(desk.token)

        @countersigned(client)
        async def search() -> str:
            await client.aclose()
            return "found"

        return await search()

    assert asyncio.run(scenario()) == "found"


def test_nothing_runs_without_the_gateway(desk: Desk) -> None:
    with Client("http://127.0.0.1:1", desk.token) as client:
        ledger = Ledger(desk, client)
        with pytest.raises(Unreachable):
            ledger.refund(1)
    assert ledger.runs == []


def test_an_async_function_is_awaited_and_runs_once(desk: Desk) -> None:
    runs: list[int] = []

    async def scenario() -> str:
        async with desk.gateway.async_client(desk.token) as client:
            waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()

            @countersigned(client, on_held=waiting.put_nowait)
            async def refund(amount: int) -> str:
                runs.append(amount)
                return f"refunded {amount}"

            assert inspect.iscoroutinefunction(refund)
            running = asyncio.gather(*(refund(it) for it in (60, 61)), return_exceptions=True)
            for _ in range(2):
                asked = await waiting.get()
                vote = desk.ada.approve if asked.arguments["amount"] == 60 else desk.ada.deny
                await asyncio.to_thread(vote, review(asked))
            first, second = await running
            assert isinstance(second, CallRefused)
            return str(first)

    assert (asyncio.run(scenario()), runs) == ("refunded 60", [60])


def test_a_method_is_asked_for_without_its_object(desk: Desk) -> None:
    class Shop:
        @countersigned(desk.instance, tool="search")
        def search(self, *words: str, **filters: int) -> tuple[Any, ...]:
            return (self, words, filters)

    shop = Shop()
    assert shop.search("red", "shoes", size=42) == (shop, ("red", "shoes"), {"size": 42})


class Shop:
    def buy(self, amount: int) -> None: ...

    @classmethod
    def sell(cls, amount: int) -> None: ...

    @staticmethod
    def gift(cls: str, amount: int) -> None: ...  # noqa: PLW0211 - what it is about


class Branch(Shop):
    pass


def plain(cls: str, amount: int) -> None: ...


def test_only_the_object_of_a_method_is_left_out() -> None:
    """Reviewers see every other argument, whatever its name."""

    def local(self: str, amount: int) -> None: ...

    def sent(function: Callable[..., None], first: object) -> object:
        return Arguments(function, frozenset()).bind((first, 3), {}).sent

    for method, its in ((Shop.buy, Shop()), (Shop.buy, Branch()), (Shop.sell.__func__, Branch)):  # type: ignore[attr-defined]
        assert sent(method, its) == {"amount": 3}
    for function, first in ((plain, "cls"), (local, "self"), (Shop.gift, "cls"), (Shop.buy, "self")):
        assert sent(function, "gold") == {first: "gold", "amount": 3}
    with pytest.raises(Invalid, match="cls: "):
        sent(plain, Shop)


def test_arguments_that_are_no_json_are_not_sent(desk: Desk) -> None:
    ledger = Ledger(desk, timeout_secs=1)
    some = (it for it in (1, 2))
    for value in ({1: "one"}, [(1, 2)], {1, 2}, float("nan"), Path("x"), some):
        with pytest.raises(Invalid, match="amount: "):
            ledger.refund(value)
    assert list(some) == [1, 2]
    assert ledger.waiting.empty()


class Text(str):
    """A text of another type."""


class Color(str, Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        [(1, 2)],
        Text("red"),
        Color.RED,
        [Color.RED],
        {"color": Color.RED},
        {Color.RED: 1},
        Number.ONE,
        OrderedDict(sku="a"),
    ],
    ids=repr,
)
def test_arguments_whose_type_json_does_not_keep_are_not_sent(desk: Desk, value: Any) -> None:
    """The function would get a list, a plain text or a plain number."""
    with between(desk.gateway.url) as proxy, Client(proxy.url, desk.token) as client:
        search = countersigned(client, tool="search")(lambda words: words)
        with pytest.raises(Invalid, match="words: "):
            search(value)
    assert proxy.asked == []


def test_the_function_gets_its_arguments_as_the_caller_gave_them(desk: Desk) -> None:
    """The gateway returns 40.0 as 40, which is the same number in JSON."""

    @countersigned(desk.instance)
    def search(price: float, *sizes: float, **more: Any) -> str:
        return repr((price, sizes, more))

    given = (40.0, (1, 2.0, 1e16), {"a": [3.0, 3, True, None, "x", {"b": -1.0}]})
    assert search(given[0], *given[1], **given[2]) == repr(given)


def test_local_names_of_an_iterator_are_checked(desk: Desk) -> None:
    with pytest.raises(Invalid, match="no parameter other"):
        countersigned(desk.instance, local=iter(["other"]))(print)
    local = countersigned(desk.instance, tool="search", local=iter(["words"]))
    for begin in ("with ", "without "):

        def search(words: Iterable[str], begin: str = begin) -> str:
            return begin + " ".join(words)

        assert local(search)(word for word in ("red", "shoes")) == f"{begin}red shoes"


def test_a_function_that_does_not_fit_is_refused_when_it_is_decorated(desk: Desk) -> None:
    async def later() -> None: ...

    def some() -> Iterator[int]:
        yield 1

    for function in (later, some):
        with pytest.raises(Invalid):
            countersigned(desk.instance)(function)
    with pytest.raises(Invalid):
        countersigned(AsyncClient(desk.gateway.url, desk.token))(lambda: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(Invalid, match="no parameter other"):
        countersigned(desk.instance, local=["other"])(print)
    for wrong in (desk.instance.jwks(), {}):
        with pytest.raises(Invalid, match=r"Keys\.read"):
            countersigned(desk.instance, keys=wrong)(print)  # type: ignore[call-overload]
