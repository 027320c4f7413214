-- States that are in files and no longer in the database.
CREATE TABLE archives (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT COLLATE "C",
    owner TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    mac BYTEA NOT NULL
);
CREATE UNIQUE INDEX archives_alias ON archives (alias) WHERE alias IS NOT NULL;
CREATE INDEX archives_owner ON archives (owner, id) WHERE owner <> '';
CREATE INDEX archives_state ON archives (state, due, id) WHERE state <> '';
