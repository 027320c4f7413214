-- The guard that a PostgreSQL database keeps itself, so that what people approved once is written at most once, even
-- if the writer dies after it was let through, or comes back late. README.md says how it is used.
--
--     psql -v ON_ERROR_STOP=1 -d DATABASE -f postgres.sql
--
-- PostgreSQL 13 or later, as a superuser or as somebody who may create roles and schemas. It may be run again.
BEGIN;

-- Three roles, none of which can log in: who owns the guard, what a writer's login is made a member of, and what the owners
-- of tables are. What these do here is done in their own name, and so reaches no table but theirs.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['countersign_guard', 'countersign_writer', 'countersign_protector'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', wanted);
        ELSIF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted AND (rolcanlogin OR rolsuper)) THEN
            RAISE EXCEPTION 'countersign guard: there is a role % already, and it may log in or is a superuser', wanted;
        END IF;
    END LOOP;
    -- Whoever is no superuser must be a member for a moment, to make things in the owner's name. From PostgreSQL 16 on
    -- whoever made a role counts as one of its members, and may not act in its name for all that.
    IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE pg_catalog.format('GRANT countersign_guard TO %I', current_user);
    END IF;
    -- A schema that somebody else made first could have their functions in it.
    IF EXISTS (SELECT FROM pg_catalog.pg_namespace
               WHERE nspname = 'countersign_guard' AND nspowner <> 'countersign_guard'::pg_catalog.regrole) THEN
        RAISE EXCEPTION 'countersign guard: the schema countersign_guard is somebody else''s';
    END IF;
    -- Of what such a guard let through nobody could say which write it was.
    IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('countersign_guard.passes'))
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                        WHERE attrelid = pg_catalog.to_regclass('countersign_guard.passes') AND attname = 'write_id') THEN
        RAISE EXCEPTION 'countersign guard: there is one that keeps no write_id: see "An earlier guard" in README.md';
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS countersign_guard AUTHORIZATION countersign_guard;
SET LOCAL ROLE countersign_guard;
SET LOCAL search_path = pg_catalog, pg_temp;

-- The last fence of each thread. Its row is what two transactions of one thread wait for; under REPEATABLE READ and
-- SERIALIZABLE the second of them is refused with 40001, as it would otherwise decide by what it saw before.
CREATE TABLE IF NOT EXISTS countersign_guard.threads (
    thread text PRIMARY KEY,
    fence bigint NOT NULL CHECK (fence > 0)
);

