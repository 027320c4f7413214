-- A template: replace PROTECTED by the table's name, and THREAD by the column with the row's thread.
--
--     sed -e s/PROTECTED/payments/g -e s/THREAD/order_name/g sqlite_protect.sql | sqlite3 DATABASE
--
-- Changes to the table are refused unless their transaction has a pass for the row's thread. If rows have no such
-- column, omit the marked lines: then any open pass is enough. It can be run again.
BEGIN IMMEDIATE;

-- Incremental BLOB I/O writes into a text or BLOB without a trigger. SQLite refuses it if the table has an index over
-- an expression. This one indexes no row, and costs nothing.
CREATE INDEX IF NOT EXISTS "PROTECTED_guarded_no_blob_io" ON "PROTECTED" (NULL) WHERE false;

DROP TRIGGER IF EXISTS "PROTECTED_guarded_insert";
CREATE TRIGGER "PROTECTED_guarded_insert" BEFORE INSERT ON "PROTECTED" BEGIN
    SELECT RAISE(ABORT, 'countersign guard: PROTECTED is written only by a transaction that has passed the guard')
    WHERE NOT EXISTS (
        SELECT 1 FROM countersign_guard
        WHERE open = 1 AND lease_expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
            AND thread IS NEW."THREAD" -- omit if rows have no thread
    );
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA recursive_triggers = ON is needed, or REPLACE would take rows unseen')
    WHERE (SELECT recursive_triggers FROM pragma_recursive_triggers) IS NOT 1;
END;

DROP TRIGGER IF EXISTS "PROTECTED_guarded_update";
CREATE TRIGGER "PROTECTED_guarded_update" BEFORE UPDATE ON "PROTECTED" BEGIN
    SELECT RAISE(ABORT, 'countersign guard: PROTECTED is written only by a transaction that has passed the guard')
    WHERE NOT EXISTS (
        SELECT 1 FROM countersign_guard
        WHERE open = 1 AND lease_expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
            AND thread IS OLD."THREAD" AND thread IS NEW."THREAD" -- omit if rows have no thread
    );
    SELECT RAISE(ABORT, 'countersign guard: PRAGMA recursive_triggers = ON is needed, or REPLACE would take rows unseen')
    WHERE (SELECT recursive_triggers FROM pragma_recursive_triggers) IS NOT 1;
END;

DROP TRIGGER IF EXISTS "PROTECTED_guarded_delete";
CREATE TRIGGER "PROTECTED_guarded_delete" BEFORE DELETE ON "PROTECTED" BEGIN
    SELECT RAISE(ABORT, 'countersign guard: PROTECTED is written only by a transaction that has passed the guard')
    WHERE NOT EXISTS (
        SELECT 1 FROM countersign_guard
        WHERE open = 1 AND lease_expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
            AND thread IS OLD."THREAD" -- omit if rows have no thread
    );
END;
COMMIT;
