"""Runs the snippets of the README, the guides and the quickstarts unchanged and in order."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.tools import tool

from calling import Desk
from conftest import REPOSITORY
from countersign import Client, NotFound
from countersign.testing import Gateway, Reviewer
from countersign.testing._program import BIN, program
from test_agents import Scripted, call

README = Path(__file__).parent.parent / "README.md"
DOCS = REPOSITORY / "docs"
GUIDES = DOCS / "guides"
LANGGRAPH = DOCS / "quickstart-langgraph.md"
TOOL_CALLS = DOCS / "quickstart-tool-calls.md"
PASSWORD = "correct horse battery staple"


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def terminal(countersign_gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """A terminal beside a gateway, in the repository, with the program on its path."""
    at_terminal(countersign_gateway, tmp_path, monkeypatch)
    return countersign_gateway


def at_terminal(gateway: Gateway, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "countersign").symlink_to(program())
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("COUNTERSIGN_DATA", str(gateway.data))
    monkeypatch.setenv("GATE", gateway.url)
    monkeypatch.setenv("LEDGER", str(folder / "ledger.db"))


def typed(script: str, monkeypatch: pytest.MonkeyPatch, folder: Path = REPOSITORY) -> list[str]:
    """Runs a shell script, keeps the variables that it exports, and returns its lines."""
    # The command line reads such variables as its configuration, and refuses an unknown key.
    known = {key: value for key, value in os.environ.items() if key != BIN}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script + "\nprintf '\\0'; env -0"],
        cwd=folder,
        env=known,
        capture_output=True,
        timeout=60,
        check=True,
    )
    printed, *exported = done.stdout.decode().split("\0")
    for line in exported:
        name, _, value = line.partition("=")
        if name in ("HOST", "AGENT", "WRITER", "GATE", "PARENT"):
            monkeypatch.setenv(name, value)
    return printed.splitlines()


def run(block: str, where: str, names: dict[str, Any]) -> None:
    exec(compile(block, where, "exec", dont_inherit=True), names)  # noqa: S102 - ours


def quickstart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Creates the policy, the reviewer and the tokens of the LangGraph quickstart."""
    (begin,) = blocks(LANGGRAPH, "bash")
    typed(begin, monkeypatch)


