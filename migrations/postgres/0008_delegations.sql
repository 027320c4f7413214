-- Who votes in whose place, and until when.
CREATE TABLE delegations (
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
CREATE UNIQUE INDEX delegations_alias ON delegations (alias) WHERE alias IS NOT NULL;
CREATE INDEX delegations_owner ON delegations (owner, id) WHERE owner <> '';
CREATE INDEX delegations_state ON delegations (state, due, id) WHERE state <> '';
