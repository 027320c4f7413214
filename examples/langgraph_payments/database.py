"""A PostgreSQL of its own with a table of payments, the guard, and a login for the writer. Gone when its input ends.

database.py PASSWORD_FILE    prints the socket's folder
"""

from __future__ import annotations

import sys
from pathlib import Path


CLIENTS = Path(__file__).resolve().parents[2] / "clients"
sys.path.insert(0, str(CLIENTS / "sql" / "tests"))
import psycopg  # noqa: E402
from psycopg import sql  # noqa: E402
from throwaway import Cluster  # noqa: E402

with Cluster() as cluster:
    password = Path(sys.argv[1]).read_text().strip()
    cluster.execute(
        "postgres",
        "CREATE ROLE keeper NOLOGIN",
        sql.SQL("CREATE ROLE ledger LOGIN PASSWORD {}").format(password).as_string(None),
        "CREATE DATABASE ledger",
    )
    cluster.execute(
        "ledger",
        (CLIENTS / "sql" / "postgres.sql").read_text(),
        "CREATE TABLE payments (thread text PRIMARY KEY, user_id bigint, amount bigint, currency text)",
        "ALTER TABLE payments OWNER TO keeper",
        "SELECT countersign_guard.protect('payments', 'thread')",
        "GRANT countersign_writer TO ledger",
        "GRANT SELECT, INSERT ON payments TO ledger",
    )
    with psycopg.connect(cluster.address("ledger")) as connection:
        assert connection.execute("SELECT countersign_guard.ways_past('ledger')").fetchall() == []
    # From here on whoever knocks shows a password, and the superuser is not let in at all.
    cluster.execute(
        "postgres",
        f"COPY (SELECT 'local ledger ledger scram-sha-256') TO '{cluster.socket}/data/pg_hba.conf'",
        "SELECT pg_reload_conf()",
    )
    print(cluster.socket, flush=True)
    sys.stdin.read()
