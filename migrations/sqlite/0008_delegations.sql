-- Who votes in whose place, and until when.
CREATE TABLE delegations (
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
CREATE UNIQUE INDEX delegations_alias ON delegations (alias) WHERE alias IS NOT NULL;
CREATE INDEX delegations_owner ON delegations (owner, id) WHERE owner <> '';
CREATE INDEX delegations_state ON delegations (state, due, id) WHERE state <> '';
