"""A run of the payments graph, as the tests of graphs drive it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.types import Command

import graphs
from conftest import Flow
from countersign import Created, Held
from countersign.langgraph import (
    head,
)
from graphs import Graph
from state import Ledger


@dataclass(frozen=True)
class Run:
    """A thread, and the graph that is run in it."""

    flow: Flow
    made: Created
    graph: Graph
    ledger: Ledger
    folder: Path

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.made.thread}}

    def begin(self, target: int = 42) -> dict[str, Any]:
        """Runs until it stops, and gives what it stopped with."""
        found = self.graph.invoke({"target_user_id": target, "countersign": head(self.made)}, self.config)
        (waiting,) = found["__interrupt__"]
        assert self.rows() == []
        value: dict[str, Any] = waiting.value
        return value

    def resume(self, value: Any, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.graph.invoke(Command(resume=value, **more), self.config)
        return found

    def decision(self, question: dict[str, Any]) -> dict[str, Any]:
        """Returns the value that the gateway's endpoint would resume with."""
        body: dict[str, Any] = self.flow.planner._http.get(
            f"/v1/transitions/{question['transition_digest']}/decision"
        ).json()
        return body

    def approve(self, question: dict[str, Any]) -> dict[str, Any]:
        self.flow.ada.approve(question["review"]["url"])
        return self.decision(question)

    def rows(self) -> list[int]:
        return self.ledger.rows()


@contextmanager
def prepared(flow: Flow, folder: Path) -> Iterator[Run]:
    """The payments graph in a thread of its own, with checkpoints and a table in that folder."""
    ledger = Ledger(folder / "ledger.db")
    with graphs.saver(folder / "checkpoints.db") as saver:
        graph = graphs.builder(flow.planner, flow.writer, ledger).compile(checkpointer=saver)
        yield Run(flow, flow.thread(), graph, ledger, folder)


def another_approval(flow: Flow) -> tuple[str, str]:
    """A transition of another thread that people did approve, and its receipt."""
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 43})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    receipt = flow.planner.wait_for_decision(held.transition, within_secs=30).receipt
    assert receipt is not None
    return held.transition, receipt
