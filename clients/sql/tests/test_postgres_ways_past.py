"""`ways_past` names each way around the guard that a login has, through whatever role it can use."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from conftest import Connect
from ids import jti, lease
from passing import PASS, WRITE, refused
from throwaway import Cluster

ASKED = "SELECT countersign_guard.ways_past('clerk')"
# A writer's login as the page sets it up.
CLERK = (
    "CREATE ROLE clerk LOGIN",
    "GRANT countersign_writer TO clerk",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON payments TO clerk",
    "GRANT USAGE ON SEQUENCE payments_id_seq TO clerk",
)


def ways(connection: psycopg.Connection) -> list[str]:
    return sorted(it for (it,) in connection.execute(ASKED))


# ── What is named ────────────────────────────────────────────────────────────────────────────────────────────────

# The sentence, what opens the way to a role `{}`, and the first version of PostgreSQL that has it.
OPENED = {
    "superuser": ("is a superuser", "ALTER ROLE {} SUPERUSER", 13),
    "the guard's owner": ("owns the schema countersign_guard", "GRANT countersign_guard TO {}", 13),
    "every table": ("may write to countersign_guard.passes", "GRANT pg_write_all_data TO {}", 14),
    "files": ("may write the files of the server", "GRANT pg_write_server_files TO {}", 13),
    "programs": ("may run programs on the server", "GRANT pg_execute_server_program TO {}", 13),
    "hashes in files": ("may read the files of the server", "GRANT pg_read_server_files TO {}", 13),
    "hashes": ("may read the password hashes of other logins", "GRANT pg_read_all_data TO {}", 14),
    "hashes in a view": ("may read the password hashes of other logins", "GRANT SELECT ON pg_shadow TO {}", 13),
    "the owner": ("owns the table public.payments", "GRANT keeper TO {}", 13),
    "the schema": ("owns the schema public", "ALTER SCHEMA public OWNER TO {}", 13),
    "the database": (
        "owns the database guarded",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO {}', current_database()); END $$",
        13,
    ),
    "a part": (
        "owns the table public.part",
        "CREATE TABLE part () INHERITS (payments); ALTER TABLE part OWNER TO {}",
        13,
    ),
    "a function of the guard": (
        "owns the function countersign_guard.require_pass()",
        "ALTER FUNCTION countersign_guard.require_pass() OWNER TO {}",
        13,
    ),
    "the language": ("owns the language plpgsql", "ALTER LANGUAGE plpgsql OWNER TO {}", 13),
    "a type": (
        "owns the type public.kind",
        "CREATE TYPE kind AS ENUM ('a'); ALTER TYPE kind OWNER TO {}; ALTER TABLE payments ADD kind kind",
        13,
    ),
    "a domain's check": (
        "owns the function public.fits(bigint)",
        "CREATE FUNCTION fits(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;"
        "CREATE DOMAIN few AS bigint CHECK (fits(VALUE)); ALTER TABLE payments ADD few few;"
        "ALTER FUNCTION fits(bigint) OWNER TO {}",
        13,
    ),
    "a trigger's function": (
        "owns the function public.more()",
        "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;"
        "CREATE TRIGGER more BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION more();"
        "ALTER FUNCTION more() OWNER TO {}",
        13,
    ),
    "a default": (
        "owns the function public.usual()",
        "CREATE FUNCTION usual() RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint $$;"
        "ALTER TABLE payments ALTER amount SET DEFAULT public.usual(); ALTER FUNCTION usual() OWNER TO {}",
        13,
    ),
    "an index": (
        "owns the function public.spelled(bigint)",
        "CREATE FUNCTION spelled(bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $1::text $$;"
        "CREATE INDEX ON payments (spelled(amount)); ALTER FUNCTION spelled(bigint) OWNER TO {}",
        13,
    ),
    "a row policy": (
        "owns the function public.seen(bigint)",
        "CREATE FUNCTION seen(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;"
        "CREATE POLICY seen ON payments USING (seen(amount)); ALTER FUNCTION seen(bigint) OWNER TO {}",
        13,
    ),
    "an event trigger": (
        "owns the function public.ddl()",
        "CREATE FUNCTION ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$;"
        "CREATE EVENT TRIGGER ddl ON ddl_command_end EXECUTE FUNCTION ddl(); ALTER FUNCTION ddl() OWNER TO {}",
        13,
    ),
    "triggers": ("may make triggers on public.payments", "GRANT TRIGGER ON payments TO {}", 13),
    "foreign keys": ("may make foreign keys to public.payments", "GRANT REFERENCES (id) ON payments TO {}", 13),
    "a table that refers": (
        "owns the table public.lines",
        "CREATE TABLE lines (payment bigint REFERENCES payments); ALTER TABLE lines OWNER TO {}",
        13,
    ),
    "triggers of one that refers": (
        "may make triggers on public.parts",
        "CREATE TABLE lines (id bigint PRIMARY KEY REFERENCES payments);"
        "CREATE TABLE parts (line bigint REFERENCES lines); GRANT TRIGGER ON parts TO {}",
        13,
    ),
    "fences": ("may write to countersign_guard.threads", "GRANT UPDATE ON countersign_guard.threads TO {}", 13),
    "passes": ("may write to countersign_guard.passes", "GRANT INSERT ON countersign_guard.passes TO {}", 13),
    "a column": (
        "may write to countersign_guard.passes",
        "GRANT UPDATE (transaction) ON countersign_guard.passes TO {}",
        13,
    ),
    "a view of a view": (
        "may write to public.outer_view",
        "CREATE VIEW inner_view AS SELECT * FROM countersign_guard.passes;"
        "CREATE VIEW outer_view AS SELECT * FROM inner_view; GRANT UPDATE ON outer_view TO {}",
        13,
    ),
    "a rule": (
        "may write to public.log",
        "CREATE TABLE log (it int); GRANT INSERT ON log TO {};"
        "CREATE RULE also AS ON INSERT TO log DO ALSO DELETE FROM countersign_guard.passes",
        13,
    ),
    "the guard's schema": (
        "may create objects in the schema countersign_guard",
        "GRANT CREATE ON SCHEMA countersign_guard TO {}",
        13,
    ),
    "the system's schema": (
        "may create objects in the schema pg_catalog",
        "GRANT CREATE ON SCHEMA pg_catalog TO {}",
        13,
    ),
    "a parameter": (
        "may set the parameter session_preload_libraries",
        "GRANT SET ON PARAMETER session_preload_libraries TO {}",
        15,
    ),
    "the server's files": (
        "may run lo_export(oid,text), which is withheld from PUBLIC",
        "GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO {}",
        13,
    ),
}
# The same whichever role a login uses.
UNGUARDED = {
    "disabled": (
        "public.payments lacks its trigger countersign_guard_rows",
        "ALTER TABLE payments DISABLE TRIGGER countersign_guard_rows",
    ),
    "dropped": (
        "public.payments lacks its trigger countersign_guard_truncate",
        "DROP TRIGGER countersign_guard_truncate ON payments",
    ),
    "sometimes": ("or it does not fire always", "ALTER TABLE payments ENABLE TRIGGER countersign_guard_rows"),
    "never": (
        "public.payments lacks its trigger countersign_guard_rows",
        "DROP TRIGGER countersign_guard_rows ON payments;"
        "CREATE TRIGGER countersign_guard_rows AFTER INSERT OR UPDATE OR DELETE ON payments FOR EACH ROW WHEN (false)"
        " EXECUTE FUNCTION countersign_guard.require_pass();"
        "ALTER TABLE payments ENABLE ALWAYS TRIGGER countersign_guard_rows",
    ),
    "of one column": (
        "public.payments lacks its trigger countersign_guard_rows",
        "DROP TRIGGER countersign_guard_rows ON payments;"
        "CREATE TRIGGER countersign_guard_rows AFTER INSERT OR UPDATE OF id OR DELETE ON payments FOR EACH ROW"
        " EXECUTE FUNCTION countersign_guard.require_pass();"
        "ALTER TABLE payments ENABLE ALWAYS TRIGGER countersign_guard_rows",
    ),
    "the lease": (
        "countersign_guard.passes lacks its trigger lease_at_commit",
        "ALTER TABLE countersign_guard.passes DISABLE TRIGGER lease_at_commit",
    ),
    "no table": (
        "no table of this database is protected",
        "DROP TRIGGER countersign_guard_rows ON payments; DROP TRIGGER countersign_guard_truncate ON payments",
    ),
}
# How a login comes to use the rights of a role.
REACHED = {
    "itself": "",
    "member": "GRANT {role} TO clerk",
    "noinherit": "ALTER ROLE clerk NOINHERIT; GRANT {role} TO clerk",
    "member of a member": "CREATE ROLE between NOINHERIT; GRANT {role} TO between; GRANT between TO clerk",
    "function": "CREATE FUNCTION lent() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT $$;"
    "ALTER FUNCTION lent() OWNER TO {role}",
}


@pytest.fixture
def asking(connect: Connect) -> Iterator[psycopg.Connection]:
    """A superuser in a transaction that is rolled back, in which there is a `clerk` without a way past."""
    connection = connect("countersign")
    for statement in CLERK:
        connection.execute(statement)
    assert ways(connection) == []
    yield connection
    connection.rollback()


def only_from(connection: psycopg.Connection, version: int) -> None:
    if connection.info.server_version < version * 10000:
        pytest.skip(f"PostgreSQL has this from {version} on")


@pytest.mark.parametrize("reached", REACHED.values(), ids=REACHED.keys())
@pytest.mark.parametrize(("sentence", "opening", "since"), OPENED.values(), ids=OPENED.keys())
def test_a_way_past_is_named_through_whatever_role_it_leads(
    asking: psycopg.Connection, sentence: str, opening: str, since: int, reached: str
) -> None:
    only_from(asking, since)
    role = "holder" if reached else "clerk"
    if reached:
        asking.execute("CREATE ROLE holder")
        asking.execute(reached.format(role=role))
        assert ways(asking) == []
    asking.execute(opening.format(role))
    found = [it for it in ways(asking) if sentence in it]
    assert found, ways(asking)
    assert all(it.startswith("clerk") for it in found)


@pytest.mark.parametrize(("sentence", "opening"), UNGUARDED.values(), ids=UNGUARDED.keys())
def test_a_table_that_lost_its_guard_is_named(asking: psycopg.Connection, sentence: str, opening: str) -> None:
    asking.execute(opening)
    assert any(sentence in it for it in ways(asking))


def test_a_login_that_may_copy_the_cluster_is_named(asking: psycopg.Connection) -> None:
    asking.execute("ALTER ROLE clerk REPLICATION")
    assert ways(asking) == ["clerk may copy the whole cluster, with the password hashes of other logins"]


def test_a_superuser_is_named_once(asking: psycopg.Connection) -> None:
    asking.execute("ALTER ROLE clerk SUPERUSER")
    assert ways(asking) == ["clerk is a superuser"]


@pytest.mark.parametrize("reached", ["itself", "member", "noinherit"])
def test_who_may_create_roles_is_named_where_that_is_enough(asking: psycopg.Connection, reached: str) -> None:
    role = "clerk" if reached == "itself" else "maker"
    if role == "maker":
        asking.execute("CREATE ROLE maker")
        asking.execute(REACHED[reached].format(role=role))
    asking.execute(f"ALTER ROLE {role} CREATEROLE")
    named = any("may create roles" in it for it in ways(asking))
    # From 16 on it grants only what it administers, and is then a member of.
    assert named == (asking.info.server_version < 160000)


@pytest.mark.parametrize("option", ["ADMIN", "INHERIT", "SET"])
def test_a_membership_counts_by_whatever_option(asking: psycopg.Connection, option: str) -> None:
    """Who has only ADMIN OPTION on the owner can grant itself the rest."""
    only_from(asking, 16)
    others = ", ".join(f"{it} FALSE" for it in ("ADMIN", "INHERIT", "SET") if it != option)
    asking.execute(f"GRANT keeper TO clerk WITH {option} TRUE, {others}")
    assert "clerk can be keeper, which owns the table public.payments, on which the guard rests" in ways(asking)


# ── What is no way past ──────────────────────────────────────────────────────────────────────────────────────────

HARMLESS = {
    "monitor": ("GRANT pg_monitor, pg_signal_backend TO clerk", 13),
    "checkpoint": ("GRANT pg_checkpoint TO clerk", 15),
    "reserved connections": ("GRANT pg_use_reserved_connections, pg_create_subscription TO clerk", 16),
    "maintain": ("GRANT pg_maintain TO clerk", 17),
    "maintain a table": ("GRANT MAINTAIN ON payments, countersign_guard.passes TO clerk", 17),
    "autovacuum": ("GRANT pg_signal_autovacuum_worker TO clerk", 18),
    "references to passes": ("GRANT REFERENCES ON countersign_guard.passes TO clerk", 13),
    "row security": ("ALTER ROLE clerk BYPASSRLS", 13),
    "databases": ("ALTER ROLE clerk CREATEDB", 13),
    "things of its own": (
        "CREATE SCHEMA mine AUTHORIZATION clerk; GRANT CREATE ON SCHEMA public TO clerk;"
        "DO $$ BEGIN EXECUTE format('GRANT ALL ON DATABASE %I TO clerk', current_database()); END $$",
        13,
    ),
    "a view to read": ("CREATE VIEW seen AS TABLE countersign_guard.passes; GRANT SELECT ON seen TO clerk", 13),
    "a view of the table": ("CREATE VIEW seen AS TABLE payments; GRANT ALL ON seen TO clerk", 13),
    "a plain owner's function": (
        "CREATE ROLE plain; GRANT INSERT ON payments TO plain; CREATE FUNCTION pay() RETURNS void LANGUAGE sql"
        " SECURITY DEFINER AS $$ SELECT $$; ALTER FUNCTION pay() OWNER TO plain",
        13,
    ),
    "a function that it may not run": (
        "CREATE FUNCTION pay() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT $$;"
        "REVOKE EXECUTE ON FUNCTION pay() FROM PUBLIC",
        13,
    ),
}


@pytest.mark.parametrize(("right", "since"), HARMLESS.values(), ids=HARMLESS.keys())
def test_what_is_no_way_past_is_not_named_and_opens_nothing(asking: psycopg.Connection, right: str, since: int) -> None:
    only_from(asking, since)
    asking.execute(right)
    assert ways(asking) == []
    asking.execute("SET LOCAL SESSION AUTHORIZATION clerk")
    for change in (
        WRITE,
        "UPDATE countersign_guard.passes SET transaction = pg_current_xact_id()",
        "TRUNCATE countersign_guard.threads",
        "ALTER TABLE payments DISABLE TRIGGER ALL",
        "DROP FUNCTION countersign_guard.require_pass() CASCADE",
        "SET ROLE keeper",
    ):
        with pytest.raises(psycopg.Error) as refusal, asking.transaction():
            asking.execute(change)
        assert refusal.value.sqlstate in ("42501", "ZG005")


# ── That they are ways past ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def clerk(cluster: Cluster, database: str) -> Iterator[str]:
    """A database with the writer's login `clerk`, which is in `holder` and inherits nothing."""
    cluster.execute(database, "CREATE ROLE holder", *CLERK)
    cluster.execute(database, "ALTER ROLE clerk NOINHERIT", "GRANT holder TO clerk")
    # It acts in its own name here: this role's rights it would have to take on as well.
    cluster.execute(database, "GRANT USAGE ON SCHEMA countersign_guard TO clerk")
    try:
        yield database
    finally:
        cluster.execute(database, "DROP OWNED BY clerk, holder CASCADE", "DROP ROLE clerk, holder")


