-- Passkeys that people enrolled, with their public keys.
CREATE TABLE passkeys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT COLLATE "C",
    owner TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    mac BYTEA NOT NULL
) WITH (toast_tuple_target = 8160);
CREATE UNIQUE INDEX passkeys_alias ON passkeys (alias) WHERE alias IS NOT NULL;
CREATE INDEX passkeys_owner ON passkeys (owner, id) WHERE owner <> '';
CREATE INDEX passkeys_state ON passkeys (state, due, id) WHERE state <> '';
