//! The store on SQLite, the embedded default. One thread writes and commits queued changes with one sync of the disk.
//! Readers run concurrently.

mod files;
mod maintenance;
mod place;
mod readers;
mod serve_lock;
mod walk;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, ClockOffset, SystemClock};
use countersign_domain::primitives::time::Timestamp;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::change::ChangeSet;
use super::commit_notify::CommitNotifier;
use super::label::{Label, LabelledRow};
pub use super::migrate::OpenError;
use super::outage::Outage;
use super::row::{Facets, SealedRow, Table};
pub use super::write_queue::{CommitPoint, CommitProbe};
use super::{
    Cursor, DAMAGES_MAX, Direction, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError, migrate,
    preconditions,
};
use files::DatabaseFiles;
use maintenance::MaintenanceThread;
use place::SqliteLocation;
use readers::Readers;
use serve_lock::ServeLock;
use writer::{SqliteWriter, WriterState};

/// The wait for another process that uses the database, such as the command line or a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The size of the statement cache. All statements of all tables fit.
const STATEMENTS_MAX: usize = 512;

/// The durability of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Synchronous {
    /// Synced before the answer. Only this is durable.
    #[default]
    Full,
    /// Synced by the system at any time. Only a test uses it, to show that such a loss is detected.
    Off,
}

impl Synchronous {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Off => "OFF",
        }
    }
}

/// The purpose of opening the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SqliteOpenMode {
    /// For a command, with or without a running gateway.
    #[default]
    Beside,
    /// To serve. Only one process can do this at a time.
    Serving,
}

/// Options of the store. Except for `purpose`, only tests change them.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    pub purpose: SqliteOpenMode,
    /// The offset of the store's time from the host's clock.
    pub clock_offset: ClockOffset,
    /// The durability of a commit.
    pub synchronous: Synchronous,
    /// A callback at each point of a commit.
    pub probe: CommitProbe,
}

/// The store on a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    /// The threads that write. `None` if the store is read-only.
    hands: Option<SqliteThreads>,
    readers: Readers,
    bell: Arc<CommitNotifier>,
    clock_offset: ClockOffset,
    place: SqliteLocation,
    files: Arc<DatabaseFiles>,
    /// Released last, after all writes have ended.
    _lock: Option<ServeLock>,
}

#[derive(Debug)]
struct SqliteThreads {
    // The fields are dropped in this order. The last connection to close removes the write-ahead log.
    _keeper: MaintenanceThread,
    writer: SqliteWriter,
}

impl SqliteStore {
    /// Opens the file, creates it (mode 0600) if needed, and applies missing migrations. It blocks briefly.
    pub fn open(path: impl Into<PathBuf>, options: SqliteOptions) -> Result<Self, OpenError> {
        let SqliteOptions { purpose, clock_offset, synchronous, probe } = options;
        let path = path.into();
        // The lock comes before any change, because a running gateway may be of an older version.
        let lock = match purpose {
            SqliteOpenMode::Serving => Some(ServeLock::take(&real(&path))?),
            SqliteOpenMode::Beside => None,
        };
        make_private(&path).map_err(OpenError::File)?;
        let place = SqliteLocation::shared(&real(&path));
        let mut connection = place.write()?;
        prepare_file(&connection, synchronous).map_err(database)?;
        migrate_file(&mut connection)?;
        // All files are recorded after they exist, so any later replacement is detected.
        let names = ["", "-wal", "-shm"].map(|suffix| beside(place.path(), suffix));
        let names = names.into_iter().chain([path]).chain(lock.iter().map(|it| it.path().to_owned()));
        let files = Arc::new(DatabaseFiles::at(names).map_err(OpenError::File)?);
        let bell = Arc::new(CommitNotifier::new());
        let readers = Readers::open(&place, &files)?;
        let keeper = MaintenanceThread::start(&place, Arc::clone(&bell), &files)?;
        files.check()?;
        let desk = WriterState {
            connection,
            clock_offset: clock_offset.clone(),
            probe,
            bell: Arc::clone(&bell),
            keeper: keeper.signal(),
            files: Arc::clone(&files),
        };
        let hands = Some(SqliteThreads { _keeper: keeper, writer: SqliteWriter::start(desk)? });
        Ok(Self { hands, readers, bell, clock_offset, place, files, _lock: lock })
    }

