"""Types and names of graph nodes."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from typing import Any, Protocol

Update = dict[str, Any]


class Node(Protocol):
    """A blocking node."""

    def __call__(self, state: Any) -> Update: ...


class AsyncNode(Protocol):
    """An awaited node."""

    def __call__(self, state: Any) -> Awaitable[Update]: ...


def named_as(body: Any, node: Any) -> Any:
    """Gives a node its body's name, which the graph calls it by, and no signature, by which the graph would pass
    arguments."""
    functools.update_wrapper(node, body, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    del node.__wrapped__
    return node
