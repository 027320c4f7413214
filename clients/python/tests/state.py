"""The state of the payments graph, and the table that it writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypedDict

from countersign.langgraph import Pointer, latest


class State(TypedDict, total=False):
    target_user_id: int
    countersign: Annotated[Pointer, latest]


class Ledger:
    """A table of payments, with nothing that would keep a second row out but the gateway."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as db:
            db.execute("CREATE TABLE IF NOT EXISTS payments (target_user_id INTEGER, fence INTEGER)")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path)
        try:
            with db:
                yield db
        finally:
            db.close()

    def pay(self, target_user_id: int, fence: int) -> None:
        with self._open() as db:
            db.execute("INSERT INTO payments VALUES (?, ?)", (target_user_id, fence))

    def rows(self) -> list[int]:
        with self._open() as db:
            return [row[0] for row in db.execute("SELECT target_user_id FROM payments ORDER BY fence")]

    def fences(self) -> list[int]:
        with self._open() as db:
            return [row[0] for row in db.execute("SELECT fence FROM payments ORDER BY fence")]
