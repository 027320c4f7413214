-- Where people are told that something waits for them.
CREATE TABLE contacts (
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
CREATE UNIQUE INDEX contacts_alias ON contacts (alias) WHERE alias IS NOT NULL;

-- Who is still to be told of what.
CREATE TABLE letters (
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
CREATE UNIQUE INDEX letters_alias ON letters (alias) WHERE alias IS NOT NULL;
CREATE INDEX letters_owner ON letters (owner, id) WHERE owner <> '';
CREATE INDEX letters_state ON letters (state, due, id) WHERE state <> '';
