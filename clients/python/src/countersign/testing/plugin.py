"""The pytest fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ._running import Gateway


@pytest.fixture
def countersign_gateway() -> Iterator[Gateway]:
    """A gateway for one test: a free port, an empty database in a temporary folder, removed afterwards.

    Its program is the one in COUNTERSIGN_BIN, or `countersign` on the PATH.
    """
    with Gateway.start() as gateway:
        yield gateway
