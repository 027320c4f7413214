-- Runs that were imported, which are looked through the latest first.
CREATE TABLE imports (
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
CREATE UNIQUE INDEX imports_alias ON imports (alias) WHERE alias IS NOT NULL;
CREATE INDEX imports_due ON imports (due, id);
-- Their files, in pieces.
CREATE TABLE import_pieces (
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
CREATE UNIQUE INDEX import_pieces_alias ON import_pieces (alias) WHERE alias IS NOT NULL;
