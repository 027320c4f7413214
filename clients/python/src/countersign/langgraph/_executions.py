"""What the gateway is told a node's execution is: a step, which has one effect however often it is run again."""

from __future__ import annotations

import re
from collections.abc import Callable

from langgraph.config import get_config

from ._pointer import Pointer, State

StepOf = Callable[[State], str | None]
# Of a step's name, which has 128 characters: a task's id has 36, and a version at most 16.
BODY_CHARS = 64


def step_of(body: str, pointer: Pointer) -> str | None:
    """The step that an execution of `body` is, or nothing outside of a run.

    It is LangGraph's own id of the task: the same in each try of a `RetryPolicy`, after an interrupt, and when a run
    goes on that broke off before its checkpoint; another one in each turn of a loop, each `Send` and each run. What is
    called within one task is told apart by its name and by where it begins.
    """
    try:
        metadata = get_config().get("metadata") or {}
    except RuntimeError:
        return None
    _, _, task = str(metadata.get("langgraph_checkpoint_ns") or "").rpartition(":")
    return f"{task}.{pointer['version']}.{_named(body)}" if task else None


def _named(body: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", body)[:BODY_CHARS]
