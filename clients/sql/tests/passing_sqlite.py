"""Statements of the tests of SQLite's guard."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ids import digest, jti, lease

# A default write, named after the id, so that another id is another write.
TRANSITION = digest("a head")
PASS = f"""
    INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at)
    VALUES (?1, ?2, '{TRANSITION}', 'w' || substr(hex(?1), 1, 100), ?3, ?4)
"""
END = "UPDATE countersign_guard SET open = NULL, result = ? WHERE id = ? AND open = 1"
WRITE = "INSERT INTO payments (thread, amount) VALUES ('order-17', 40)"


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA recursive_triggers = ON")
        yield connection


def refused(message: str) -> pytest.RaisesExc:
    return pytest.raises(sqlite3.IntegrityError, match=message)


def rows(file: Path) -> int:
    with opened(file) as connection:
        return connection.execute("SELECT count(*) FROM payments").fetchone()[0]


def write(
    connection: sqlite3.Connection, fence: object = 1, *, id: str = "", thread: str = "order-17", until: str = ""
) -> None:
    """Runs a whole write. A refused one is rolled back."""
    id = id or jti()
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(PASS, (id, thread, fence, until or lease()))
        connection.execute("INSERT INTO payments (thread, amount) VALUES (?, 40)", (thread,))
        connection.execute(END, (None, id))
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise
