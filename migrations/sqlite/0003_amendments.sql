-- Policies that people are asked about before they are activated, with the votes on them.
CREATE TABLE amendments (
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
CREATE UNIQUE INDEX amendments_alias ON amendments (alias) WHERE alias IS NOT NULL;
CREATE INDEX amendments_owner ON amendments (owner, id) WHERE owner <> '';
CREATE INDEX amendments_state ON amendments (state, due, id) WHERE state <> '';
