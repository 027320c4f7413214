"""The snippets of the pages that people copy from, run as they stand, in their order."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from conftest import REPOSITORY
from countersign import Client
from countersign.testing import Gateway, Reviewer
from countersign.testing._program import BIN, program
from test_agents import Scripted

README = Path(__file__).parent.parent / "README.md"
GUIDES = REPOSITORY / "docs" / "guides"


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def terminal(countersign_gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """A terminal beside a gateway, in the repository, with the program on its path."""
    (tmp_path / "countersign").symlink_to(program())
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("COUNTERSIGN_DATA", str(countersign_gateway.data))
    monkeypatch.setenv("GATE", countersign_gateway.url)
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger.db"))
    return countersign_gateway


def typed(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a script of the shell, and keeps what it exports."""
    # The command line takes what is named so for its configuration, and knows no such key.
    known = {key: value for key, value in os.environ.items() if key != BIN}
    done = subprocess.run(
        ["bash", "-euc", script + "\nenv -0"], cwd=REPOSITORY, env=known, capture_output=True, timeout=60, check=True
    )
    said = done.stdout.decode().split("\0")
    for name in ("HOST", "AGENT", "WRITER", "GATE"):
        found = next(line.rpartition(f"{name}=")[2] for line in said if re.search(rf"(^|\n){name}=", line))
        monkeypatch.setenv(name, found)


def test_the_readme_leads_from_nothing_to_a_guarded_graph(terminal: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    (begin,) = blocks(README, "bash")
    typed(begin, monkeypatch)
    names: dict[str, Any] = {"__name__": "readme"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said), Reviewer(terminal.site, "ada", "correct horse battery staple") as ada:
        for index, block in enumerate(blocks(README, "python")):
            if "wait_for_decision" in block:
                approving = Thread(target=ada.approve, args=(names["question"]["review"]["url"],))
                approving.start()
            exec(compile(block, f"README.md, block {index + 1}", "exec", dont_inherit=True), names)  # noqa: S102 - ours
        names.update(model=Scripted(turns=[]), tools=[])
        (block,) = blocks(README, "python agents")
        exec(compile(block, "README.md, agents", "exec", dont_inherit=True), names)  # noqa: S102 - ours
    approving.join()
    said_last = names["assistant"].invoke({"messages": []}, {"configurable": {"thread_id": "order-19"}})["messages"][-1]
    assert said_last.content == "done"
    for it in ("host", "agent", "writer", "ledger"):
        names[it].close()
    told = said.getvalue().splitlines()
    assert told[0].startswith("Held. Somebody of the group finance decides at http://localhost:")
    assert told[1:4] == ["confirmed [(42, 10)]", "['was refund']", "not_head → look"]
    assert told[4].endswith("['create', 'propose', 'confirm']")


def test_the_guides_snippets_do_what_they_say(terminal: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    (begin,) = blocks(README, "bash")
    typed(begin, monkeypatch)
    names: dict[str, Any] = {name: os.environ[name] for name in ("GATE", "HOST", "AGENT", "WRITER")}
    said = io.StringIO()
    for role, guide in (("host", "agents.md"), ("agent", "agents.md"), ("writer", "writers.md")):
        (block,) = blocks(GUIDES / guide, f"python {role}")
        with contextlib.ExitStack() as here:
            here.enter_context(contextlib.redirect_stdout(said))
            if role == "agent":
                ada = here.enter_context(Reviewer(terminal.site, "ada", "correct horse battery staple"))
                here.enter_context(deciding(ada, names["made"].thread, names["HOST"], terminal))
            exec(compile(block, f"{guide}, {role}", "exec", dont_inherit=True), names)  # noqa: S102 - ours
    assert said.getvalue().startswith("0 create\n")
    with terminal.client(names["HOST"]) as host:
        assert host.thread("order-17").version == 2


@contextlib.contextmanager
def deciding(ada: Reviewer, thread: str, token: str, gateway: Gateway) -> Iterator[None]:
    """Somebody who approves as soon as there is something to approve."""

    def approve() -> None:
        with Client(gateway.url, token) as host:
            while (review := host.thread(thread).review) is None:
                pass
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
