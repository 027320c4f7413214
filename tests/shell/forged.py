"""Begins a writer of the examples again with a forged receipt, which names somebody else's earlier write.

    forged.py typescript WRITER BANK    the two programs, for node
    forged.py shell

The writer died between verify and its write. A gateway that stands in says yes to this very write again, as the real one
does while the lease lives. The writer must write, and confirm only then: the earlier write is not its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EARLIER, OWN = "E" * 22, "O" * 22
HEAD = "sha256:" + hashlib.sha256(b"head").hexdigest()
LEASE = (datetime.now(timezone.utc) + timedelta(minutes=5)).isoformat(timespec="milliseconds")[:-6] + "Z"


def token(**claims: Any) -> str:
    return "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".AAAA"


class Gateway(BaseHTTPRequestHandler):
    """Answers what the real one answers to a verify that is repeated, and notes what it is told."""

    told: list[str] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.told.append(self.path)
        verified = {
            "allow": True,
            "write_id": "write-1",
            "fence": 1,
            "lease_expires_at": LEASE,
            "view": {"target_user_id": 42, "payment": {"amount": 40}},
            "verification": token(receipt=OWN),
        }
        ended = {"outcome": "confirmed" if self.path.endswith("confirm") else "aborted", "version": 2}
        body = json.dumps(verified if self.path == "/v1/verify" else ended).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def begun_again(*command: str, **environment: str) -> None:
    receipt = token(jti=EARLIER, sub="order-17", transition=HEAD)
    told = ("order-17", HEAD, receipt, "write-1")
    subprocess.run([*command, *told], env={**os.environ, **environment}, check=True, timeout=60)


def asked(bank: str, body: bytes | None = None) -> Any:
    headers = {"authorization": "Bearer key", "idempotency-key": EARLIER}
    with urllib.request.urlopen(urllib.request.Request(f"{bank}/transfers", body, headers)) as answer:
        return json.load(answer)


def typescript(url: str, writer: str, bank: str) -> None:
    program = subprocess.Popen(["node", bank], env={**os.environ, "BANK_KEY": "key"}, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        there = program.stdout.readline().strip()
        asked(there, b'{"user":1,"amount":1}')
        begun_again("node", writer, COUNTERSIGN_URL=url, COUNTERSIGN_TOKEN="t", BANK_URL=there, BANK_KEY="key")
        orders = [json.loads(it["order"]) for it in asked(there)]
        assert orders == [{"user": 1, "amount": 1}, {"user": 42, "amount": 40}], orders
    finally:
        program.kill()
        program.wait()


def shell(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/ledger.db"
        ledger, guard = sqlite3.connect(file, isolation_level=None), ROOT / "clients" / "sql"
        ledger.executescript((guard / "sqlite.sql").read_text())
        ledger.execute("CREATE TABLE payments (id INTEGER PRIMARY KEY, thread TEXT, user_id INTEGER, amount INTEGER)")
        ledger.execute("PRAGMA foreign_keys = ON")
        ledger.execute("PRAGMA recursive_triggers = ON")
        ledger.execute("BEGIN")
        earlier = (EARLIER, "sha256:" + "0" * 64, LEASE)
        ledger.execute(
            "INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at) "
            "VALUES (?, 'order-16', ?, 'write-0', 1, ?)",
            earlier,
        )
        ledger.execute("UPDATE countersign_guard SET open = NULL")
        ledger.execute("COMMIT")
        begun_again(str(ROOT / "examples/shell/writer.sh"), COUNTERSIGN_URL=url, COUNTERSIGN_TOKEN="t", DATABASE=file)
        assert ledger.execute("SELECT thread, amount FROM payments").fetchall() == [("order-17", 40)]
        assert ledger.execute("SELECT id FROM countersign_guard WHERE write_id = 'write-1'").fetchone() == (OWN,)


server = HTTPServer(("127.0.0.1", 0), Gateway)
threading.Thread(target=server.serve_forever, daemon=True).start()
{"typescript": typescript, "shell": shell}[sys.argv[1]](f"http://127.0.0.1:{server.server_port}", *sys.argv[2:])
assert Gateway.told == ["/v1/verify", "/v1/writes/write-1/confirm"], Gateway.told
