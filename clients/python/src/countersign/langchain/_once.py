"""Runs each allowed call once, however often it is requested."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.errors import GraphBubbleUp

# A retry follows within seconds, so only the latest calls are kept.
KEPT_MAX = 100_000


class Once:
    """The calls that ran in this process, by call and approval."""

    def __init__(self) -> None:
        self._ran: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, made: str) -> bool:
        """Returns whether that call ran, so that no new proposal is needed."""
        return made in self._ran

    @contextmanager
    def run(self, made: str, approval: str) -> Iterator[bool]:
        """Surrounds a run, and says whether it is the first. A failed run counts, because it may have had half of
        its effect. A run that interrupts the graph does not, and starts again after its resume."""
        first = self._begin(made, approval)
        try:
            yield first
        except GraphBubbleUp:
            if first:
                with self._lock:
                    for name in (made, approval):
                        self._ran.pop(name, None)
            raise

    def _begin(self, *names: str) -> bool:
        with self._lock:
            if any(name in self._ran for name in names):
                return False
            self._ran.update(dict.fromkeys(names))
            while len(self._ran) > 2 * KEPT_MAX:
                self._ran.popitem(last=False)
            return True
