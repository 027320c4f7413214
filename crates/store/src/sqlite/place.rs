//! The location of a database, and opening connections.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::super::StoreError;
use super::{BUSY_TIMEOUT, STATEMENTS_MAX, beside, database};

/// The location of a database and its read mode.
#[derive(Clone, Debug)]
pub(super) struct SqliteLocation {
    path: PathBuf,
    reads: SqliteReadMode,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SqliteReadMode {
    /// Other connections may write.
    Shared,
    /// No connection can write, so there are no locks and no write-ahead log.
    Immutable,
}

impl SqliteLocation {
    /// Returns the location of a writable database.
    pub(super) fn shared(path: &Path) -> Self {
        Self { path: path.to_owned(), reads: SqliteReadMode::Shared }
    }

    /// Returns the location of a read-only database. SQLite creates files beside a database to read it. In a read-only
    /// folder, a database without a write-ahead log is opened as immutable.
    pub(super) fn to_read(path: &Path) -> Result<Self, StoreError> {
        let shared = Self::shared(path);
        match shared.read_connection().and_then(|it| look(&it)) {
            Ok(()) => Ok(shared),
            // With a log, an immutable read would miss its commits.
            Err(error) if takes_no_files(&error) && !has_log(path) => {
                Ok(Self { reads: SqliteReadMode::Immutable, ..shared })
            }
            Err(error) => Err(database(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<Connection, StoreError> {
        self.read_connection().map_err(database)
    }

    /// Opens a connection that reads and writes.
    pub(super) fn write(&self) -> Result<Connection, StoreError> {
        open(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(database)
    }

    fn read_connection(&self) -> rusqlite::Result<Connection> {
        match self.reads {
            SqliteReadMode::Shared => open(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY),
            SqliteReadMode::Immutable => {
                let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                open(Path::new(&immutable(&self.path)), access)
            }
        }
    }
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite needs no mutex of its own.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Makes a first read, which fails if later ones would.
fn look(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

fn takes_no_files(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Checks that commits are in the write-ahead log and not in the database's file. If the log cannot be checked, it may
/// exist.
fn has_log(path: &Path) -> bool {
    match std::fs::metadata(beside(path, "-wal")) {
        Ok(log) => log.len() > 0,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns the path as an escaped URI, so no part of it is read as an option.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            it if it.is_ascii_alphanumeric() => uri.push(char::from(*it)),
            // `?` and `#` would end the path.
            it => write!(uri, "%{it:02X}").expect("text grows"),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_path_is_an_option() {
        assert_eq!(immutable(Path::new("/a b/c?mode=rw#d%.db")), "file:/a%20b/c%3Fmode%3Drw%23d%25.db?immutable=1");
    }
}
