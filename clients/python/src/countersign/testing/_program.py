"""Finds and runs the program `countersign`."""

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
    """The gateway's program was not found, or failed."""


def program() -> str:
    """Returns the program in COUNTERSIGN_BIN, or the one on the PATH."""
    named = os.environ.get(BIN)
    found = shutil.which(named or "countersign")
    if found is None:
        raise NoGateway(f"{named} is no program" if named else f"there is no countersign on the PATH; set {BIN}")
    return found


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment without variables of other gateways, such as their database, and with those of this
    one."""
    return {**{key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}, **settings}


def run(data: Path, settings: Mapping[str, str], arguments: Sequence[str], typed: str | None = None) -> str:
    """Runs a command beside the gateway, and returns its output."""
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
