"""HMACs of envelopes, checked here by secrets that a node was given, at a real gateway."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timezone

import httpx
import pytest

from conftest import Flow
from countersign import Client, Forbidden, HeldSecrets, NodeSecrets, Problem
from countersign.verify import ANY, Keys, Refused


class Watched(httpx.BaseTransport):
    """The way to the gateway: what is asked is counted, and an envelope on its way back may be another."""

    def __init__(self) -> None:
        self._real = httpx.HTTPTransport()
        self.asked: list[str] = []
        self.spoils: dict[str, object] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path.rpartition("/")[2])
        answer = self._real.handle_request(request)
        body = json.loads(answer.read())
        if "hmac" in body:
            body = {**body, **self.spoils}
        return httpx.Response(answer.status_code, stream=httpx.ByteStream(json.dumps(body).encode()))

    def close(self) -> None:
        self._real.close()


def test_secrets_are_asked_for_once_a_period_and_what_was_changed_on_the_way_is_refused(flow: Flow) -> None:
    thread, keys, way = flow.thread().thread, Keys.read(flow.host.jwks()), Watched()
    held = HeldSecrets()
    with Client(flow.gateway.url, flow.tokens["planner"], transport=way) as planner:

        def ask() -> object:
            return planner.checked_envelope(
                thread, flow="payments", node="planner", keys=keys, issuer=ANY, held=held, fits=ANY, count=ANY
            ).payload

        assert ask() == ask() == flow.planner.state(thread, "planner").state
        assert way.asked == ["envelope", "envelope-secret", "envelope"]
        # A period has begun since: those that are held are of another one.
        given = flow.planner.node_secrets("payments", "planner")
        old = tuple(dataclasses.replace(it, epoch="2020-01-01T00:00:00.000Z") for it in given.secrets)
        held.keep(dataclasses.replace(given, secrets=old))
        ask()
        assert way.asked[3:] == ["envelope", "envelope-secret"]
        for code, spoils in (
            ("hmac_missing", {"hmac": None}),
            ("hmac_mismatch", {"hmac": {"alg": "HS256", "epoch": given.secrets[0].epoch, "value": "A" * 43}}),
            ("hmac_mismatch", {"hmac": {"alg": "HS256", "epoch": given.secrets[0].epoch, "value": "é"}}),
            ("hmac_expired", {"hmac": {"alg": "HS256", "epoch": "2020-01-01T00:00:00.000Z", "value": "A" * 43}}),
            ("envelope_mismatch", {"payload": {"target_user_id": 666}}),
        ):
            way.spoils = dict(spoils)
            with pytest.raises(Refused) as refused:
                ask()
            assert refused.value.code == code


def test_the_gateway_looks_at_an_hmac_too_and_gives_secrets_to_nobody_else(flow: Flow) -> None:
    thread = flow.thread().thread
    bare, bearing = (flow.planner.envelope(thread, node="planner", hmac=hmac) for hmac in (False, True))
    assert bare.hmac is None
    assert flow.planner.verify_envelope(bearing, require_hmac=True).valid
    assert flow.planner.verify_envelope(bare).valid
    with pytest.raises(Problem) as missing:
        flow.planner.verify_envelope(bare, require_hmac=True)
    assert missing.value.code == "hmac_missing"
    with pytest.raises(Forbidden):
        flow.parser.node_secrets("payments", "planner")
    given = flow.planner.node_secrets("payments", "planner")
    assert isinstance(given, NodeSecrets)
    assert given.rotates_at > datetime.now(timezone.utc)
    assert given.secrets[0].secret not in repr(given)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_awaited(flow: Flow) -> None:
    thread, keys = flow.thread().thread, Keys.read(flow.host.jwks())
    async with flow.gateway.async_client(flow.tokens["planner"]) as planner:
        found = await planner.checked_envelope(
            thread, flow="payments", node="planner", keys=keys, issuer=ANY, held=HeldSecrets(), fits=ANY, count=ANY
        )
    assert found.hmac is not None
