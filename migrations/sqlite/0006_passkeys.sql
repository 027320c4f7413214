-- Passkeys that people enrolled, with their public keys.
CREATE TABLE passkeys (
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
CREATE UNIQUE INDEX passkeys_alias ON passkeys (alias) WHERE alias IS NOT NULL;
CREATE INDEX passkeys_owner ON passkeys (owner, id) WHERE owner <> '';
CREATE INDEX passkeys_state ON passkeys (state, due, id) WHERE state <> '';
