//! Scans the whole database on its own connection with one snapshot.

use rusqlite::Connection;

use super::super::label::Label;
use super::super::row::{SealedRow, Table};
use super::super::sql::{ReadStatements, SqlDialect};
use super::super::{LIST_ROWS_MAX, ScanPage, StoreError};
use super::place::SqliteLocation;
use super::{database, decode, readers};

/// The transaction starts with its first read and ends with the connection. Between two pages other tasks can run.
pub(super) async fn walk(place: &SqliteLocation, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
    let connection = place.read()?;
    connection.execute_batch("BEGIN").map_err(database)?;
    for table in Table::ALL {
        let mut after = String::new();
        loop {
            let rows = rows(&connection, *table, &after)?;
            let Some(last) = rows.last() else { break };
            after.clone_from(&last.id);
            meet(ScanPage::Rows(rows));
            tokio::task::yield_now().await;
        }
    }
    let mut after = Label::first();
    loop {
        let labels = readers::labels(&connection, &after, LIST_ROWS_MAX)?;
        let Some(last) = labels.last() else { return Ok(()) };
        after = last.clone();
        meet(ScanPage::Labels(labels));
        tokio::task::yield_now().await;
    }
}

fn rows(connection: &Connection, table: Table, after: &str) -> Result<Vec<SealedRow>, StoreError> {
    let text = &ReadStatements::of(SqlDialect::Sqlite, table).list_all;
    let mut statement = connection.prepare_cached(text).map_err(database)?;
    let rows = statement.query_map((after, LIST_ROWS_MAX), |row| decode(table, row)).map_err(database)?;
    rows.collect::<rusqlite::Result<_>>().map_err(database)
}
