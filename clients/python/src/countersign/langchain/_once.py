"""One run for each call that was let through, whoever asks for it again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.errors import GraphBubbleUp

# A retry comes seconds after its call. Of calls that lie further back than so many nothing is kept.
KEPT_MAX = 100_000


class Once:
    """What ran in this process, by the call as it was made and by its approval."""

    def __init__(self) -> None:
        self._ran: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, made: str) -> bool:
        """Whether that call ran, so that nobody needs to be asked about it again."""
        return made in self._ran

    @contextmanager
    def run(self, made: str, approval: str) -> Iterator[bool]:
        """Around a run: whether it is the first one. What failed may have done half of what it does, so a failure is a
        run; one that stops the graph to ask something is none, and is begun anew by its resume."""
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
