"""The program `countersign`: where it is, and what it is run with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

BIN = "COUNTERSIGN_BIN"
PREFIX = "COUNTERSIGN_"
COMMAND_SECS = 60


class NoGateway(Exception):
    """The gateway's program is not there, or did not do what it was told."""


def program() -> str:
    """The program named by COUNTERSIGN_BIN, or else on the PATH."""
    named = os.environ.get(BIN)
    found = shutil.which(named or "countersign")
    if found is None:
        raise NoGateway(f"{named} is no program" if named else f"there is no countersign on the PATH; set {BIN}")
    return found


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would configure another gateway (its database, say), and with what configures this
    one."""
    return {**{key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}, **settings}


def run(data: Path, settings: Mapping[str, str], arguments: Sequence[str], typed: str | None = None) -> str:
    """What a command beside the gateway answers."""
    done = subprocess.run(  # noqa: S603 - the program is the one that is tested
        [program(), "--data", str(data), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        env=environment(settings),
        timeout=COMMAND_SECS,
        check=False,
    )
    if done.returncode != 0:
        raise NoGateway(f"countersign {' '.join(arguments[:2])} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()
