-- States that are in files and no longer in the database.
CREATE TABLE archives (
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
CREATE UNIQUE INDEX archives_alias ON archives (alias) WHERE alias IS NOT NULL;
CREATE INDEX archives_owner ON archives (owner, id) WHERE owner <> '';
CREATE INDEX archives_state ON archives (state, due, id) WHERE state <> '';
