"""Calls for agent runs: their events and run artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _names as names
from ._calls import given, keyed, thread_path
from ._plans import Call, Core, Plan, Request, asked
from .answers import EventAdded
from .errors import Json

Phase = Literal[
    "observe",
    "interpret",
    "intuition",
    "direction",
    "plan",
    "act",
    "reflect",
    "learn",
    "memory",
    "insight",
    "terminate",
]
Artefact = Literal["events.jsonl", "learn.jsonl", "state.json", "summary.json", "final.json", "manifest.json"]


def add_event(
    core: Core,
    thread: str,
    *,
    node: str,
    phase: Phase,
    payload: Mapping[str, Json],
    caused_by: str | None = None,
    evidence_ids: Sequence[str] = (),
) -> Plan[EventAdded]:
    """Adds an event to a run. No decision depends on it. `terminate` ends the run."""
    body = given(
        node=names.name("node", node),
        phase=phase,
        payload=dict(payload),
        caused_by=caused_by,
        evidence_ids=list(evidence_ids),
    )
    return (yield from asked(core, keyed(EventAdded, thread_path(thread, "/episode/events"), body, 201)))


def episode_file(core: Core, thread: str, file: Artefact) -> Plan[bytes]:
    """Returns one file of the run artifacts, byte for byte. The last three exist once the run has ended."""
    accept = "application/x-ndjson" if file.endswith(".jsonl") else "application/json"
    path = thread_path(thread, f"/episode/{names.part('file', file)}")
    request = Request("GET", path, headers={"Accept": accept})
    call: Call[bytes] = Call(request, {200: bytes}, parses=bytes)
    return (yield from asked(core, call))
