-- Database guard for PostgreSQL: an approved write happens at most once, even if the writer dies after `verify` or
-- comes back late. README.md explains its use.
--
--     psql -v ON_ERROR_STOP=1 -d DATABASE -f postgres.sql
--
-- Needs PostgreSQL 13 or later, and a superuser or a login that may create roles and schemas. It can be run again.
BEGIN;

-- Three roles without login: the owner of the guard, the role of a writer's login, and the role of table owners.
-- Table owners act in their own name here, so they reach only their own tables.
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
    -- A login that is no superuser must be a member for a moment, to create objects in the owner's name. On
    -- PostgreSQL 16 and later the creator of a role is its member, but may not act in its name.
    IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE pg_catalog.format('GRANT countersign_guard TO %I', current_user);
    END IF;
    -- A schema that another role created first could contain that role's functions.
    IF EXISTS (SELECT FROM pg_catalog.pg_namespace
               WHERE nspname = 'countersign_guard' AND nspowner <> 'countersign_guard'::pg_catalog.regrole) THEN
        RAISE EXCEPTION 'countersign guard: the schema countersign_guard belongs to another role';
    END IF;
    -- Such a guard cannot identify the write that it allowed.
    IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('countersign_guard.passes'))
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                        WHERE attrelid = pg_catalog.to_regclass('countersign_guard.passes') AND attname = 'write_id') THEN
        RAISE EXCEPTION 'countersign guard: the installed guard stores no write_id: see "An earlier guard" in README.md';
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS countersign_guard AUTHORIZATION countersign_guard;
SET LOCAL ROLE countersign_guard;
SET LOCAL search_path = pg_catalog, pg_temp;

-- The last fencing token of each thread. Two transactions of one thread wait for its row. Under REPEATABLE READ and
-- SERIALIZABLE the second is refused with 40001, because it would decide by an old snapshot.
CREATE TABLE IF NOT EXISTS countersign_guard.threads (
    thread text PRIMARY KEY,
    fence bigint NOT NULL CHECK (fence > 0)
);

-- Every pass that was ever given. Thread, transition and write_id identify the write. The receipt does not, because
-- anyone can put one into a writer's job. `wrote` is false if the write was settled before it happened.
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

-- Allows this transaction to write, once. The id is the receipt's jti, or the transition's digest if no receipt was
-- needed. The rest comes from the writer's own job and from the response of `verify`. Otherwise it raises ZG001 to
-- ZG004 or ZG007, and nothing is written.
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
        IF EXISTS (SELECT FROM countersign_guard.passes AS it
                   WHERE it.id = pass.id AND it.transition <> pass.transition) THEN
            RAISE EXCEPTION 'countersign guard: % was used for another transition', pass.id USING ERRCODE = 'ZG007';
        END IF;
        RAISE EXCEPTION 'countersign guard: % or the write % was used before', pass.id, pass.write_id
            USING ERRCODE = 'ZG002';
    END IF;
    -- Only now, because both statements above can have waited for a lock.
    IF pass.lease_expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'countersign guard: the lease is past' USING ERRCODE = 'ZG003';
    END IF;
    -- No gateway gives more than an hour, so a longer lease means that a clock is wrong.
    IF pass.lease_expires_at > clock_timestamp() + interval '61 minutes' THEN
        RAISE EXCEPTION 'countersign guard: the lease is longer than any that is given: is the clock right?'
            USING ERRCODE = 'ZG004';
    END IF;
    -- A silent transaction must not block the thread, or a settle, for longer than its lease.
    PERFORM set_config(name, ends_ms::text, true)
    FROM pg_settings, LATERAL (
        SELECT ceil(extract(epoch FROM pass.lease_expires_at - clock_timestamp()) * 1000)::bigint + 2000
    ) AS silence (ends_ms)
    WHERE name = 'idle_in_transaction_session_timeout' AND setting::bigint NOT BETWEEN 1 AND ends_ms;
    -- A prepared transaction could be committed at any time later. One that notifies cannot be prepared.
    IF current_setting('max_prepared_transactions')::integer > 0 THEN
        PERFORM pg_notify('countersign_guard', '');
    END IF;
