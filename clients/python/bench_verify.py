"""Measures the client's overhead in verify: the same request by the client and by httpx alone, alternately.

    COUNTERSIGN_BIN=target/release/countersign python clients/python/bench_verify.py [TIMES]

It requests the same write during its lease, so that the gateway does the same work each time.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from countersign import Client
from countersign.testing import Gateway

POLICY = Path(__file__).resolve().parents[2] / "examples" / "payments" / "policy.toml"
STATE = {"raw_text": "", "requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "currency": "EUR"}}
TIMES = 1000
WARM = 50
# How fast a token may ask is not what is measured.
UNBOUNDED = {"COUNTERSIGN_LIMITS_RATE_PER_SEC": "0"}


@dataclass(frozen=True)
class Measured:
    """Medians, in milliseconds."""

    client_ms: float
    httpx_ms: float

    @property
    def added_ms(self) -> float:
        """Returns the client's overhead."""
        return self.client_ms - self.httpx_ms

    @property
    def ratio(self) -> float:
        """How many times as long it takes by the client."""
        return self.client_ms / self.httpx_ms


def measured(gateway: Gateway, times: int) -> Measured:
    """Both in one run, in turn, so that what else the machine does falls on both."""
    gateway.activate(POLICY)
    host = gateway.client(gateway.add_token("host", flow="payments"))
    token = gateway.add_token("writer", flow="payments", nodes=["database_writer"])
    made = host.create_thread("payments", STATE, thread="bench")
    ask = {"thread": made.thread, "transition": made.transition, "write_id": "bench-1"}
    headers = {"Authorization": f"Bearer {token}"}
    with (
        Client(gateway.url, token) as client,
        httpx.Client(base_url=gateway.url, headers=headers, trust_env=False) as raw,
    ):
        runs: tuple[Callable[[], object], ...] = (
            lambda: client.verify(thread=ask["thread"], transition=ask["transition"], write_id=ask["write_id"]),
            lambda: raw.post("/v1/verify", json=ask).raise_for_status().json()["allow"],
        )
        took: tuple[list[float], ...] = ([], [])
        for turn in range(times + WARM):
            for run, into in zip(runs, took, strict=True):
                began = time.perf_counter()
                run()
                if turn >= WARM:
                    into.append((time.perf_counter() - began) * 1000)
    return Measured(*(statistics.median(it) for it in took))


def main(arguments: list[str]) -> int:
    """Prints both and what lies between."""
    times = int(arguments[0]) if arguments else TIMES
    with Gateway.start(UNBOUNDED) as gateway:
        found = measured(gateway, times)
    print(f"verify, median of {times}: client {found.client_ms:.3f} ms, httpx {found.httpx_ms:.3f} ms")
    print(f"the client adds {found.added_ms:+.3f} ms, ratio {found.ratio:.3f}")
    return 0 if found.added_ms < 1.0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
