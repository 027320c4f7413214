//! The statements that both databases take, written once.

use std::sync::LazyLock;

use super::row::Table;

/// How a database spells the n-th parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dialect {
    /// `?1`
    Sqlite,
    /// `$1`
    Postgres,
}

/// The statements of one table. Lists take an upper bound last, and before it the cursor, which for the
/// first page is before every row.
#[derive(Debug)]
pub(super) struct Statements {
    /// By id.
    pub(super) get: String,
    /// By alias.
    pub(super) get_by_alias: String,
    /// After an id.
    pub(super) list_all: String,
    /// Of an owner, after an id.
    pub(super) list_owner: String,
    /// In a state, after a due moment and id.
    pub(super) list_state: String,
    /// In a state, after a due moment and id, due by a moment.
    pub(super) list_due: String,
    /// The last of an owner.
    pub(super) last_of: String,
    /// The revision of a row.
    pub(super) revision: String,
    /// Which row has an alias.
    pub(super) holder: String,
    /// A new row.
    pub(super) insert: String,
    /// A row's next revision.
    pub(super) update: String,
    /// A row goes.
    pub(super) delete: String,
}

/// Every column, in the order in which rows are decoded and written.
pub(super) const COLUMNS: &str = "id, alias, owner, state, due, revision, body, key_id, mac";

impl Statements {
    fn new(dialect: Dialect, table: Table) -> Self {
        let table = table.name();
        let spelled = |text: String| match dialect {
            Dialect::Sqlite => text,
            Dialect::Postgres => text.replace('?', "$"),
        };
        // An empty owner or state means none; the conditions repeat those of the partial indexes.
        let select = |rest: &str| spelled(format!("SELECT {COLUMNS} FROM {table} {rest}"));
        Self {
            get: select("WHERE id = ?1"),
            get_by_alias: select("WHERE alias = ?1"),
            list_all: select("WHERE id > ?1 ORDER BY id LIMIT ?2"),
            list_owner: select("WHERE owner = ?1 AND owner <> '' AND id > ?2 ORDER BY id LIMIT ?3"),
            list_state: select("WHERE state = ?1 AND state <> '' AND (due, id) > (?2, ?3) ORDER BY due, id LIMIT ?4"),
            list_due: select(
                "WHERE state = ?1 AND state <> '' AND (due, id) > (?2, ?3) AND due <= ?4 ORDER BY due, id LIMIT ?5",
            ),
            last_of: select("WHERE owner = ?1 AND owner <> '' ORDER BY id DESC LIMIT 1"),
            revision: spelled(format!("SELECT revision FROM {table} WHERE id = ?1")),
            holder: spelled(format!("SELECT id FROM {table} WHERE alias = ?1")),
            insert: spelled(format!("INSERT INTO {table} ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")),
            update: spelled(format!(
                "UPDATE {table} SET alias = ?2, owner = ?3, state = ?4, due = ?5, revision = ?6, body = ?7, \
                 key_id = ?8, mac = ?9 WHERE id = ?1 AND revision = ?6 - 1"
            )),
            delete: spelled(format!("DELETE FROM {table} WHERE id = ?1 AND revision = ?2")),
        }
    }

    /// The statements of a table for a database, made once.
    pub(super) fn of(dialect: Dialect, table: Table) -> &'static Self {
        static SQLITE: LazyLock<Vec<Statements>> = LazyLock::new(|| all(Dialect::Sqlite));
        static POSTGRES: LazyLock<Vec<Statements>> = LazyLock::new(|| all(Dialect::Postgres));
        match dialect {
            Dialect::Sqlite => &SQLITE[table as usize],
            Dialect::Postgres => &POSTGRES[table as usize],
        }
    }
}

fn all(dialect: Dialect) -> Vec<Statements> {
    Table::ALL.iter().map(|table| Statements::new(dialect, *table)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_its_own_statements_in_either_spelling() {
        for table in Table::ALL {
            let from = format!(" FROM {} ", table.name());
            assert!(Statements::of(Dialect::Sqlite, *table).list_due.contains(&from));
            assert!(Statements::of(Dialect::Postgres, *table).list_due.contains(&from));
            assert!(Statements::of(Dialect::Postgres, *table).list_due.contains("$5"));
            assert!(!Statements::of(Dialect::Postgres, *table).list_due.contains('?'));
        }
    }
}
