//! The SQL statements. All tables have the same columns, so each statement is a template for all tables.

use std::sync::LazyLock;

use super::Direction;
use super::row::Table;

/// All columns, in the order of decoding and writing.
const COLUMNS: &str = "id, alias, owner, state, due, revision, body, key_id, mac";

/// The syntax of parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum SqlDialect {
    /// `?1`
    Sqlite,
    /// `$1`
    Postgres,
}

impl SqlDialect {
    fn spelled(self, text: impl Into<String>) -> String {
        match self {
            Self::Sqlite => text.into(),
            // The statements contain no other question mark.
            Self::Postgres => text.into().replace('?', "$"),
        }
    }
}

/// Adds a label unless it exists.
const PUT_LABEL: &str = "INSERT INTO labels (kept_in, label, due, id) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (kept_in, label, due, id) DO NOTHING";

/// Removes a label if it exists.
const REMOVE_LABEL: &str = "DELETE FROM labels WHERE kept_in = ?1 AND label = ?2 AND due = ?3 AND id = ?4";

/// Lists the labels after a label.
const LIST_LABELS: &str = "SELECT kept_in, label, due, id FROM labels \
     WHERE (kept_in, label, due, id) > (?1, ?2, ?3, ?4) ORDER BY kept_in, label, due, id LIMIT ?5";

/// The statements about labels themselves.
#[derive(Debug)]
pub(super) struct LabelStatements {
    pub(super) put: String,
    pub(super) remove: String,
    pub(super) list: String,
}

impl LabelStatements {
    /// Returns the statements of a dialect.
    pub(super) fn of(dialect: SqlDialect) -> &'static Self {
        static SQLITE: LazyLock<LabelStatements> = LazyLock::new(|| LabelStatements::new(SqlDialect::Sqlite));
        static POSTGRES: LazyLock<LabelStatements> = LazyLock::new(|| LabelStatements::new(SqlDialect::Postgres));
        match dialect {
            SqlDialect::Sqlite => &SQLITE,
            SqlDialect::Postgres => &POSTGRES,
        }
    }

    fn new(dialect: SqlDialect) -> Self {
        let [put, remove, list] = [PUT_LABEL, REMOVE_LABEL, LIST_LABELS].map(|it| dialect.spelled(it));
        Self { put, remove, list }
    }
}

/// Builds the list by label. It reads the labels in order and fetches the row of each, whatever the planner estimates,
/// so rows beyond the limit are never read. A label without a row uses no slot of the page.
fn labelled(dialect: SqlDialect, table: Table, direction: Direction) -> String {
    let (than, order) = match direction {
        Direction::Forward => (">", "labels.due, labels.id"),
        Direction::Backward => ("<", "labels.due DESC, labels.id DESC"),
    };
    let name = table.name();
    let join = match dialect {
        // SQLite does not reorder a CROSS JOIN.
        SqlDialect::Sqlite => format!("CROSS JOIN {name} AS kept ON kept.id = labels.id"),
        // PostgreSQL does not move conditions into a subquery with OFFSET 0.
        SqlDialect::Postgres => {
            format!("CROSS JOIN LATERAL (SELECT {COLUMNS} FROM {name} WHERE {name}.id = labels.id OFFSET 0) AS kept")
        }
    };
    let columns = COLUMNS.split(", ").map(|it| format!("kept.{it}")).collect::<Vec<_>>().join(", ");
    dialect.spelled(format!(
        "SELECT {columns}, labels.due FROM labels {join} WHERE labels.kept_in = '{name}' AND labels.label = ?1 \
         AND (labels.due, labels.id) {than} (?2, ?3) ORDER BY {order} LIMIT ?4"
    ))
}

/// The read statements of one table, the same for both databases. The last parameter is the limit, and the cursor comes
/// before it. On the first page the cursor is before every row. An empty owner or state is excluded, because the
/// conditions repeat those of the partial indexes.
#[derive(Debug)]
pub(super) struct ReadStatements {
    pub(super) list_all: String,
    /// By owner, after an id.
    pub(super) list_owner: String,
    /// By owner, after a due time and id.
    pub(super) list_owner_due: String,
    /// By state, after a due time and id.
    pub(super) list_state: String,
    /// By state and due by a time, after a due time and id.
    pub(super) list_due: String,
    /// All rows, the latest due time first, before a due time and id.
    pub(super) list_latest: String,
    /// By label, after a due time and id. Each row is followed by the label's due time.
    pub(super) labelled: String,
    pub(super) labelled_backward: String,
    /// By a range of aliases.
    pub(super) alias_prefix: String,
    /// The last row of an owner, without cursor and limit.
    pub(super) last_of: String,
}

