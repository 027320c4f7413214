-- How far the log was read by those who go on where they stopped.
CREATE TABLE marks (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX marks_alias ON marks (alias) WHERE alias IS NOT NULL;
