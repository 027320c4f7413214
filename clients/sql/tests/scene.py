"""A gateway with the payments flow, once with leases of half a minute and once of a second, and work for a writer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from countersign import Client, Held
from countersign.testing import Gateway, Reviewer

PAYMENTS = Path(__file__).resolve().parents[3] / "examples" / "payments"
STATE = {
    "raw_text": "Please refund 40 EUR.",
    "requested_action": "refund",
    "target_user_id": 17,
    "payment": {"amount": 40, "currency": "EUR"},
}


@dataclass(frozen=True)
class Job:
    """A writer's job: every argument of `guarded_write`."""

    thread: str
    transition: str
    receipt: str | None
    write_id: str

    def told(self) -> dict[str, Any]:
        return dict(vars(self))

    def known(self) -> dict[str, str]:
        """Returns the identity of the job's write, the arguments of `settle`."""
        return {"thread": self.thread, "transition": self.transition, "write_id": self.write_id}


@dataclass
class Scene:
    """One flow at a gateway, with a client of each role."""

    gateway: Gateway
    flow: str
    ada: Reviewer
    tokens: dict[str, str]
    numbers: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)
    _clients: dict[str, Client] = field(default_factory=dict)

    @classmethod
    def on(cls, gateway: Gateway, ada: Reviewer, folder: Path, flow: str, lease: str) -> Scene:
        folder = folder / flow
        folder.mkdir()
        for file in PAYMENTS.iterdir():
            text = file.read_text()
            if file.name == "policy.toml":
                text = text.replace('flow = "payments"', f'flow = "{flow}"').replace('"30s"', f'"{lease}"')
            (folder / file.name).write_text(text)
        gateway.activate(folder / "policy.toml")
        tokens = {
            "host": gateway.add_token("host", flow=flow),
            "planner": gateway.add_token("agent", flow=flow, nodes=["planner"]),
            "writer": gateway.add_token("writer", flow=flow, nodes=["database_writer"]),
        }
        return cls(gateway, flow, ada, tokens)

    def client(self, role: str) -> Client:
        if role not in self._clients:
            self._clients[role] = self.gateway.client(self.tokens[role])
        return self._clients[role]

    def approved(self, *, thread: str = "", parent: str = "") -> Job:
        """Returns the job of an approved change, in a new thread, or of the unchanged head `parent`."""
        planner, number = self.client("planner"), self.numbers()
        if parent:
            held = planner.reaffirm(thread, node="planner", parent=parent)
        else:
            made = self.client("host").create_thread(self.flow, STATE, thread=thread or f"{self.flow}-{number}")
            thread = made.thread
            held = planner.propose(thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
        assert isinstance(held, Held)
        self.ada.approve(held)
        decision = planner.wait_for_decision(held.transition, within_secs=30)
        assert decision.approved
        return Job(thread, held.transition, decision.receipt, f"write-{number}")

    def unasked(self) -> Job:
        """A head that needs no receipt."""
        made = self.client("host").create_thread(self.flow, STATE, thread=f"{self.flow}-{self.numbers()}")
        return Job(made.thread, made.transition, None, f"write-{made.thread}")

    def stands(self, job: Job) -> tuple[str, bool]:
        """Returns the thread's status at the gateway, and whether its head is a confirmed write."""
        status = self.client("host").thread(job.thread)
        last = list(self.client("host").chain(job.thread))[-1]
        assert last.transition == status.transition
        return status.status, last.statement["write_id"] == job.write_id
