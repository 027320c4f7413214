-- Policies that people are asked about before they are activated, with the votes on them.
CREATE TABLE amendments (
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
CREATE UNIQUE INDEX amendments_alias ON amendments (alias) WHERE alias IS NOT NULL;
CREATE INDEX amendments_owner ON amendments (owner, id) WHERE owner <> '';
CREATE INDEX amendments_state ON amendments (state, due, id) WHERE state <> '';
