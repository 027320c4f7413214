"""Compares a gateway with the provider that the package has for tests: the same steps must give the same results.

    plain.py    with the gateway in AAP_URL and the token of the instance in AAP_TOKEN

Each line of output asks the test to act at the gateway, and a line of input confirms it:

    {"decide": ID, "status": "approved", "note": TEXT}    a reviewer votes
    {"expire": ID}                                        the approval of this request expires

The last line has the results: {"same": NUMBER, "different": {STEP: [PACKAGE, GATEWAY]}}.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from agentapprovalprotocol import (
    AAPError,
    AsyncClient,
    AsyncGate,
    Call,
    Client,
    ConflictError,
    Deny,
    Gate,
    Request,
)
from agentapprovalprotocol._wire import same
from agentapprovalprotocol.testing import FakeProvider

# The steps in which the gateway differs on purpose, with the results of the package and the gateway.
DIFFERENT = {
    # An ended call is not repeated, even by a client that lost the first answer.
    "consume/the same key after the outcome": ("approved, consumed, succeeded", "409 already_consumed"),
    # Two spellings of one number are one value.
    "create/the same number in another spelling": ("409 idempotency_conflict", "the same request"),
    # The gateway refuses a number that a reviewer's browser cannot show exactly.
    "values/9007199254740993": ("echoed", "AAPError"),
    # The names of tools are names in policies.
    "limits/tool with spaces": ("pending", "AAPError"),
    "limits/server with an address": ("pending", "AAPError"),
    # The gateway stores no rejected call with a redacted value.
    "reject/read with a redacted value": ("denied, note 'not allowed'", "NotFound"),
    # Reviewers read the reasoning.
    "limits/reasoning of 8001 characters": ("pending", "AAPError"),
    "limits/timeout of 31 days": ("pending", "AAPError"),
}

ARGUMENTS = {
    "order": "N-1 “Nordwind”",
    "amount": 40.5,
    "lines": [{"sku": "a", "number": 2, "gift": False, "note": None}],
}

# Values that programs read differently.
VALUES = [
    0.1,
    -0.0,
    1e-7,
    1.5e300,
    9007199254740991,
    9007199254740993,
    "",
    "\0",
    "\u2028",
    "😀",
    {},
    [],
    [[None]],
    {"": 1},
]


class Package:
    """The provider of the package, in this process."""

    def __init__(self) -> None:
        self.provider = FakeProvider(auto=None)

    def client(self) -> Client:
        return self.provider.client(retry_budget=5)

    def async_client(self) -> AsyncClient:
        return self.provider.async_client(retry_budget=5)

    def stranger(self) -> Client:
        client = self.client()
        client._headers["Authorization"] = "Bearer unknown"
        return client

    def reject(self, request: str) -> None:
        """Denies a call that the policy of the gateway denies at once."""
        self.decide(request, "denied", "not allowed")

    def decide(self, request: str, status: str, note: str | None = None) -> None:
        self.provider.decide(request, status, note)

    def expire(self, request: str) -> None:
        stored = self.provider.requests[request]
        stored.expires_at = stored.decided_at + timedelta(microseconds=1)


class Gateway:
    """A real gateway. The test decides."""

    def __init__(self) -> None:
        self.url, self.token = os.environ["AAP_URL"], os.environ["AAP_TOKEN"]

    def client(self) -> Client:
        return Client(self.url, self.token, retry_budget=5)

    def async_client(self) -> AsyncClient:
        return AsyncClient(self.url, self.token, retry_budget=5)

    def stranger(self) -> Client:
        return Client(self.url, "unknown", retry_budget=5)

    def reject(self, request: str) -> None:
        pass

    def decide(self, request: str, status: str, note: str | None = None) -> None:
        self.ask({"decide": request, "status": status, "note": note})

    def expire(self, request: str) -> None:
        self.ask({"expire": request})

    @staticmethod
    def ask(what: dict[str, Any]) -> None:
        print(json.dumps(what), flush=True)
        sys.stdin.readline()


class Blocking:
    """The asynchronous client, or its gate, with the calls of the synchronous one."""

    def __init__(self, inner: Any, runner: asyncio.Runner):
        self.inner, self.runner = inner, runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.inner, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            return await method(*arguments, **options)

        return lambda *arguments, **options: self.runner.run(call(*arguments, **options))


class Steps:
    """The results of one provider, by the names of the steps."""

    def __init__(
        self, provider: Package | Gateway, client: Any, make_gate: Callable[..., Any], run: Callable[..., Any]
    ):
        self.provider, self.client, self.make_gate, self.run = provider, client, make_gate, run
        self.results: dict[str, str] = {}
        self.number = 0

    def step(self, name: str, call: Callable[[], Any]) -> Any:
        try:
            result = call()
            self.results[name] = described(result)
        except ConflictError as error:
            result, self.results[name] = None, f"409 {error.code}"
        except AAPError as error:
            result, self.results[name] = None, type(error).__name__
        return result

    def key(self) -> str:
        self.number += 1
        return f"key-{type(self.client).__name__}-{self.number}"

    def create(self, **more: Any) -> Request:
        return self.client.create(submission(**more), self.key())

    def approved(self) -> Request:
        request = self.create()
        self.provider.decide(request.id, "approved")
        return request

    def all(self) -> None:
        for scenario in (values, limits, creates, decides, rejects, cancels, consumes, reports, gates, expires):
            scenario(self)


def submission(**more: Any) -> dict[str, Any]:
    return {"tool": "refund", "arguments": ARGUMENTS, "timeout": "10m", **more}


def described(result: Any) -> str:
    if not isinstance(result, Request):
        return str(result)
    words = [result.status]
    if result.decision and result.decision.note:
        words.append(f"note {result.decision.note!r}")
    if result.consumption:
        words.append("consumed")
        if result.consumption.outcome:
            words.append(result.consumption.outcome.status)
            words += [result.consumption.outcome.note] if result.consumption.outcome.note else []
    return ", ".join(words)


def values(it: Steps) -> None:
    for value in VALUES:

        def echo(value: Any = value) -> str:
            request = it.create(arguments={"value": value}, context={"value": value})
            return "echoed" if same([request.arguments, request.context], [{"value": value}] * 2) else "changed"

        it.step(f"values/{value!r}", echo)


def limits(it: Steps) -> None:
    it.step("limits/tool with spaces", lambda: it.create(tool="Refund an order"))
    it.step("limits/server with an address", lambda: it.create(server="streamable_http: https://crm.example/mcp"))
    it.step("limits/reasoning of 8000 characters", lambda: it.create(agent_reasoning="x" * 8_000))
    it.step("limits/reasoning of 8001 characters", lambda: it.create(agent_reasoning="x" * 8_001))
    it.step("limits/timeout of 30 days", lambda: it.create(timeout="30d"))
    it.step("limits/timeout of 31 days", lambda: it.create(timeout="31d"))


def creates(it: Steps) -> None:
    key = it.key()
    call = submission(server="crm", agent_reasoning="it is late", context={"run": {"id": 7, "share": 0.5}})
    first = it.step("create/first", lambda: it.client.create(call, key))
    it.step("create/echo", lambda: [first.server, first.agent_reasoning, first.context, first.arguments == ARGUMENTS])

    def again(**changed: Any) -> str:
        return "the same request" if it.client.create({**call, **changed}, key).id == first.id else "another request"

    it.step("create/again", again)
    it.step("create/other arguments", lambda: again(arguments={**ARGUMENTS, "amount": 41}))
    it.step("create/other type of an argument", lambda: again(arguments={**ARGUMENTS, "order": 1}))
    it.step("create/other tool", lambda: again(tool="search"))
    it.step("create/other timeout", lambda: again(timeout="11m"))
    it.step("create/other reasoning", lambda: again(agent_reasoning="it is not late"))
    it.step("create/other context", lambda: again(context={}))
    it.step("create/another key", lambda: it.create().id != first.id)
    number, whole = it.key(), {"a": 2}
    it.client.create(submission(arguments=whole), number)
    spelled = lambda: it.client.create(submission(arguments={"a": 2.0}), number) and "the same request"  # noqa: E731
    it.step("create/the same number in another spelling", spelled)
    it.step("create/unknown token", lambda: it.provider.stranger().create(submission(), "key"))


def decides(it: Steps) -> None:
    request = it.create()
    it.step("decide/pending", lambda: it.client.get(request.id))
    it.provider.decide(request.id, "approved", "call them first")
    it.step("decide/approved", lambda: it.client.get(request.id, wait=5))
    denied = it.create()
    it.provider.decide(denied.id, "denied", "not this week")
    it.step("decide/denied", lambda: it.client.get(denied.id))
    it.step("decide/consume a denied one", lambda: it.client.consume(denied.id, "c"))
    it.step("decide/report a denied one", lambda: it.client.report_outcome(denied.id, "succeeded"))
    it.step("decide/unknown", lambda: it.client.get("0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47"))
    it.step("decide/unknown token", lambda: it.provider.stranger().get(request.id))


def rejects(it: Steps) -> None:
    key, call = it.key(), submission(tool="delete", agent_reasoning="it is late", context={"run": 7})

    def echo(request: Request) -> list[Any]:
        return [request.status, request.agent_reasoning, request.context, request.arguments == ARGUMENTS]

    rejected = it.client.create(call, key).id
    it.provider.reject(rejected)
    it.step("reject/again", lambda: echo(it.client.create(call, key)))
    it.step("reject/read", lambda: echo(it.client.get(rejected)))
    it.step("reject/consume", lambda: it.client.consume(rejected, "c"))
    it.step("reject/cancel", lambda: it.client.cancel(rejected))
    it.step("reject/report", lambda: it.client.report_outcome(rejected, "failed"))
    redacted = it.create(tool="delete", arguments={"card": "4999"}).id
    it.provider.reject(redacted)
    it.step("reject/read with a redacted value", lambda: it.client.get(redacted))


def cancels(it: Steps) -> None:
    request = it.create()
    it.step("cancel/first", lambda: it.client.cancel(request.id))
    it.step("cancel/again", lambda: it.client.cancel(request.id))
    it.step("cancel/read", lambda: it.client.get(request.id))
    it.step("cancel/consume", lambda: it.client.consume(request.id, "c"))
    approved = it.approved()
    it.step("cancel/an approved one", lambda: it.client.cancel(approved.id))
    it.step("cancel/unknown", lambda: it.client.cancel("0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47"))


def consumes(it: Steps) -> None:
    pending = it.create()
    it.step("consume/pending", lambda: it.client.consume(pending.id, "c"))
    request = it.approved()
    it.step("consume/report before", lambda: it.client.report_outcome(request.id, "succeeded"))
    it.step("consume/first", lambda: it.client.consume(request.id, "c1"))
    it.step("consume/the same key", lambda: it.client.consume(request.id, "c1"))
    it.step("consume/another key", lambda: it.client.consume(request.id, "c2"))
    it.step("consume/cancel", lambda: it.client.cancel(request.id))
    it.client.report_outcome(request.id, "succeeded")
    it.step("consume/the same key after the outcome", lambda: it.client.consume(request.id, "c1"))
    it.step("consume/another key after the outcome", lambda: it.client.consume(request.id, "c2"))


def reports(it: Steps) -> None:
    for status, other in (("succeeded", "failed"), ("failed", "succeeded")):
        request = it.approved()
        it.client.consume(request.id, "c")

        def report(said: str, note: str | None = None, request: str = request.id) -> Request:
            return it.client.report_outcome(request, said, note)

        it.step(f"report/{status}", partial(report, status, "order 7"))
        it.step(f"report/{status} again", partial(report, status, "order 7"))
        it.step(f"report/{status}, then {other}", partial(report, other))
        it.step(f"report/{status}, another note", partial(report, status, "order 8"))
        it.step(f"report/{status}, read", partial(it.client.get, request.id))


def gates(it: Steps) -> None:
    def call(**more: Any) -> Call:
        return Call(**{"key": it.key(), "tool": "refund", "arguments": ARGUMENTS, "reasoning": "it is late", **more})

    def told(verdict: Any) -> str:
        kind = type(verdict).__name__
        return f"{kind} {verdict.status} {verdict.reason}" if isinstance(verdict, Deny) else kind

    pausing, waiting = it.make_gate(mode="async"), it.make_gate(mode="sync")
    asked = call(resume={"framework": "none", "run": 1})
    paused = pausing.check(asked)
    it.step("gate/pending", lambda: told(paused))
    it.step("gate/pending again", lambda: pausing.check(asked).request_id == paused.request_id)
    it.provider.decide(paused.request_id, "approved", "call them first")
    it.step("gate/approved", lambda: told(pausing.check(asked)))
    it.step("gate/consumed", lambda: told(pausing.check(asked)))

    other = Call(**{**vars(asked), "arguments": {**ARGUMENTS, "amount": 4000}})
    it.step("gate/changed arguments", lambda: told(pausing.check(other)))

    asked = call()
    denied = pausing.check(asked)
    it.provider.decide(denied.request_id, "denied", "not this week")
    it.step("gate/denied", lambda: told(pausing.check(asked)))

    asked = call()
    request = pausing.check(asked).request_id
    late = threading.Timer(0.3, lambda: it.provider.decide(request, "approved"))
    late.start()
    # The gates have equal submissions only for equal timeouts.
    patient = it.make_gate(mode="sync", timeout="24h")
    it.step("gate/waits", lambda: told(patient.check(asked)))
    late.join()

    asked = call()
    impatient = it.make_gate(mode="sync", wait_limit=1)
    it.step("gate/timed out", lambda: told(impatient.check(asked)))
    it.step("gate/timed out again", lambda: told(waiting.check(asked)))

    for name, error in (("succeeded", None), ("failed", ValueError("no such order"))):
        asked = call()
        request = pausing.check(asked).request_id
        it.provider.decide(request, "approved")
        with suppress(ValueError):
            it.run(pausing, asked, error)
        it.step(f"gate/guard, {name}", partial(it.client.get, request))


def expires(it: Steps) -> None:
    request = it.approved()
    it.provider.expire(request.id)
    it.step("expire/consume", lambda: it.client.consume(request.id, "c"))
    it.step("expire/read", lambda: it.client.get(request.id))


def guarded(gate: Gate, call: Call, error: Exception | None) -> None:
    with gate.guard(call) as verdict:
        assert verdict, verdict
        if error:
            raise error


async def guarded_async(gate: AsyncGate, call: Call, error: Exception | None) -> None:
    async with gate.guard(call) as verdict:
        assert verdict, verdict
        if error:
            raise error


def results(provider: Package | Gateway) -> dict[str, str]:
    client = provider.client()
    steps = Steps(provider, client, lambda **options: Gate(client, **options), guarded)
    steps.all()
    with asyncio.Runner() as runner:
        async_client = provider.async_client()
        blocking = Blocking(async_client, runner)

        def make_gate(**options: Any) -> Blocking:
            return Blocking(AsyncGate(async_client, **options), runner)

        def run(gate: Blocking, call: Call, error: Exception | None) -> None:
            runner.run(guarded_async(gate.inner, call, error))

        again = Steps(provider, blocking, make_gate, run)
        again.all()
        runner.run(async_client.aclose())
    return steps.results | {f"async {name}": result for name, result in again.results.items()}


def main() -> None:
    package, gateway = results(Package()), results(Gateway())
    assert package.keys() == gateway.keys()
    different = {name: (package[name], gateway[name]) for name in package if package[name] != gateway[name]}
    expected = {f"{kind}{name}": it for name, it in DIFFERENT.items() for kind in ("", "async ")}
    unexpected = {name: it for name, it in (different | expected).items() if different.get(name) != expected.get(name)}
    print(json.dumps({"same": len(package) - len(different), "different": unexpected}), flush=True)


main()
