"""Runs the agent of each framework at a real gateway through the situations in which a call must or must not run.

    scenarios.py FRAMEWORK…

COUNTERSIGN_BIN is the gateway's program. Each situation counts once for each framework and mode of `stories.py`. The
last line counts: N passed, M failed.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "clients" / "python" / "src"))

from countersign import ApprovalRequest  # noqa: E402
from countersign.testing import Gateway  # noqa: E402

PATIENCE_SECS = 120
NOTE = "not this week"
POLICY = """
flow = "refunds"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["search", "refund", "collapse", "crm:search", "crm:refund", "crm:collapse"]

[[rules]]
name = "refunds"
tools = ["refund", "crm:refund"]
when = "true"
then = "hold"
reason = "A person approves each refund."

[approval]
ttl = "24h"
[[approval.stages]]
groups = ["finance"]
"""


class Agent(NamedTuple):
    script: str
    modes: tuple[str, ...] = ("sync", "decorated")
    # Whether the model can make several calls in one turn.
    turns: bool = True
    # Whether a run that starts again in a new process finds its requests.
    resumes: bool = True
    # Whether a run can start again with another prompt.
    edits: bool = True


AGENTS = {
    "langgraph": [Agent("with_langgraph.py")],
    "deep-agents": [Agent("with_deep_agents.py")],
    "pydantic-ai": [Agent("with_pydantic_ai.py")],
    "openai-agents": [Agent("with_openai_agents.py")],
    "adk": [Agent("with_adk.py")],
    "claude-agent-sdk": [Agent("with_claude_agent_sdk.py", turns=False, edits=False)],
    "agent-framework": [Agent("with_agent_framework.py", modes=("decorated",))],
    # The hooks are global, and their keys contain the random id of the agent.
    "crewai": [
        Agent("with_crewai.py", modes=("decorated",), turns=False),
        Agent("with_crewai.py", modes=("sync",), turns=False, resumes=False),
    ],
}


class Process:
    """The process of an agent, which speaks the protocol of `stories.py`."""

    def __init__(self, script: str, folder: Path, gateway: Gateway, token: str) -> None:
        known = {
            "AAP_URL": f"{gateway.url}/aap",
            "AAP_TOKEN": token,
            "PYTHONWARNINGS": "ignore",
            "OTEL_SDK_DISABLED": "true",
            "CREWAI_DISABLE_TELEMETRY": "true",
        }
        self.errors = (folder / "errors.txt").open("a+")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), str(folder)],
            env={**os.environ, **known},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def send(self, **command: Any) -> None:
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


class Desk:
    """One agent at one gateway. Each order has one call, so it names its run and its request."""

    def __init__(self, agent: Agent, gateway: Gateway, folder: Path) -> None:
        self.agent, self.gateway, self.folder = agent, gateway, folder
        self.activate(POLICY)
        token = gateway.add_token("instance", flow="refunds", nodes=["agent"])
        self.instance, self.auditor = gateway.client(token), gateway.client(gateway.add_token("auditor"))
        self.ada = gateway.reviewer("ada", groups=["finance"])
        self.start_process = lambda: Process(agent.script, folder, gateway, token)
        self.process = self.start_process()
        self.said: dict[str, str] = {}

    def activate(self, policy: str) -> None:
        file = self.folder / "policy.toml"
        file.write_text(policy)
        self.gateway.activate(file)

    def restart(self) -> None:
        self.process.kill()
        self.process = self.start_process()

    def start(self, run: str, mode: str, *calls: dict[str, Any]) -> None:
        self.said.pop(run, None)
        self.process.send(run=run, mode=mode, calls=calls)

    def resume(self, run: str, mode: str) -> None:
        self.process.send(**{"continue": run, "mode": mode})

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """Returns the first result. The last words of runs that end before it are stored."""
        until = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < until:
            if result := found():
                return result
            try:
                event = self.process.events.get(timeout=0.1)
            except queue.Empty:
                continue
            assert "failed" not in event, event["failed"]
            if "said" in event:
                self.said[event["run"]] = event["said"]
        raise AssertionError(f"{what}: {self.said}, {(self.folder / 'errors.txt').read_text()[-2000:]}")

    def ends(self, run: str) -> str:
        return self.until(lambda: self.said.get(run), f"{run} does not end")

    def requests(self, order: str) -> list[tuple[ApprovalRequest, str | None]]:
        """Returns the requests for an order, and the reviews of those that were held."""
        events = list(self.auditor.events())
        reviews = {it.thread: it.data["review"] for it in events if it.type == "transition.held"}
        threads = dict.fromkeys(it.thread for it in events if (it.thread or "").startswith("request:"))
        found = [(self.instance.request(it.removeprefix("request:")), reviews.get(it)) for it in threads]
        return [it for it in found if order in it[0].arguments.values()]

    def held(self, order: str) -> str:
        """Returns the review of the only request for an order, which is pending."""

        def pending() -> str | None:
            found = self.requests(order)
            assert len(found) <= 1, found
            return found[0][1] if found and found[0][0].status == "pending" else None

        return self.until(pending, f"{order} is not held")

    def not_run_again(self, order: str, run: str) -> str:
        """Waits until a run ends. A request of its own is denied."""

        def refused() -> str | None:
            for request, review in self.requests(order):
                if request.status == "pending" and review:
                    self.ada.deny(review, comment=NOTE)
            return self.said.get(run)

        return self.until(refused, f"{run} does not end")

    def calls(self, order: str) -> list[dict[str, Any]]:
        file = self.folder / "calls.jsonl"
        calls = [json.loads(it) for it in file.read_text().splitlines()] if file.exists() else []
        return [it["arguments"] for it in calls if order in it["arguments"].values()]

    def ran_once(self, order: str) -> None:
        """Checks that the tool ran once, with the approved arguments, and that its outcome was reported."""

        def reported() -> list[ApprovalRequest]:
            return [it for it, _ in self.requests(order) if it.consumption and it.consumption.outcome]

        (request,) = self.until(reported, f"{order} is not reported")
        assert self.calls(order) == [request.arguments], self.calls(order)
        assert request.consumption.outcome.status == "succeeded", request

    def did_not_run(self, order: str, status: str) -> None:
        ((request, _),) = self.requests(order)
        assert (request.status, request.consumption, self.calls(order)) == (status, None, []), request


def refund(order: str, amount: float = 40.5) -> dict[str, Any]:
    lines = [{"sku": "“ü”", "number": 2, "gift": False}]
    return {"tool": "refund", "arguments": {"order": order, "amount": amount, "lines": lines}}


def allowed(desk: Desk, mode: str) -> None:
    order = f"allowed {mode}"
    desk.start(order, mode, {"tool": "search", "arguments": {"q": order}})
    assert desk.ends(order) == "search is done", desk.said
    desk.ran_once(order)


def held_and_approved(desk: Desk, mode: str) -> None:
    order = f"approved {mode}"
    desk.start(order, mode, refund(order))
    review = desk.held(order)
    assert desk.calls(order) == []
    desk.ada.approve(review)
    assert desk.ends(order) == "refund is done", desk.said
    desk.ran_once(order)


def denied(desk: Desk, mode: str) -> None:
    order = f"denied {mode}"
    desk.start(order, mode, refund(order))
    desk.ada.deny(desk.held(order), comment=NOTE)
    assert NOTE in desk.ends(order)
    desk.did_not_run(order, "denied")


def denied_by_the_policy(desk: Desk, mode: str) -> None:
    order = f"rejected {mode}"
    desk.start(order, mode, {"tool": "delete", "arguments": {"order": order}})
    assert "denied" in desk.ends(order)
    assert desk.calls(order) == []


def parallel_calls_with_one_approval_each(desk: Desk, mode: str) -> None:
    """The approval of one call opens no other, although both wait at once."""
    first, second = orders = [f"{it} of two {mode}" for it in ("first", "second")]
    runs = [orders[0]] if desk.agent.turns else orders
    if desk.agent.turns:
        desk.start(first, mode, refund(first), refund(second))
    else:
        for order in orders:
            desk.start(order, mode, refund(order))
    reviews = [desk.held(it) for it in orders]
    desk.ada.approve(reviews[1])
    desk.until(lambda: desk.calls(second), f"{second} does not run")
    desk.held(first)
    assert desk.calls(first) == []
    desk.ada.deny(reviews[0], comment=NOTE)
    said = "\n".join(desk.ends(it) for it in runs)
    assert NOTE in said, said
    assert "refund is done" in said, said
    desk.ran_once(second)
    desk.did_not_run(first, "denied")


def repeated_call_refused(desk: Desk, mode: str) -> None:
    """One approval runs one call, so the same call again needs another."""
    order = f"approved {mode}"
    desk.start(f"{order} again", mode, refund(order))
    assert "refund is done" not in desk.not_run_again(order, f"{order} again")
    desk.ran_once(order)


def process_dies(desk: Desk, mode: str) -> None:
    """Leaves two runs that wait, and one in which the tool has run. The reviewer decides before the next process."""
    waiting, edited, used = (f"{it} {mode}" for it in ("waiting", "edited", "used"))
    for order in (waiting, edited):
        desk.start(order, mode, refund(order))
    reviews = [desk.held(it) for it in (waiting, edited)]
    desk.start(used, mode, {"tool": "collapse", "arguments": {"reason": used}})
    desk.process.process.wait(PATIENCE_SECS)
    desk.restart()
    for review in reviews:
        desk.ada.approve(review)


def process_died_and_resumed(desk: Desk, mode: str) -> None:
    order = f"waiting {mode}"
    desk.resume(order, mode)
    if desk.agent.resumes:
        assert desk.ends(order) == "refund is done", desk.said
        desk.ran_once(order)
    else:
        assert NOTE in desk.not_run_again(order, order)
        assert desk.calls(order) == []


def replayed_resume_refused(desk: Desk, mode: str) -> None:
    """One run has ended, and in the other the process died when the tool had run."""
    waiting, used = f"waiting {mode}", f"used {mode}"
    for order in (waiting, used, used):
        desk.said.pop(order, None)
        desk.resume(order, mode)
        said = desk.not_run_again(order, order)
        assert len(desk.calls(order)) == 1, desk.calls(order)
        assert order == waiting or "already" in said, said
    desk.ran_once(waiting)


def edited_arguments_refused(desk: Desk, mode: str) -> None:
    """The approval of the process that died is for other arguments."""
    order = f"edited {mode}"
    run = order if desk.agent.edits else f"{order} again"
    desk.start(run, mode, refund(order, 4000.5))
    assert "refund is done" not in desk.not_run_again(order, run)
    assert desk.calls(order) == []
    assert all(it.consumption is None for it, _ in desk.requests(order))


def expired(desk: Desk, mode: str) -> None:
    order = f"expired {mode}"
    desk.activate(POLICY.replace("24h", "1s"))
    desk.start(order, mode, refund(order))
    assert "expired" in desk.ends(order)
    desk.did_not_run(order, "expired")
    desk.activate(POLICY)


SCENARIOS = [
    allowed,
    held_and_approved,
    denied,
    denied_by_the_policy,
    parallel_calls_with_one_approval_each,
    repeated_call_refused,
    process_dies,
    process_died_and_resumed,
    replayed_resume_refused,
    edited_arguments_refused,
    expired,
]


def scenarios(agent: Agent) -> list[Callable[[Desk, str], None]]:
    return [it for it in SCENARIOS if agent.resumes or it is not replayed_resume_refused]


def main() -> None:
    passed = failed = 0
    for name in sys.argv[1:]:
        for agent in AGENTS[name]:
            with Gateway.start() as gateway, tempfile.TemporaryDirectory() as folder:
                desk = Desk(agent, gateway, Path(folder))
                for mode in agent.modes:
                    for scenario in scenarios(agent):
                        started = time.monotonic()
                        try:
                            scenario(desk, mode)
                            passed += 1
                        except Exception:
                            failed += 1
                            print(f"failed: {name}, {mode}, {scenario.__name__}: {traceback.format_exc()}", flush=True)
                            desk.restart()
                        if os.environ.get("SHOW"):
                            print(name, mode, scenario.__name__, round(time.monotonic() - started, 1), flush=True)
                desk.process.kill()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
