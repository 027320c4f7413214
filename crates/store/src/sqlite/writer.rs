//! The only thread that writes. Queued changes share a transaction and one sync of the disk. Each change is still
//! applied or refused on its own, and it is answered after all are on the disk.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;
use std::thread::JoinHandle;

use countersign_adapters::clock::{Clock as _, ClockOffset, SystemClock};
use rusqlite::{Connection, OptionalExtension as _, ToSql, Transaction, TransactionBehavior};
use tokio::sync::mpsc;

use super::super::StoreError;
use super::super::change::{ChangeSet, FacetChange, RowWrite};
use super::super::label::LabelChange;
use super::super::row::{Seal, SealedRow, Table};
use super::super::sql::{LabelStatements, SqlDialect, SqliteStatements};
use super::database;
use super::files::DatabaseFiles;
use super::maintenance::CheckpointSignal;
use crate::commit_notify::CommitNotifier;
use crate::preconditions;
use crate::preconditions::{CheckTime, LockedRows};
use crate::write_queue;
use crate::write_queue::{BatchOutcomes, CommitPoint, CommitProbe, QueuedChange, WriteQueue};

/// The limit of changes per group. A larger group would only delay its first change.
const GROUP_CHANGES_MAX: usize = 1_024;

/// The queue of the writing thread. Dropping it waits until the thread has finished all queued changes.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    queue: Option<WriteQueue>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteWriter {
    pub(super) fn start(mut desk: WriterState) -> Result<Self, StoreError> {
        let (queue, jobs) = WriteQueue::new();
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let thread = thread.spawn(move || desk.work(jobs));
        let thread =
            thread.map_err(|error| StoreError::Database(format!("the writer thread cannot be started: {error}")))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.as_ref().map_or(0, WriteQueue::len)
    }

    pub(super) async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        self.queue.as_ref().ok_or_else(write_queue::ended)?.commit(change).await
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        // Closing the queue ends the thread's loop after the last change.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The error is ignored: if the thread panicked, every caller has already got an error.
            let _ = thread.join();
        }
    }
}

/// The state of the writing thread.
pub(super) struct WriterState {
    pub(super) connection: Connection,
    pub(super) clock_offset: ClockOffset,
    pub(super) probe: CommitProbe,
    pub(super) bell: Arc<CommitNotifier>,
    pub(super) keeper: CheckpointSignal,
    pub(super) files: Arc<DatabaseFiles>,
}

/// The way in which a group is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommitMode {
    /// Writes without reading first. Nearly every change succeeds, and a write fails if a row is not as expected. Then
    /// nothing was done, and the group is repeated in the careful mode. Reading before every write would cost a third
    /// of the throughput.
    Hopeful,
    /// Reads every row before the first write of a change, so a refused change leaves no trace.
    Careful,
}

/// The reason why no change of a group was committed.
enum SqliteBatchError {
    /// An unexpected error in one change. The other changes are tried again without it.
    InOne(StoreError),
    /// The transaction itself cannot begin or end.
    InAll(StoreError),
}

impl WriterState {
    fn work(&mut self, mut jobs: mpsc::Receiver<QueuedChange>) {
        let mut group = Vec::with_capacity(GROUP_CHANGES_MAX);
        while jobs.blocking_recv_many(&mut group, GROUP_CHANGES_MAX) > 0 {
            let outcomes = self.commit_to_own_files(&group);
            if outcomes.iter().any(Result::is_ok) {
                self.bell.ring();
                self.keeper.wrote(group.iter().map(|job| size(&job.change)).sum());
            }
            write_queue::answer(&mut group, outcomes);
        }
        self.files.part_from(&self.connection);
    }

    /// Commits. Only changes in the files at the database's path are reported as committed.
    fn commit_to_own_files(&mut self, group: &[QueuedChange]) -> BatchOutcomes {
        // Checked before and after the commit: a commit to a removed file would be lost.
        if let Err(replaced) = self.files.check() {
            return write_queue::all_fail(group, &replaced);
        }
        self.keeper.renew_if_too_long(&self.connection);
        let outcomes = self.commit(group);
        match self.files.check() {
            Ok(()) => outcomes,
            Err(replaced) => write_queue::all_fail(group, &replaced),
        }
    }