def test_the_langgraph_quickstart_writes_once_after_approval(
    terminal: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickstart(monkeypatch)
    names: dict[str, Any] = {"__name__": "quickstart"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said), Reviewer(terminal.site, "ada", PASSWORD) as ada:
        for index, block in enumerate(blocks(LANGGRAPH, "python")):
            if "wait_for_decision" in block:
                approving = Thread(target=ada.approve, args=(names["question"]["review"]["url"],))
                approving.start()
            run(block, f"quickstart-langgraph.md, block {index + 1}", names)
    approving.join()
    for it in ("host", "agent", "writer", "ledger"):
        names[it].close()
    printed = said.getvalue().splitlines()
    assert printed[0].startswith("Held. A member of the group finance decides at http://localhost:")
    assert printed[1:] == ["confirmed [(42, 10)]"]


def test_the_tool_call_quickstart_prints_what_it_shows(
    terminal: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (guard,) = blocks(TOOL_CALLS, "bash guard")
    printed = typed(guard, monkeypatch, tmp_path)
    env = tmp_path / ".env"
    assert "\nINSTANCE=cs_" in env.read_text()
    assert env.stat().st_mode & 0o777 == 0o600
    # The page shows the configuration that the command prints, for another folder and server.
    (shown,) = (json.loads(it) for it in blocks(TOOL_CALLS, "json") if '"mcpServers": {"files"' in it)
    (made,) = (json.loads(it) for it in printed if it.startswith('{"mcpServers"'))
    shown, made = (it["mcpServers"]["files"]["args"] for it in (shown, made))
    assert (shown[1], shown[3:6], made[2]) == (made[1], made[3:6], str(env))
    assert (shown[7], made[6:8]) == ("--", [str(tmp_path / "guard"), "--"])
    (policy,) = blocks(TOOL_CALLS, "toml desk.toml")
    (tmp_path / "desk.toml").write_text(policy)
    begin, *steps = blocks(TOOL_CALLS, "bash")
    typed(begin, monkeypatch, tmp_path)
    names: dict[str, Any] = {"model": Scripted(turns=[[call("refund", amount=500)]]), "tools": [refund]}
    said = io.StringIO()
    with contextlib.redirect_stdout(said), Reviewer(terminal.site, "ada", PASSWORD) as ada:
        with deciding(ada, "ticket-7", os.environ["HOST"], terminal):
            printed = typed("".join(steps), monkeypatch, tmp_path)
        assert printed == "".join(blocks(TOOL_CALLS, "text")[1:]).splitlines()
        build, resume = blocks(TOOL_CALLS, "python agents")
        run(build, "quickstart-tool-calls.md, build", names)
        approving = Thread(target=ada.approve, args=(names["question"]["review"]["url"],))
        approving.start()
        run(resume, "quickstart-tool-calls.md, resume", names)
    approving.join()
    for it in ("host", "agent"):
        names[it].close()
    assert names["result"]["messages"][-2].content == "refunded 500"
    assert said.getvalue().splitlines()[1:] == ["done"]


@tool
def refund(amount: int) -> str:
    """Refunds an amount."""
    return f"refunded {amount}"


def test_the_readme_leads_from_a_proposal_to_a_verified_chain(
    terminal: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickstart(monkeypatch)
    names: dict[str, Any] = {"__name__": "readme"}
    said = io.StringIO()
    begin, *rest = blocks(README, "python")
    with contextlib.redirect_stdout(said), Reviewer(terminal.site, "ada", PASSWORD) as ada:
        with deciding(ada, "order-18", os.environ["HOST"], terminal):
            run(begin, "README.md, begin", names)
        for index, block in enumerate(rest):
            run(block, f"README.md, block {index + 2}", names)
        names.update(model=Scripted(turns=[]), tools=[])
        (block,) = blocks(README, "python agents")
        run(block, "README.md, agents", names)
    said_last = names["assistant"].invoke({"messages": []}, {"configurable": {"thread_id": "order-20"}})["messages"][-1]
    assert said_last.content == "done"
    for it in ("host", "agent", "writer"):
        names[it].close()
    printed = said.getvalue().splitlines()
    assert printed[:2] == ["not_head → look", "['was none']"]
    assert printed[2].endswith("['create', 'propose', 'confirm']")


def test_the_guides_snippets_do_what_they_say(terminal: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    quickstart(monkeypatch)
    names: dict[str, Any] = {name: os.environ[name] for name in ("GATE", "HOST", "AGENT", "WRITER")}
    said = io.StringIO()
    for role, guide in (("host", "agents.md"), ("agent", "agents.md"), ("writer", "writers.md")):
        (block,) = blocks(GUIDES / guide, f"python {role}")
        with contextlib.ExitStack() as here:
            here.enter_context(contextlib.redirect_stdout(said))
            if role == "agent":
                ada = here.enter_context(Reviewer(terminal.site, "ada", PASSWORD))
                here.enter_context(deciding(ada, names["made"].thread, names["HOST"], terminal))
            run(block, f"{guide}, {role}", names)
    assert said.getvalue().startswith("0 create\n")
    with terminal.client(names["HOST"]) as host:
        assert host.thread("order-41").version == 2


def commands(*guides: str) -> str:
    return "".join(block for guide in guides for block in blocks(GUIDES / guide, "bash"))


def test_the_guides_commands_lead_from_a_thread_to_a_confirmed_write(
    terminal: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickstart(monkeypatch)
    script = commands("agents.md", "writers.md").replace("THREAD=order-$RANDOM", "THREAD=order-21")
    with (
        Reviewer(terminal.site, "ada", PASSWORD) as ada,
        deciding(ada, "order-21", os.environ["HOST"], terminal),
    ):
        printed = "\n".join(typed(script, monkeypatch))
    for wanted in ('"version":0', "held\n", "/reviews/", "approved\n", '"allow":true', '"outcome":"confirmed"'):
        before, found, printed = printed.partition(wanted)
        assert found, (wanted, before)


def test_the_guide_of_tool_calls_asks_uses_and_reports(
    terminal: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = GUIDES / "tool-calls.md"
    (policy,) = blocks(page, "toml calls.toml")
    (tmp_path / "calls.toml").write_text(policy)
    (shown,) = blocks(page, "text")

    def approve() -> None:
        with terminal.client(terminal.add_token("auditor")) as auditor:
            review = next(it.data["review"] for it in auditor.follow_events(after=0) if it.type == "transition.held")
        with Reviewer(terminal.site, "ada", PASSWORD) as ada:
            ada.approve(review)

    approving = Thread(target=approve)
    approving.start()
    *printed, outcome = typed("".join(blocks(page, "bash")), monkeypatch, tmp_path)
    approving.join()
    *expected, last = shown.splitlines()
    assert printed[-2:] == expected
    assert json.loads(outcome)["status"] == json.loads(last)["status"] == "succeeded"


def test_the_readmes_function_runs_once_after_approval(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATE", desk.gateway.url)
    monkeypatch.setenv("INSTANCE", desk.token)
    (block,) = blocks(README, "python tool")
    made = desk.instance.create_request("refund", {"amount": 40}, idempotency_key="run-7-call-1", timeout="600s")
    assert made.review_url is not None
    approving = Thread(target=desk.ada.approve, args=(made.review_url,))
    approving.start()
    names: dict[str, Any] = {"__name__": "readme"}
    run(block, "README.md, tool", names)
    approving.join()
    names["instance"].close()
    assert capsys.readouterr().out.splitlines()[-2:] == ["refunded 40", "already_consumed"]


@pytest.fixture
def receiving_gateway() -> Iterator[Gateway]:
    """A gateway that may send to localhost."""
    with Gateway.start({"COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.1"}) as gateway:
        yield gateway


def test_the_guides_commands_create_endpoints_and_an_interrupt(
    receiving_gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at_terminal(receiving_gateway, tmp_path, monkeypatch)
    quickstart(monkeypatch)
    printed = "".join(typed(commands("notifications.md", "existing-graphs.md"), monkeypatch))
    kinds = re.findall(r'"kind":"(\w+)"', printed)
    assert (kinds, '"needed":' in printed) == (["webhook", "slack", "langgraph", "resume"], True), printed


@contextlib.contextmanager
def deciding(ada: Reviewer, thread: str, token: str, gateway: Gateway) -> Iterator[None]:
    """Approves the first review of a thread, which another process may create first."""

    def approve() -> None:
        with Client(gateway.url, token) as host:
            review = None
            while review is None:
                with contextlib.suppress(NotFound):
                    review = host.thread(thread).review
            ada.approve(review)

    approving = Thread(target=approve)
    approving.start()
    yield
    approving.join()


def test_the_readmes_test_is_one(tmp_path: Path) -> None:
    (block,) = blocks(README, "python test")
    (tmp_path / "test_theirs.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