impl ReadStatements {
    fn new(dialect: SqlDialect, table: Table) -> Self {
        let name = table.name();
        let select = |rest: &str| dialect.spelled(format!("SELECT {COLUMNS} FROM {name} WHERE {rest}"));
        Self {
            list_all: select("id > ?1 ORDER BY id LIMIT ?2"),
            // `owner = ?1` is avoided: PostgreSQL would then know that the order is by id. If it estimated that most
            // rows belong to this owner, it would scan the rows of all owners.
            list_owner: select("(owner, id) > (?1, ?2) AND owner <= ?1 AND owner <> '' ORDER BY owner, id LIMIT ?3"),
            list_owner_due: select("owner = ?1 AND owner <> '' AND (due, id) > (?2, ?3) ORDER BY due, id LIMIT ?4"),
            list_state: select("state = ?1 AND state <> '' AND (due, id) > (?2, ?3) ORDER BY due, id LIMIT ?4"),
            list_due: select(
                "state = ?1 AND state <> '' AND due <= ?2 AND (due, id) > (?3, ?4) ORDER BY due, id LIMIT ?5",
            ),
            list_latest: select("(due, id) < (?1, ?2) ORDER BY due DESC, id DESC LIMIT ?3"),
            labelled: labelled(dialect, table, Direction::Forward),
            labelled_backward: labelled(dialect, table, Direction::Backward),
            alias_prefix: select("alias >= ?1 AND alias < ?2 ORDER BY alias LIMIT ?3"),
            // A range has the same effect as in `list_owner`.
            last_of: select("owner >= ?1 AND owner <= ?1 AND owner <> '' ORDER BY owner DESC, id DESC LIMIT 1"),
        }
    }

    /// Returns the read statements of a table.
    pub(super) fn of(dialect: SqlDialect, table: Table) -> &'static Self {
        static SQLITE: LazyLock<Vec<ReadStatements>> =
            LazyLock::new(|| each(|table| ReadStatements::new(SqlDialect::Sqlite, table)));
        static POSTGRES: LazyLock<Vec<ReadStatements>> =
            LazyLock::new(|| each(|table| ReadStatements::new(SqlDialect::Postgres, table)));
        match dialect {
            SqlDialect::Sqlite => &SQLITE[table as usize],
            SqlDialect::Postgres => &POSTGRES[table as usize],
        }
    }
}

/// The write statements for SQLite, one row at a time. A statement is only a function call, and there is no other
/// writer.
#[derive(Debug)]
pub(super) struct SqliteStatements {
    pub(super) get: String,
    pub(super) get_by_alias: String,
    pub(super) seal: String,
    pub(super) holder: String,
    pub(super) insert: String,
    /// The next revision of a row with new alias, owner or state.
    pub(super) update: String,
    /// The next revision of a row with a new state.
    pub(super) update_state: String,
    /// The next revision of a row with unchanged lookup columns.
    pub(super) update_content: String,
    pub(super) delete: String,
}

impl SqliteStatements {
    fn new(table: Table) -> Self {
        let table = table.name();
        // SQLite writes the index of every column that is set, even if its value does not change.
        let update = |facets: &str| {
            format!(
                "UPDATE {table} SET {facets}revision = ?6, body = ?7, key_id = ?8, mac = ?9 \
                 WHERE id = ?1 AND revision = ?6 - 1 AND mac = ?10"
            )
        };
        Self {
            get: format!("SELECT {COLUMNS} FROM {table} WHERE id = ?1"),
            get_by_alias: format!("SELECT {COLUMNS} FROM {table} WHERE alias = ?1"),
            seal: format!("SELECT mac FROM {table} WHERE id = ?1"),
            holder: format!("SELECT id FROM {table} WHERE alias = ?1"),
            insert: format!("INSERT INTO {table} ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
            update: update("alias = ?2, owner = ?3, state = ?4, due = ?5, "),
            update_state: update("state = ?4, due = ?5, "),
            // Most changes only replace the body, so no index is written.
            update_content: update(""),
            // The seal in the condition makes the statement fail if the row changed since it was read.
            delete: format!("DELETE FROM {table} WHERE id = ?1 AND mac = ?2"),
        }
    }

    /// Returns the write statements of a table.
    pub(super) fn of(table: Table) -> &'static Self {
        static ALL: LazyLock<Vec<SqliteStatements>> = LazyLock::new(|| each(SqliteStatements::new));
        &ALL[table as usize]
    }
}

