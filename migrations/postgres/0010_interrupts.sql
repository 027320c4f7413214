-- What hosts that keep their own state asked people about, with the votes on it.
CREATE TABLE interrupts (
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
CREATE UNIQUE INDEX interrupts_alias ON interrupts (alias) WHERE alias IS NOT NULL;
CREATE INDEX interrupts_owner ON interrupts (owner, id) WHERE owner <> '';
CREATE INDEX interrupts_state ON interrupts (state, due, id) WHERE state <> '';
