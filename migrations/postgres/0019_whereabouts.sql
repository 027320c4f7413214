-- Where transitions are whose versions are in archives, by digest.
CREATE TABLE whereabouts (
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
CREATE UNIQUE INDEX whereabouts_alias ON whereabouts (alias) WHERE alias IS NOT NULL;
