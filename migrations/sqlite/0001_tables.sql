-- Every table has the same shape: a name, a second unique name where there is one, what rows are
-- looked up by, a revision, and a sealed JSON body. The program decodes rows in one place, and
-- `mac` covers every other column.
--
-- An empty owner or state means none: no list asks for it, so no index keeps it. Tables that grow with
-- every proposal, verify or event are not listed by owner or state at all.
-- WITHOUT ROWID only where rows are small and come in the order of their ids: rows are then stored
-- in that order, once. Elsewhere bodies would spread the tree that is searched.

-- The gateway itself: its identity and whether all is halted. One row.
CREATE TABLE gateway (
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
CREATE UNIQUE INDEX gateway_alias ON gateway (alias) WHERE alias IS NOT NULL;
CREATE INDEX gateway_owner ON gateway (owner, id) WHERE owner <> '';
CREATE INDEX gateway_state ON gateway (state, due, id) WHERE state <> '';

-- Flows, with their active policy and halts.
CREATE TABLE flows (
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
CREATE UNIQUE INDEX flows_alias ON flows (alias) WHERE alias IS NOT NULL;
CREATE INDEX flows_owner ON flows (owner, id) WHERE owner <> '';
CREATE INDEX flows_state ON flows (state, due, id) WHERE state <> '';

-- Policies, by digest.
CREATE TABLE policies (
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
CREATE UNIQUE INDEX policies_alias ON policies (alias) WHERE alias IS NOT NULL;
CREATE INDEX policies_owner ON policies (owner, id) WHERE owner <> '';
CREATE INDEX policies_state ON policies (state, due, id) WHERE state <> '';

-- Threads.
CREATE TABLE threads (
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
CREATE UNIQUE INDEX threads_alias ON threads (alias) WHERE alias IS NOT NULL;
CREATE INDEX threads_owner ON threads (owner, id) WHERE owner <> '';
CREATE INDEX threads_state ON threads (state, due, id) WHERE state <> '';

-- Transitions, by digest; alias: what makes two requests the same proposal.
CREATE TABLE transitions (
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
CREATE UNIQUE INDEX transitions_alias ON transitions (alias) WHERE alias IS NOT NULL;

-- Rejected attempts, by what makes two requests the same proposal.
CREATE TABLE rejections (
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
CREATE UNIQUE INDEX rejections_alias ON rejections (alias) WHERE alias IS NOT NULL;

-- Committed transitions' entries, by thread and version.
CREATE TABLE entries (
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
CREATE UNIQUE INDEX entries_alias ON entries (alias) WHERE alias IS NOT NULL;

-- States, whole or as a delta on the version before, by thread and version.
CREATE TABLE states (
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
CREATE UNIQUE INDEX states_alias ON states (alias) WHERE alias IS NOT NULL;

-- Holds with their votes.
CREATE TABLE holds (
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
CREATE UNIQUE INDEX holds_alias ON holds (alias) WHERE alias IS NOT NULL;
CREATE INDEX holds_owner ON holds (owner, id) WHERE owner <> '';
CREATE INDEX holds_state ON holds (state, due, id) WHERE state <> '';

-- Receipts, by jti.
CREATE TABLE receipts (
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
CREATE UNIQUE INDEX receipts_alias ON receipts (alias) WHERE alias IS NOT NULL;

-- Writes, by principal and write id.
CREATE TABLE writes (
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
CREATE UNIQUE INDEX writes_alias ON writes (alias) WHERE alias IS NOT NULL;

-- Accounts; alias: the name.
CREATE TABLE accounts (
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
CREATE UNIQUE INDEX accounts_alias ON accounts (alias) WHERE alias IS NOT NULL;
CREATE INDEX accounts_owner ON accounts (owner, id) WHERE owner <> '';
CREATE INDEX accounts_state ON accounts (state, due, id) WHERE state <> '';

-- Tokens of machines.
CREATE TABLE tokens (
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
CREATE UNIQUE INDEX tokens_alias ON tokens (alias) WHERE alias IS NOT NULL;
CREATE INDEX tokens_owner ON tokens (owner, id) WHERE owner <> '';
CREATE INDEX tokens_state ON tokens (state, due, id) WHERE state <> '';

-- Browser sessions.
CREATE TABLE sessions (
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
CREATE UNIQUE INDEX sessions_alias ON sessions (alias) WHERE alias IS NOT NULL;
CREATE INDEX sessions_owner ON sessions (owner, id) WHERE owner <> '';
CREATE INDEX sessions_state ON sessions (state, due, id) WHERE state <> '';

-- One-time links.
CREATE TABLE links (
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
CREATE UNIQUE INDEX links_alias ON links (alias) WHERE alias IS NOT NULL;
CREATE INDEX links_owner ON links (owner, id) WHERE owner <> '';
CREATE INDEX links_state ON links (state, due, id) WHERE state <> '';

-- Events; alias: thread and number.
CREATE TABLE events (
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
CREATE UNIQUE INDEX events_alias ON events (alias) WHERE alias IS NOT NULL;

-- Events that have no place in the log yet.
CREATE TABLE outbox (
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
CREATE UNIQUE INDEX outbox_alias ON outbox (alias) WHERE alias IS NOT NULL;

-- The log: each event's place.
CREATE TABLE log (
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
CREATE UNIQUE INDEX log_alias ON log (alias) WHERE alias IS NOT NULL;
CREATE INDEX log_owner ON log (owner, id) WHERE owner <> '';
CREATE INDEX log_state ON log (state, due, id) WHERE state <> '';
