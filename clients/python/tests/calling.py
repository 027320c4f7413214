"""A flow with tools: `search` is allowed, `refund` and `crash` are held, and `delete` is denied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from countersign import Client
from countersign.testing import Gateway, Reviewer

POLICY = """
flow = "refunds"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["search", "refund", "crash"]

[[rules]]
name = "refunds"
tools = ["refund", "crash"]
when = "true"
then = "hold"
reason = "A person approves each refund."

[approval]
[[approval.stages]]
groups = ["finance"]
"""


@dataclass(frozen=True)
class Desk:
    """A gateway with an instance that asks for approval, and a reviewer."""

    gateway: Gateway
    token: str
    instance: Client
    ada: Reviewer
    folder: Path
    names: Iterator[int]

    def key(self) -> str:
        """Returns the key of a new call."""
        return f"run-1-call-{next(self.names)}"

    def activate(self, policy: str) -> None:
        """Activates a policy."""
        file = self.folder / "policy.toml"
        file.write_text(policy)
        self.gateway.activate(file)


@contextmanager
def desk_in(folder: Path) -> Iterator[Desk]:
    """A new gateway with the flow."""
    with Gateway.start() as gateway:
        file = folder / "policy.toml"
        file.write_text(POLICY)
        gateway.activate(file)
        token = gateway.add_token("instance", flow="refunds", nodes=["agent"])
        ada = gateway.reviewer("ada", groups=["finance"])
        yield Desk(gateway, token, gateway.client(token), ada, folder, count(1))