-- Every pass that was ever given. What it was given for is thread, transition and write_id: by these, and not by the
-- receipt, which anybody can put into a writer's job, is a write known to whoever looks for it. `wrote` is false for one
-- that was settled before anybody wrote by it.
CREATE TABLE IF NOT EXISTS countersign_guard.passes (
    thread text NOT NULL CHECK (thread ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
    transition text NOT NULL CHECK (transition ~ '^sha256:[0-9a-f]{64}$'),
    write_id text NOT NULL CHECK (write_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
    id text UNIQUE CHECK (id ~ '^([A-Za-z0-9_-]{22}|sha256:[0-9a-f]{64})$'),
    fence bigint CHECK (fence > 0),
    lease_expires_at timestamptz,
    wrote boolean NOT NULL,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    login text NOT NULL DEFAULT session_user,
    passed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    result jsonb CHECK (octet_length(result::text) <= 1048576),
    PRIMARY KEY (thread, transition, write_id),
    CHECK (NOT wrote OR (id IS NOT NULL AND fence IS NOT NULL AND lease_expires_at IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS passes_by_transaction ON countersign_guard.passes (transaction);

-- Lets this transaction write, once: by the receipt's jti, or by the transition's digest where no receipt was needed,
-- for the write that the writer's own job says, with what verify answered. Raises ZG001 to ZG004 otherwise; nothing is
-- written then.
CREATE OR REPLACE FUNCTION countersign_guard.pass(
    id text, thread text, transition text, write_id text, fence bigint, lease_expires_at timestamptz
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF num_nulls(pass.id, pass.thread, pass.transition, pass.write_id, pass.fence, pass.lease_expires_at) > 0 THEN
        RAISE EXCEPTION 'countersign guard: id, thread, transition, write_id, fence and lease must all be given'
            USING ERRCODE = 'ZG004';
    END IF;
    INSERT INTO countersign_guard.threads AS last (thread, fence) VALUES (pass.thread, pass.fence)
    ON CONFLICT (thread) DO UPDATE SET fence = excluded.fence WHERE last.fence < excluded.fence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'countersign guard: fence % of thread % is not newer than the last one', pass.fence, pass.thread
            USING ERRCODE = 'ZG001';
    END IF;
    INSERT INTO countersign_guard.passes (id, thread, transition, write_id, fence, lease_expires_at, wrote)
    VALUES (pass.id, pass.thread, pass.transition, pass.write_id, pass.fence, pass.lease_expires_at, true)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'countersign guard: % or the write % was used before', pass.id, pass.write_id
            USING ERRCODE = 'ZG002';
    END IF;
    -- Only now: both statements above may have waited for somebody.
    IF pass.lease_expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'countersign guard: the lease is past' USING ERRCODE = 'ZG003';
    END IF;
    -- No gateway gives more than an hour. A lease that seems longer says that one of the clocks is wrong.
    IF pass.lease_expires_at > clock_timestamp() + interval '61 minutes' THEN
        RAISE EXCEPTION 'countersign guard: the lease is longer than any that is given: is the clock right?'
            USING ERRCODE = 'ZG004';
    END IF;
    -- Whoever falls silent must not keep the thread, and those who would settle it, waiting for longer than its lease.
    PERFORM set_config(name, ends_ms::text, true)
    FROM pg_settings, LATERAL (
        SELECT ceil(extract(epoch FROM pass.lease_expires_at - clock_timestamp()) * 1000)::bigint + 2000
    ) AS silence (ends_ms)
    WHERE name = 'idle_in_transaction_session_timeout' AND setting::bigint NOT BETWEEN 1 AND ends_ms;
    -- A transaction that was prepared could be committed at any time later. One that notifies cannot be prepared.
    IF current_setting('max_prepared_transactions')::integer > 0 THEN
        PERFORM pg_notify('countersign_guard', '');
    END IF;
END
$$;

-- Looks at the lease once more when the transaction commits: a writer that was stopped in between comes too late.
CREATE OR REPLACE FUNCTION countersign_guard.lease_at_commit() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.lease_expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'countersign guard: the lease was past before the transaction was committed'
            USING ERRCODE = 'ZG003';
    END IF;
    RETURN NULL;
END
$$;

-- Keeps, beside the pass of this transaction, what is to be confirmed to the gateway, so that whoever comes after a
-- crash can say it. Raises ZG005 if the pass is not this transaction's.
CREATE OR REPLACE FUNCTION countersign_guard.note(id text, result jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE countersign_guard.passes AS it SET result = note.result
    WHERE it.id = note.id AND it.wrote AND it.transaction = pg_current_xact_id();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'countersign guard: % was not passed in this transaction', note.id USING ERRCODE = 'ZG005';
    END IF;
END
$$;

-- Says for good whether this write is in the database, and sees to it that it never will be from then on: with the fence
-- that verify gave by ending that fence, and without one, where it was lost, by using the write up. It waits for whoever
-- is about to commit. Call it in a READ COMMITTED transaction of its own, and believe it once that is committed.
CREATE OR REPLACE FUNCTION countersign_guard.settle(
    thread text, transition text, write_id text, fence bigint DEFAULT NULL
) RETURNS TABLE (wrote boolean, written_fence bigint, result jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found_pass countersign_guard.passes;
BEGIN
    IF num_nulls(settle.thread, settle.transition, settle.write_id) > 0 THEN
        RAISE EXCEPTION 'countersign guard: thread, transition and write_id must all be given' USING ERRCODE = 'ZG004';
    END IF;
    IF settle.fence IS NOT NULL THEN
        INSERT INTO countersign_guard.threads AS last (thread, fence) VALUES (settle.thread, settle.fence)
        ON CONFLICT (thread) DO UPDATE SET fence = greatest(last.fence, excluded.fence);
    ELSE
        INSERT INTO countersign_guard.passes (thread, transition, write_id, wrote)
        VALUES (settle.thread, settle.transition, settle.write_id, false) ON CONFLICT DO NOTHING;
    END IF;
    SELECT * INTO found_pass FROM countersign_guard.passes AS it
    WHERE it.thread = settle.thread AND it.transition = settle.transition AND it.write_id = settle.write_id;
    IF found_pass.wrote AND found_pass.transaction = pg_current_xact_id() THEN
        RAISE EXCEPTION 'countersign guard: settle in a transaction of its own' USING ERRCODE = 'ZG004';
    END IF;
    RETURN QUERY SELECT coalesce(found_pass.wrote, false), found_pass.fence, found_pass.result;
END
$$;

-- Refuses what changes a protected table, unless this very transaction has passed and its lease still lives. With an
-- argument, each row that is changed must name, in that column, a thread that has passed.
--
-- A pass belongs to its transaction by the number that PostgreSQL gives out once. It is a row, so that a savepoint that
-- is rolled back takes it along with everything that was written after it.
CREATE OR REPLACE FUNCTION countersign_guard.require_pass() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own xid8 := pg_current_xact_id();
    lives boolean;
    spelled text;
    written text;
    named text[];
BEGIN
    SELECT bool_or(clock_timestamp() < it.lease_expires_at) INTO lives
    FROM countersign_guard.passes AS it WHERE it.transaction = own AND it.wrote;
    IF lives IS NULL THEN
        RAISE EXCEPTION 'countersign guard: %.% is written only by a transaction that has passed the guard',
            TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'ZG005';
    ELSIF NOT lives THEN
        RAISE EXCEPTION 'countersign guard: the lease is past' USING ERRCODE = 'ZG003';
    END IF;
    IF TG_NARGS = 0 THEN
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'countersign guard: %.% has rows of other threads', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'ZG006';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = TG_RELID AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped
    ) THEN
        RAISE EXCEPTION 'countersign guard: %.% has no column % any more', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]
            USING ERRCODE = 'ZG006';
    END IF;
    -- As its type spells it, and by no cast, such as of the row to JSON: a cast of a column's type may be a function of
    -- whoever owns the table, and would run here in the name of the guard's owner.
    spelled := format('SELECT format(''%%s'', ($1).%I)', TG_ARGV[0]);
    IF TG_OP <> 'INSERT' THEN
        EXECUTE spelled INTO written USING OLD;
        named := named || written;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        EXECUTE spelled INTO written USING NEW;
        named := named || written;
    END IF;
    IF EXISTS (
        SELECT FROM unnest(named) AS row_of (thread) WHERE NOT EXISTS (
            SELECT FROM countersign_guard.passes AS it WHERE it.transaction = own AND it.wrote
                AND it.thread = row_of.thread AND clock_timestamp() < it.lease_expires_at
        )
    ) THEN
        RAISE EXCEPTION 'countersign guard: a row of %.% is of a thread that has not passed', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'ZG006';
    END IF;
    RETURN NULL;
END
$$;

-- Protects a table, with all its partitions or inheritors: whoever owns it calls this, as a countersign_protector. The
-- triggers fire always, also where session_replication_role says that only a replica's do.
CREATE OR REPLACE FUNCTION countersign_guard.protect(protected regclass, thread_column name DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    argument text := coalesce(quote_literal(thread_column), '');
    root pg_class;
    part regclass;
BEGIN
    SELECT * INTO root FROM pg_class WHERE oid = protected;
    IF root.relkind NOT IN ('r', 'p') OR root.relispartition THEN
        RAISE EXCEPTION 'countersign guard: % is not a table, or only a part of one', protected USING ERRCODE = 'ZG004';
    ELSIF thread_column IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = protected AND attname = thread_column AND attnum > 0 AND NOT attisdropped
    ) THEN
        RAISE EXCEPTION 'countersign guard: % has no column %', protected, thread_column USING ERRCODE = 'ZG004';
    END IF;
    FOR part IN SELECT * FROM countersign_guard.parts_of(protected) LOOP
        -- Partitions have the root's trigger for rows, those that are attached later as well. Nothing else is inherited.
        IF part = protected OR root.relkind = 'r' THEN
            EXECUTE format('DROP TRIGGER IF EXISTS countersign_guard_rows ON %s', part);
            EXECUTE format('CREATE TRIGGER countersign_guard_rows AFTER INSERT OR UPDATE OR DELETE ON %s '
                'FOR EACH ROW EXECUTE FUNCTION countersign_guard.require_pass(%s)', part, argument);
        END IF;
        EXECUTE format('DROP TRIGGER IF EXISTS countersign_guard_truncate ON %s', part);
        EXECUTE format('CREATE TRIGGER countersign_guard_truncate BEFORE TRUNCATE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION countersign_guard.require_pass(%s)', part, argument);
    END LOOP;
    FOR part IN SELECT * FROM countersign_guard.parts_of(protected) LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER countersign_guard_rows, '
            'ENABLE ALWAYS TRIGGER countersign_guard_truncate', part);
    END LOOP;
END
$$;

-- A table and whatever stands below it.
CREATE OR REPLACE FUNCTION countersign_guard.parts_of(root regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE part AS (
        SELECT root AS it
        UNION SELECT child.inhrelid::regclass FROM pg_inherits AS child JOIN part ON child.inhparent = part.it
    )
    SELECT it FROM part
$$;

-- Every way past the guard that this login has, one sentence each; none is what you want. Ask it again after changes
-- to roles, and after a partition was added.
CREATE OR REPLACE FUNCTION countersign_guard.ways_past(login regrole) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH protected AS (
        SELECT DISTINCT part AS it
        FROM pg_trigger AS made, LATERAL countersign_guard.parts_of(made.tgrelid::regclass) AS part
        WHERE made.tgfoid = 'countersign_guard.require_pass'::regproc
    ), wanted AS (
        SELECT it, name FROM protected, unnest(ARRAY['countersign_guard_rows', 'countersign_guard_truncate']) AS name
    )
    SELECT format('%s is a superuser', login) FROM pg_roles WHERE oid = login AND rolsuper
    UNION ALL
    SELECT format('%s may create roles, and on PostgreSQL before 16 hand itself any of them', login)
    FROM pg_roles WHERE oid = login AND rolcreaterole
    UNION ALL
    SELECT format('%s can be %s', login, rolname) FROM pg_roles
    WHERE rolname IN ('countersign_guard', 'pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program')
        AND oid <> login AND pg_has_role(login, oid, 'MEMBER')
    UNION ALL
    SELECT format('%s can be the owner of %s, or of its schema, and drop it or its triggers', login, it)
    FROM protected JOIN pg_class ON pg_class.oid = it JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_has_role(login, relowner, 'MEMBER') OR pg_has_role(login, nspowner, 'MEMBER')
    UNION ALL
    SELECT format('%s may make triggers on %s, which then act for whoever writes there', login, it)
    FROM protected WHERE has_table_privilege(login, it, 'TRIGGER')
    UNION ALL
    SELECT format('%s may write to %s itself', login, it)
    FROM unnest(ARRAY['countersign_guard.threads', 'countersign_guard.passes']) AS it
    WHERE has_table_privilege(login, it, 'DELETE, TRUNCATE, TRIGGER') OR has_any_column_privilege(login, it, 'INSERT, UPDATE')
    UNION ALL
    SELECT format('%s may make things in the schema countersign_guard', login)
    WHERE has_schema_privilege(login, 'countersign_guard', 'CREATE')
    UNION ALL
    SELECT format('%s lacks its trigger %s, or it does not fire always: protect it again', it, name)
    FROM wanted WHERE NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = it AND tgname = name AND tgenabled = 'A'
            AND tgfoid = 'countersign_guard.require_pass'::regproc
    )
$$;

DROP TRIGGER IF EXISTS lease_at_commit ON countersign_guard.passes;
CREATE CONSTRAINT TRIGGER lease_at_commit AFTER INSERT ON countersign_guard.passes DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.wrote) EXECUTE FUNCTION countersign_guard.lease_at_commit();
ALTER TABLE countersign_guard.passes ENABLE ALWAYS TRIGGER lease_at_commit;

REVOKE ALL ON SCHEMA countersign_guard FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA countersign_guard FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA countersign_guard FROM PUBLIC;
GRANT USAGE ON SCHEMA countersign_guard TO countersign_writer, countersign_protector;
GRANT SELECT ON countersign_guard.passes TO countersign_writer;
GRANT EXECUTE ON FUNCTION countersign_guard.pass, countersign_guard.note, countersign_guard.settle TO countersign_writer;
-- Who makes a trigger must be allowed to run its function, which nobody can but by a trigger.
GRANT EXECUTE ON FUNCTION countersign_guard.protect, countersign_guard.parts_of, countersign_guard.require_pass,
    countersign_guard.ways_past TO countersign_protector;

RESET ROLE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_auth_members
               WHERE roleid = 'countersign_guard'::pg_catalog.regrole AND member = current_user::pg_catalog.regrole) THEN
        EXECUTE pg_catalog.format('REVOKE countersign_guard FROM %I', current_user);
    END IF;
    -- Superusers do not need it. Whoever else put the guard there has tables of their own to protect.
    IF NOT pg_catalog.pg_has_role(current_user, 'countersign_protector', 'USAGE') THEN
        EXECUTE pg_catalog.format('GRANT countersign_protector TO %I', current_user);
    END IF;
END
$$;
COMMIT;
