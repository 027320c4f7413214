"""What a graph takes for a node."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from typing import Any, Protocol

Update = dict[str, Any]


class Node(Protocol):
    """A node that blocks."""

    def __call__(self, state: Any) -> Update: ...


class AsyncNode(Protocol):
    """A node that is awaited."""

    def __call__(self, state: Any) -> Awaitable[Update]: ...


def named_as(body: Any, node: Any) -> Any:
    """The node under its body's name, which a graph calls it by; without its signature, by which a graph would pass
    arguments."""
    functools.update_wrapper(node, body, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    del node.__wrapped__
    return node
