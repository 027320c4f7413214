"""The step name of a node's execution, which has one effect however often it runs."""

from __future__ import annotations

import re
from collections.abc import Callable

from langgraph.config import get_config

from ._pointer import Pointer, State

StepOf = Callable[[State], str | None]
# A step's name has at most 128 characters: a task's id has 36, and a version at most 16.
BODY_CHARS = 64


def step_of(body: str, pointer: Pointer) -> str | None:
    """Returns the step of an execution of `body`, or nothing outside a run.

    It is LangGraph's own task id. The id is the same in each attempt of a `RetryPolicy`, after an interrupt, and if the
    run continues after a crash before its checkpoint. Each turn of a loop, each `Send` and each run has another one.
    Calls within one task differ by name and by starting version.
    """
    try:
        metadata = get_config().get("metadata") or {}
    except RuntimeError:
        return None
    _, _, task = str(metadata.get("langgraph_checkpoint_ns") or "").rpartition(":")
    return f"{task}.{pointer['version']}.{_named(body)}" if task else None


def _named(body: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", body)[:BODY_CHARS]
