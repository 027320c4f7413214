-- What hosts that keep their own state asked people about, with the votes on it.
CREATE TABLE interrupts (
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
CREATE UNIQUE INDEX interrupts_alias ON interrupts (alias) WHERE alias IS NOT NULL;
CREATE INDEX interrupts_owner ON interrupts (owner, id) WHERE owner <> '';
CREATE INDEX interrupts_state ON interrupts (state, due, id) WHERE state <> '';