END
$$;

-- Checks the lease again at the commit, for a writer that was stopped in between.
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

-- Stores the result to confirm beside the pass of this transaction, for recovery after a crash. Raises ZG005 if the
-- pass is not this transaction's.
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

-- Returns whether this write is permanently in the database, and otherwise prevents it from then on. With the fencing
-- token it ends that token. Without one it uses up the write. It waits for a transaction that is about to commit.
-- Call it in its own READ COMMITTED transaction, and rely on it once that is committed.
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

-- Refuses changes to a protected table unless this transaction has a pass with a valid lease. With an argument, each
-- changed row must name, in that column, a thread that passed.
--
-- A pass belongs to its transaction by the number that PostgreSQL gives out once. It is a row, so a rolled-back
-- savepoint removes it together with everything written after it.
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
    -- The type's own output function, and no cast, such as of the row to JSON. A cast can be a function of the
    -- table's owner, and would run here in the name of the guard's owner.
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

-- Protects a table, with all its partitions or inheritors. The owner calls it, as a countersign_protector. The
-- triggers always fire, even if session_replication_role enables only those of a replica.
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
        -- Partitions have the root's row triggers, also if they are attached later. Nothing else is inherited.
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

-- Returns a table and everything below it.
CREATE OR REPLACE FUNCTION countersign_guard.parts_of(root regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE part AS (
        SELECT root AS it
        UNION SELECT child.inhrelid::regclass FROM pg_inherits AS child JOIN part ON child.inhparent = part.it
    )
    SELECT it FROM part
$$;

-- Returns every protected table and each of its parts.
CREATE OR REPLACE FUNCTION countersign_guard.protected_tables() RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT part FROM pg_trigger AS made, LATERAL countersign_guard.parts_of(made.tgrelid::regclass) AS part
    WHERE made.tgfoid = 'countersign_guard.require_pass'::regproc
$$;

-- Returns the protected tables, and each table with a foreign key to one of them. When a row of the latter changes,
-- its actions and triggers run in the same transaction, which has a pass.
CREATE OR REPLACE FUNCTION countersign_guard.written_along() RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE along AS (
        SELECT it FROM countersign_guard.protected_tables() AS it
        UNION SELECT conrelid::regclass FROM along JOIN pg_constraint ON confrelid = along.it AND contype = 'f'
    )
    SELECT it FROM along
$$;

-- Returns the roles whose rights a login can use, each with the start of a sentence about it. A member counts whether
-- or not it inherits: it can SET ROLE, or grant itself a role that it administers. The owner of a function that runs
-- as its owner counts too, since only that owner knows its effects. A superuser needs no other role.
CREATE OR REPLACE FUNCTION countersign_guard.roles_of(login regrole) RETURNS TABLE (role oid, subject text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH member AS (
        SELECT it.oid FROM pg_roles AS own, pg_roles AS it
        WHERE own.oid = login AND (it.oid = login OR NOT own.rolsuper AND pg_has_role(login, it.oid, 'MEMBER'))
    ), lent AS (
        SELECT it.oid::regprocedure AS call, owner.oid, owner.rolsuper
        FROM pg_proc AS it JOIN pg_roles AS owner ON owner.oid = it.proowner JOIN pg_roles AS own ON own.oid = login
        WHERE it.prosecdef AND NOT own.rolsuper AND NOT EXISTS (SELECT FROM member WHERE member.oid = it.proowner)
            AND EXISTS (SELECT FROM member WHERE has_function_privilege(member.oid, it.oid, 'EXECUTE'))
            AND NOT (it.pronamespace = 'countersign_guard'::regnamespace
                AND it.proname IN ('pass', 'note', 'settle', 'require_pass'))
    )
    SELECT oid, CASE WHEN oid = login THEN login::text ELSE format('%s can be %s, which', login, oid::regrole) END
    FROM member
    UNION ALL
    SELECT it.oid, format('%s may run %s, which acts as %s, which', login, lent.call, it.oid::regrole)
    FROM lent JOIN pg_roles AS it ON it.oid = lent.oid OR NOT lent.rolsuper AND pg_has_role(lent.oid, it.oid, 'USAGE')
$$;

-- Returns the objects that the guard relies on, with the owner, who can drop or replace each. They are this database,
-- the guard, the protected tables with their schemas, and each table, function and type that takes part in a write.
CREATE OR REPLACE FUNCTION countersign_guard.rests_on() RETURNS TABLE (owner oid, named text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH RECURSIVE part AS (
        SELECT it::oid FROM countersign_guard.written_along() AS it
    ), own AS (
        SELECT 'countersign_guard'::regnamespace::oid AS schema, 'countersign_guard'::regrole::oid AS owner
    ), first_ones (classid, objid) AS (
        SELECT 'pg_database'::regclass::oid, oid FROM pg_database WHERE datname = current_database()
        UNION SELECT 'pg_namespace'::regclass, schema FROM own
        UNION SELECT 'pg_class'::regclass, oid FROM pg_class JOIN own ON relnamespace = schema
        UNION SELECT 'pg_proc'::regclass, oid FROM pg_proc JOIN own ON pronamespace = schema
        UNION SELECT 'pg_class'::regclass, it FROM part
        UNION SELECT 'pg_namespace'::regclass, relnamespace
        FROM pg_class JOIN countersign_guard.protected_tables() AS it ON oid = it
        UNION SELECT 'pg_trigger'::regclass, oid FROM pg_trigger JOIN part ON tgrelid = it
        UNION SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef JOIN part ON adrelid = it
        UNION SELECT 'pg_constraint'::regclass, oid FROM pg_constraint JOIN part ON conrelid = it
        UNION SELECT 'pg_class'::regclass, indexrelid FROM pg_index JOIN part ON indrelid = it
        UNION SELECT 'pg_policy'::regclass, oid FROM pg_policy JOIN part ON polrelid = it
        UNION SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite JOIN part ON ev_class = it
        UNION SELECT 'pg_event_trigger'::regclass, oid FROM pg_event_trigger
    ), used AS (
        SELECT * FROM first_ones
        UNION
        SELECT its.refclassid, its.refobjid FROM used, LATERAL (
            SELECT refclassid, refobjid FROM pg_depend
            WHERE pg_depend.classid = used.classid AND pg_depend.objid = used.objid AND refclassid IN (
                'pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass,
                'pg_language'::regclass, 'pg_extension'::regclass)
            UNION ALL
            SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
            WHERE used.classid = 'pg_type'::regclass AND contypid = used.objid
        ) AS its
    ), owned (classid, objid, owner) AS (
        SELECT 'pg_database'::regclass, oid, datdba FROM pg_database
        UNION ALL SELECT 'pg_namespace'::regclass, oid, nspowner FROM pg_namespace
        UNION ALL SELECT 'pg_class'::regclass, oid, relowner FROM pg_class WHERE relkind <> 'i'
        UNION ALL SELECT 'pg_proc'::regclass, oid, proowner FROM pg_proc
        UNION ALL SELECT 'pg_type'::regclass, oid, typowner FROM pg_type
        UNION ALL SELECT 'pg_operator'::regclass, oid, oprowner FROM pg_operator
        UNION ALL SELECT 'pg_opclass'::regclass, oid, opcowner FROM pg_opclass
        UNION ALL SELECT 'pg_language'::regclass, oid, lanowner FROM pg_language
        UNION ALL SELECT 'pg_extension'::regclass, oid, extowner FROM pg_extension
    )
    SELECT owned.owner, format('%s %s', it.type, it.identity)
    FROM used JOIN owned USING (classid, objid), LATERAL pg_identify_object(classid, objid, 0) AS it
    -- One object of the guard represents all that have the expected owner.
    WHERE classid = 'pg_namespace'::regclass OR owned.owner <> (SELECT owner FROM own)
$$;

-- Returns the parameters that were opened to roles other than superusers. PostgreSQL has such grants from 15 on.
CREATE OR REPLACE FUNCTION countersign_guard.opened_parameters() RETURNS TABLE (grantee oid, named text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF to_regclass('pg_catalog.pg_parameter_acl') IS NOT NULL THEN
        RETURN QUERY SELECT it.grantee, opened.parname
        FROM pg_parameter_acl AS opened, LATERAL aclexplode(opened.paracl) AS it WHERE it.grantee <> it.grantor;
    END IF;
END
$$;

-- Returns the tables and views through which a write can reach the guard's own tables. Views and rules act with the
-- rights of their owner.
CREATE OR REPLACE FUNCTION countersign_guard.leads_to_guard() RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE way_in AS (
        SELECT oid AS it FROM pg_class WHERE relnamespace = 'countersign_guard'::regnamespace AND relkind IN ('r', 'p')
        UNION
        SELECT rule.ev_class FROM way_in
        JOIN pg_depend AS used ON used.refclassid = 'pg_class'::regclass AND used.refobjid = way_in.it
        JOIN pg_rewrite AS rule ON used.classid = 'pg_rewrite'::regclass AND used.objid = rule.oid
    )
    SELECT it::regclass FROM way_in
$$;

-- Returns one sentence for each bypass of the guard that this login has. There must be none. Call it again after
-- changes to roles or partitions. README.md explains each sentence.
CREATE OR REPLACE FUNCTION countersign_guard.ways_past(login regrole) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH every AS (
        SELECT * FROM countersign_guard.roles_of(login) AS its JOIN pg_roles ON pg_roles.oid = its.role
    ), may AS (
        SELECT * FROM every WHERE NOT rolsuper
    ), protected AS (
        SELECT it FROM countersign_guard.protected_tables() AS it
    ), wanted (it, name, runs, fires, at_commit, remedy) AS (
        -- `fires` is pg_trigger.tgtype: after a row of INSERT, UPDATE and DELETE, before TRUNCATE, after a row of
        -- INSERT.
        SELECT it, 'countersign_guard_rows', 'countersign_guard.require_pass'::regproc, 29, false, 'protect it again'
        FROM protected
        UNION ALL
        SELECT it, 'countersign_guard_truncate', 'countersign_guard.require_pass'::regproc, 34, false, 'protect it again'
        FROM protected
        UNION ALL
        SELECT 'countersign_guard.passes', 'lease_at_commit', 'countersign_guard.lease_at_commit'::regproc, 5, true,
            'run postgres.sql again'
    ), predefined (rolname, can) AS (
        VALUES ('pg_execute_server_program', 'run programs on the server'),
            ('pg_read_server_files', 'read the files of the server, with the password hashes of other logins'),
            ('pg_write_server_files', 'write the files of the server')
    )
    SELECT format('%s is a superuser', subject) FROM every WHERE rolsuper
    UNION ALL
    -- On PostgreSQL 16 and later a login administers only roles that it is a member of.
    SELECT format('%s may create roles, and before PostgreSQL 16 grant itself any of them', subject)
    FROM may WHERE rolcreaterole AND current_setting('server_version_num')::integer < 160000
    UNION ALL
    SELECT format('%s may copy the whole cluster, with the password hashes of other logins', subject)
    FROM may WHERE rolreplication AND role = login
    UNION ALL
    SELECT format('%s may %s', subject, can) FROM may JOIN predefined USING (rolname)
    UNION ALL
    -- PostgreSQL numbers objects of users from here on. The listed ones do not write, or are found below.
    SELECT format('%s is a predefined role that this guard does not know', subject) FROM may
    WHERE role < 16384 AND rolname NOT IN (SELECT rolname FROM predefined) AND rolname NOT IN (
        'pg_checkpoint', 'pg_create_subscription', 'pg_database_owner', 'pg_maintain', 'pg_monitor', 'pg_read_all_data',
        'pg_read_all_settings', 'pg_read_all_stats', 'pg_signal_autovacuum_worker', 'pg_signal_backend',
        'pg_stat_scan_tables', 'pg_use_reserved_connections', 'pg_write_all_data')
    UNION ALL
    SELECT format('%s owns the %s, on which the guard rests', subject, named)
    FROM may JOIN countersign_guard.rests_on() ON owner = role
    UNION ALL
    SELECT format('%s may make triggers on %s, which then act for every login that writes there', subject, it)
    FROM may, countersign_guard.written_along() AS it WHERE has_table_privilege(role, it, 'TRIGGER')
    UNION ALL
    SELECT format('%s may make foreign keys to %s, whose actions then run for every login that writes there', subject, it)
    FROM may, countersign_guard.written_along() AS it WHERE has_any_column_privilege(role, it, 'REFERENCES')
    UNION ALL
    SELECT format('%s may write to %s', subject, it) FROM may, countersign_guard.leads_to_guard() AS it
    WHERE has_table_privilege(role, it, 'DELETE, TRUNCATE, TRIGGER') OR has_any_column_privilege(role, it, 'INSERT, UPDATE')
    UNION ALL
    -- The guard's own functions find the objects in this schema.
    SELECT format('%s may create objects in the schema %s', subject, it)
    FROM may, unnest(ARRAY['countersign_guard', 'pg_catalog']) AS it WHERE has_schema_privilege(role, it, 'CREATE')
    UNION ALL
    SELECT format('%s may read the password hashes of other logins, from %s', subject, it)
    FROM may, unnest(ARRAY['pg_authid', 'pg_shadow']) AS it WHERE has_any_column_privilege(role, it, 'SELECT')
    UNION ALL
    SELECT format('%s may set the parameter %s, which is a superuser''s to set', subject, named)
    FROM may JOIN countersign_guard.opened_parameters() ON grantee IN (0, role)
    UNION ALL
    -- For example lo_export and dblink_connect_u, which PostgreSQL or an extension withholds from PUBLIC.
    SELECT format('%s may run %s, which is withheld from PUBLIC', subject, objoid::regprocedure)
    FROM may, pg_init_privs AS at_first
    WHERE classoid = 'pg_proc'::regclass AND has_function_privilege(role, objoid, 'EXECUTE') AND NOT EXISTS (
        SELECT FROM aclexplode(at_first.initprivs) AS it
        WHERE it.privilege_type = 'EXECUTE' AND (it.grantee = 0 OR pg_has_role(role, it.grantee, 'MEMBER'))
    )
    UNION ALL
    SELECT 'no table of this database is protected' WHERE NOT EXISTS (SELECT FROM protected)
    UNION ALL
    SELECT format('%s lacks its trigger %s, or it does not fire always: %s', it, name, remedy)
    FROM wanted WHERE NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = it AND tgname = name AND tgfoid = runs AND tgtype = fires AND tgenabled = 'A'
            AND tgdeferrable = at_commit AND (tgqual IS NULL OR at_commit) AND tgattr::text = ''
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
-- The creator of a trigger must be allowed to run its function. The function runs only as a trigger.
GRANT EXECUTE ON FUNCTION countersign_guard.protect, countersign_guard.parts_of, countersign_guard.require_pass,
    countersign_guard.ways_past, countersign_guard.roles_of, countersign_guard.rests_on, countersign_guard.leads_to_guard,
    countersign_guard.protected_tables, countersign_guard.written_along, countersign_guard.opened_parameters
    TO countersign_protector;

RESET ROLE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_auth_members
               WHERE roleid = 'countersign_guard'::pg_catalog.regrole AND member = current_user::pg_catalog.regrole) THEN
        EXECUTE pg_catalog.format('REVOKE countersign_guard FROM %I', current_user);
    END IF;
    -- Superusers do not need it. Another login that installed the guard has its own tables to protect.
    IF NOT pg_catalog.pg_has_role(current_user, 'countersign_protector', 'USAGE') THEN
        EXECUTE pg_catalog.format('GRANT countersign_protector TO %I', current_user);
    END IF;
END
$$;
COMMIT;