DISABLED = ("ALTER TABLE payments DISABLE TRIGGER ALL", WRITE)
# A grant, the write without a pass that it allows, and the first PostgreSQL version with it.
TAKEN = {
    "a superuser": ("ALTER ROLE holder SUPERUSER", ("SET ROLE holder", *DISABLED), 13),
    "who makes roles": (
        "ALTER ROLE holder CREATEROLE",
        ("SET ROLE holder", "GRANT keeper TO holder", "SET ROLE keeper", *DISABLED),
        13,
    ),
    "the owner": ("GRANT keeper TO holder", ("SET ROLE keeper", *DISABLED), 13),
    "a trigger in the place of the guard's": (
        "GRANT TRIGGER, INSERT, SELECT ON payments TO holder; GRANT CREATE ON SCHEMA public TO holder;"
        "GRANT USAGE ON SEQUENCE payments_id_seq TO holder",
        (
            "SET ROLE holder",
            "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
            "CREATE OR REPLACE TRIGGER countersign_guard_rows AFTER INSERT OR UPDATE OR DELETE ON payments "
            "FOR EACH ROW EXECUTE FUNCTION nothing()",
            WRITE,
        ),
        14,
    ),
}


@pytest.mark.parametrize(("opening", "steps", "since"), TAKEN.values(), ids=TAKEN.keys())
def test_what_is_named_is_a_way_past(
    cluster: Cluster, clerk: str, connect: Connect, opening: str, steps: tuple[str, ...], since: int
) -> None:
    connection = connect("clerk")
    only_from(connection, since)
    cluster.execute(clerk, *opening.split(";"))
    if "CREATEROLE" in opening and connection.info.server_version >= 160000:
        assert ways(connect("countersign")) == []
        with refused("42501"):
            for step in steps:
                connection.execute(step)
        return
    assert ways(connect("countersign")) != []
    for step in steps:
        connection.execute(step)
    assert connection.execute("SELECT amount FROM payments").fetchall() == [(40,)]


