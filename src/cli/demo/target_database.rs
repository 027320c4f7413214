//! The target system: a table in a SQLite database that only the writer can access.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::cli::CliError;

/// The writer's own database. Each use opens it again, as a separate process would.
pub(super) struct DemoTarget(PathBuf);

fn failed(error: rusqlite::Error) -> CliError {
    CliError::Demo(format!("the writer's own table: {error}"))
}

impl DemoTarget {
    pub(super) fn make(folder: &Path) -> Result<Self, CliError> {
        let ledger = Self(folder.join("ledger.db"));
        // The unique constraint rejects a fence that was used before.
        let table = "CREATE TABLE payments (write_id TEXT PRIMARY KEY, thread TEXT NOT NULL, fence INTEGER NOT NULL, \
                     target_user_id INTEGER NOT NULL, amount INTEGER NOT NULL, UNIQUE (thread, fence))";
        ledger.open()?.execute_batch(table).map_err(failed)?;
        Ok(ledger)
    }

    fn open(&self) -> Result<Connection, CliError> {
        Connection::open(&self.0).map_err(failed)
    }

    /// Writes the row that `verify` authorized, with values from its response only.
    pub(super) fn write(&self, thread: &str, allowed: &Value) -> Result<(), CliError> {
        let view = &allowed["view"];
        let row = (
            allowed["write_id"].as_str(),
            thread,
            allowed["fence"].as_i64(),
            view["target_user_id"].as_i64(),
            view["payment"]["amount"].as_i64(),
        );
        // A plain insert fails on a repeated write or fence, which is the target's own protection.
        let insert =
            "INSERT INTO payments (write_id, thread, fence, target_user_id, amount) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.open()?.execute(insert, row).map(drop).map_err(failed)
    }

    /// Returns each row as a line.
    pub(super) fn rows(&self) -> Result<Vec<String>, CliError> {
        let select = "SELECT write_id, thread, fence, target_user_id, amount FROM payments ORDER BY write_id";
        let connection = self.open()?;
        let mut statement = connection.prepare(select).map_err(failed)?;
        let line = |row: &rusqlite::Row<'_>| {
            let (write_id, thread): (String, String) = (row.get(0)?, row.get(1)?);
            let (fence, target, amount): (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok(format!("write_id={write_id} thread={thread} fence={fence} target_user_id={target} amount={amount}"))
        };
        let rows = statement.query_map([], line).and_then(Iterator::collect);
        rows.map_err(failed)
    }
}
