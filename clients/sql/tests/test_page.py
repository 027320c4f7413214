"""Runs the snippets of the page unchanged."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from conftest import SQL
from ids import digest, jti, lease
from scene import Scene
from throwaway import Cluster

PAGE = (SQL / "README.md").read_text()
HEAD = digest("a head")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def filled(script: str, id: str, row: str) -> str:
    """With an id, a lease, and a row for those that the page leaves out."""
    script = script.replace("Y4VS…", id).replace("2026-11-21T04:03:42.391Z", lease()).replace("sha256:90a0…", HEAD)
    return script.replace("INSERT INTO payments …;", f"INSERT INTO payments (order_name, amount) VALUES ({row});")


@pytest.fixture
def ledger(cluster: Cluster) -> str:
    cluster.execute("postgres", "DROP DATABASE IF EXISTS ledger", "CREATE DATABASE ledger")
    made, *_ = blocks("sql")
    table = "CREATE TABLE payments (order_name text, user_id bigint, amount bigint)"
    cluster.execute("ledger", (SQL / "postgres.sql").read_text(), table, made)
    return cluster.address("ledger", "ledger")


def test_the_statements_for_postgresql_do_what_they_say(ledger: str) -> None:
    _, write, settle = blocks("sql")[:3]
    id = jti()
    with closing(psycopg.connect(ledger, autocommit=True)) as connection:
        connection.execute(filled(write, id, "'order-17', 40"))
        assert connection.execute(settle.replace("sha256:90a0…", HEAD)).fetchone() == (
            True,
            1,
            {"result_ref": "payments:1"},
        )
        assert connection.execute("SELECT * FROM payments").fetchall() == [("order-17", None, 40)]


def test_the_snippet_writes_once(
    cluster: Cluster, ledger: str, scenes: dict[str, Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scenes["30s"]
    monkeypatch.setenv("PGHOST", cluster.socket)
    monkeypatch.setenv("GATE", scene.gateway.url)
    monkeypatch.setenv("WRITER", scene.tokens["writer"])
    job = scene.approved(thread="order-17")
    (block,) = blocks("python")
    for _ in range(2):
        exec(compile(block, "README.md", "exec", dont_inherit=True), {"job": job})  # noqa: S102 - ours
    with closing(psycopg.connect(ledger)) as connection:
        assert connection.execute("SELECT * FROM payments").fetchall() == [("order-17", 42, 40)]


def test_the_statements_for_sqlite_do_what_they_say(tmp_path: Path) -> None:
    write = blocks("sql")[3]
    template = (SQL / "sqlite_protect.sql").read_text()
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as connection:
        connection.executescript((SQL / "sqlite.sql").read_text())
        connection.executescript("CREATE TABLE payments (order_name TEXT, amount INTEGER)")
        connection.executescript(template.replace("PROTECTED", "payments").replace("THREAD", "order_name"))
        connection.executescript(filled(write, jti(), "'order-17', 40"))
        assert connection.execute("SELECT * FROM payments").fetchall() == [("order-17", 40)]
        with pytest.raises(sqlite3.IntegrityError, match="has passed the guard"):
            connection.execute("DELETE FROM payments")
