-- Where people are told that something waits for them.
CREATE TABLE contacts (
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
CREATE UNIQUE INDEX contacts_alias ON contacts (alias) WHERE alias IS NOT NULL;

-- Who is still to be told of what.
CREATE TABLE letters (
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
CREATE UNIQUE INDEX letters_alias ON letters (alias) WHERE alias IS NOT NULL;
CREATE INDEX letters_owner ON letters (owner, id) WHERE owner <> '';
CREATE INDEX letters_state ON letters (state, due, id) WHERE state <> '';
