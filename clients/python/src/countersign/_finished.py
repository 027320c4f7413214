"""Whether a body has done what it does by the time that it has returned."""

from __future__ import annotations

import asyncio
import inspect
from typing import TypeVar

from ._names import Invalid

T = TypeVar("T")


def finished(result: T) -> T:
    """What a body returned. Of an awaitable or a generator nothing has run, and nothing will: were it taken for a
    result, a write would be confirmed that never was."""
    if not (inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return result
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()
    elif isinstance(result, asyncio.Future):
        result.cancel()
    raise Invalid("body", f"it returned a {type(result).__name__}, which is yet to run, and not what it did")
