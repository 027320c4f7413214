"""The client beside the gateway's own description: every call of a machine's, all that it takes, all that it says."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from conftest import REPOSITORY
from countersign import Client, Envelope, HeldSecrets
from countersign._driving import Blocking, BlockingWalk
from countersign._plans import Call, Core, Request, text
from countersign._reading import read

DESCRIBED = json.loads((REPOSITORY / "docs" / "openapi.json").read_text())
SCHEMAS = DESCRIBED["components"]["schemas"]
# For MCP clients, the guard of MCP servers, hooks and the platforms that start agents.
OTHERS = {
    ("POST", "/mcp"),
    ("POST", "/mcp/upstreams/{name}"),
    ("GET", "/mcp/upstreams/{name}"),
    ("DELETE", "/mcp/upstreams/{name}"),
    ("POST", "/v1/callable-tools"),
    ("POST", "/v1/hooks/claude-code"),
    ("POST", "/aap/v1/instances"),
}
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in DESCRIBED["paths"].items()
    for method, operation in methods.items()
    if method in ("get", "put", "post", "patch", "delete")
}
DIGEST, JTI = "sha256:" + "0" * 64, "A" * 22
ENVELOPE = Envelope(0, "2026-11-21T04:03:42.391Z", None, 1, {}, (), DIGEST, "a.b.c")
# A value for each argument, whatever it is of.
SAMPLES: dict[str, Any] = {
    "flow": "payments", "state": {}, "thread": "order-1", "context": {"title": "Order 1"}, "idempotency_key": "key",
    "node": "planner", "version": 0, "page_token": "7", "page_size": 5, "parent": DIGEST, "patch": {},
    "format": "merge", "attempt": 1, "tool": {"name": "refund", "arguments": {}}, "usage": {"tokens": 1},
    "rationale": "why", "to_version": 0, "transition": DIGEST, "reason": "why", "write_id": "write-1",
    "receipt": "a.b.c", "expect": {"/a": 1}, "keys": None, "result": {}, "after": 0, "limit": 5, "within_secs": 60.0,
    "follow": False, "branches": ["left"], "strategy": "explicit",
    "resolve": [{"path": "/a", "value": 1}],
    "policy": "flow = 'payments'", "schemas": {}, "accepts": [DIGEST], "amendment": "a-1", "principal": "token:1",
    "committed_nodes": ["planner"], "totals": {}, "scope": "all", "proposing": True, "verifying": True, "jti": JTI,
    "outcome": "written", "endpoint": "e-1", "name": "mine", "url": "https://hooks.example", "kind": "webhook",
    "events": ["*"], "flows": ["payments"], "ordered": True, "headers": {"x": "y"}, "assistant": "agent",
    "template": {"body": 1}, "payload": 1, "enabled": True, "from_": "now", "overlap_secs": 1, "delivery": 7,
    "failed_since": "2026-11-21T04:03:42.391Z", "interrupt": "i-1", "interrupt_id": "abc",
    "transition_digest": "d" * 16, "changed_keys": ["a"], "redacted_diff": [], "thread_ref": "t",
    "title": "T", "expires_in_secs": 60, "episode": {"goal": {"task": "T"}}, "phase": "act", "caused_by": "e-1",
    "evidence_ids": ["m-1"], "file": "state.json", "step": "task-7", "hmac": True, "require_hmac": True,
    "issuer": "urn:i", "fits": None, "count": None, "arguments": {}, "timeout": "10m", "server": "crm",
    "agent_reasoning": "why", "tool_has_changed": True, "share": True, "status": "succeeded", "note": "why",
    "request": "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47",
}  # fmt: skip
# Names with two meanings.
OWN = {("chain_page", "page_token"): 0, ("replay_page", "after"): "x", ("judge", "principal"): {"id": "token:1"},
       ("add_event", "payload"): {}, ("verify_envelope", "envelope"): ENVELOPE,
       ("checked_envelope", "held"): HeldSecrets(), ("create_request", "tool"): "refund",
       ("consume_request", "tool"): "refund"}  # fmt: skip


def plans(client: type, *kinds: type) -> dict[str, Callable[..., Any]]:
    return {name: getattr(client, name) for name, it in vars(client).items() if isinstance(it, kinds)}


METHODS = plans(Client, Blocking, BlockingWalk)


@dataclasses.dataclass(frozen=True)
class Asked:
    """The first request of a method, and what each status of it is read as."""

    request: Request
    calls: tuple[Call[Any], ...]

    @functools.cached_property
    def operation(self) -> tuple[str, str]:
        for method, path in OPERATIONS:
            shape = re.sub(r"\{\w+\}", "[^/]+", path)
            if method == self.request.method and re.fullmatch(shape, self.request.path):
                return method, path
        raise AssertionError(f"{self.request.method} {self.request.path} is not described")


def asked(name: str, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Returns the first request of a method that receives every argument."""
    signature = list(inspect.signature(METHODS[name]).parameters.values())[1:]
    arguments = {it.name: OWN[key] if (key := (name, it.name)) in OWN else SAMPLES[it.name] for it in signature}
    made: list[Call[Any]] = []

    def seen(call: Call[Any], *rest: Any, **more: Any) -> None:
        honest(call, *rest, **more)
        made.append(call)

    honest = Call.__init__
    with monkeypatch.context() as watched:
        watched.setattr(Call, "__init__", seen)
        request = METHODS[name](Core(), **arguments).send(None)
    assert isinstance(request, Request)
    return Asked(request, tuple(it for it in made if it.request is request))


