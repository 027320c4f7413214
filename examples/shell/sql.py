"""Stands in for a SQLite shell: the statements run in one transaction, with named parameters, or not at all.

python3 sql.py FILE 'STATEMENT; STATEMENT' name=value …
"""

import sqlite3
import sys

file, script, *named = sys.argv[1:]
values = dict(it.split("=", 1) for it in named)
database = sqlite3.connect(file, isolation_level=None)
database.execute("PRAGMA foreign_keys = ON")
database.execute("PRAGMA recursive_triggers = ON")
database.execute("BEGIN IMMEDIATE")
try:
    for statement in script.split(";"):
        for row in database.execute(statement, values):
            print(*row)
    database.execute("COMMIT")
except sqlite3.Error as error:
    database.execute("ROLLBACK")
    sys.exit(f"{type(error).__name__}: {error}")
