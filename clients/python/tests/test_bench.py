"""The bench of the client's own time runs. A busy machine has other times, so none is asserted here."""

from __future__ import annotations

from bench_verify import UNBOUNDED, measured
from countersign.testing import Gateway


def test_bench_measures_the_client_and_httpx() -> None:
    with Gateway.start(UNBOUNDED) as gateway:
        found = measured(gateway, 20)
    assert min(found.client_ms, found.httpx_ms) > 0, found
