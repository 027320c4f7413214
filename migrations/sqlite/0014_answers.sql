-- What was answered to requests that have a key of their sender's, for whoever sends one again.
CREATE TABLE answers (
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
CREATE UNIQUE INDEX answers_alias ON answers (alias) WHERE alias IS NOT NULL;
CREATE INDEX answers_owner ON answers (owner, id) WHERE owner <> '';
CREATE INDEX answers_state ON answers (state, due, id) WHERE state <> '';
