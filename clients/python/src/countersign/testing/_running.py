"""A running gateway: its process, accounts and tokens."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from countersign import AsyncClient, Client

from . import _program
from ._program import NoGateway
from ._reviewer import Reviewer

STARTS_SECS = 60.0
LOOKS_SECS = 0.02
ENDS_SECS = 30.0
# The owner of tokens cannot approve.
OWNER = "platform"
PASSWORD = "correct horse battery staple"  # noqa: S105 - of a gateway that ends with its test
MachineRole = Literal["host", "agent", "writer", "auditor", "admin", "monitor", "instance", "provisioner"]


class Gateway:
    """A gateway with its own folder. Create it with `start`, and close it or use it with `with`."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str], settings: Mapping[str, str]) -> None:
        self._folder, self._settings = folder, dict(settings)
        self._resources = contextlib.ExitStack()
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.data = Path(folder.name) / "data"
        self.site = ""

    @classmethod
    def start(cls, settings: Mapping[str, str] | None = None) -> Gateway:
        """Runs a gateway on a free port, and returns once it responds. `settings` are configuration variables:
        `{"COUNTERSIGN_LIMITS_WAIT_SECS": "5"}`."""
        gateway = cls(tempfile.TemporaryDirectory(prefix="countersign-"), settings or {})
        try:
            gateway.up("127.0.0.1:0")
        except BaseException:
            gateway.close()
            raise
        return gateway

    @property
    def url(self) -> str:
        """Returns the address for API clients."""
        return self.site.replace("//localhost", "//127.0.0.1")

    @property
    def log(self) -> str:
        """Returns the server log so far."""
        return (self.data.parent / "log").read_text()

    # ── the process ──────────────────────────────────────────────────────────────────────────────────────────────

    def up(self, listen: str | None = None) -> None:
        """Starts the process, after `down` or `kill` at the same address."""
        if self._process is not None:
            raise NoGateway("it runs already")
        listen = listen or self.url.removeprefix("http://")
        folder = self.data.parent
        with (folder / "said").open("wb") as said, (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the program is the one that is tested
                [_program.program(), "--data", str(self.data), "serve", "--listen", listen],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                env=_program.environment(self._settings),
            )
        self.site = self._listening(folder / "said", self._process)

    def _listening(self, said: Path, process: subprocess.Popen[bytes]) -> str:
        until = time.monotonic() + STARTS_SECS
        while time.monotonic() < until:
            found = re.search(r"^Countersign listens at (\S+)$", said.read_text(), re.MULTILINE)
            if found:
                return found[1]
            if process.poll() is not None:
                break
            time.sleep(LOOKS_SECS)
        self._end()
        raise NoGateway(f"the gateway did not start: {self.log.strip()[-2000:]}")

    def down(self) -> None:
        """Stops it, and waits until it has ended."""
        if self._process is not None:
            self._process.terminate()
            self._end(gently=True)

    def kill(self) -> None:
        """Kills it, as a power cut would."""
        self._end()

    def restart(self) -> None:
        """Restarts it at the same address."""
        self.down()
        self.up()

    def _end(self, *, gently: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if gently:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_SECS)
        if process.poll() is None:
            process.kill()
        process.wait(ENDS_SECS)

    def close(self) -> None:
        """Stops the process, closes its clients, and removes the folder."""
        self._resources.close()
        self._end()
        self._folder.cleanup()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ── accounts and tokens ───────────────────────────────────────────────────────────────────────────────────────────

    def run(self, *arguments: str, typed: str | None = None) -> str:
        """Runs a command of the command line on its data."""
        return _program.run(self.data, self._settings, arguments, typed)

    def activate(self, policy: str | os.PathLike[str]) -> None:
        """Activates a policy file, with the schemas beside it."""
        self.run("policy", "activate", os.fspath(policy))

    def add_token(
        self,
        role: MachineRole,
        *,
        flow: str | None = None,
        nodes: Sequence[str] = (),
        owner: str = OWNER,
        name: str | None = None,
    ) -> str:
        """Creates a token. An owner other than the default must exist."""
        bound = ["--flow", flow] if flow else []
        acts = [part for node in nodes for part in ("--node", node)]
        called = name or f"{role}-{next(self._names)}"
        owned = ["--owner", owner, *(["--new-group"] if owner == OWNER else [])]
        return self.run("token", "add", called, "--role", role, *owned, *bound, *acts)

    def add_user(self, name: str, *, role: str = "reviewer", groups: Sequence[str] = ()) -> None:
        """Creates an account, with a password for this gateway only."""
        stands = [part for group in groups for part in ("--group", group)]
        self.run("user", "add", name, "--role", role, *stands, "--password-stdin", typed=PASSWORD + "\n")

    def reviewer(self, name: str, *, groups: Sequence[str] = ()) -> Reviewer:
        """Returns a signed-in reviewer, and creates the account if needed."""
        self.add_user(name, groups=groups)
        return self._resources.enter_context(Reviewer(self.site, name, PASSWORD))

    def client(self, token: str, **settings: Any) -> Client:
        """Returns a client of this gateway, which is closed with it."""
        return self._resources.enter_context(Client(self.url, token, **settings))

    def async_client(self, token: str, **settings: Any) -> AsyncClient:
        """Returns an asynchronous client. Close it in the loop that used it."""
        return AsyncClient(self.url, token, **settings)

    def __repr__(self) -> str:
        return f"Gateway({self.url!r})"