    fn commit(&mut self, group: &[QueuedChange]) -> BatchOutcomes {
        match self.commit_together(group, CommitMode::Hopeful) {
            Ok(outcomes) => return outcomes,
            // Another attempt would fail in the same way, and all callers behind it would have to wait.
            Err(SqliteBatchError::InAll(error @ StoreError::Unavailable { .. })) => {
                return write_queue::all_fail(group, &error);
            }
            Err(_) => {}
        }
        match self.commit_together(group, CommitMode::Careful) {
            Ok(outcomes) => outcomes,
            Err(SqliteBatchError::InOne(error)) if group.len() == 1 => vec![Err(error)],
            // Each change is committed on its own, so only the faulty one fails.
            Err(SqliteBatchError::InOne(_)) => group.iter().flat_map(|job| self.commit(slice::from_ref(job))).collect(),
            Err(SqliteBatchError::InAll(error)) => write_queue::all_fail(group, &error),
        }
    }

    fn commit_together(&mut self, group: &[QueuedChange], mood: CommitMode) -> Result<BatchOutcomes, SqliteBatchError> {
        // The write lock is taken at the start, because upgrading a read lock can fail.
        let begin = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begin.map_err(|error| SqliteBatchError::InAll(database(error)))?;
        (self.probe.0)(CommitPoint::Locked);
        let mut outcomes = Vec::with_capacity(group.len());
        let mut standing = LockedTransaction { transaction: &transaction, seen: HashMap::new() };
        for job in group {
            // The clock is read per change, because the writes before it take time.
            let now = self.clock_offset.applied_to(SystemClock.now());
            let moment = CheckTime { now, waited: job.waited() };
            let verdict = match mood {
                CommitMode::Hopeful => preconditions::check_but_written(&job.change, moment, &mut standing),
                CommitMode::Careful => preconditions::check(&job.change, moment, &mut standing),
            };
            match verdict {
                // Changes of the group may be written already, so the group is repeated from the start.
                Err(error) if mood == CommitMode::Hopeful => return Err(failure(error)),
                Err(error @ (StoreError::Database(_) | StoreError::Unavailable { .. })) => return Err(failure(error)),
                _ => {}
            }
            if verdict.is_ok() {
                let mut writes = job.change.writes.iter();
                writes.try_for_each(|it| write(&transaction, it)).map_err(failure)?;
                let mut labels = job.change.labels.iter();
                labels.try_for_each(|it| label(&transaction, it)).map_err(failure)?;
                standing.wrote(&job.change);
            }
            outcomes.push(verdict);
        }
        (self.probe.0)(CommitPoint::Written);
        transaction.commit().map_err(|error| SqliteBatchError::InAll(database(error)))?;
        (self.probe.0)(CommitPoint::Committed);
        Ok(outcomes)
    }
}

/// Decides whether an error of one change affects the whole group.
fn failure(error: StoreError) -> SqliteBatchError {
    match error {
        StoreError::Unavailable { .. } => SqliteBatchError::InAll(error),
        other => SqliteBatchError::InOne(other),
    }
}

/// The rows inside the transaction, which excluded all other writers when it began.
struct LockedTransaction<'t> {
    transaction: &'t Transaction<'t>,
    /// A cache of seals, because many changes of a group rely on the same few rows.
    seen: HashMap<Table, HashMap<String, Seal>>,
}

impl LockedTransaction<'_> {
    /// Removes the rows that a change wrote from the cache.
    fn wrote(&mut self, change: &ChangeSet) {
        for (table, id) in change.writes.iter().map(RowWrite::name) {
            if let Some(rows) = self.seen.get_mut(&table) {
                rows.remove(id);
            }
        }
    }

    fn ask<T: rusqlite::types::FromSql>(&self, text: &str, name: &str) -> Result<Option<T>, StoreError> {
        let mut statement = self.transaction.prepare_cached(text).map_err(database)?;
        statement.query_row([name], |row| row.get(0)).optional().map_err(database)
    }
}

