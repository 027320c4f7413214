-- Failed sign-ins that still count: of an account, of a browser, of an address.
CREATE TABLE tries (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tries_alias ON tries (alias) WHERE alias IS NOT NULL;

-- When tokens, people and sessions were last seen, to some minutes.
CREATE TABLE sightings (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sightings_alias ON sightings (alias) WHERE alias IS NOT NULL;
