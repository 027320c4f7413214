"""Checks that a body has finished when it returns."""

from __future__ import annotations

import asyncio
import inspect
from typing import TypeVar

from ._names import Invalid

T = TypeVar("T")


def finished(result: T) -> T:
    """Returns the body's result. An awaitable or a generator is refused: nothing of it has run, so a write would be
    confirmed that never happened."""
    if not (inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return result
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()
    elif isinstance(result, asyncio.Future):
        result.cancel()
    raise Invalid("body", f"it returned a {type(result).__name__}, which is yet to run, and not what it did")
