//! Read-only connections. Reads run on the caller's thread: a read takes a few microseconds, less than handing it to
//! another thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rusqlite::{Connection, OptionalExtension as _, ToSql};

use super::super::label::{Label, LabelledRow};
use super::super::row::{SealedRow, Table};
use super::super::sql::{LabelStatements, ReadStatements, SqlDialect, SqliteStatements};
use super::super::{Cursor, Direction, LIST_ROWS_MAX, RowFilter, StoreError};
use super::files::DatabaseFiles;
use super::place::SqliteLocation;
use super::{database, decode};
use crate::preconditions::{
    before, beginning, beyond, can_be_asked, can_be_labelled, can_be_listed, can_have_last, few_enough,
};

/// The number of connections. More would only compete for the same cores.
const READERS_MAX: usize = 8;

/// Connections for concurrent reads. None is held across an await.
#[derive(Debug)]
pub(super) struct Readers {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
    files: Arc<DatabaseFiles>,
}

impl Readers {
    pub(super) fn open(place: &SqliteLocation, files: &Arc<DatabaseFiles>) -> Result<Self, StoreError> {
        // At least two, so a long list does not block all other reads.
        let count = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, READERS_MAX);
        let connections = (0..count).map(|_| place.read().map(Mutex::new)).collect::<Result<_, _>>()?;
        Ok(Self { connections, turn: AtomicUsize::new(0), files: Arc::clone(files) })
    }

    pub(super) fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        self.one(table, &SqliteStatements::of(table).get, id)
    }

    pub(super) fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        self.one(table, &SqliteStatements::of(table).get_by_alias, alias)
    }

    pub(super) fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        if !can_have_last(table, owner)? {
            return Ok(None);
        }
        self.one(table, &ReadStatements::of(SqlDialect::Sqlite, table).last_of, owner)
    }

    pub(super) fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        few_enough(ids)?;
        let mut ids: Vec<&String> = ids.iter().filter(|id| can_be_asked(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let connection = self.connection()?;
        let mut statement = connection.prepare_cached(&SqliteStatements::of(table).get).map_err(database)?;
        let rows = ids.iter().map(|id| statement.query_row([id], |row| decode(table, row)).optional());
        rows.filter_map(Result::transpose).collect::<rusqlite::Result<_>>().map_err(database)
    }

    pub(super) fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        if !can_be_listed(table, filter, after)? {
            return Ok(Vec::new());
        }
        let reads = ReadStatements::of(SqlDialect::Sqlite, table);
        let limit = limit.min(LIST_ROWS_MAX);
        let (due, id) = after.map_or((i64::MIN, ""), |cursor| (cursor.due, cursor.id.as_str()));
        match filter {
            RowFilter::All => self.many(table, &reads.list_all, &[&id, &limit]),
            RowFilter::Owner(owner) => self.many(table, &reads.list_owner, &[&owner, &id, &limit]),
            RowFilter::OwnerByDue(owner) => self.many(table, &reads.list_owner_due, &[&owner, &due, &id, &limit]),
            RowFilter::State(state) => self.many(table, &reads.list_state, &[&state, &due, &id, &limit]),
            RowFilter::DueBy(state, moment) => {
                let parameters: [&dyn ToSql; 5] = [&state, &moment.millis(), &due, &id, &limit];
                self.many(table, &reads.list_due, &parameters)
            }
            RowFilter::Latest => {
                let (due, id) = before(after);
                self.many(table, &reads.list_latest, &[&due, &id, &limit])
            }
        }
    }

    pub(super) fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        if !can_be_labelled(table, word, after)? {
            return Ok(Vec::new());
        }
        let reads = ReadStatements::of(SqlDialect::Sqlite, table);
        let text = match direction {
            Direction::Forward => &reads.labelled,
            Direction::Backward => &reads.labelled_backward,
        };
        let (due, id) = beginning(direction, after);
        let parameters: [&dyn ToSql; 4] = [&word, &due, &id, &limit.min(LIST_ROWS_MAX)];
        let connection = self.connection()?;
        let mut statement = connection.prepare_cached(text).map_err(database)?;
        let labelled = |row: &rusqlite::Row<'_>| Ok(LabelledRow { due: row.get(9)?, row: decode(table, row)? });
        let rows = statement.query_map(parameters, labelled).map_err(database)?;
        rows.collect::<rusqlite::Result<_>>().map_err(database)
    }

    pub(super) fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        labels(&*self.connection()?, after.unwrap_or(&Label::first()), limit)
    }

    pub(super) fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        if !can_be_asked(prefix) {
            return Ok(Vec::new());
        }
        let text = &ReadStatements::of(SqlDialect::Sqlite, table).alias_prefix;
        self.many(table, text, &[&prefix, &beyond(prefix), &limit.min(LIST_ROWS_MAX)])
    }

    /// Returns the damage that SQLite's check of the whole file reports.
    pub(super) fn damages(&self, most: u32) -> Result<Vec<String>, StoreError> {
        let connection = self.connection()?;
        // Not cached, because the check is rare and the limit is part of its text.
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({most})")).map_err(database)?;
        let said = statement.query_map([], |row| row.get::<_, String>(0)).map_err(database)?;
        let said = said.collect::<rusqlite::Result<Vec<_>>>().map_err(database)?;
        // SQLite reports an intact file with this single row.
        Ok(if said == ["ok"] { Vec::new() } else { said })
    }

    fn one(&self, table: Table, text: &str, name: &str) -> Result<Option<SealedRow>, StoreError> {
        if !can_be_asked(name) {
            return Ok(None);
        }
        let connection = self.connection()?;
        let mut statement = connection.prepare_cached(text).map_err(database)?;
        statement.query_row([name], |row| decode(table, row)).optional().map_err(database)
    }

    fn many(&self, table: Table, text: &str, parameters: &[&dyn ToSql]) -> Result<Vec<SealedRow>, StoreError> {
        let connection = self.connection()?;
        let mut statement = connection.prepare_cached(text).map_err(database)?;
        let rows = statement.query_map(parameters, |row| decode(table, row)).map_err(database)?;
        rows.collect::<rusqlite::Result<_>>().map_err(database)
    }

    /// Returns a free connection, or waits for the next one in turn. A poisoned lock is safe here: a reader that
    /// panicked left no state that the next one could see.
    fn connection(&self) -> Result<MutexGuard<'_, Connection>, StoreError> {
        // A replaced file could return rows of another database.
        self.files.must_stand()?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for at in 0..self.connections.len() {
            match self.connections[(turn + at) % self.connections.len()].try_lock() {
                Ok(connection) => return Ok(connection),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                // Another read uses this connection, so the next one is tried.
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Ok(self.connections[turn % self.connections.len()].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) fn labels(connection: &Connection, after: &Label, limit: u32) -> Result<Vec<Label>, StoreError> {
    let mut statement = connection.prepare_cached(&LabelStatements::of(SqlDialect::Sqlite).list).map_err(database)?;
    let label = |row: &rusqlite::Row<'_>| {
        Ok(Label { kept_in: row.get(0)?, word: row.get(1)?, due: row.get(2)?, id: row.get(3)? })
    };
    let parameters = (&after.kept_in, &after.word, after.due, &after.id, limit.min(LIST_ROWS_MAX));
    let rows = statement.query_map(parameters, label).map_err(database)?;
    rows.collect::<rusqlite::Result<_>>().map_err(database)
}

#[cfg(test)]
mod tests {
    use super::super::super::migrate;
    use super::*;

    /// Returns SQLite's plan for a statement.
    fn plan(connection: &Connection, text: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
        let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
        let rows = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3));
        rows.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    #[test]
    fn every_statement_uses_an_index_and_sorts_nothing() {
        let connection = Connection::open_in_memory().unwrap();
        migrate::SQLITE.iter().for_each(|it| connection.execute_batch(it.sql).unwrap());
        let labels = LabelStatements::of(SqlDialect::Sqlite);
        for text in [&labels.remove, &labels.list] {
            let plan = plan(&connection, text);
            assert!(plan.starts_with("SEARCH labels USING PRIMARY KEY") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
        for table in Table::ALL {
            let (reads, single) = (ReadStatements::of(SqlDialect::Sqlite, *table), SqliteStatements::of(*table));
            let mut texts = vec![&reads.list_all, &single.get, &single.get_by_alias, &single.seal, &single.holder];
            texts.extend([&single.update, &single.delete, &reads.alias_prefix]);
            if table.is_labelled() {
                for text in [&reads.labelled, &reads.labelled_backward] {
                    let plan = plan(&connection, text);
                    let expected = format!(
                        "SEARCH labels USING PRIMARY KEY (kept_in=? AND label=? AND (due,id){}(?,?)); \
                         SEARCH kept USING INDEX sqlite_autoindex_{}_1 (id=?)",
                        if text == &reads.labelled { ">" } else { "<" },
                        table.name(),
                    );
                    assert_eq!(plan, expected);
                }
            }
            if table.is_listed_by_facets() {
                texts.extend([&reads.list_owner, &reads.list_state, &reads.list_due, &reads.last_of]);
                assert!(plan(&connection, &reads.list_due).contains(&format!("{}_state", table.name())));
                assert!(plan(&connection, &reads.last_of).contains(&format!("{}_owner", table.name())));
            }
            if table.is_owned_for_a_time() {
                texts.push(&reads.list_owner_due);
                assert!(plan(&connection, &reads.list_owner_due).contains(&format!("{}_owner_due", table.name())));
            }
            for text in texts {
                let plan = plan(&connection, text);
                assert!(plan.starts_with(&format!("SEARCH {} USING ", table.name())), "{text}: {plan}");
                assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{text}: {plan}");
            }
        }
    }
}
