-- What was answered to requests that have a key of their sender's, for whoever sends one again.
CREATE TABLE answers (
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
CREATE UNIQUE INDEX answers_alias ON answers (alias) WHERE alias IS NOT NULL;
CREATE INDEX answers_owner ON answers (owner, id) WHERE owner <> '';
CREATE INDEX answers_state ON answers (state, due, id) WHERE state <> '';
