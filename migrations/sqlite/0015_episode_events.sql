-- What agents added to their runs.
CREATE TABLE episode_events (
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
CREATE UNIQUE INDEX episode_events_alias ON episode_events (alias) WHERE alias IS NOT NULL;
