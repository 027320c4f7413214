"""A PostgreSQL cluster for one run of the tests: made in a folder of its own, and gone afterwards however they end."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from pathlib import Path

import psycopg

# Prints where the socket is, and waits for the end of its input, which comes when the tests' process ends.
SCRIPT = """
trap '' INT TERM HUP
folder=$(mktemp -d /tmp/countersign-pg-XXXXXX) && chmod 711 "$folder" || exit 1
trap '"$0/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1; rm -rf "$folder"' EXIT
"$0/initdb" -D "$folder/data" -U countersign -A trust -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1 &&
"$0/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" -o "-c listen_addresses= -c unix_socket_directories=$folder \\
    -c max_connections=300 -c shared_buffers=32MB -c fsync=off -c max_prepared_transactions=4" start >/dev/null || {
    cat "$folder/log" >&2; exit 1; }
echo "$folder"
cat >/dev/null
"""


def binaries() -> Path:
    """Returns the folder of initdb: the newest of Debian's versions, or the one on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda it: -int(it.parent.name))
    on_path = [Path(it) for it in os.environ.get("PATH", "").split(os.pathsep)]
    for folder in [*folders, *on_path]:
        if (folder / "initdb").exists():
            return folder
    raise RuntimeError(
        "PostgreSQL is not installed: no initdb. `./test` installs it (Debian: apt-get install postgresql)"
    )


def unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return ["env"]
    users = {it.pw_name: it for it in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return ["setpriv", f"--reuid={user.pw_name}", f"--regid={grp.getgrgid(user.pw_gid).gr_name}", "--clear-groups"]


class Cluster:
    """A running PostgreSQL. `countersign` is its superuser, and no login needs a password."""

    def __enter__(self) -> Cluster:
        command = [*unprivileged(), "sh", "-c", SCRIPT, str(binaries())]
        self._keeper = subprocess.Popen(
            command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._keeper.stdout is not None
        self.socket = self._keeper.stdout.readline().strip()
        if not self.socket:
            raise RuntimeError("PostgreSQL did not start")
        return self

    def __exit__(self, *_: object) -> None:
        with self._keeper:  # which closes its input, and waits
            pass

    def address(self, database: str, user: str = "countersign") -> str:
        return f"host={self.socket} dbname={database} user={user}"

    def execute(self, database: str, *statements: str, user: str = "countersign") -> None:
        with psycopg.connect(self.address(database, user), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
