-- Posts that hosts signed, so that one sent again is the same.
CREATE TABLE posts (
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
CREATE UNIQUE INDEX posts_alias ON posts (alias) WHERE alias IS NOT NULL;