    /// Opens the file for reading and changes nothing, neither the database nor a read-only folder.
    pub fn open_to_read(path: &Path) -> Result<Self, OpenError> {
        let place = SqliteLocation::to_read(&real(path))?;
        let applied = applied(&place.read()?).map_err(database)?;
        migrate::must_be_current(migrate::SQLITE, &applied)?;
        // A read-only store creates no other files.
        let files = Arc::new(DatabaseFiles::at([path.to_owned()]).map_err(OpenError::File)?);
        let readers = Readers::open(&place, &files)?;
        let (bell, clock_offset) = (Arc::new(CommitNotifier::new()), ClockOffset::default());
        Ok(Self { hands: None, readers, bell, clock_offset, place, files, _lock: None })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        preconditions::well_formed(&change)?;
        let read_only = || StoreError::unavailable(Outage::ReadOnly, "it was opened only to be read");
        self.hands.as_ref().ok_or_else(read_only)?.writer.commit(change).await
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        self.readers.get(table, id)
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        self.readers.get_by_alias(table, alias)
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        self.readers.get_many(table, ids)
    }

    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        self.readers.list(table, filter, after, limit)
    }

    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        self.readers.labelled(table, word, direction, after, limit)
    }

    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.readers.labels(after, limit)
    }

    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        self.files.check()?;
        walk::walk(&self.place, meet).await
    }

    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        self.readers.by_alias_prefix(table, prefix, limit)
    }

    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        self.readers.last_of(table, owner)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock_offset.applied_to(SystemClock.now()))
    }

    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        let failed = |error: std::io::Error| StoreError::of_file("the database's file", &error);
        Ok(Some(std::fs::metadata(self.place.path()).map_err(failed)?.len()))
    }

    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        self.files.must_stand()?;
        let path = beside(self.place.path(), &format!("-{}", duty.name()));
        let failed = |error: std::io::Error| StoreError::of_file(&format!("the {}'s lock file", duty.name()), &error);
        make_private(&path).map_err(failed)?;
        let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(FileLock(file)))),
            // Another process is the leader.
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    async fn check_storage(&self) -> Result<(), StoreError> {
        self.files.check()?;
        self.files.check_room()
    }

    async fn damages(&self) -> Result<Vec<String>, StoreError> {
        self.readers.damages(DAMAGES_MAX)
    }

    async fn replaced(&self) -> String {
        self.files.replaced().await
    }

    fn queued(&self) -> usize {
        self.hands.as_ref().map_or(0, |it| it.writer.queued())
    }

    async fn changed(&self, patience: Duration) {
        self.bell.wait(patience).await;
    }
}

/// A file lock. The system releases it when the process ends for any reason.
struct FileLock(#[expect(dead_code, reason = "the open file is the lock")] File);

#[async_trait]
impl LeaderLock for FileLock {
    fn stands(&self) -> bool {
        true
    }

    async fn leave(self: Box<Self>) {}
}

/// Resolves links, because SQLite names its own files after the target.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the path with a suffix, as SQLite names its own files.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Sets the mode of the database before SQLite opens it, because SQLite copies the mode to its write-ahead log.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    // An existing database must not be truncated.
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    #[cfg(unix)]
    for file in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        close_to_others(&file);
    }
    Ok(())
}

/// Removes access for other users. A restored copy may have other permissions. If the mode cannot be changed, another
/// user owns the file and is responsible for it.
#[cfg(unix)]
fn close_to_others(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(mode) = std::fs::metadata(file).map(|it| it.permissions().mode()) else { return };
    if mode & 0o077 != 0
        && let Err(error) = std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode & 0o700))
    {
        tracing::warn!(file = %file.display(), %error, "other users can read the database: run chmod 600 on the file");
    }
}

/// Configures the file. The maintenance thread moves the write-ahead log into it, so that no commit has to wait for
/// that.
fn prepare_file(connection: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous.as_str())?;
    // Otherwise a commit would sometimes do the work of the maintenance thread.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A manipulated schema must not call functions with side effects.
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
}

/// The cache size of the writer. The upper levels of all indexes of a busy gateway fit. SQLite scans the whole cache at
/// nearly every commit, so a larger one is not faster.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

fn migrate_file(connection: &mut Connection) -> Result<(), OpenError> {
    // The write lock is taken first, so two processes cannot apply the same migration.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
    transaction.execute_batch(migrate::CREATE_TABLE).map_err(database)?;
    let applied = applied(&transaction).map_err(database)?;
    for migration in migrate::pending(migrate::SQLITE, &applied)? {
        transaction.execute_batch(migration.sql).map_err(database)?;
        let insert = "INSERT INTO schema_migrations (version, name, checksum) VALUES (?1, ?2, ?3)";
        transaction.execute(insert, (migration.version, migration.name, migration.checksum())).map_err(database)?;
    }
    Ok(transaction.commit().map_err(database)?)
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare(migrate::SELECT_APPLIED)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Decodes a row. The columns have the order of every statement.
fn decode(table: Table, row: &rusqlite::Row<'_>) -> rusqlite::Result<SealedRow> {
    let facets = Facets { alias: row.get(1)?, owner: row.get(2)?, state: row.get(3)?, due: row.get(4)? };
    Ok(SealedRow {
        table,
        id: row.get(0)?,
        facets,
        revision: row.get(5)?,
        body: row.get(6)?,
        key_id: row.get(7)?,
        mac: row.get(8)?,
    })
}

/// Converts an error. SQLite's messages contain names of tables and columns, but never their content.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err passes")]
fn database(error: rusqlite::Error) -> StoreError {
    let said = format!("SQLite: {error}");
    let outage = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return StoreError::Busy,
        Some(ErrorCode::DiskFull) => Outage::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Outage::ReadOnly,
        Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed) => Outage::Disk,
        Some(ErrorCode::CannotOpen) => Outage::Down,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Outage::Damaged,
        _ => return StoreError::Database(said),
    };
    StoreError::unavailable(outage, said)
}
