-- Database guard for SQLite: an approved write happens at most once, even if the writer dies after `verify` or comes
-- back late. README.md explains its use.
--
--     sqlite3 DATABASE < sqlite.sql
--
-- Needs SQLite 3.37 or later. It can be run again. SQLite has no logins: every program that can open the file can
-- undo all of this.
BEGIN IMMEDIATE;

-- This table is always empty.
CREATE TABLE IF NOT EXISTS countersign_guard_nothing (it INTEGER PRIMARY KEY) STRICT;

-- Every pass that was ever given. The writer opens a pass and ends it in the same transaction. An open pass refers to
-- a missing row, and SQLite commits no transaction with such a reference, so no pass is open in two transactions.
-- Thread, transition and write_id identify the write. The receipt does not, because anyone can put one into a
-- writer's job. `wrote` is 0 if it was settled before it happened: the fencing token is ended, or the write if the
-- token was lost.
CREATE TABLE IF NOT EXISTS countersign_guard (
    id TEXT,
    thread TEXT NOT NULL,
    transition TEXT NOT NULL,
    write_id TEXT NOT NULL,
    fence INTEGER CHECK (fence > 0),
    lease_expires_at TEXT,
    wrote INTEGER NOT NULL DEFAULT 1 CHECK (wrote IN (0, 1)),
    passed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    result TEXT,
    open INTEGER DEFAULT 1 REFERENCES countersign_guard_nothing (it) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS countersign_guard_by_id ON countersign_guard (id) WHERE wrote = 1;
-- A guard of the first version lacks these columns, and fails here. See "Upgrade from the first version" in
-- README.md.
CREATE UNIQUE INDEX IF NOT EXISTS countersign_guard_by_write ON countersign_guard (thread, transition, write_id)
    WHERE wrote = 1;
CREATE INDEX IF NOT EXISTS countersign_guard_by_thread ON countersign_guard (thread, fence);
CREATE INDEX IF NOT EXISTS countersign_guard_open ON countersign_guard (open) WHERE open IS NOT NULL;
-- Incremental BLOB I/O writes into a text without a trigger. SQLite refuses it if the table has an index over an
-- expression. This one indexes no row, and costs nothing.
CREATE INDEX IF NOT EXISTS countersign_guard_no_blob_io ON countersign_guard (NULL) WHERE false;

-- A pass starts by inserting id, thread, transition, write_id, fence and lease. The lease is as `verify` returned it,
-- and is compared with the clock of the program that has the file open. Refusals are raised here and not by
-- constraints, which an INSERT OR IGNORE would pass over.
DROP TRIGGER IF EXISTS countersign_guard_insert;
CREATE TRIGGER countersign_guard_insert BEFORE INSERT ON countersign_guard BEGIN
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA foreign_keys = ON is needed, or a pass would outlive its transaction')
    WHERE (SELECT foreign_keys FROM pragma_foreign_keys) IS NOT 1;
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA recursive_triggers = ON is needed, or REPLACE would take rows unseen')
    WHERE (SELECT recursive_triggers FROM pragma_recursive_triggers) IS NOT 1;
    -- Disabling it again makes SQLite forget that this pass was left open.
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA defer_foreign_keys = OFF is needed, or a pass would outlive its transaction')
    WHERE (SELECT defer_foreign_keys FROM pragma_defer_foreign_keys) IS NOT 0;
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA journal_mode = OFF takes no write back: choose another one')
    WHERE (SELECT journal_mode FROM pragma_journal_mode) IS 'off';
    -- Also if PRAGMA ignore_check_constraints is on.
    SELECT RAISE(ABORT, 'countersign guard: wrote is 0 or 1') WHERE NEW.wrote NOT IN (0, 1);
    SELECT RAISE(ABORT, 'countersign guard: the id is neither a jti nor a digest')
    WHERE NEW.wrote = 1 AND NOT (
        length(NEW.id) = 22 AND NEW.id NOT GLOB '*[^A-Za-z0-9_-]*'
        OR length(NEW.id) = 71 AND NEW.id GLOB 'sha256:*' AND substr(NEW.id, 8) NOT GLOB '*[^0-9a-f]*'
    );
    SELECT RAISE(ABORT, 'countersign guard: the transition is not a digest')
    WHERE length(NEW.transition) IS NOT 71 OR NEW.transition NOT GLOB 'sha256:*'
        OR substr(NEW.transition, 8) GLOB '*[^0-9a-f]*';
    SELECT RAISE(ABORT, 'countersign guard: the thread is not a name')
    WHERE length(NEW.thread) NOT BETWEEN 1 AND 128 OR NEW.thread GLOB '*[^A-Za-z0-9._:-]*'
        OR NEW.thread NOT GLOB '[A-Za-z0-9]*';
    SELECT RAISE(ABORT, 'countersign guard: the write_id is not a name')
    WHERE length(NEW.write_id) NOT BETWEEN 1 AND 128 OR NEW.write_id GLOB '*[^A-Za-z0-9._:-]*'
        OR NEW.write_id NOT GLOB '[A-Za-z0-9]*';
    SELECT RAISE(ABORT, 'countersign guard: the id was used for another transition')
    WHERE NEW.wrote = 1 AND EXISTS (
        SELECT 1 FROM countersign_guard WHERE id = NEW.id AND wrote = 1 AND transition IS NOT NEW.transition
    );
    SELECT RAISE(ABORT, 'countersign guard: the id was used before')
    WHERE NEW.wrote = 1 AND EXISTS (SELECT 1 FROM countersign_guard WHERE id = NEW.id AND wrote = 1);
    SELECT RAISE(ABORT, 'countersign guard: the write was used before')
    WHERE NEW.wrote = 1 AND EXISTS (
        SELECT 1 FROM countersign_guard WHERE thread = NEW.thread AND transition = NEW.transition
            AND write_id = NEW.write_id AND (wrote = 1 OR fence IS NULL)
    );
    SELECT RAISE(ABORT, 'countersign guard: what is settled is not open')
    WHERE NEW.wrote = 0 AND NEW.open IS NOT NULL;
    SELECT RAISE(ABORT, 'countersign guard: a pass is made open and without a result')
    WHERE NEW.wrote = 1 AND (NEW.open IS NOT 1 OR NEW.result IS NOT NULL);
    SELECT RAISE(ABORT, 'countersign guard: id, thread, transition, write_id, fence and lease must all be given')
    WHERE NEW.wrote = 1 AND (NEW.id IS NULL OR typeof(NEW.fence) IS NOT 'integer' OR NEW.lease_expires_at IS NULL);
    SELECT RAISE(ABORT, 'countersign guard: the fence is not newer than the last one of its thread')
    WHERE NEW.wrote = 1 AND NEW.fence <= (SELECT max(fence) FROM countersign_guard WHERE thread = NEW.thread);
    SELECT RAISE(ABORT, 'countersign guard: the lease is not a moment like 2026-11-21T04:03:42.391Z')
    WHERE NEW.wrote = 1 AND NEW.lease_expires_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', NEW.lease_expires_at);
    SELECT RAISE(ABORT, 'countersign guard: the lease is past')
    WHERE NEW.wrote = 1 AND NEW.lease_expires_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now');
    -- No gateway gives more than an hour, so a longer lease means that a clock is wrong.
    SELECT RAISE(ABORT, 'countersign guard: the lease is longer than any that is given: is the clock right?')
    WHERE NEW.wrote = 1 AND NEW.lease_expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+61 minutes');
END;

-- A pass ends by setting `open` to NULL, right before the commit, with the result to confirm as `result`. Nothing
-- else of it ever changes.
DROP TRIGGER IF EXISTS countersign_guard_update;
CREATE TRIGGER countersign_guard_update BEFORE UPDATE ON countersign_guard BEGIN
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA recursive_triggers = ON is needed, or OR REPLACE would take rows unseen')
    WHERE (SELECT recursive_triggers FROM pragma_recursive_triggers) IS NOT 1;
    SELECT RAISE(ABORT, 'countersign guard: a pass can only be ended')
    WHERE OLD.open IS NOT 1 OR NEW.open IS NOT NULL OR NEW.id IS NOT OLD.id OR NEW.thread IS NOT OLD.thread
        OR NEW.transition IS NOT OLD.transition OR NEW.write_id IS NOT OLD.write_id
        OR NEW.fence IS NOT OLD.fence OR NEW.lease_expires_at IS NOT OLD.lease_expires_at OR NEW.wrote IS NOT OLD.wrote
        OR NEW.passed_at IS NOT OLD.passed_at OR NEW.rowid IS NOT OLD.rowid;
    SELECT RAISE(ABORT, 'countersign guard: the lease was past before the transaction was committed')
    WHERE OLD.lease_expires_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now');
END;

DROP TRIGGER IF EXISTS countersign_guard_delete;
CREATE TRIGGER countersign_guard_delete BEFORE DELETE ON countersign_guard BEGIN
    SELECT RAISE(ABORT, 'countersign guard: no pass is ever forgotten');
END;

-- Otherwise a row in it would let an open pass be committed.
DROP TRIGGER IF EXISTS countersign_guard_nothing_insert;
CREATE TRIGGER countersign_guard_nothing_insert BEFORE INSERT ON countersign_guard_nothing BEGIN
    SELECT RAISE(ABORT, 'countersign guard: nothing is ever put in here');
END;
COMMIT;
