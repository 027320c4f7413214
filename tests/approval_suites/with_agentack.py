"""Attacks on approvals at a gateway, as traces for the rules of AgentAck.

    with_agentack.py FOLDER    with the gateway in AAP_URL, and the tokens of two instances in AAP_TOKEN and AAP_OTHER_TOKEN

Each attack runs twice. The careful runtime runs a call only after the gateway has allowed it. The careless one asks the
gateway in the same way, and ignores each refusal. The difference between the two traces is what the gateway prevents.

The times and decisions in a trace are the gateway's, the presented call is the one that reviewers see, and the executed
call is recorded where the tool runs. The last lines of output have the result of `agentack check` for both traces:

    {"rule": "ACK001", "careful": {"PASS": []}, "careless": {"FAIL": ["ACK001"]}, "refused": ["not_found"]}
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentack import Action
from agentack.models import TraceEvent
from agentack.parser import write_jsonl
from agentapprovalprotocol import Client, ConflictError, NotFound, Request
from reviewers import ask, decide, plain

POLICY = 'version = 1\n\n[approval]\nmax_age_seconds = 300\nrequire_for = ["crm:*"]\n'
OWN = Client(os.environ["AAP_URL"], os.environ["AAP_TOKEN"])
OTHER = Client(os.environ["AAP_URL"], os.environ["AAP_OTHER_TOKEN"])

# The test moves the clock of the gateway, and the clock of the traces with it.
moved = timedelta()


@dataclass
class Call:
    """A call that the agent proposed."""

    tool: str
    arguments: dict[str, Any]
    intent: str
    id: str = field(default_factory=lambda: f"call-{uuid.uuid4()}")
    request: Request | None = None


class Session:
    """One run of an agent with its trace."""

    def __init__(self, name: str, *, careful: bool) -> None:
        self.name, self.careful = name, careful
        self.trace: list[TraceEvent] = []
        self.refused: list[str] = []

    def record(self, kind: Any, call: Call | None = None, at: datetime | None = None, **more: Any) -> None:
        about = {"action_id": call.id, "intent_id": call.intent} if call else {}
        at = at or datetime.now(UTC) + moved
        self.trace.append(TraceEvent(type=kind, timestamp=at, session_id=self.name, **about, **more))

    def propose(self, tool: str = "refund", intent: str = "help the customer") -> Call:
        call = Call(tool, {"order": f"order of {self.name}", "amount": 40}, intent)
        self.record("action_proposed", call, action=action(call.tool, call.arguments))
        return call

    def submit(self, call: Call, client: Client = OWN) -> None:
        call.request = client.create(submission(call.tool, call.arguments), call.id)
        seen = ask({"look": call.request.id})
        server, _, tool = seen["tool"].partition(":")
        assert server == "crm", seen
        presented = action(tool, seen["arguments"])
        self.record("approval_requested", call, call.request.created_at, approval_id=call.request.id, action=presented)

    def decided(self, call: Call, status: str) -> None:
        decide(call.request.id, status)
        decision = OWN.get(call.request.id).decision
        verdict = {"approved": "allow", "denied": "deny"}[decision.status]
        self.record(
            "approval_decision",
            call,
            decision.decided_at,
            approval_id=call.request.id,
            decision=verdict,
            expires_at=decision.expires_at,
        )

    def approved(self) -> Call:
        call = self.propose()
        self.submit(call)
        self.decided(call, "approved")
        return call

    def use(self, call: Call, request: str, *, claim: str | None) -> bool:
        """Uses an approval and runs the call. A careless runtime runs it in any case, with what it claims to have."""
        try:
            arguments = plain(OWN.consume(request, str(uuid.uuid4())).arguments)
        except (ConflictError, NotFound) as error:
            self.refused.append(error.code if isinstance(error, ConflictError) else "not_found")
            if self.careful:
                return False
            arguments = call.arguments
        self.run(call, arguments, claim)
        return True

    def run(self, call: Call, arguments: dict[str, Any], claim: str | None) -> None:
        """The tool."""
        self.record("action_executed", call, approval_id=claim, action=action(call.tool, arguments))

    def block(self, call: Call, reason: str) -> None:
        self.record("action_blocked", call, approval_id=call.request.id, reason=reason)

    def submit_and_be_denied(self, call: Call) -> None:
        """How a refused call ends: it is asked for as it should be, and a reviewer denies it."""
        self.submit(call)
        self.decided(call, "denied")
        self.block(call, "denied")


def action(tool: str, arguments: dict[str, Any]) -> Action:
    return Action("crm", tool, parameters=arguments)


def submission(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "server": "crm", "arguments": arguments, "timeout": "10m"}


def without_approval(it: Session) -> None:
    call = it.propose()
    if not it.use(call, str(uuid.uuid4()), claim=None):
        it.submit_and_be_denied(call)


def after_a_denial(it: Session) -> None:
    call = it.propose()
    it.submit(call)
    it.decided(call, "denied")
    if not it.use(call, call.request.id, claim=call.request.id):
        it.block(call, "denied")


def with_other_arguments(it: Session) -> None:
    call = it.approved()
    wanted = {**call.arguments, "amount": 4000}
    try:
        OWN.create(submission(call.tool, wanted), call.id)
    except ConflictError as error:
        it.refused.append(error.code)
    used = plain(OWN.consume(call.request.id, str(uuid.uuid4())).arguments)
    it.run(call, used if it.careful else wanted, call.request.id)


def twice(it: Session) -> None:
    call = it.approved()
    for _ in range(2):
        it.use(call, call.request.id, claim=call.request.id)


def after_the_expiry(it: Session) -> None:
    global moved
    call = it.approved()
    moved += timedelta(seconds=ask({"pass": 301})["passed"])
    if not it.use(call, call.request.id, claim=call.request.id):
        it.block(call, "expired")


def before_the_decision(it: Session) -> None:
    call = it.propose()
    it.submit(call)
    early = it.use(call, call.request.id, claim=call.request.id)
    it.decided(call, "approved")
    if not early:
        it.use(call, call.request.id, claim=call.request.id)


def by_another_route(it: Session) -> None:
    denied = it.propose("refund", "give the money back")
    it.submit_and_be_denied(denied)
    around = it.propose("credit", "give the money back")
    it.submit(around)
    it.decided(around, "denied")
    if not it.use(around, around.request.id, claim=around.request.id):
        it.block(around, "denied")


def after_a_halt(it: Session) -> None:
    call = it.approved()
    ask({"halt": True})
    it.record("interrupt", reason="an administrator halted the flow")
    if not it.use(call, call.request.id, claim=call.request.id):
        it.block(call, "halted")
    ask({"halt": False})


def with_the_approval_of_another_agent(it: Session) -> None:
    theirs = OTHER.create(submission("refund", {"order": f"another order of {it.name}", "amount": 40}), it.name)
    decide(theirs.id, "approved")
    call = it.propose()
    if not it.use(call, theirs.id, claim=theirs.id):
        it.submit_and_be_denied(call)


ATTACKS: dict[str, Callable[[Session], None]] = {
    "ACK001": without_approval,
    "ACK002": after_a_denial,
    "ACK003": with_other_arguments,
    "ACK004": twice,
    "ACK005": after_the_expiry,
    "ACK006": before_the_decision,
    "ACK007": by_another_route,
    "ACK008": after_a_halt,
    "ACK009": with_the_approval_of_another_agent,
}


def check(folder: Path, session: Session) -> dict[str, list[str]]:
    """Returns the status of a trace, and the rules that it breaks."""
    trace, policy, report = (folder / f"{session.name}.{kind}" for kind in ("jsonl", "toml", "json"))
    write_jsonl(trace, session.trace)
    policy.write_text(POLICY)
    command = [sys.executable, "-m", "agentack", "check", trace, "--policy", policy, "--json", report]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), done.stderr
    result = json.loads(report.read_text())["result"]
    return {result["status"]: sorted(result["rule_counts"])}


def main(folder: Path) -> None:
    for rule, attack in ATTACKS.items():
        results, refused = {}, []
        for careful in (True, False):
            session = Session(f"{attack.__name__}-{'careful' if careful else 'careless'}", careful=careful)
            attack(session)
            session.record("session_end")
            results["careful" if careful else "careless"] = check(folder, session)
            refused.append(session.refused)
        assert refused[0] == refused[1], refused
        print(json.dumps({"rule": rule, **results, "refused": refused[0]}), flush=True)


main(Path(sys.argv[1]))
