//! The maintenance thread: it moves the write-ahead log into the database's file and detects commits of other
//! processes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::files::DatabaseFiles;
use super::place::SqliteLocation;
use super::{BUSY_TIMEOUT, beside, database};
use crate::StoreError;
use crate::commit_notify::CommitNotifier;

/// The interval of checks for commits of other processes. A check takes about a microsecond.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The amount of writes after which the log is moved. It is also moved when nothing is written. A page that many
/// commits changed is moved once, so a larger amount is cheaper. But reads search the log first.
const MOVE_AFTER_BYTES: usize = 16 * 1024 * 1024;

/// The size of the log above which commits wait while the log is restarted from its beginning. Otherwise concurrent
/// commits could prevent that a log is ever moved completely.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The size above which the log is truncated. A long read can let it grow that far.
const LOG_FILE_BYTES_MAX: u64 = 4 * LOG_BYTES_MAX;

/// The number of passes after which so little is left that commits hardly wait.
const FURTHER_PASSES: usize = 3;

/// The longest time that commits wait for readers while the log is restarted. After that it is tried again later.
const RENEWAL_PATIENCE: Duration = Duration::from_millis(100);

/// A signal that wakes the maintenance thread early.
enum MaintenanceSignal {
    Move,
    Stop,
}

/// The writer's handle of the maintenance thread.
#[derive(Clone, Debug)]
pub(super) struct CheckpointSignal {
    unmoved: Arc<AtomicUsize>,
    too_long: Arc<AtomicBool>,
    log: Arc<Path>,
    wake: SyncSender<MaintenanceSignal>,
}

impl CheckpointSignal {
    pub(super) fn wrote(&self, bytes: usize) {
        if self.unmoved.fetch_add(bytes, Ordering::Relaxed) + bytes >= MOVE_AFTER_BYTES {
            // The error is ignored: a full channel means that the thread is awake already.
            let _ = self.wake.try_send(MaintenanceSignal::Move);
        }
    }

    /// Restarts the log if it is too long, or if the maintenance thread does not get to it. Only the writer can do
    /// this. Another thread would have to wait for a gap between commits.
    pub(super) fn renew_if_too_long(&self, connection: &Connection) {
        let neglected = self.unmoved.load(Ordering::Relaxed) >= LOG_BYTES_MAX as usize;
        if self.too_long.swap(false, Ordering::Relaxed) || neglected {
            self.unmoved.store(0, Ordering::Relaxed);
            let size = std::fs::metadata(&self.log).map_or(0, |it| it.len());
            // Truncating costs more than reusing the file, so it is only done for a very large log.
            let mode = if size > LOG_FILE_BYTES_MAX { "TRUNCATE" } else { "RESTART" };
            // If a reader blocks it, the maintenance thread finds the log too long again later.
            let renewed = connection.busy_timeout(RENEWAL_PATIENCE).and_then(|()| checkpoint(connection, mode));
            // The normal timeout must be restored even if the checkpoint failed.
            let restored = connection.busy_timeout(BUSY_TIMEOUT);
            if let Err(error) = renewed.and(restored) {
                tracing::warn!(%error, "the write-ahead log could not be restarted; it is tried again later");
            }
        }
    }
}

/// The handle of the thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct MaintenanceThread {
    signal: CheckpointSignal,
    thread: Option<JoinHandle<()>>,
}

impl MaintenanceThread {
    pub(super) fn start(
        place: &SqliteLocation,
        bell: Arc<CommitNotifier>,
        files: &Arc<DatabaseFiles>,
    ) -> Result<Self, StoreError> {
        // One slot is enough: a second signal would cause the same round.
        let (wake, messages) = sync_channel(1);
        let log = beside(place.path(), "-wal").into();
        let signal = CheckpointSignal { unmoved: Arc::default(), too_long: Arc::default(), log, wake };
        let connection = place.write()?;
        let version = version(&connection).map_err(database)?;
        let (files, signal_too) = (Arc::clone(files), signal.clone());
        let mut rounds =
            MaintenanceLoop { connection, version, unmoved: true, failing: false, bell, signal: signal_too, files };
        let thread = std::thread::Builder::new().name("sqlite-keeper".to_owned());
        let thread = thread.spawn(move || rounds.walk(&messages));
        let thread = thread
            .map_err(|error| StoreError::Database(format!("the maintenance thread cannot be started: {error}")))?;
        Ok(Self { signal, thread: Some(thread) })
    }

    pub(super) fn signal(&self) -> CheckpointSignal {
        self.signal.clone()
    }
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        // The error is ignored: the thread has ended already.
        let _ = self.signal.wake.send(MaintenanceSignal::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct MaintenanceLoop {
    connection: Connection,
    version: i64,
    /// Whether commits may not be moved yet.
    unmoved: bool,
    /// Whether the last round failed and was logged.
    failing: bool,
    bell: Arc<CommitNotifier>,
    signal: CheckpointSignal,
    files: Arc<DatabaseFiles>,
}

impl MaintenanceLoop {
    fn walk(&mut self, messages: &Receiver<MaintenanceSignal>) {
        while let Ok(MaintenanceSignal::Move) | Err(RecvTimeoutError::Timeout) = messages.recv_timeout(LOOK_EVERY) {
            // A removed log is not moved, because the file may belong to another process now.
            if self.files.check().is_ok() {
                let done = self.once();
                self.note(done);
            }
        }
        self.files.part_from(&self.connection);
    }

    /// Logs the first failure of a series and its end. Rounds run ten times a second, so each failure would flood the
    /// server log.
    fn note(&mut self, done: rusqlite::Result<()>) {
        match &done {
            Err(error) if !self.failing => {
                tracing::warn!(%error, "the write-ahead log cannot be moved into the database's file; it is tried again");
            }
            Ok(()) if self.failing => tracing::info!("the write-ahead log can be moved into the database's file again"),
            _ => {}
        }
        self.failing = done.is_err();
    }

    fn once(&mut self) -> rusqlite::Result<()> {
        let version = version(&self.connection)?;
        // An unchanged number means that no other connection has committed since the last round.
        let quiet = version == self.version;
        self.version = version;
        if !quiet {
            self.unmoved = true;
            self.bell.ring();
        }
        let much = self.signal.unmoved.load(Ordering::Relaxed) >= MOVE_AFTER_BYTES;
        // While commits follow each other, moving waits for a larger amount, because hot pages are then moved only
        // once.
        if self.unmoved && (quiet || much) {
            self.signal.unmoved.store(0, Ordering::Relaxed);
            let moved = checkpoint(&self.connection, "PASSIVE")?;
            self.unmoved = false;
            if moved > LOG_BYTES_MAX {
                // Each pass leaves only the commits of the previous pass. Commits wait for the last one.
                for _ in 0..FURTHER_PASSES {
                    checkpoint(&self.connection, "PASSIVE")?;
                }
                self.signal.too_long.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Returns a number that changes when another connection, of this or another process, has committed.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// Moves as much of the log into the file as possible and returns the log's length. A part in use is not an error.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<u64> {
    /// SQLite's default.
    const PAGE_BYTES: u64 = 4_096;
    let pages = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get::<_, i64>(1))?;
    Ok(u64::try_from(pages).unwrap_or(0) * PAGE_BYTES)
}
