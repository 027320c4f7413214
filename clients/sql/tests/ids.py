"""Names as the gateway gives them."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import datetime, timedelta, timezone


def jti() -> str:
    return base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")


def digest(of: str) -> str:
    return "sha256:" + hashlib.sha256(of.encode()).hexdigest()


def lease(seconds: float = 30) -> str:
    """A lease's end as verify answers it."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


# Placeholders for leases, in what is made long before a test runs.
LEASE, LONG = "a lease", "a lease that is too long"


def at_once(arguments: tuple[object, ...]) -> tuple[object, ...]:
    """The same with leases that begin now."""
    leases = {LEASE: lease(), LONG: lease(3700)}
    return tuple(leases.get(it, it) if isinstance(it, str) else it for it in arguments)
