"""One gateway for all tests, with the payments flow. Each test has its own thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from calling import Desk, desk_in
from countersign import Client, Created
from countersign.testing import Gateway, Reviewer

REPOSITORY = Path(__file__).resolve().parents[3]
POLICY = REPOSITORY / "examples" / "payments" / "policy.toml"
STATE = {
    "raw_text": "Please refund 10 EUR.",
    "requested_action": "none",
    "target_user_id": 17,
    "payment": {"amount": 10, "currency": "EUR", "card": "4111111111111111"},
}


def pytest_configure() -> None:
    """A shell starts a process in the background with interrupts ignored, and the tests interrupt themselves."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Flow:
    """The payments flow, with a client of every role and one who is asked."""

    gateway: Gateway
    tokens: dict[str, str]
    host: Client
    planner: Client
    parser: Client
    writer: Client
    auditor: Client
    ada: Reviewer
    names: Iterator[int]

    def thread(self) -> Created:
        """A thread of one's own."""
        return self.host.create_thread("payments", STATE, thread=f"order-{next(self.names)}")


def flow_on(gateway: Gateway, policy: Path = POLICY) -> Flow:
    """The flow of a policy at a gateway that has none yet."""
    gateway.activate(policy)
    tokens = {
        "host": gateway.add_token("host", flow="payments"),
        "planner": gateway.add_token("agent", flow="payments", nodes=["planner"]),
        "parser": gateway.add_token("agent", flow="payments", nodes=["input_parser"]),
        "writer": gateway.add_token("writer", flow="payments", nodes=["database_writer"]),
        "auditor": gateway.add_token("auditor"),
    }
    clients = {role: gateway.client(token) for role, token in tokens.items()}
    ada = gateway.reviewer("ada", groups=["finance"])
    return Flow(gateway, tokens, **clients, ada=ada, names=count(1))


@pytest.fixture(scope="session")
def flow() -> Iterator[Flow]:
    """The flow that tests share which do nothing to the gateway itself."""
    with Gateway.start() as gateway:
        yield flow_on(gateway)


@pytest.fixture
def own_flow(countersign_gateway: Gateway) -> Flow:
    """A flow at a gateway that the test may stop or kill."""
    return flow_on(countersign_gateway)


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The flow with tools that tests share."""
    with desk_in(tmp_path_factory.mktemp("desk")) as it:
        yield it


@pytest.fixture
def own_desk(tmp_path: Path) -> Iterator[Desk]:
    """A flow with tools whose policy and gateway the test may change."""
    with desk_in(tmp_path) as it:
        yield it
