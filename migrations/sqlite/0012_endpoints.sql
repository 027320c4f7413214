-- Where events are sent.
CREATE TABLE endpoints (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX endpoints_alias ON endpoints (alias) WHERE alias IS NOT NULL;

-- How far in the log each endpoint was served.
CREATE TABLE lanes (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX lanes_alias ON lanes (alias) WHERE alias IS NOT NULL;

-- Events to endpoints, by endpoint and falling place in the log.
CREATE TABLE deliveries (
    id TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    alias TEXT,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_alias ON deliveries (alias) WHERE alias IS NOT NULL;
CREATE INDEX deliveries_owner ON deliveries (owner, id) WHERE owner <> '';
CREATE INDEX deliveries_state ON deliveries (state, due, id) WHERE state <> '';
