"""Runs an agent of one framework as a process that the test controls by JSON lines.

    with_FRAMEWORK.py FOLDER    with the gateway in AAP_URL and the token of the instance in AAP_TOKEN

Each line of standard input is a command:

    {"run": NAME, "mode": MODE, "calls": [...]}   start a run in which the model makes these calls in one turn
    {"continue": NAME, "mode": MODE}              continue a run whose process ended
    {"wake": ID, "run": NAME}                     wake the run of a request, as a webhook would

Each line of output is an event:

    {"created": ID, "status": 200}    the gateway answered the creation of a request
    {"run": NAME, "said": TEXT}       the run ended, and the model repeats the results of the tools
    {"run": NAME, "paused": true}     the run paused for a decision
    {"woke": ID, "resumed": true}     the wake has ended
    {"failed": TRACEBACK}             the run raised an exception

In mode `sync` a run waits for the decision. In mode `async` it pauses. Both use the adapter of the package. In mode
`decorated` the tools have the decorator of the Python client, and no adapter is used. The scripted model reads its calls
from the prompt, so that a new process continues every run. The tools append their calls to `calls.jsonl` in the folder.
"""

import asyncio
import functools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx
from agentapprovalprotocol import AsyncClient, AsyncGate, Client, Gate, Receiver

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients" / "python" / "src"))

import countersign  # noqa: E402
from countersign.tools import CallRefused, countersigned  # noqa: E402

FOLDER = Path(sys.argv[1])
# A framework can print too.
EVENTS = os.fdopen(os.dup(sys.stdout.fileno()), "w")
os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
MODES = ("sync", "async", "decorated")


class Framework(Protocol):
    name: str

    async def start(self, run: str, mode: str, prompt: str) -> str | None:
        """Returns the last words of the model, or None if the run paused."""

    async def resume(self, run: str, mode: str) -> str | None:
        """Continues a run whose process ended while it waited."""

    async def outcome(self, run: str) -> str | None:
        """Returns the last words of the model in a run that was woken, or None if it is still paused."""

    def resumer(self) -> Any:
        """Returns the resumer of the adapter."""


def tell(**event: Any) -> None:
    print(json.dumps(event), file=EVENTS, flush=True)


def record(tool: str, **arguments: Any) -> str:
    """Stores a call of a tool, also if the process is killed afterwards."""
    with (FOLDER / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
    return f"{tool} is done"


def search(q: str) -> str:
    """Search the orders."""
    return record("search", q=q)


def refund(order: str, amount: float, lines: list[dict[str, Any]]) -> str:
    """Refund an order."""
    return record("refund", order=order, amount=amount, lines=lines)


def collapse(reason: str) -> str:
    """Run and end the process before the outcome is reported."""
    record("collapse", reason=reason)
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


def delete(order: str) -> str:
    """Delete an order. The policy allows it to no agent."""
    return record("delete", order=order)


TOOLS = [search, refund, collapse, delete]


def decorated() -> list[Any]:
    """Returns the tools with the decorator of the Python client. The model gets the text of a refusal."""
    client = countersign.AsyncClient(*gateway())

    def decorate(tool: Callable[..., str]) -> Any:
        @countersigned(client, key=functools.partial(key, tool.__name__))
        @functools.wraps(tool)
        async def guarded(*args: Any, **kwargs: Any) -> str:
            return tool(*args, **kwargs)

        @functools.wraps(tool)
        async def answering(*args: Any, **kwargs: Any) -> str:
            try:
                return await guarded(*args, **kwargs)
            except CallRefused as refused:
                return str(refused)

        return answering

    return [decorate(it) for it in TOOLS]


def decorated_blocking() -> list[Any]:
    """Returns the tools as functions that block."""
    client = countersign.Client(*gateway())

    def decorate(tool: Callable[..., str]) -> Any:
        guarded = countersigned(client, key=functools.partial(key, tool.__name__))(tool)

        @functools.wraps(tool)
        def answering(*args: Any, **kwargs: Any) -> str:
            try:
                return guarded(*args, **kwargs)
            except CallRefused as refused:
                return str(refused)

        return answering

    return [decorate(it) for it in TOOLS]


def key(tool: str, *args: Any, **kwargs: Any) -> str:
    """Returns the key of a call from its first argument: each order is refunded once."""
    return f"{tool}-{[*args, *kwargs.values()][0]}".replace(" ", "-")


def gateway() -> tuple[str, str]:
    url, token = connection()
    return url.removesuffix("/aap"), token


class Calling(NamedTuple):
    id: str
    tool: str
    arguments: dict[str, Any]


def prompted(prompt: str) -> list[Calling]:
    """Returns the calls that the model makes."""
    calls = enumerate(json.loads(prompt), 1)
    return [Calling(f"call-{number}", it["tool"], it["arguments"]) for number, it in calls]


def notify(response: httpx.Response) -> None:
    if response.request.method == "POST" and response.url.path.endswith("/requests") and response.is_success:
        response.read()
        tell(created=response.json()["id"], status=response.status_code)


async def notify_async(response: httpx.Response) -> None:
    await response.aread()
    notify(response)


def connection() -> tuple[str, str]:
    return os.environ["AAP_URL"], os.environ["AAP_TOKEN"]


def async_client() -> AsyncClient:
    return AsyncClient(*connection(), http=httpx.AsyncClient(event_hooks={"response": [notify_async]}))


def async_gate(mode: Any) -> AsyncGate:
    return AsyncGate(async_client(), mode=mode)


def gate(mode: Any) -> Gate:
    return Gate(Client(*connection(), http=httpx.Client(event_hooks={"response": [notify]})), mode=mode)


async def follow(framework: Framework, command: dict[str, Any]) -> None:
    try:
        await obey(framework, command)
    except Exception:
        tell(failed=traceback.format_exc())


async def obey(framework: Framework, command: dict[str, Any]) -> None:
    if "wake" in command:
        receiver = Receiver(resumers={framework.name: framework.resumer()}, client=async_client())
        run = command["run"]
        resumed = await receiver.wake(command["wake"])
        tell(woke=command["wake"], resumed=resumed)
        said = await framework.outcome(run)
    elif "continue" in command:
        run = command["continue"]
        said = await framework.resume(run, command["mode"])
    else:
        run = command["run"]
        said = await framework.start(run, command["mode"], json.dumps(command["calls"]))
    if said is None:
        tell(run=run, paused=True)
    else:
        tell(run=run, said=said)


async def serve(framework: Framework) -> None:
    loop = asyncio.get_running_loop()
    tasks = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        tasks.add(asyncio.create_task(follow(framework, json.loads(line))))