impl LockedRows for LockedTransaction<'_> {
    fn seal(&mut self, table: Table, id: &str) -> Result<Option<Seal>, StoreError> {
        if let Some(seal) = self.seen.get(&table).and_then(|rows| rows.get(id)) {
            return Ok(Some(seal.clone()));
        }
        let seal = self.ask::<Seal>(&SqliteStatements::of(table).seal, id)?;
        if let Some(seal) = &seal {
            self.seen.entry(table).or_default().insert(id.to_owned(), seal.clone());
        }
        Ok(seal)
    }

    fn holder(&mut self, table: Table, alias: &str) -> Result<Option<String>, StoreError> {
        self.ask(&SqliteStatements::of(table).holder, alias)
    }
}

/// Writes one row. If the number of written rows is not one, the row is not as expected.
fn write(transaction: &Transaction<'_>, write: &RowWrite) -> Result<(), StoreError> {
    let (table, _) = write.name();
    let statements = SqliteStatements::of(table);
    let written = match write {
        RowWrite::Insert(row) => put(transaction, &statements.insert, row, None),
        RowWrite::Replace { row, over, moves } => {
            let text = match moves {
                FacetChange::Names => &statements.update,
                FacetChange::State => &statements.update_state,
                FacetChange::Nothing => &statements.update_content,
            };
            put(transaction, text, row, Some(over))
        }
        RowWrite::Remove { id, seal, .. } => {
            transaction.prepare_cached(&statements.delete).and_then(|mut it| it.execute((id, seal)))
        }
    };
    match written.map_err(database)? {
        1 => Ok(()),
        other => Err(StoreError::Database(format!("{other} rows of {} were written, not 1", table.name()))),
    }
}

/// Adds or removes one label, whether or not it exists.
fn label(transaction: &Transaction<'_>, labelling: &LabelChange) -> Result<(), StoreError> {
    let texts = LabelStatements::of(SqlDialect::Sqlite);
    let text = match labelling {
        LabelChange::Put(_) => &texts.put,
        LabelChange::Remove(_) => &texts.remove,
    };
    let it = labelling.label();
    let mut statement = transaction.prepare_cached(text).map_err(database)?;
    statement.execute((&it.kept_in, &it.word, it.due, &it.id)).map(drop).map_err(database)
}

fn put(transaction: &Transaction<'_>, text: &str, row: &SealedRow, over: Option<&Seal>) -> rusqlite::Result<usize> {
    let facets = &row.facets;
    let mut statement = transaction.prepare_cached(text)?;
    let columns: [&dyn ToSql; 9] = [
        &row.id,
        &facets.alias,
        &facets.owner,
        &facets.state,
        &facets.due,
        &row.revision,
        &row.body,
        &row.key_id,
        &row.mac,
    ];
    let parameters = columns.into_iter().chain(over.map(|seal| seal as &dyn ToSql));
    statement.execute(rusqlite::params_from_iter(parameters))
}

/// Returns the approximate number of bytes that a change adds to the write-ahead log.
fn size(change: &ChangeSet) -> usize {
    /// Names, seal, and the share of index pages, in addition to the body.
    const ROW_BYTES: usize = 1_024;
    /// A label with its share of index pages.
    const LABEL_BYTES: usize = 256;
    let body = |write: &RowWrite| match write {
        RowWrite::Insert(row) | RowWrite::Replace { row, .. } => row.body.len(),
        RowWrite::Remove { .. } => 0,
    };
    let labels: usize = change.labels.iter().map(|_| LABEL_BYTES).sum();
    labels + change.writes.iter().map(|write| body(write) + ROW_BYTES).sum::<usize>()
}
