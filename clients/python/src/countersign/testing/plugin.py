"""The fixture, for pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ._running import Gateway


@pytest.fixture
def countersign_gateway() -> Iterator[Gateway]:
    """A gateway of this test's own: a free port, an empty database in a temporary folder, gone afterwards.

    Its program is the one named by COUNTERSIGN_BIN, or else `countersign` on the PATH.
    """
    with Gateway.start() as gateway:
        yield gateway
