//! The thread that keeps house: it moves the log into the file, and notices what other processes commit.

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
use crate::store::StoreError;
use crate::store::commit_notify::CommitNotifier;

/// How late a commit of another process is noticed at most. Asking costs about a microsecond.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The log is moved when about this much was written, or when all is quiet. A page that many commits
/// changed is moved once, so rarer is cheaper; but reads look through the log first.
const MOVE_AFTER_BYTES: usize = 16 * 1024 * 1024;

/// A log that commits keep from ever being wholly moved grows; past this size commits wait while it is
/// begun anew, over its own first bytes.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A log that someone who read for long let grow far beyond that is cut.
const LOG_FILE_BYTES_MAX: u64 = 4 * LOG_BYTES_MAX;

/// So many leave little enough that commits hardly wait.
const FURTHER_PASSES: usize = 3;

/// While the log is begun anew, commits wait for readers at most this long; then it is tried again later.
const RENEWAL_PATIENCE: Duration = Duration::from_millis(100);

/// What wakes the keeper before its time.
enum MaintenanceSignal {
    Move,
    Stop,
}

/// The writer's side of the keeper.
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
            // Full means that it is awake already.
            let _ = self.wake.try_send(MaintenanceSignal::Move);
        }
    }

    /// Begins the log anew if it has grown too long, or if the keeper does not get to it. Only the writer can: anyone else would wait for a gap in
    /// its work.
    pub(super) fn renew_if_too_long(&self, connection: &Connection) {
        let neglected = self.unmoved.load(Ordering::Relaxed) >= LOG_BYTES_MAX as usize;
        if self.too_long.swap(false, Ordering::Relaxed) || neglected {
            self.unmoved.store(0, Ordering::Relaxed);
            let size = std::fs::metadata(&self.log).map_or(0, |it| it.len());
            let mode = if size > LOG_FILE_BYTES_MAX { "TRUNCATE" } else { "RESTART" };
            // If a reader is in the way, the keeper finds it too long again later.
            let renewed = connection.busy_timeout(RENEWAL_PATIENCE).and_then(|()| checkpoint(connection, mode));
            let restored = connection.busy_timeout(BUSY_TIMEOUT);
            if let Err(error) = renewed.and(restored) {
                tracing::warn!(%error, "the database's log could not be begun anew");
            }
        }
    }
}

/// The keeping thread. Dropping it ends the thread.
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
        let thread = thread.map_err(|error| StoreError::Database(format!("no thread for the keeper: {error}")))?;
        Ok(Self { signal, thread: Some(thread) })
    }

    pub(super) fn signal(&self) -> CheckpointSignal {
        self.signal.clone()
    }
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.signal.wake.send(MaintenanceSignal::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct MaintenanceLoop {
    connection: Connection,
    version: i64,
    /// Something was committed that may not have been moved.
    unmoved: bool,
    /// The last round failed, and the log says so.
    failing: bool,
    bell: Arc<CommitNotifier>,
    signal: CheckpointSignal,
    files: Arc<DatabaseFiles>,
}

impl MaintenanceLoop {
    fn walk(&mut self, messages: &Receiver<MaintenanceSignal>) {
        while let Ok(MaintenanceSignal::Move) | Err(RecvTimeoutError::Timeout) = messages.recv_timeout(LOOK_EVERY) {
            // A log that was removed is moved nowhere: the file may be another process's by now.
            if self.files.check().is_ok() {
                let done = self.once();
                self.note(done);
            }
        }
        self.files.part_from(&self.connection);
    }

    /// Logs that rounds fail, once, and that they succeed again: they come ten times a second.
    fn note(&mut self, done: rusqlite::Result<()>) {
        match &done {
            Err(error) if !self.failing => {
                tracing::warn!(%error, "the database's log cannot be moved into its file; it is tried again");
            }
            Ok(()) if self.failing => tracing::info!("the database's log can be moved into its file again"),
            _ => {}
        }
        self.failing = done.is_err();
    }

    fn once(&mut self) -> rusqlite::Result<()> {
        let version = version(&self.connection)?;
        let quiet = version == self.version;
        self.version = version;
        if !quiet {
            self.unmoved = true;
            self.bell.ring();
        }
        let much = self.signal.unmoved.load(Ordering::Relaxed) >= MOVE_AFTER_BYTES;
        if self.unmoved && (quiet || much) {
            self.signal.unmoved.store(0, Ordering::Relaxed);
            let moved = checkpoint(&self.connection, "PASSIVE")?;
            self.unmoved = false;
            if moved > LOG_BYTES_MAX {
                // Each pass leaves only what came during the one before; commits wait for the rest.
                for _ in 0..FURTHER_PASSES {
                    checkpoint(&self.connection, "PASSIVE")?;
                }
                self.signal.too_long.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Changes whenever another connection, of this process or another, has committed.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// Moves what it can of the log into the file; that some of it is in use is no error. Gives the log's length.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<u64> {
    /// As SQLite makes them, unless told otherwise.
    const PAGE_BYTES: u64 = 4_096;
    let pages = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get::<_, i64>(1))?;
    Ok(u64::try_from(pages).unwrap_or(0) * PAGE_BYTES)
}
