"""The client's own time, beside httpx alone, in one run."""

from __future__ import annotations

from bench_verify import UNBOUNDED, measured
from countersign.testing import Gateway


def test_the_client_adds_less_than_a_millisecond_to_a_verify() -> None:
    with Gateway.start(UNBOUNDED) as gateway:
        found = measured(gateway, 200)
    assert found.added_ms < 1.0, found