def test_every_call_of_a_machines_has_a_method_and_no_method_is_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {asked(name, monkeypatch).operation for name in METHODS}
    assert found == set(OPERATIONS) - OTHERS


def resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    return schema


# Covered by another method, or for callers without a token.
NOT_SAID = {
    ("POST", "/v1/interrupts"): {"source", "webhook-id", "webhook-timestamp", "webhook-signature"},
    ("GET", "/v1/events"): {"Last-Event-ID"},
}
# A method that says less than another one of the same call.
LESS = {"chain", "events", "deliveries", "rejections", "replay", "reaffirm", "decision", "interrupt", "request"}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_all_that_can_be_said_and_nothing_else(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = asked(name, monkeypatch)
    described = OPERATIONS[found.operation]
    parameters = [resolved(it) if "$ref" in it else it for it in described.get("parameters", ())]
    may = {it["name"] for it in parameters if it["in"] in ("query", "header")} - NOT_SAID.get(found.operation, set())
    said = set(found.request.query) | (set(found.request.headers) - {"Accept"})
    assert said <= may
    body = json.loads(found.request.body) if found.request.body is not None else None
    content = described.get("requestBody", {}).get("content", {}).get("application/json")
    assert (body is None) == (content is None)
    properties: set[str] = set()
    if content is not None and body is not None:
        schema = resolved(content["schema"])
        properties = set(schema.get("properties", {}))
        assert set(schema.get("required", ())) <= set(body) <= properties
    if name not in LESS:
        missing = (may - said) | (properties - set(body or ()))
        # A call that is idempotent by its content needs no key.
        assert missing <= {"Idempotency-Key", "reaffirm"}, missing


def kinds_read() -> Iterator[tuple[str, int, Any, Any]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in METHODS:
            found = asked(name, monkeypatch)
            for call in found.calls:
                for status, accepts in call.accepts.items():
                    if isinstance(accepts, functools.partial) and accepts.func is read:
                        answer = OPERATIONS[found.operation]["responses"][str(status)]
                        yield name, status, accepts.args[0], answer["content"]["application/json"]["schema"]


READ = list(kinds_read())


@pytest.mark.parametrize(("name", "status", "kind", "schema"), READ, ids=[f"{it[0]} {it[1]}" for it in READ])
def test_an_answer_is_read_as_it_is_described(name: str, status: int, kind: Any, schema: Any) -> None:
    fits(kind, schema, kind.__name__)


def test_most_answers_are_looked_at_so() -> None:
    """Those that are not are checked further by what reads them."""
    assert {it[0] for it in READ} >= set(METHODS) - {
        "propose", "reaffirm", "rollback", "join", "decision", "wait_for_decision", "cancel", "verify", "jwks",
        "metrics", "interrupt", "wait_for_interrupt", "remove_endpoint", "episode_file", "wait_for_request",
    }  # fmt: skip


def fits(hint: Any, schema: Any, at: str) -> None:
    """Whatever the schema allows is read, and nothing that it names is left out."""
    schema = resolved(schema)
    one_of = schema.get("oneOf") or schema.get("anyOf") or ()
    may_be_null = "null" in (schema.get("type") or ()) or any(it.get("type") == "null" for it in one_of)
    if hint is Any:
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (it for it in typing.get_args(hint) if it is not type(None))
        real = [it for it in one_of if it.get("type") != "null"]
        if len(real) == 1:
            return fits(inner, real[0], at)
        kinds = schema.get("type")
        return fits(
            inner, {**schema, "type": [it for it in kinds if it != "null"] if isinstance(kinds, list) else kinds}, at
        )
    assert not may_be_null, f"{at} may be null"
    if dataclasses.is_dataclass(hint):
        return members_fit(hint, schema, at)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    wanted = {str: "string", bool: "boolean", int: "integer", datetime: "string"}
    if hint in wanted:
        assert kind == wanted[hint] or ("const" in schema or "enum" in schema), f"{at} is {kind}"
        assert hint is not datetime or "T" in str(schema.get("pattern", schema.get("format"))), f"{at} is no moment"
        return None
    if typing.get_origin(hint) is tuple:
        assert kind == "array", f"{at} is {kind}"
        return fits(typing.get_args(hint)[0], schema["items"], f"{at}[]")
    assert typing.get_origin(hint) is dict, f"{at}: {hint}"
    assert kind in ("object", None) or "oneOf" in schema or "allOf" in schema, f"{at} is {kind}"
    return None


def members_fit(kind: Any, schema: Any, at: str) -> None:
    hints = typing.get_type_hints(kind)
    known = {}
    for it in dataclasses.fields(kind):
        if "header" in it.metadata:
            continue
        wire = str(it.metadata.get("wire", it.name))
        may_lack = it.default is not dataclasses.MISSING or it.default_factory is not dataclasses.MISSING
        known[wire] = (hints[it.name], may_lack)
    properties, required = schema["properties"], set(schema.get("required", ()))
    assert set(known) == set(properties), at
    for wire, (hint, may_lack) in known.items():
        assert may_lack or wire in required, f"{at}.{wire} may be left out"
        fits(hint, properties[wire], f"{at}.{wire}")


def test_samples_can_be_sent() -> None:
    assert text(SAMPLES)
