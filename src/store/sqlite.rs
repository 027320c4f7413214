//! SQLite: the embedded default. One thread writes and groups what it is given under one sync of the
//! disk; readers read beside it.

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
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::clock::{Clock as _, ClockOffset, SystemClock};
use crate::domain::primitives::time::Timestamp;

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

/// How long to wait for another process (the command line, a backup) that has the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Every statement of every table, with room to spare.
const STATEMENTS_MAX: usize = 512;

/// How a commit reaches the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Synchronous {
    /// Before it is answered. Nothing else is durable.
    #[default]
    Full,
    /// Whenever the system likes. Only for the test that shows such loss to be noticed.
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

/// What the database is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SqliteOpenMode {
    /// For a command beside a gateway, or without one.
    #[default]
    Beside,
    /// To serve from it, which one process at a time does.
    Serving,
}

/// What the database is opened for, and what tests change about a store; the default is right everywhere else.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    pub purpose: SqliteOpenMode,
    /// How far the store's time is off the host's clock.
    pub clock_offset: ClockOffset,
    /// How a commit reaches the disk.
    pub synchronous: Synchronous,
    /// What is told where each commit stands.
    pub probe: CommitProbe,
}

/// The store on a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    /// The threads that write. A store that was opened only to be read has none.
    hands: Option<SqliteThreads>,
    readers: Readers,
    bell: Arc<CommitNotifier>,
    clock_offset: ClockOffset,
    place: SqliteLocation,
    files: Arc<DatabaseFiles>,
    /// Given up last, when nothing is written any more.
    _lock: Option<ServeLock>,
}

#[derive(Debug)]
struct SqliteThreads {
    // Dropped in this order: the last connection to close tidies the log away.
    _keeper: MaintenanceThread,
    writer: SqliteWriter,
}

impl SqliteStore {
    /// Opens the file, making it (mode 0600) and bringing it up to date where needed. Blocks shortly.
    pub fn open(path: impl Into<PathBuf>, options: SqliteOptions) -> Result<Self, OpenError> {
        let SqliteOptions { purpose, clock_offset, synchronous, probe } = options;
        let path = path.into();
        // Before anything is changed: what serves from the database may be of an older version.
        let lock = match purpose {
            SqliteOpenMode::Serving => Some(ServeLock::take(&real(&path))?),
            SqliteOpenMode::Beside => None,
        };
        make_private(&path).map_err(OpenError::File)?;
        let place = SqliteLocation::shared(&real(&path));
        let mut connection = place.write()?;
        prepare_file(&connection, synchronous).map_err(database)?;
        migrate_file(&mut connection)?;
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

    /// Opens the file only to be read, and changes nothing: neither the database nor, where it takes none, its folder.
    pub fn open_to_read(path: &Path) -> Result<Self, OpenError> {
        let place = SqliteLocation::to_read(&real(path))?;
        let applied = applied(&place.read()?).map_err(database)?;
        migrate::must_be_current(migrate::SQLITE, &applied)?;
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
        self.readers.labelled((table, word), direction, after, limit)
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

/// The system frees the lock when the file closes, however the process ends.
struct FileLock(#[expect(dead_code, reason = "the open file is the lock")] File);

#[async_trait]
impl LeaderLock for FileLock {
    fn stands(&self) -> bool {
        true
    }

    async fn leave(self: Box<Self>) {}
}

/// Where a link leads: SQLite names its own files after that.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The path with something after its last character, as SQLite names its own files.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// SQLite gives its log the mode of the database, so the mode must be right before it opens the file.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
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

/// What was copied back may have come with what its copier lets others do. Where that cannot be changed, somebody else
/// owns the file, and it is theirs to say.
#[cfg(unix)]
fn close_to_others(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(mode) = std::fs::metadata(file).map(|it| it.permissions().mode()) else { return };
    if mode & 0o077 != 0
        && let Err(error) = std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode & 0o700))
    {
        tracing::warn!(file = %file.display(), %error, "the database can be read by others than its owner");
    }
}

/// The log is moved into the file by the keeper, never in the middle of a commit.
fn prepare_file(connection: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous.as_str())?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
}

/// The upper levels of every index that a busy gateway writes to stay in memory. SQLite walks through all of it at
/// nearly every commit, so more is not faster.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

fn migrate_file(connection: &mut Connection) -> Result<(), OpenError> {
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

/// A row, its columns in the order in which every statement lists them.
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

/// SQLite's messages name tables and columns, never their content.
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