/// The statements for PostgreSQL, many rows at a time. A statement is a message, so batches save round trips.
#[derive(Debug)]
pub(super) struct PostgresStatements {
    pub(super) get: String,
    pub(super) get_by_alias: String,
    /// Selects ids and seals and locks the rows in the given order against all other writers.
    pub(super) lock_to_write: String,
    /// Selects ids and seals and locks the rows only against changes.
    pub(super) lock_to_rely: String,
    pub(super) look: String,
    /// Selects the rows with these aliases.
    pub(super) holders: String,
    pub(super) insert: String,
    /// Writes the next revisions of locked rows. It is an upsert because that finds each row by its index. An update
    /// with a join is planned while the table is empty and would then always scan the whole table.
    pub(super) update: String,
    pub(super) delete: String,
}

impl PostgresStatements {
    fn new(table: Table) -> Self {
        let table = table.name();
        let lock = |strength: &str| {
            format!(
                "SELECT held.id, held.mac FROM unnest($1::text[]) AS asked (id) CROSS JOIN LATERAL \
                 (SELECT id, mac FROM {table} AS kept WHERE kept.id = asked.id{strength}) AS held"
            )
        };
        let insert = format!(
            "INSERT INTO {table} AS kept ({COLUMNS}) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], \
             $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bytea[])"
        );
        let update = format!(
            "{insert} ON CONFLICT (id) DO UPDATE SET alias = excluded.alias, owner = excluded.owner, \
             state = excluded.state, due = excluded.due, revision = excluded.revision, body = excluded.body, \
             key_id = excluded.key_id, mac = excluded.mac WHERE kept.revision = excluded.revision - 1"
        );
        Self {
            get: format!("SELECT {COLUMNS} FROM {table} WHERE id = ANY($1)"),
            get_by_alias: format!("SELECT {COLUMNS} FROM {table} WHERE alias = ANY($1)"),
            lock_to_write: lock(" FOR UPDATE"),
            lock_to_rely: lock(" FOR SHARE"),
            look: lock(""),
            holders: format!("SELECT alias, id FROM {table} WHERE alias = ANY($1)"),
            insert,
            update,
            delete: format!("DELETE FROM {table} WHERE id = ANY($1)"),
        }
    }

    /// Returns the write statements of a table.
    pub(super) fn of(table: Table) -> &'static Self {
        static ALL: LazyLock<Vec<PostgresStatements>> = LazyLock::new(|| each(PostgresStatements::new));
        &ALL[table as usize]
    }
}

/// Builds one value per table, indexed by the table's number.
fn each<S>(statements: impl Fn(Table) -> S) -> Vec<S> {
    Table::ALL.iter().map(|table| statements(*table)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_finds_its_own_statements() {
        for table in Table::ALL {
            let from = format!(" FROM {} ", table.name());
            assert!(ReadStatements::of(SqlDialect::Sqlite, *table).list_due.contains(&from));
            assert!(ReadStatements::of(SqlDialect::Postgres, *table).list_due.contains(&from));
            assert!(SqliteStatements::of(*table).get.contains(&from));
            assert!(PostgresStatements::of(*table).get.contains(&from));
        }
    }

    #[test]
    fn parameters_are_spelled_as_the_database_does() {
        assert!(ReadStatements::of(SqlDialect::Sqlite, Table::Holds).list_due.contains("?5"));
        let postgres = &ReadStatements::of(SqlDialect::Postgres, Table::Holds).list_due;
        assert!(postgres.contains("$5") && !postgres.contains('?'));
    }
}