def test_a_trigger_of_a_role_that_is_not_inherited_changes_what_others_write(
    cluster: Cluster, clerk: str, connect: Connect
) -> None:
    cluster.execute(
        clerk,
        "GRANT TRIGGER ON payments TO holder",
        "GRANT ALL ON countersign_guard.passes TO holder",
        "GRANT CREATE ON SCHEMA public TO holder",
    )
    assert ways(connect("countersign")) == [
        "clerk can be holder, which may make triggers on public.payments, which then act for every login that writes there",
        "clerk can be holder, which may write to countersign_guard.passes",
    ]
    with connect("clerk") as connection:
        connection.execute("SET ROLE holder")
        connection.execute(
            "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.amount := 100 * NEW.amount; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER more BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION more()")
    with connect() as connection:
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
        connection.execute(WRITE)
    assert connect("countersign").execute("SELECT amount FROM payments").fetchall() == [(4000,)]


def test_a_foreign_key_writes_in_the_transaction_that_others_passed(
    cluster: Cluster, clerk: str, connect: Connect
) -> None:
    cluster.execute(clerk, "GRANT REFERENCES ON payments TO clerk", "CREATE SCHEMA mine AUTHORIZATION clerk")
    assert any("may make foreign keys to public.payments" in it for it in ways(connect("countersign")))
    with connect() as connection:
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
        connection.execute(WRITE)
    with connect("clerk") as connection:
        connection.execute("CREATE TABLE mine.it (ref bigint REFERENCES public.payments ON DELETE CASCADE)")
        connection.execute("INSERT INTO mine.it VALUES (1)")
        connection.execute(
            "CREATE FUNCTION mine.more() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO public.payments (thread, amount) VALUES ('mine', 4000); RETURN NULL; END $$"
        )
        connection.execute("CREATE TRIGGER more AFTER DELETE ON mine.it FOR EACH ROW EXECUTE FUNCTION mine.more()")
    with connect() as connection:
        connection.execute(PASS, (jti(), "order-17", 2, lease()))
        connection.execute("DELETE FROM payments")
    assert connect("countersign").execute("SELECT thread, amount FROM payments").fetchall() == [("mine", 4000)]


def test_the_owner_of_a_type_changes_rows_without_a_pass(cluster: Cluster, clerk: str, connect: Connect) -> None:
    cluster.execute(
        clerk,
        "CREATE TYPE currency AS ENUM ('EUR', 'JPY')",
        "ALTER TYPE currency OWNER TO clerk",
        "ALTER TABLE payments ADD currency currency DEFAULT 'JPY'",
    )
    assert ways(connect("countersign")) == ["clerk owns the type public.currency, on which the guard rests"]
    with connect() as connection:
        connection.execute(PASS, (jti(), "order-17", 1, lease()))
        connection.execute(WRITE)
    with connect("clerk") as connection:
        connection.execute("ALTER TYPE currency RENAME VALUE 'EUR' TO 'USD'")
        connection.execute("ALTER TYPE currency RENAME VALUE 'JPY' TO 'EUR'")
    assert connect("countersign").execute("SELECT amount, currency::text FROM payments").fetchall() == [(40, "EUR")]
